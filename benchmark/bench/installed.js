'use strict'

// The package as users have it: in a node_modules, in the form that is published, with the library in the platform's
// own package. And beside it an empty one.

const fs = require('fs')
const path = require('path')
const { libraryFile, packageName, target } = require('../../lib/agent/target')
const { npm } = require('../../scripts/lib/npm')
const { makePlatform, stageMain } = require('../../scripts/package')

const ROOT = path.join(__dirname, '..', '..')
const TIMEOUT = 120000

/** Installs both in a folder, with a module that loads from there. */
async function install (folder) {
  const [main, platform, empty] = ['atomics-waitasync', packageName(target()), 'empty'].map((name) =>
    path.join(folder, 'node_modules', name)
  )
  await stageMain(main)
  makePlatform(platform, target(), path.join(ROOT, libraryFile(target())))
  const manifest = JSON.parse(fs.readFileSync(path.join(main, 'package.json'), 'utf8'))
  fs.mkdirSync(empty)
  fs.writeFileSync(path.join(empty, 'package.json'), JSON.stringify({ ...manifest, name: 'empty' }))
  fs.writeFileSync(path.join(empty, 'index.js'), '')
  fs.writeFileSync(path.join(folder, 'load.js'), 'module.exports = (request) => require(request)\n')
}

/** Installs the packages that the locks are compared with. Missing ones are left out of the tables. */
async function installPeers () {
  const installed = await npm(['install', '--no-audit', '--no-fund', '--ignore-scripts'], {
    cwd: path.join(ROOT, 'benchmark'),
    timeout: TIMEOUT
  })
  if (installed.code !== 0)
    console.error(`The packages to compare with could not be installed, and are left out:\n${installed.output}`)
}

module.exports = { install, installPeers }
