'use strict'
// subjects: none
// oldest: none (there Workers need a flag of Node, and navigator is missing)

// The entry /web-locks: what it puts in place, where, and that it leaves the rest alone.

const assert = require('assert')
const path = require('path')
const { test } = require('../harness')
const { runForJSON } = require('../fixtures/run-node')

const MAJOR = Number(process.versions.node.split('.')[0])
const entry = (name) => path.join(__dirname, '..', '..', name)
const WEB_LOCKS = entry('web-locks')

/** Runs `program(require, path of the entry)`, and gives its result. */
function run (t, program, { flags = [], data = WEB_LOCKS } = {}) {
  const source = `(${program})(require, ${JSON.stringify(data)}).then(result => console.log(JSON.stringify(result)))`
  return runForJSON(t, [...flags, '-e', source])
}

test('puts navigator.locks, LockManager and Lock in place, and changes nothing else', async t => {
  const seen = await run(t, async (require, file) => {
    const atomics = Object.getOwnPropertyDescriptors(Atomics)
    const globals = Reflect.ownKeys(global).map(String)
    const { userAgent } = global.navigator || {}
    const api = require(file)
    const { locks, Lock, LockManager } = api
    const shape = (name) => {
      const { writable, enumerable, configurable } = Object.getOwnPropertyDescriptor(global, name)
      return [writable, enumerable, configurable]
    }
    const after = Object.getOwnPropertyDescriptors(Atomics)
    const pure = require(file.replace('web-locks', 'pure'))
    const isSame = name => name in atomics && after[name].value === atomics[name].value
    const isKept = Object.keys(after).length === Object.keys(atomics).length && Object.keys(after).every(isSame)
    return {
      same: [[navigator.locks, locks], [pure.locks, locks], [global.LockManager, LockManager], [global.Lock, Lock]]
        .map(([one, other]) => one === other),
      own: Object.prototype.hasOwnProperty.call(global.navigator, 'locks'),
      shapes: [shape('LockManager'), shape('Lock')],
      newGlobals: Reflect.ownKeys(global).map(String).filter(name => !globals.includes(name)).sort(),
      atomics: isKept,
      userAgent: [userAgent, global.navigator.userAgent],
      mode: await global.navigator.locks.request('x', lock => lock.mode)
    }
  })
  assert.deepStrictEqual(seen.same, [true, true, true, true])
  assert.strictEqual(seen.own, false)
  assert.deepStrictEqual(seen.shapes, [[true, false, true], [true, false, true]])
  assert.deepStrictEqual(seen.newGlobals, ['Lock', 'LockManager'].concat(MAJOR < 21 ? 'navigator' : []))
  assert.strictEqual(seen.atomics, true)
  assert.strictEqual(seen.userAgent[1], `Node.js/${MAJOR}`)
  assert.ok(seen.userAgent[0] === null || seen.userAgent[0] === seen.userAgent[1])
  assert.strictEqual(seen.mode, 'exclusive')
})

test('the getter of navigator.locks is as in browsers: its name, and which objects it takes', async t => {
  const seen = await run(t, async (require, file) => {
    const { locks } = require(file)
    const prototype = Object.getPrototypeOf(global.navigator)
    const { get } = Object.getOwnPropertyDescriptor(prototype, 'locks')
    const outcome = (object) => {
      try { return get.call(object) === locks } catch (error) { return error.name }
    }
    const given = [global.navigator, prototype, {}, undefined, Object.create(global.navigator)]
    const outcomes = given.map(outcome)
    const proxy = new Proxy(global.navigator, {})
    Object.defineProperty(global, 'navigator', { value: proxy, configurable: true, writable: true })
    return [get.name, get.length, outcomes, global.navigator.locks === locks]
  })
  const refused = 'TypeError'
  assert.deepStrictEqual(seen, ['get locks', 0, [true, refused, refused, refused, refused], true])
})

const HAS_NAVIGATOR = MAJOR >= 21 && 'Node has one'
test('a navigator that it makes can be replaced, and answers what code asks', { skip: HAS_NAVIGATOR }, async t => {
  const [asked, replaced] = await run(t, async (require, file) => {
    require(file)
    const { hardwareConcurrency, language, languages, platform, userAgent } = global.navigator
    const asked = [typeof hardwareConcurrency, language, languages, typeof platform, typeof userAgent]
    global.navigator = { userAgent: 'other' }
    return [asked, global.navigator.userAgent]
  })
  assert.deepStrictEqual([asked, replaced], [['number', 'en-US', ['en-US'], 'string', 'string'], 'other'])
})

test('a navigator that other code has made gets the locks', async t => {
  const [locks, user] = await run(t, async (require, file) => {
    Object.defineProperty(global, 'navigator', { value: { user: 1 }, configurable: true, writable: true })
    const { locks } = require(file)
    return [global.navigator.locks === locks && !('locks' in Object.prototype), global.navigator.user]
  })
  assert.deepStrictEqual([locks, user], [true, 1])
})

test('a navigator that cannot be changed: a TypeError that says what', async t => {
  const message = await run(t, async (require, file) => {
    Object.defineProperty(global, 'navigator', { value: Object.freeze({}), configurable: true })
    try {
      require(file)
    } catch (error) {
      return error.message
    }
    return undefined
  })
  assert.ok(/^atomics-waitasync\/web-locks: locks cannot be replaced/.test(message), message)
})

/** A worker's words on itself: whether its locks are the package's, and the engine of its Atomics. */
const TELL = `
  const { parentPort } = require('worker_threads')
  const mark = Object.getOwnPropertySymbols(Atomics.notify).length > 0
  navigator.locks.request('x', { ifAvailable: true }, lock => {
    parentPort.postMessage([typeof navigator.locks.requestSync, lock === null, mark])
  })`

for (const first of ['none', 'force']) {
  const how = first === 'none' ? 'alone' : 'beside an install of Atomics, in any order'
  test(`reaches the Workers of this thread and theirs, ${how}`, async t => {
    for (const order of first === 'none' ? [['web-locks']] : [['web-locks', 'force'], ['force', 'web-locks']]) {
      const seen = await run(t, async (require, { files, tell }) => {
        files.forEach(file => require(file))
        const { Worker } = require('worker_threads')
        const nested = `
          const { Worker, parentPort } = require('worker_threads')
          new Worker(${JSON.stringify(tell)}, { eval: true }).on('message', message => parentPort.postMessage(message))`
        const hear = (source) => new Promise((resolve, reject) => {
          new Worker(source, { eval: true }).on('message', resolve).on('error', reject)
        })
        return global.navigator.locks.request('x', async () => [await hear(tell), await hear(nested)])
      }, { data: { files: order.map(entry), tell: TELL } })
      const expected = ['function', true, first === 'force']
      assert.deepStrictEqual(seen, [expected, expected])
    }
  })
}

const NO_FLAG = MAJOR !== 10 && 'every later Node has them'
test('without worker_threads it works in the one thread', { skip: NO_FLAG }, async t => {
  const { spawnSync } = require('child_process')
  const source = `
    require(${JSON.stringify(WEB_LOCKS)})
    navigator.locks.request('x', lock => console.log(lock.name))
    navigator.locks.request('-', () => {}).catch(error => console.log(error.name))`
  const { stdout, stderr } = spawnSync(process.execPath, ['-e', source], { encoding: 'utf8' })
  assert.deepStrictEqual(stdout.trim().split('\n').sort(), ['NotSupportedError', 'x'], stderr)
})

const NONE_OF_NODE = { skip: MAJOR < 24 && 'this Node has none' }
test('worker_threads.locks is navigator.locks, here and in Workers', NONE_OF_NODE, async t => {
  const seen = await run(t, async (require, file) => {
    const threads = require('worker_threads')
    const { locks } = require(file)
    const source = `
      const { locks, parentPort } = require('worker_threads')
      parentPort.postMessage(locks === navigator.locks && typeof locks.requestSync)`
    const inWorker = await new Promise((resolve, reject) => {
      new threads.Worker(source, { eval: true }).on('message', resolve).on('error', reject)
    })
    return [threads.locks === locks, global.navigator.locks === locks, inWorker]
  })
  assert.deepStrictEqual(seen, [true, true, 'function'])
})

test('worker_threads.locks is replaced for import, too', NONE_OF_NODE, async t => {
  const seen = await runForJSON(t, ['--input-type=module', '-e', `
    import { locks } from 'worker_threads'
    import { createRequire } from 'module'
    createRequire(${JSON.stringify(WEB_LOCKS)})(${JSON.stringify(WEB_LOCKS)})
    console.log(JSON.stringify([locks === navigator.locks, typeof locks.requestSync]))`])
  assert.deepStrictEqual(seen, [true, 'function'])
})
