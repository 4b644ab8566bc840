'use strict'

// A checkout of test262: which tests it has for the three functions, and what their metadata asks for.

const fs = require('fs')
const path = require('path')
const { list } = require('../../../scripts/lib/arguments')

// What a test needs of the engine beside the features that it lists: BigInt came to Node before the other functions of
// Atomics took a BigInt64Array. The harness's waitUntil and safeBroadcastAsync call them too.
const ATOMICS_ON_BIGINT = 'Atomics.load, store, add and the like on a BigInt64Array'
const USES_ATOMICS =
  /Atomics\.(?:add|and|compareExchange|exchange|load|or|store|sub|xor)\(|waitUntil\(|safeBroadcastAsync\(/

const ATOMICS = 'test/built-ins/Atomics'
const FLAGS = ['async', 'noStrict', 'onlyStrict', 'CanBlockIsTrue', 'CanBlockIsFalse']

/**
 * @param {string} dir the checkout
 * @param {string} only part of a test's path
 * @returns {object[]} sorted by name, which is relative to test/built-ins/Atomics; `scripts`: the files that run before
 *   it
 * @throws {Error} if the folder is not a checkout of test262 or nothing is left to run
 */
function collectTests (dir, only) {
  const folders = ['wait', 'waitAsync', 'notify'].map(name => path.join(dir, ATOMICS, name))
  if (![path.join(dir, 'harness', 'assert.js'), ...folders].every(needed => fs.existsSync(needed))) {
    throw new Error(
      `--dir ${dir} is not a checkout of test262. Get one with: git clone --depth 1 https://github.com/tc39/test262`
    )
  }
  const tests = folders
    .flatMap(folder => fs.readdirSync(folder, { recursive: true }).map(name => path.join(folder, name)))
    .filter(file => file.endsWith('.js') && !file.includes('_FIXTURE'))
    .map(file => describe(dir, file))
    .filter(({ name }) => name.includes(only))
  if (tests.length === 0) throw new Error(`--only ${only}: no test has this in its path`)
  return tests.sort((a, b) => (a.name < b.name ? -1 : 1))
}

function describe (dir, file) {
  const name = path.relative(path.join(dir, ATOMICS), file).split(path.sep).join('/')
  const source = fs.readFileSync(file, 'utf8')
  const [, metadata] = /\/\*---([^]*?)---\*\//.exec(source)
  const [features, flags, includes] = ['features', 'flags', 'includes'].map(key => {
    const [there, items] = new RegExp(`^${key}:(?: *\\[([^\\]]*)\\])?`, 'm').exec(metadata) || [false, '']
    if (there && items === undefined) throw new Error(`${name}: cannot read its ${key}`)
    return list(items)
  })
  const unknown = flags.filter(flag => !FLAGS.includes(flag)).concat(/^negative:/m.test(metadata) ? 'negative' : [])
  if (unknown.length > 0) throw new Error(`${name} asks for what this runner does not have: ${unknown.join(', ')}`)
  return {
    name,
    file,
    async: flags.includes('async'),
    features: [...features, ...(features.includes('BigInt') && USES_ATOMICS.test(source) ? [ATOMICS_ON_BIGINT] : [])],
    // The order is the one INTERPRETING.md asks for.
    scripts: ['assert.js', 'sta.js', ...(flags.includes('async') ? ['doneprintHandle.js'] : []), ...includes].map(
      each => path.join(dir, 'harness', each)
    ),
    modes: [...(flags.includes('onlyStrict') ? [] : ['sloppy']), ...(flags.includes('noStrict') ? [] : ['strict'])],
    skipped: flags.includes('CanBlockIsFalse') ? 'for main threads that must not block: on Node every thread may' : null
  }
}

module.exports = { collectTests }
