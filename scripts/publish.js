'use strict'

// `node scripts/publish.js folder [--registry url] [--provenance]`: publishes the tarballs of a version, which `npm run
// package` has made: one for each platform, and the main one. Run by the workflow of a release, and by tests of
// packages that are published, for a registry of their own.
//
// Invariant: the platforms come first, so that whoever gets the main package can get his platform's.

const fs = require('fs')
const path = require('path')
const { packageName } = require('../lib/agent/target')
const { argumentsOf, command } = require('./lib/arguments')
const { manifestIn, succeedNpm } = require('./lib/npm')
const { targets } = require('./lib/targets')

/** Returns the tarballs of a version in the order of publication; none is missing, and there are no others. */
async function inOrder (folder) {
  const files = fs.readdirSync(folder).filter(name => name.endsWith('.tgz')).map(name => path.resolve(folder, name))
  const manifests = await Promise.all(files.map(manifestIn))
  const versions = new Set(manifests.map(({ version }) => version))
  if (versions.size !== 1)
    throw new Error(`${folder} has the versions ${[...versions].join(', ') || 'of nothing'}: one is allowed`)
  const names = manifests.map(({ name }) => name)
  const wanted = [...Object.keys(targets).map(packageName), 'atomics-waitasync']
  const wrong = wanted
    .filter((name) => !names.includes(name))
    .map((name) => `no ${name}`)
    .concat(names.filter((name) => !wanted.includes(name)))
  if (wrong.length > 0 || names.length !== wanted.length)
    throw new Error(`${folder} does not have one tarball for each platform and the main one: ${wrong.join(', ')}`)
  return wanted.map(name => files[names.indexOf(name)])
}

async function main () {
  const { positionals: [folder = 'dist'], registry, provenance } = argumentsOf(__filename, {
    registry: { type: 'string' }, provenance: { type: 'boolean' }
  }, { most: 1 })
  const args = [...(registry ? ['--registry', registry] : []), ...(provenance ? ['--provenance'] : [])]
  for (const tarball of await inOrder(folder))
    await succeedNpm(['publish', tarball, '--access', 'public', '--loglevel=error', ...args])
}

module.exports = { inOrder }

if (require.main === module) command(main)
