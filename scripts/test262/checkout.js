'use strict'

// A checkout of test262: which tests it has for the three functions, and the jobs (test × strictness) they make.

const fs = require('fs')
const path = require('path')
const { parseFrontmatter } = require('./frontmatter')

// What a test needs of the engine beside the features that it lists: BigInt came to Node before the other functions of Atomics
// took a BigInt64Array. The harness's waitUntil and safeBroadcastAsync call them too.
const ATOMICS_ON_BIGINT = 'Atomics.load, store, add and the like on a BigInt64Array'
const USES_ATOMICS = /Atomics\.(?:add|and|compareExchange|exchange|load|or|store|sub|xor)\(|waitUntil\(|safeBroadcastAsync\(/

const FOLDERS = ['wait', 'waitAsync', 'notify'].map(name => `test/built-ins/Atomics/${name}`)

/**
 * @param {string} dir the checkout
 * @param {{ only?: string }} options `only`: part of a test's path
 * @returns {{ name: string, meta: object, jobs: object[] }[]} sorted by name; names are relative to test/built-ins/Atomics
 * @throws {Error} if the folder is not a checkout of test262 or nothing is left to run
 */
function collectTests (dir, { only = '' } = {}) {
  for (const needed of ['harness/assert.js', 'harness/sta.js', ...FOLDERS]) {
    if (!fs.existsSync(path.join(dir, needed))) {
      throw new Error(`--dir ${dir} is not a checkout of test262: it has no ${needed}. ` +
        'Get one with: git clone --depth 1 https://github.com/tc39/test262')
    }
  }
  const tests = FOLDERS.flatMap(folder => files(path.join(dir, folder)))
    .filter(file => file.endsWith('.js') && !file.includes('_FIXTURE'))
    .map(file => describeTest(dir, file))
    .filter(test => test.name.includes(only))
  if (tests.length === 0) throw new Error(`--only ${only}: no test has this in its path`)
  return tests.sort((a, b) => (a.name < b.name ? -1 : 1))
}

function files (folder) {
  return fs.readdirSync(folder, { withFileTypes: true }).flatMap(entry => {
    const full = path.join(folder, entry.name)
    return entry.isDirectory() ? files(full) : [full]
  })
}

function describeTest (dir, file) {
  const source = fs.readFileSync(file, 'utf8')
  const meta = parseFrontmatter(source)
  if (meta.features.includes('BigInt') && USES_ATOMICS.test(source)) meta.features.push(ATOMICS_ON_BIGINT)
  const name = path.relative(path.join(dir, 'test/built-ins/Atomics'), file).split(path.sep).join('/')
  const scripts = harnessOf(meta).map(include => path.join(dir, 'harness', include))
  const jobs = modesOf(meta).map(mode => ({
    mode,
    file,
    scripts,
    strict: mode === 'strict',
    async: meta.flags.includes('async'),
    negative: meta.negative
  }))
  return { name, meta, jobs }
}

// The order is the one INTERPRETING.md asks for.
function harnessOf ({ flags, includes }) {
  if (flags.includes('raw')) return []
  return ['assert.js', 'sta.js', ...(flags.includes('async') ? ['doneprintHandle.js'] : []), ...includes]
}

function modesOf ({ flags }) {
  if (flags.includes('raw') || flags.includes('noStrict')) return ['sloppy']
  if (flags.includes('onlyStrict')) return ['strict']
  if (flags.includes('module')) return ['module']
  return ['sloppy', 'strict']
}

module.exports = { collectTests }
