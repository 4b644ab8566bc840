'use strict'

// The first step of every command on a fresh clone: it installs the development dependencies and builds the native
// part. Quick when there is nothing to do.

const fs = require('fs')
const path = require('path')
const { build } = require('./build')
const { command } = require('./lib/arguments')
const { succeedNpm } = require('./lib/npm')
const { compareVersions } = require('./lib/versions')

const root = path.join(__dirname, '..')
/** ESLint's. */
const OLDEST_NODE = '20.19'

/** Installs and builds missing and stale parts. Rejects with an error that has the remedy. */
async function run () {
  await installDependencies()
  await build()
}

/** Installs the development dependencies, unless they match the lock file. */
async function installDependencies () {
  if (compareVersions(process.versions.node, OLDEST_NODE) < 0) {
    throw new Error(
      `this needs Node ${OLDEST_NODE} or newer to run (it is ${process.version}); it fetches older ones itself to test`
    )
  }
  const stale = staleDependency()
  if (stale === undefined) return
  console.error(`npm ci (${stale} is missing or not the locked version)`)
  // With the development dependencies also where NODE_ENV says production; without the package's own scripts: what they
  // would do is done here.
  await succeedNpm(['ci', '--include=dev', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: root })
}

/** Finds a stale dependency: npm's notes of its installation must equal the lock file. */
function staleDependency () {
  const [locked, installed] = ['package-lock.json', path.join('node_modules', '.package-lock.json')].map(file => {
    return fs.existsSync(path.join(root, file))
      ? JSON.parse(fs.readFileSync(path.join(root, file), 'utf8')).packages
      : {}
  })
  const isThere = (folder) =>
    installed[folder]?.integrity === locked[folder].integrity && fs.existsSync(path.join(root, folder, 'package.json'))
  return Object.keys(locked).find(folder => folder !== '' && !locked[folder].optional && !isThere(folder))
}

module.exports = { run, installDependencies }

if (require.main === module) command(run)
