'use strict'

// The Node versions that this package is tested on, and where their binaries come from: the packages that the npm registry
// holds for `node-<platform>-<arch>`. They are kept outside the tree, in the user's cache folder, one folder per version.
//
// What holds: a folder that is there is complete. It is unpacked and tried elsewhere and then moved into place, so two
// runs at once do not disturb each other and an interrupted one leaves nothing that looks finished.
//
//   node scripts/nodes.js [version ...]     fetches them (all unless given) and says where they are

const fs = require('fs')
const os = require('os')
const path = require('path')
const { run } = require('./lib/child')
const { npm } = require('./lib/npm')

const versions = [
  '10.24.1', '12.22.12', '14.21.3', '15.14.0', '16.20.2', '18.20.8', '20.20.2', '22.23.3', '24.21.0', '26.10.0'
]

const WINDOWS = process.platform === 'win32'
const BINARY = path.join('bin', WINDOWS ? 'node.exe' : 'node')
const FETCH_TIMEOUT = 10 * 60 * 1000
const ABANDONED = 24 * 60 * 60 * 1000

const pending = new Map()

/**
 * The binary of one version, fetched if it is not here yet.
 * @param {string} version a full version (14.21.3), a major one of the list (14), or `current`: the Node that runs this
 * @returns {Promise<{ version: string, path: string, flags: string[] } | { version: string, skipped: string }>}
 *   `flags`: what this version needs to have workers; `skipped`: why this platform cannot have this version
 * @throws {Error} when it could not be fetched for another reason (no network, ...)
 */
function get (version) {
  version = resolve(version)
  if (!pending.has(version)) pending.set(version, find(version))
  return pending.get(version)
}

function resolve (text) {
  if (text === 'current') return process.versions.node
  if (/^\d+\.\d+\.\d+$/.test(text)) return text
  const version = versions.find(each => each.startsWith(`${text}.`))
  if (version === undefined) throw new Error(`no Node version '${text}': give a full version, 'current', or one of ${versions.join(' ')}`)
  return version
}

async function find (version) {
  const found = { version, path: path.join(folderOf(version), BINARY), flags: flagsOf(version) }
  if (fs.existsSync(found.path)) return found
  // No need to fetch what is running; and where the registry has no binaries, it is the one that can be had.
  if (version === process.versions.node) return { ...found, path: process.execPath }
  const skipped = await download(version)
  return skipped ? { version, skipped } : found
}

function flagsOf (version) {
  const [major, minor] = version.split('.').map(Number)
  return major < 11 || (major === 11 && minor < 7) ? ['--experimental-worker'] : []
}

function cacheFolder () {
  if (process.env.XDG_CACHE_HOME) return process.env.XDG_CACHE_HOME
  if (WINDOWS) return process.env.LOCALAPPDATA || path.join(os.homedir(), 'AppData', 'Local')
  return path.join(os.homedir(), ...(process.platform === 'darwin' ? ['Library', 'Caches'] : ['.cache']))
}

function folderOf (version) {
  return path.join(cacheFolder(), 'atomics-waitasync', 'node', version)
}

// Gives the reason why this platform cannot have this version, or nothing once it is in place.
async function download (version) {
  const platform = WINDOWS ? 'win' : process.platform
  const spec = `node-${platform}-${process.arch}@${version}`
  const store = path.dirname(folderOf(version))
  fs.mkdirSync(store, { recursive: true })
  removeAbandoned(store)
  const scratch = fs.mkdtempSync(path.join(store, '.fetching-'))
  try {
    const packed = await npm(['pack', spec, '--ignore-scripts', '--loglevel=error'], { cwd: scratch, timeout: FETCH_TIMEOUT })
    const archive = fs.readdirSync(scratch).find(name => name.endsWith('.tgz'))
    if (packed.code !== 0 || archive === undefined) {
      if (/\bcode (E404|ETARGET)\b/.test(packed.output)) return `the npm registry has no ${spec}`
      throw new Error(`npm pack ${spec} failed${packed.timedOut ? ' (timed out)' : ''}:\n${packed.error || packed.output}`)
    }
    // Relative names: some tars take a drive letter for the name of a host.
    const unpacked = await run('tar', ['-xzf', archive], { cwd: scratch, timeout: FETCH_TIMEOUT })
    if (unpacked.code !== 0) throw new Error(`unpacking ${archive} failed:\n${unpacked.error || unpacked.output}`)

    const fresh = path.join(scratch, 'package')
    const trial = await run(path.join(fresh, BINARY), ['--version'], { timeout: 60000 })
    if (trial.stdout.trim() !== `v${version}`) {
      return `${spec} does not run on this system: ${(trial.error ? trial.error.message : trial.output).trim().split('\n')[0]}`
    }
    moveIntoPlace(fresh, folderOf(version))
  } finally {
    fs.rmSync(scratch, { recursive: true, force: true, maxRetries: 5 })
  }
}

function moveIntoPlace (fresh, folder) {
  try {
    fs.renameSync(fresh, folder)
  } catch (error) {
    // Another run may have been quicker: then its folder is as good as ours.
    if (!fs.existsSync(path.join(folder, BINARY))) throw error
  }
}

// What a run that was killed has left. A day, so that nobody's running one is taken for it.
function removeAbandoned (store) {
  for (const name of fs.readdirSync(store)) {
    const folder = path.join(store, name)
    try {
      if (name.startsWith('.fetching-') && Date.now() - fs.statSync(folder).mtimeMs > ABANDONED) fs.rmSync(folder, { recursive: true })
    } catch {
      // Somebody else removes it at this moment.
    }
  }
}

module.exports = { versions, get }

async function main () {
  const wanted = process.argv.length > 2 ? process.argv.slice(2) : versions
  for (const version of wanted) {
    const node = await get(version)
    console.log(node.skipped ? `${node.version}  skipped: ${node.skipped}` : `${node.version}  ${node.path}`)
  }
}

if (require.main === module) {
  main().catch(error => {
    console.error(error.message)
    process.exitCode = 1
  })
}
