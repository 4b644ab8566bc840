'use strict'

// The Node versions of the tests, and the source of their binaries: the packages that the npm registry holds for
// `node-<platform>-<arch>`. They are kept in the user's cache folder, one folder per version.

const { execFileSync } = require('child_process')
const fs = require('fs')
const path = require('path')
const { list } = require('./lib/arguments')
const cache = require('./lib/cache')
const npm = require('./lib/npm')

// Sorted. Nothing else names these versions: scripts go by majors, and `npm run lint -- --fix` writes them into
// workflows and pages. In 20.11.1 a worker with a FinalizationRegistry may never end, see lib/util/intrinsics.js.
const versions = [
  '10.24.1', '12.22.12', '14.21.3', '15.14.0', '16.20.2', '18.20.8', '20.11.1', '20.20.2', '22.23.5', '24.22.3',
  '26.12.1'
]
const majors = [...new Set(versions.map(version => version.split('.')[0]))]

const WINDOWS = process.platform === 'win32'
const BINARY = path.join('bin', WINDOWS ? 'node.exe' : 'node')

/** From the path of a binary to its version. */
const asked = new Map()

/**
 * Reads the `--node` of a command: with commas between them, full versions (14.21.3), major ones (14: the newest of
 * them in the list above), `current` (the Node that runs this), or paths of binaries; `all`: every version of the list.
 * @returns {string[]} arguments of `get`
 * @throws {Error} with the allowed ones
 */
function read (text) {
  const names = text === 'all' ? versions : list(text)
  if (names.length === 0) throw new Error('full or major versions, current or all are allowed')
  for (const name of names) resolve(name)
  return names
}

const isBinary = name => path.basename(name) !== name && fs.existsSync(name)

/**
 * Returns the binary of one version, fetched if it is missing.
 * @param {string} version one of those that `read` gives
 * @returns {Promise<{ version: string, path: string, flags: string[] } | { version: string, skipped: string }>}
 *   `flags`: what this version needs to have workers; `skipped`: why this platform cannot have this version
 * @throws {Error} when it could not be fetched for another reason (no network, ...)
 */
async function get (version) {
  const exact = resolve(version)
  const flags = flagsOf(exact)
  if (isBinary(version)) return { version: exact, path: path.resolve(version), flags }
  const target = cache.folder('node', exact)
  const binary = path.join(target, BINARY)
  // No need to fetch the running one; and where the registry has no binaries, it is the one that can be had.
  if (exact === process.versions.node && !fs.existsSync(binary))
    return { version: exact, path: process.execPath, flags }
  const platform = WINDOWS ? 'win' : process.platform
  const arch = process.arch === 'ia32' ? 'x86' : process.arch
  const spec = `node-${platform}-${arch}@${exact}`
  return npm.program({ spec, target, binary: BINARY, version: `v${exact}` }).then(
    path => ({ version: exact, path, flags }),
    error => {
      if (!(error instanceof cache.Unavailable)) throw error
      return { version: exact, skipped: error.message }
    }
  )
}

/** Returns the full version that a text means, see `get`. */
function resolve (text) {
  if (isBinary(text)) return versionOf(text)
  if (text === 'current') return process.versions.node
  if (/^\d+\.\d+\.\d+$/.test(text)) return text
  const version = versions.filter(each => each.startsWith(`${text}.`)).pop()
  if (version === undefined)
    throw new Error(`no Node version '${text}': give a full version, 'current', or one of ${versions.join(' ')}`)
  return version
}

/** Returns the version of a binary. Asked once: an emulated one takes seconds to say it. */
function versionOf (binary) {
  if (!asked.has(binary)) asked.set(binary, execFileSync(binary, ['--version'], { encoding: 'utf8' }).trim().slice(1))
  return asked.get(binary)
}

function flagsOf (version) {
  const [major, minor] = version.split('.').map(Number)
  return major < 11 || (major === 11 && minor < 7) ? ['--experimental-worker'] : []
}

/** Calls `use` with each of these versions that can be had. It says of the others why they cannot. */
async function each (names, use) {
  for (const name of names) {
    const node = await get(name)
    if (node.skipped) console.error(`Node ${node.version}: skipped: ${node.skipped}`)
    else await use(node)
  }
}

module.exports = { versions, majors, each, get, read, resolve }
