'use strict'

// Runs npm: the one at hand (that which started this script, otherwise the one on the PATH), or a release of one's
// choice.

const crypto = require('crypto')
const fs = require('fs')
const path = require('path')
const cache = require('./cache')
const { run, succeed, succeeded } = require('./child')

/** What npm says where there is no network. */
const UNREACHABLE = /\b(?:ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ETIMEDOUT|ENETUNREACH)\b/
const FETCH_TIMEOUT = 10 * 60 * 1000

/** Runs npm, like `run` of child.js. */
function npm (args, options) {
  const own = process.env.npm_execpath
  if (own && /^npm-cli\.c?js$/.test(path.basename(own))) return run(process.execPath, [own, ...args], options)
  // On Windows npm is a batch file, which only a shell can start. No argument used here needs quoting.
  return run('npm', args, { ...options, shell: process.platform === 'win32' })
}

/** Runs npm, which has to succeed; gives its stdout. */
async function succeedNpm (args, options) {
  return succeeded(await npm(args, options), ['npm', ...args]).stdout
}

/**
 * Fetches a package from the npm registry into a folder. Gives the absolute path of its files.
 * @param {string} spec like `npm@6.14.18`
 * @throws {cache.Unavailable} the registry has no such package
 */
async function download (spec, folder) {
  const packed = await npm(['pack', spec, '--ignore-scripts', '--loglevel=error'], {
    cwd: folder,
    timeout: FETCH_TIMEOUT
  })
  const archive = fs.readdirSync(folder).find(name => name.endsWith('.tgz'))
  if (packed.code !== 0 || archive === undefined) {
    if (/\bcode (E404|ETARGET)\b/.test(packed.output)) throw new cache.Unavailable(`the npm registry has no ${spec}`)
    throw new Error(
      `npm pack ${spec} failed${packed.timedOut ? ' (timed out)' : ''}:\n${packed.error || packed.output}`
    )
  }
  // Relative names: some tars take a drive letter for the name of a host.
  await succeed('tar', ['-xzf', archive], { cwd: folder, timeout: FETCH_TIMEOUT })
  return path.join(folder, 'package')
}

/**
 * Fetches a program of the npm registry into the cache, once.
 * @param {{ spec: string, target: string, binary: string, version: string }} options `target` is its folder of the
 *   cache, and `binary` the path in it; it says `version` when it is asked for it
 * @throws {cache.Unavailable} there is none, or it does not run on this system
 */
async function program ({ spec, target, binary, version }) {
  await cache.fill(target, async scratch => {
    const fresh = await download(spec, scratch)
    const file = path.join(fresh, binary)
    fs.chmodSync(file, 0o755)
    const trial = await run(file, ['--version'], { timeout: 60000 })
    if (trial.stdout.includes(version)) return fresh
    throw new cache.Unavailable(
      `${spec} does not run on this system: ${(trial.error ? trial.error.message : trial.output).trim().split('\n')[0]}`
    )
  })
  return path.join(target, binary)
}

/** Returns the manifest of a tarball. */
async function manifestIn (file) {
  // Without a folder in the name, which some tars take for a host's.
  return JSON.parse(
    await succeed('tar', ['-xzOf', path.basename(file), 'package/package.json'], { cwd: path.dirname(file) })
  )
}

/**
 * Returns the command line of a release of npm or another tool: its file `bin`.
 */
async function release (name, version, bin) {
  const folder = await cache.fill(cache.folder(name.replace('/', '+'), version), (scratch) =>
    download(`${name}@${version}`, scratch)
  )
  return path.join(folder, bin)
}

/** Copies a folder's files into the cache, with their packages; made anew when one of them changes. */
async function installed (kind, source, files = filesIn(source)) {
  const hash = crypto.createHash('sha256')
  for (const name of files) hash.update(name).update(fs.readFileSync(path.join(source, name)))
  return cache.fill(cache.folder(kind, hash.digest('hex').slice(0, 16)), async scratch => {
    const home = path.join(scratch, 'home')
    fs.mkdirSync(home)
    for (const name of files) fs.copyFileSync(path.join(source, name), path.join(home, name))
    // Not `npm ci`, which refuses a lock file that lacks a package for other platforms, as a mirror may.
    await succeedNpm(['install', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'], { cwd: home })
    return home
  })
}

const filesIn = (folder) =>
  fs
    .readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ name }) => name)
    .sort()

/** The files that `installed` needs of a folder that has others, too. */
const LOCKED = ['package-lock.json', 'package.json']

module.exports = { LOCKED, UNREACHABLE, installed, npm, manifestIn, program, succeedNpm, download, release }
