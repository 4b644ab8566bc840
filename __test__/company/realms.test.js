'use strict'

// Test runners evaluate the package for each file in a new context. Nothing may keep that context once its file is
// over. At most the first one may stay: the thread's agent is of its realm.

const assert = require('assert')
const { test } = require('../harness')
const { runForJSON } = require('../fixtures/run-node')
const size = require('../fixtures/size')

const [MAJOR, MINOR] = process.versions.node.split('.').map(Number)
const NO_WEAK_REF = !(MAJOR > 14 || (MAJOR === 14 && MINOR >= 6)) && 'this Node has no WeakRef'
const CONTEXTS = size(8, 4)

/** A file's uses of an entry's exports. */
const uses = {
  'not used': () => {},
  'read': (api) => { for (const name of Object.keys(api)) String(api[name]) },
  'an AsyncLock': async ({ AsyncLock }) => {
    const lock = new AsyncLock(new SharedArrayBuffer(4))
    const token = lock.tryLock()
    const next = lock.lockAsync()
    token.unlock()
    ;(await next).unlock()
  },
  'a named lock': async ({ locks }) => {
    const first = locks.request('a', () => new Promise(setImmediate))
    await locks.request('a', () => {})
    await first
  },
  'a waitAsync that settles': async ({ waitAsync, notify }) => {
    const words = new Int32Array(new SharedArrayBuffer(4))
    const { value } = waitAsync(words, 0, 0)
    notify(words, 0)
    await value
  },
  'a Worker': async (api, Worker) => {
    await new Promise((resolve) => { new Worker('0', { eval: true }).on('exit', resolve) })
  }
}

/** How the contexts are made, and which `process` they have. */
const ways = {
  'contexts that are made before, with the thread\'s process': { early: true, own: false },
  'one context after the other, each with a process of its own': { early: false, own: true }
}

/** By use: how many contexts stay, apart from the first. */
const staying = (t, entry, { early, own }) => runForJSON(t, ['--expose-gc', '-e', `
  const vm = require('vm')
  const { Worker } = require('worker_threads')
  const { createRegistry } = require(${JSON.stringify(require.resolve('../fixtures/registry'))})
  const turn = () => new Promise(setImmediate)
  const copied = () => Object.create(Object.getPrototypeOf(process), Object.getOwnPropertyDescriptors(process))
  const create = () => vm.createContext({ process: ${own} ? copied() : process, setImmediate })
  async function evaluate (context, source) {
    const registry = createRegistry(context)
    await vm.runInContext(source, context)(registry.require(${JSON.stringify(entry)}), Worker)
    registry.tearDown()
    return new WeakRef(vm.runInContext('globalThis', context))
  }
  async function leave (source) {
    const refs = []
    const contexts = Array.from({ length: ${CONTEXTS} }, () => ${early} ? create() : undefined)
    while (contexts.length > 0) refs.push(await evaluate(contexts.pop() || create(), source))
    refs.shift()
    const left = () => refs.filter((ref) => ref.deref() !== undefined).length
    for (let n = 0; n < 50 && left() > 0; n++) {
      await turn()
      gc()
    }
    return left()
  }
  async function main () {
    const said = {}
    const uses = ${JSON.stringify(Object.keys(uses).map((name) => [name, `(${uses[name]})`]))}
    for (const [name, source] of uses) said[name] = await leave(source)
    console.log(JSON.stringify(said))
  }
  main()`])

const NONE = {}
for (const name of Object.keys(uses)) NONE[name] = 0

for (const entry of ['index', 'force', 'keep-alive', 'pure', 'web-locks']) {
  for (const way of Object.keys(ways)) {
    test(`${entry}: no context but the first stays, of ${way}`, { skip: NO_WEAK_REF }, async (t) => {
      assert.deepStrictEqual(await staying(t, entry, ways[way]), NONE)
    })
  }
}
