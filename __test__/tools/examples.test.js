// timeout: 300
'use strict'

// Every example runs on the Nodes that can run its kind of module, and prints what it should.

const assert = require('assert')
const fs = require('fs')
const { isBuiltin } = require('module')
const os = require('os')
const path = require('path')
const { test } = require('../harness')
const { folderWithPackage } = require('../fixtures/entries/folders')
const { runNode } = require('../fixtures/run-node')

const EXAMPLES = path.join(__dirname, '..', '..', 'examples')
const WABT = path.join(__dirname, '..', '..', 'node_modules', 'wabt')

/** Whether this Node has a module of its own; one without isBuiltin is too old to have those that are asked for. */
const hasModule = (name) => isBuiltin !== undefined && isBuiltin(name)

/** The first major version of Node with top-level `await`, and those that run TypeScript. */
const FIRST = { '.mjs': 14, '.mts': 22 }
const MAJOR = Number(process.versions.node.split('.')[0])

const ONE_OF_THREE = '  one holds an AsyncLock and waits for the AsyncLock of the next'

/**
 * The output of each: its lines, in any order where they are an array, or a pattern. `args`: its arguments; `since`:
 * the first major version with all it uses; `elsewhere`: why it does not run here.
 */
const expected = {
  'article-mutex': { prints: "counted to 61000 of 61000; main's event loop went on meanwhile\n" },
  'timeout-and-abort': {
    since: 16,
    prints: `a worker holds the lock
free right now? false
TimeoutError: Timed out after 50 ms waiting for an AsyncLock, held by thread 1
AbortError
main holds the lock
`
  },
  'surviving-a-crash': {
    prints: `after a transfer of 30: 70 + 30 = 100
a worker crashed: out of luck
after a crash in the middle of a transfer of 50: 20 + 30 = 50
main has the lock, and knows: ownerDied is true
repaired: 70 + 30 = 100
and on it goes: 20 + 80 = 100, ownerDied is false
`
  },
  contention: { prints: /\nmost of the time 3 threads waited for the (AsyncLock "queue"|RwLock "cache")\n$/ },
  deadlock: {
    prints: `ERR_DEADLOCK: a cycle of 3 threads
${ONE_OF_THREE}
${ONE_OF_THREE}
${ONE_OF_THREE}
balances in the end: 120, 90, 90
`
  },
  'named-cache': {
    prints: /^4 workers needed 5 versions; each was computed once: 5 times in all\nheld now: 0, awaited: 0\n$/
  },
  // An answer may be here before the news of the crash.
  'worker-pool': {
    prints: [
      'a worker has crashed: there are no such primes', 'a worker has crashed: there are no such primes',
      'and below 10: 4', 'primes below 100000: 9592', 'the job has ended two workers'
    ]
  },
  recipes: {
    since: 16,
    prints: `layout: 1.5 8
several locks: 0 → 1 1 → 2 2 → 0
several locks: TimeoutError
once: 42 42 1
event: false true true
event: false
cancel: 1 AbortError
cancel: 1
connection: 0 1
connection: 2
changing limit: -1 null
changing limit: 6
admission: done done done busy
shutdown: shutting down, shutting down, shutting down
hanging holder: true
leader: main leads, after a crash
`
  },
  journal: { prints: '301 records, 101 of main; repaired: 1\n' },
  database: { elsewhere: !hasModule('node:sqlite') && 'this Node has no node:sqlite', prints: 'a: 850, b: 1150\n' },
  'wasm-threads': { since: 16, prints: 'the sum: 4500001500000n\n' },
  'rate-limit': { prints: '24 requests of 3 threads took 4 intervals\n' },
  opentelemetry: { elsewhere: 'needs the SDK of OpenTelemetry: scripts/programs.js runs it' },
  processes: { prints: 'a process died with the lock\ncounted to 300\n' },
  limit: { prints: /^3 threads have read \d+ files of \d+ bytes, at most 3 at a time\n$/ },
  phases: { prints: '200 steps of 64 × 64 points on 3 threads: as on one thread; the mean is 11.537\n' },
  'shared-cache': { prints: /^100 versions, read \d+ times by 3 workers, each time all of one version\n$/ },
  'word-count': {
    args (t) {
      const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'examples-'))
      const files = [0, 1, 2, 3, 4].map(n => path.join(folder, `${n}.txt`))
      t.after(() => {
        files.forEach(file => fs.unlinkSync(file))
        fs.rmdirSync(folder)
      })
      for (const file of files) fs.writeFileSync(file, 'the quick brown fox and the lazy dog\n'.repeat(2000))
      return [folder]
    },
    prints: /80\D?000 words/
  }
}

/** The file that runs an example: of the folder, index.mjs or index.mts. */
const mainOf = (name) => fs.readdirSync(path.join(EXAMPLES, name)).find(file => /^index\.m[jt]s$/.test(file))

/** A copy of an example, beside a node_modules with this package in it. */
function copyOf (t, name) {
  const project = folderWithPackage(t)
  const folder = path.join(project, name)
  fs.mkdirSync(folder)
  t.after(() => {
    for (const file of fs.readdirSync(folder)) fs.unlinkSync(path.join(folder, file))
    fs.rmdirSync(folder)
  })
  const files = fs.readdirSync(path.join(EXAMPLES, name)).filter(file => file.includes('.'))
  for (const file of files) fs.copyFileSync(path.join(EXAMPLES, name, file), path.join(folder, file))
  return folder
}

/** Runs an example in a folder; gives how it ended, without what old Nodes warn of. */
async function run (t, folder, args = []) {
  const { code, signal, stdout, stderr } = await runNode(t, [path.join(folder, mainOf(path.basename(folder))), ...args])
  return [code, signal, stdout, stderr.replace(/^.*ExperimentalWarning.*\n(\(Use.*\n)?/gm, '')]
}

for (const name of fs.readdirSync(EXAMPLES).filter(name => !name.includes('.'))) {
  const {
    args,
    prints,
    since = 0,
    elsewhere
  } = expected[name] || assert.fail(`nothing is said here of what ${name} prints`)
  const first = Math.max(since, FIRST[path.extname(mainOf(name))])
  test(
    `examples/${name}`,
    { timeout: 120000, skip: elsewhere || (MAJOR < first && `needs Node ${first}`) },
    async t => {
      // One that is a package of its own runs where this one is installed beside it.
      const isPackage = fs.existsSync(path.join(EXAMPLES, name, 'package.json'))
      const folder = isPackage ? copyOf(t, name) : path.join(EXAMPLES, name)
      const [code, signal, stdout, stderr] = await run(t, folder, args ? args(t) : [])
      assert.deepStrictEqual([code, signal, stderr], [0, null, ''])
      if (prints instanceof RegExp) assert.ok(prints.test(stdout), stdout)
      else if (Array.isArray(prints)) assert.deepStrictEqual(stdout.trim().split('\n').sort(), prints)
      else assert.strictEqual(stdout, prints)
    }
  )
}

// ——— What the guides say of them ———

/** A copy of an example whose main file is changed. */
function changed (t, name, change) {
  const folder = copyOf(t, name)
  const main = path.join(folder, mainOf(name))
  const text = fs.readFileSync(main, 'utf8')
  assert.notStrictEqual(change(text), text)
  fs.writeFileSync(main, change(text))
  return folder
}

const NO_WASM = MAJOR < 16 && 'needs Node 16'
// Where Node ends although a module awaits something at its top level.
const UNSETTLED = 13

test(
  'examples/wasm-threads: sum.wasm is made of sum.wat',
  { skip: NO_WASM || (!fs.existsSync(WABT) && 'wabt is not installed') },
  async () => {
    const at = name => path.join(EXAMPLES, 'wasm-threads', name)
    const { buffer } = (await require(WABT)())
      .parseWat('sum.wat', fs.readFileSync(at('sum.wat'), 'utf8'), { threads: true })
      .toBinary({})
    assert.deepStrictEqual(Buffer.from(buffer), fs.readFileSync(at('sum.wasm')))
  }
)

const SUM = [0, null, 'the sum: 4500001500000n\n']
const EARLY = [UNSETTLED, null, '']
const from = entry => text => text.replace('atomics-waitasync/pure', `atomics-waitasync${entry}`)
const global = entry => text =>
  text.replace(/import (.*) from 'atomics-waitasync\/pure'/, `import 'atomics-waitasync${entry}'\nconst $1 = Atomics`)

for (const [what, change, outcome] of [
  ['atomics-waitasync/force', from('/force'), SUM],
  ['atomics-waitasync/keep-alive', from('/keep-alive'), SUM],
  ['the global functions after atomics-waitasync/force', global('/force'), EARLY],
  ['the global functions after atomics-waitasync/keep-alive', global('/keep-alive'), EARLY],
  ['the plain entry', from(''), EARLY]
]) {
  test(`examples/wasm-threads with ${what} ends as the guide says`, { skip: NO_WASM }, async t => {
    const ended = await run(t, changed(t, 'wasm-threads', change))
    assert.deepStrictEqual(ended.slice(0, 3), outcome)
  })
}

const JOURNAL_FAILS = `
import fs from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Worker, isMainThread, workerData } from 'node:worker_threads'
// How often each has still to fail. A record is then written in part.
const fails = { truncate: 0, appendFile: 0 }
const append = fs.appendFileSync
function fail (name, file, data) {
  fails[name]--
  if (name === 'appendFile') append(file, data.slice(0, 5))
  return Object.assign(new Error(name), { code: 'ENOSPC' })
}
for (const name of ['truncate', 'appendFile']) {
  const { [name]: async, [name + 'Sync']: sync } = fs
  fs[name] = (file, data, callback) => {
    if (fails[name] === 0) return async(file, data, callback)
    callback(fail(name, file, data))
  }
  fs[name + 'Sync'] = (file, data) => {
    if (fails[name] === 0) return sync(file, data)
    throw fail(name, file, data)
  }
}
const { Journal } = await import('./journal.mjs')
const file = fileURLToPath(new URL('./records', import.meta.url))


const [memory, first] = isMainThread ? [Journal.allocate(), 1] : [workerData, 6]
const journal = new Journal(memory, file)
async function attempt (record) {
  try {
    await (isMainThread ? journal.appendAsync(record) : journal.append(record))
  } catch ({ message }) {
    fs.writeSync(1, message + ' failed\\n')
  }
}
if (isMainThread) {
  fs.writeFileSync(file, '')
  await attempt(0)
}
Object.assign(fails, { appendFile: 1, truncate: 2 })
for (let record = first; record < first + 4; record++) await attempt(record)
const text = fs.readFileSync(file, 'utf8')
const [length] = journal.complete
fs.writeSync(1, text.slice(0, length).split('\\n').join(' ') + journal.repairs[0] + (text.length === length) + '\\n')
if (isMainThread) {
  new Worker(new URL(import.meta.url), { workerData: memory }).on('exit', () => fs.unlinkSync(file))
}
`
const FAILURES = 'appendFile failed\ntruncate failed\ntruncate failed\n'

test(
  'examples/journal keeps its file whole although writes and repairs fail, of promises and of blocking threads',
  { skip: MAJOR < 14 && 'needs Node 14' },
  async t => {
    const ended = await run(
      t,
      changed(t, 'journal', () => JOURNAL_FAILS)
    )
    assert.deepStrictEqual(ended.slice(0, 3), [0, null, `${FAILURES}0 4 1true\n${FAILURES}0 4 9 2true\n`])
  }
)
