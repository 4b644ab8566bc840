'use strict'

// `npm run test:programs`: other people's packages that start Workers, load code or are compiled to WebAssembly with
// threads give with each entry preloaded what they give without. And the example with OpenTelemetry prints what it
// should.
//
//   node scripts/programs.js [--only text]
//
// The packages are those of __test__/company/programs/package-lock.json and examples/opentelemetry/package-lock.json,
// and kept in the user's cache folder.

const assert = require('assert')
const path = require('path')
const { argumentsOf, command } = require('./lib/arguments')
const { run } = require('./lib/child')
const { copyExample } = require('./lib/example')
const { LOCKED, installed } = require('./lib/npm')
const { Results } = require('./lib/results')
const { withScratch } = require('./lib/scratch')
const { admits } = require('./lib/test-file')
const nodes = require('./nodes')

const ROOT = path.join(__dirname, '..')
const ENTRIES = ['force', 'index', 'keep-alive', 'pure']
const COMMONJS = '{"module":"commonjs","moduleResolution":"node"}'

/** Tells whether a preloaded /force is in effect, in a Worker too. */
const EFFECT = `const { Worker, isMainThread } = require('worker_threads')
console.log(Atomics.wait[Symbol.for('atomics-waitasync')].engine)
if (isMainThread) new Worker('console.log(Atomics.wait[Symbol.for("atomics-waitasync")].engine)', { eval: true })`

/** The command lines, and a part of their output, or another check. `range`: of the Nodes that it supports. */
const programs = [
  { name: 'piscina', args: ['piscina.js'], says: '[ 2, 4, 6 ]' },
  { name: 'tinypool', args: ['tinypool.mjs'], says: 'child_process [ 2, 4, 6 ]' },
  { name: 'workerpool', args: ['workerpool.js'], says: 'process 3' },
  { name: 'synckit', args: ['synckit.js'], says: '10 12' },
  { name: 'comlink', args: ['comlink.js'], says: '8 [ 2, 3 ]' },
  { name: 'multithreading', args: ['multithreading.mjs'], says: '150' },
  { name: 'ava', args: ['node_modules/ava/entrypoints/cli.mjs', 'ava.mjs'], says: '1 test passed' },
  {
    name: 'mocha --parallel',
    args: ['node_modules/mocha/bin/mocha.js', '--parallel', 'mocha-one.js', 'mocha-two.js'],
    says: '2 passing'
  },
  { name: 'node --test', args: ['--test', 'node-test.js'], says: 'pass 1' },
  { name: 'tsx', args: ['node_modules/tsx/dist/cli.mjs', 'typescript.ts'], says: 'file 4' },
  {
    name: 'ts-node',
    args: ['-r', 'ts-node/register/transpile-only', 'typescript.ts'],
    env: { TS_NODE_COMPILER_OPTIONS: COMMONJS },
    says: 'file 4'
  },
  { name: 'mock-fs', args: ['mock-fs.js'], says: 'started', range: '>=22 <25' },
  {
    name: 'ses',
    args: ['ses.js'],
    env: { LOCKS: path.join(ROOT, 'pure', 'index.js') },
    says: 'TimeoutError 42 named ok'
  },
  { name: '--import', args: ['--import', './preload.mjs', 'import.mjs'], says: 'false 1 1' },
  { name: 'module.register', args: ['register.mjs'], says: 'false undefined undefined' },
  // Their threads share a queue with Node's own functions. So many of them warn that WASI is experimental as happen to
  // get to it.
  ...['z3-solver', 'onnxruntime-web', 'wasm-vips', 'argon2'].map((name) => {
    return { name, args: [`${name}.js`], env: { NODE_NO_WARNINGS: '1' }, says: 'passed', range: '>=20' }
  }),
  { name: 'examples/opentelemetry', check: checkExample }
]

/**
 * Differs from run to run: times, process ids, and complaints of a thread of Emscripten's that its own program
 * terminates.
 */
const BY_CHANCE = / ?\(?\b[\d.]+ ?m?s\b\)?|\bduration_ms:? [\d.]+|\(node:\d+\)|^received "cleanupThread".*\n/gm

async function result (node, { args, env }, cwd, entry) {
  const NODE_OPTIONS = entry === undefined ? '' : `-r ${JSON.stringify(path.join(ROOT, entry))}`
  const { code, error, output } = await run(node, args, {
    cwd,
    timeout: 60 * 1000,
    env: { ...process.env, CI: 'true', FORCE_COLOR: '0', NODE_OPTIONS, ...env }
  })
  if (error) throw new Error(String(error))
  return { code, output: output.replace(BY_CHANCE, '') }
}

async function check (node, program, cwd) {
  const plain = await result(node, program, cwd)
  assert.strictEqual(plain.code, 0, plain.output)
  assert.ok(plain.output.includes(program.says), plain.output)
  for (const entry of ENTRIES) assert.deepStrictEqual(await result(node, program, cwd, entry), plain, `with /${entry}`)
}

const OPENTELEMETRY = path.join(ROOT, 'examples', 'opentelemetry')

/** The output of the example; of times, only that they are there. */
const MEASURED = [
  /^the holder of the ledger has died: true$/m,
  /^TimeoutError, AbortError$/m,
  /^waiters of the ledger: 2$/m,
  /^the oldest waits: true$/m,
  ...[
    ['lock.wait.duration', 'AsyncLock orders', "'acquired'", '[1-9]\\d*', '0\\.\\d+'],
    ['lock.wait.duration', 'named prices', "'acquired'", '[1-9]\\d*', '0\\.\\d+'],
    ['lock.wait.duration', 'AsyncLock ledger', "'timed-out'", '1', '0\\.\\d+'],
    ['lock.hold.duration', 'AsyncLock orders', 'undefined', '150', '0\\.\\d+'],
    ['lock.hold.duration', 'named prices', 'undefined', '15', '0\\.\\d+'],
    // Main had it from the dead holder, and then for the two that waited.
    ['lock.hold.duration', 'AsyncLock ledger', 'undefined', '3', '0\\.\\d+'],
    ['lock.wait.timeouts', 'AsyncLock ledger', 'undefined', '1'],
    ['lock.wait.aborts', 'AsyncLock ledger', 'undefined', '1'],
    ['lock.owner.deaths', 'AsyncLock ledger', 'undefined', '1'],
    // Nobody waits any more.
    ['lock.waiters', 'AsyncLock ledger', 'undefined', '0'],
    ['lock.wait.oldest', 'AsyncLock ledger', 'undefined', '0']
  ].map(([metric, lock, ...values]) => new RegExp(`│ '${metric}' *│ '${lock}' *│ ${values.join(' *│ ')} *│`))
]

async function checkExample (node) {
  const modules = path.join(await installed('opentelemetry', OPENTELEMETRY, LOCKED), 'node_modules')
  await withScratch(async scratch => {
    const { code, output } = await result(node, { args: ['index.mjs'] }, copyExample(scratch, modules, OPENTELEMETRY))
    assert.strictEqual(code, 0, output)
    for (const pattern of MEASURED) assert.match(output, pattern)
  })
}

async function main () {
  const { only } = argumentsOf(__filename, { only: { type: 'string', default: '' } })
  const results = new Results()
  const folder = await installed('programs', path.join(ROOT, '__test__', 'company', 'programs'))
  for (const version of nodes.majors.filter(major => major >= 20)) {
    const node = await nodes.get(version)
    if (!node.skipped)
      assert.strictEqual((await result(node.path, { args: ['-e', EFFECT] }, folder, 'force')).output, 'addon\naddon\n')
    for (const program of programs) {
      const { check: ofItsKind = check, range = '>=22' } = program
      const name = `${program.name}, Node ${version}`
      const reason = node.skipped || (!admits({ range }, version) && 'the package does not support this Node')
      if (name.includes(only)) await results.of(name, () => ofItsKind(node.path, program, folder), reason)
    }
  }
  results.close()
}

command(main)
