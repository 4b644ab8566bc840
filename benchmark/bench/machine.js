'use strict'

// The machine and the versions of a result.

const { execFileSync } = require('child_process')
const fs = require('fs')
const os = require('os')
const path = require('path')
const { libraryFile, target } = require('../../lib/agent/target')

const ROOT = path.join(__dirname, '..', '..')

function git (...args) {
  try {
    return execFileSync('git', args, { cwd: ROOT, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()
  } catch {
    return undefined
  }
}

const MEASURED = ['lib', 'core', 'src', 'Cargo.toml', 'Cargo.lock', 'benchmark/bench', 'benchmark/bench.js']

/** Returns the commit, with a plus if measured files have changed since. */
function commit () {
  const id = git('rev-parse', '--short=10', 'HEAD')
  if (id === undefined) return 'unknown'
  return id + (git('status', '--porcelain', '--', ...MEASURED) ? '+' : '')
}

function peers () {
  const versions = {}
  const { dependencies, optionalDependencies } = require('../package.json')
  for (const name of Object.keys({ ...dependencies, ...optionalDependencies })) {
    const file = path.join(__dirname, '..', 'node_modules', name, 'package.json')
    if (fs.existsSync(file)) versions[name] = JSON.parse(fs.readFileSync(file, 'utf8')).version
  }
  return versions
}

function describe () {
  const cpus = os.cpus()
  return {
    date: new Date().toISOString().slice(0, 16).replace('T', ' '),
    package: require('../../package.json').version,
    commit: commit(),
    peers: peers(),
    system: `${os.type()} ${os.release()} ${process.arch}`,
    processor: cpus[0].model.trim(),
    cores: cpus.length,
    load: os.loadavg()[0]
  }
}

/** Returns the native library of this platform, in kilobytes. */
const librarySize = () => fs.statSync(path.join(ROOT, libraryFile(target()))).size / 1000

module.exports = { describe, librarySize }
