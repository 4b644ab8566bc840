'use strict'

// The package as users have it: in a node_modules, in the form that is published, with the library in the platform's own package. And
// beside it an empty one.

const fs = require('fs')
const path = require('path')
const { libraryFile, packageName, target } = require('../../lib/agent/target')
const { manifestOf } = require('../../scripts/lib/targets')
const { stageMain } = require('../../scripts/package')

const ROOT = path.join(__dirname, '..', '..')

/** Installs both in a folder, with a module that loads from there what it is told to. */
async function install (folder) {
  const [main, platform, empty] = ['atomics-waitasync', packageName(target()), 'empty'].map(name => path.join(folder, 'node_modules', name))
  await stageMain(main)
  const manifest = JSON.parse(fs.readFileSync(path.join(main, 'package.json'), 'utf8'))
  fs.mkdirSync(platform)
  fs.writeFileSync(path.join(platform, 'package.json'), JSON.stringify(manifestOf(target(), manifest)))
  fs.copyFileSync(path.join(ROOT, libraryFile(target())), path.join(platform, libraryFile(target())))
  fs.mkdirSync(empty)
  fs.writeFileSync(path.join(empty, 'package.json'), JSON.stringify({ ...manifest, name: 'empty' }))
  fs.writeFileSync(path.join(empty, 'index.js'), '')
  fs.writeFileSync(path.join(folder, 'load.js'), 'module.exports = (request) => require(request)\n')
}

module.exports = { install }
