'use strict'

// The toolchain that links against old glibc, or musl, on any Linux: cargo-zigbuild and zig, in the versions and with
// the hashes of scripts/zig/requirements.txt, kept in the user's cache folder. pip fetches them, as that is where zig
// is published.

const crypto = require('crypto')
const fs = require('fs')
const path = require('path')
const cache = require('./cache')
const { run } = require('./child')

const REQUIREMENTS = path.join(__dirname, '..', 'zig', 'requirements.txt')
const FETCH_TIMEOUT = 10 * 60 * 1000

/**
 * Returns the program `cargoZigbuild`, and the `folders` for its PATH; fetched if they are not here yet.
 * @throws {cache.Unavailable} this machine cannot have it
 */
async function toolchain () {
  const version = crypto.createHash('sha256').update(fs.readFileSync(REQUIREMENTS)).digest('hex').slice(0, 16)
  const home = await cache.fill(cache.folder('zig', version), install)
  const programs = path.join(home, 'bin')
  return { cargoZigbuild: path.join(programs, 'cargo-zigbuild'), folders: [programs, path.join(home, 'ziglang')] }
}

async function install (scratch) {
  if (process.platform !== 'linux' || process.arch !== 'x64')
    throw new cache.Unavailable('releases for Linux are built on Linux x64')
  const pip = await run('python3', ['-m', 'pip', '--version'], { timeout: 60000 })
  if (pip.code !== 0)
    throw new cache.Unavailable('linking against glibc 2.17 needs zig, which Python\'s pip fetches, and there is none')
  const target = path.join(scratch, 'home')
  const options = [
    '--target', target, '--no-deps', '--only-binary', ':all:', '--require-hashes', '--quiet', '--no-input'
  ]
  const ended = await run('python3', ['-m', 'pip', 'install', ...options, '-r', REQUIREMENTS], {
    cwd: scratch,
    timeout: FETCH_TIMEOUT
  })
  if (ended.code !== 0)
    throw new Error(`pip install of ${path.basename(REQUIREMENTS)} failed:\n${ended.error || ended.output}`)
  return target
}

module.exports = { toolchain }
