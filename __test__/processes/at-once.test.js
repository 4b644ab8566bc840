'use strict'
// nodes: >=16 (older ones lack what the engines need)

// Locks of files that are taken in the call of `request`: who comes in its midst, or gives up in the same job.

const assert = require('assert')
const { AsyncLocalStorage, createHook } = require('async_hooks')
const fs = require('fs')
const os = require('os')
const { test } = require('../harness')
const { scratchFolder, startMember } = require('../fixtures/lock-processes')
const { files, processLocks } = require('../../processes')

const isFree = (locks, name, mode) => locks.request(name, { ifAvailable: true, mode }, lock => lock !== null)
const outcome = promise => promise.then(value => value, error => error.name)

test('query() describes a lock of this process, as its state says', async t => {
  const locks = processLocks(scratchFolder(t), { label: 'ours' })
  const before = Date.now()
  const { held: [info, ...others] } = await locks.request('a', () => locks.query('a'))
  assert.deepStrictEqual(others, [])
  const { host, label, pid, since, threadId } = info
  assert.deepStrictEqual([host, label, pid, threadId], [os.hostname(), 'ours', process.pid, 0])
  assert.ok(since >= before - 1 && since <= Date.now(), String(since))
})

for (const mode of ['exclusive', 'shared']) {
  test(`a request that is aborted in the job of its call leaves the name free: ${mode}`, async t => {
    const locks = processLocks(scratchFolder(t))
    for (const ask of ['request', 'hold']) {
      const controller = new AbortController()
      let calls = 0
      const options = { mode, signal: controller.signal }
      const promise = ask === 'hold' ? locks.hold('a', options) : locks.request('a', options, () => { calls++ })
      controller.abort()
      // In the first job that hears of it.
      let free
      await assert.rejects(promise.catch(error => {
        free = isFree(locks, 'a', mode)
        throw error
      }), { name: 'AbortError' })
      assert.deepStrictEqual([await free, calls], [true, 0])
      assert.strictEqual(await locks.request('a', { timeout: 0 }, ({ ownerDied }) => ownerDied), false)
    }
  })
}

test('requests of one name are settled in the order of their calls', async t => {
  const locks = processLocks(scratchFolder(t))
  const callbacks = { sync: () => 1, throws: () => { throw new Error('on purpose') }, async: async () => null }
  for (const [first, callback] of Object.entries(callbacks)) {
    for (const [next, other] of Object.entries(callbacks)) {
      const settled = []
      const note = (n) => () => { settled.push(n) }
      const all = [callback, other, callback].map((each, n) => locks.request('a', each).then(note(n), note(n)))
      // While the first one's job runs.
      await undefined
      all.push(locks.request('a', other).then(note(3), note(3)))
      await Promise.all(all)
      assert.deepStrictEqual(settled, [0, 1, 2, 3], `${first}, then ${next}`)
    }
  }
})

test('an attempt in vain that is aborted, or closed, in the job of its call says so', async t => {
  const locks = processLocks(scratchFolder(t))
  const held = await locks.hold('a')
  for (const options of [{ ifAvailable: true }, { timeout: 0 }]) {
    const controller = new AbortController()
    const promise = locks.request('a', { ...options, signal: controller.signal }, lock => lock)
    controller.abort()
    assert.strictEqual(await outcome(promise), 'AbortError')
  }
  const attempt = locks.request('a', { ifAvailable: true }, lock => lock)
  const closed = locks.close()
  assert.strictEqual(await outcome(attempt), 'AbortError')
  await held.unlock()
  await closed
})

test('a free request makes no promise besides its own', async t => {
  const locks = processLocks(scratchFolder(t))
  const countedIn = async make => {
    let promises = 0
    const hook = createHook({ init (id, type) { if (type === 'PROMISE') promises++ } }).enable()
    await make()
    hook.disable()
    return promises
  }
  const request = () => locks.request('a', () => {})
  await request()
  assert.strictEqual(await countedIn(request), await countedIn(() => Promise.resolve()))
})

test('waits for locks of files have one timer each, and make no AbortController', async t => {
  const folder = scratchFolder(t)
  const holder = await startMember(t, folder)
  const locks = processLocks(folder)
  const names = ['a', 'b', 'c']
  for (const name of names) await holder.hold(name)
  let timers = 0
  let controllers = 0
  const init = (id, type) => {
    if (type === 'Timeout' && /lib.processes/.test(new Error().stack)) timers++
  }
  const hook = createHook({ init }).enable()
  const { AbortController } = global
  global.AbortController = class extends AbortController {
    constructor () {
      super()
      controllers++
    }
  }
  try {
    const taken = names.map(name => locks.request(name, ({ ownerDied }) => ownerDied))
    for (const name of names) await holder.release(name)
    assert.deepStrictEqual(await Promise.all(taken), [false, false, false])
  } finally {
    global.AbortController = AbortController
    hook.disable()
  }
  assert.ok(timers <= names.length, `${timers} timers`)
  assert.strictEqual(controllers, 0)
})

test('a hook that requests the name which is being asked for waits behind that', async t => {
  const folder = scratchFolder(t)
  const holder = await startMember(t, folder)
  const locks = processLocks(folder)
  await holder.hold('a')
  const promises = []
  const init = (id, type) => {
    if (type !== 'atomics-waitasync.ProcessLock' || promises.length > 0) return
    promises.push(undefined)
    promises[0] = locks.request('a', () => 'of the hook')
  }
  const hook = createHook({ init }).enable()
  promises.push(locks.request('a', () => 'of the program'))
  hook.disable()
  await holder.release('a')
  assert.deepStrictEqual(await Promise.all(promises), ['of the hook', 'of the program'])
  assert.strictEqual(await isFree(locks, 'a'), true)
})

/** Calls a function while a resource of a type is made for the first time after this. */
function whileMade (t, type, act) {
  let calls = 0
  const init = (id, made) => { if (made === type && calls++ === 0) act() }
  const hook = createHook({ init }).enable()
  t.after(() => hook.disable())
  return hook
}

test('a hook that aborts or closes while a request begins to wait ends it', async t => {
  const folder = scratchFolder(t)
  const holder = await startMember(t, folder)
  await holder.hold('a')
  for (const type of ['atomics-waitasync.ProcessLock', 'Timeout']) {
    for (const ends of ['abort', 'close']) {
      const controller = new AbortController()
      const locks = processLocks(folder)
      let closed
      const act = () => ends === 'abort' ? controller.abort() : (closed = locks.close())
      const hook = whileMade(t, type, act)
      const promise = locks.request('a', { signal: controller.signal, timeout: 60000 }, () => {})
      hook.disable()
      assert.strictEqual(await outcome(promise), 'AbortError', `${type} ${ends}`)
      await (closed || locks.close())
    }
  }
  await holder.release('a')
})

test('a hook that aborts at any resource of a request that waits ends its wait', async t => {
  const folder = scratchFolder(t)
  const holder = await startMember(t, folder)
  await holder.hold('a')
  await holder.run(async ({ kept, locks }) => {
    kept.permits = await Promise.all([1, 2].map(() => locks.hold('b', { permits: 2 })))
  })
  for (const [name, options] of [['a', {}], ['a', { mode: 'shared' }], ['b', { permits: 2 }]]) {
    for (let n = 0; n < 12; n++) {
      const locks = processLocks(folder)
      const controller = new AbortController()
      let resources = 0
      const hook = createHook({ init () { if (resources++ === n) controller.abort() } }).enable()
      const promise = locks.request(name, { ...options, signal: controller.signal }, () => {})
      const over = outcome(promise)
      await null
      hook.disable()
      controller.abort()
      assert.strictEqual(await over, 'AbortError', `${name} ${n}`)
      await locks.close()
    }
  }
})

test('a request that is aborted in any job after others have left the name in front waits no more', async t => {
  const folder = scratchFolder(t)
  const holder = await startMember(t, folder)
  await holder.hold('a')
  for (let jobs = 0; jobs < 12; jobs++) {
    const locks = processLocks(folder)
    const [first, second] = [new AbortController(), new AbortController()]
    const promises = [
      locks.request('a', { signal: first.signal }, () => {}),
      locks.request('a', { mode: 'shared', signal: second.signal }, () => {})
    ].map(outcome)
    await new Promise(resolve => setImmediate(resolve))
    first.abort()
    for (let n = 0; n < jobs; n++) await null
    second.abort()
    assert.deepStrictEqual(await Promise.all(promises), ['AbortError', 'AbortError'])
    // It would wait for the lock itself.
    await locks.close()
  }
})

for (const options of [{}, { batch: 2 }, { batchTime: 0 }]) {
  test(`those that share a lock run in their order and contexts: ${JSON.stringify(options)}`, async t => {
    const locks = processLocks(scratchFolder(t), options)
    const context = new AsyncLocalStorage()
    // Its hooks would take the stack of other tests.
    t.after(() => context.disable())
    const begun = []
    const promises = [1, 2, 3].map(n => context.run(n, () => locks.request('a', { mode: 'shared' }, async () => {
      begun.push([n, context.getStore()])
    })))
    await Promise.all(promises)
    assert.deepStrictEqual(begun, [[1, 1], [2, 2], [3, 3]])
    assert.strictEqual(await isFree(locks, 'a'), true)
  })
}

test('a grant is read before anything patched can make a request', async t => {
  const folder = scratchFolder(t)
  const holder = await startMember(t, folder)
  const locks = processLocks(folder)
  await holder.hold('a')
  const promises = [locks.request('a', async ({ token }) => token)]
  const { prototype } = Map
  const { get } = prototype
  t.after(() => { prototype.get = get })
  prototype.get = function (key) {
    if (typeof key === 'number' && promises.length === 1) promises.push(locks.request('b', async ({ token }) => token))
    return get.call(this, key)
  }
  await holder.release('a')
  await promises[0]
  const tokens = await Promise.all(promises)
  assert.strictEqual(new Set(tokens).size, 2)
  for (const name of ['a', 'b']) assert.strictEqual(await isFree(locks, name), true)
})

test('a hook that makes a request while a batch makes its timer leaves no timer behind', async t => {
  const member = await startMember(t, scratchFolder(t))
  await member.run(async ({ engine, kept, api, require: load }) => {
    const { createHook } = load('async_hooks')
    const locks = api.processLocks(engine, { batchTime: Infinity })
    const promises = []
    const init = (id, type) => {
      if (type === 'Timeout' && promises.length === 1) promises.push(undefined, locks.request('a', () => {}))
    }
    const held = locks.request('a', () => new Promise(resolve => { kept.end = resolve }))
    await null
    const hook = createHook({ init }).enable()
    promises.push(locks.request('a', () => {}))
    promises.push(locks.request('a', () => {}))
    hook.disable()
    kept.end()
    await Promise.all([held, ...promises])
    await locks.close()
  })
  member.child.disconnect()
  assert.deepStrictEqual(await member.ended, { code: 0, signal: null })
})

test('requests where hardly any stack is left begin, or throw and leave nothing', async t => {
  const locks = processLocks(scratchFolder(t))
  await locks.request('a', () => {})
  const promises = []
  const dive = () => {
    try {
      dive()
    } catch (error) {
      const name = `n${promises.length}`
      if (promises.length < 200) promises.push(outcome(locks.request(name, () => name)))
      throw error
    }
  }
  assert.throws(dive, RangeError)
  const results = await Promise.all(promises)
  for (const [n, result] of results.entries()) {
    assert.ok([`n${n}`, 'RangeError'].includes(result), result)
    assert.strictEqual(await isFree(locks, `n${n}`), true)
  }
  await locks.close()
})

test('a wait that is aborted as the name comes free in its process is over', async t => {
  const folder = scratchFolder(t)
  const holder = await startMember(t, folder)
  await holder.hold('a')
  const locks = [processLocks(folder), processLocks(folder)]
  const controllers = [new AbortController(), new AbortController()]
  const [first, second] = locks.map((each, n) => each.request('a', { signal: controllers[n].signal }, () => {}))
  await new Promise(resolve => setTimeout(resolve, 50))
  controllers[0].abort()
  assert.strictEqual(await outcome(first), 'AbortError')
  controllers[1].abort()
  assert.strictEqual(await outcome(second), 'AbortError')
  await Promise.all(locks.map(each => each.close()))
  await holder.release('a')
})

test('a folder that is moved away while a descriptor may be kept tells of no death', async t => {
  const folder = `${scratchFolder(t)}/locks`
  const locks = processLocks(folder)
  await locks.request('a', () => {})
  fs.renameSync(folder, `${folder}.aside`)
  fs.mkdirSync(folder)
  await locks.request('a', () => {})
  assert.strictEqual(await processLocks(`${folder}.aside`).request('a', ({ ownerDied }) => ownerDied), false)
})

test('an engine that a program wraps afterwards gets no signal but those of Node', async t => {
  for (const durable of [false, true]) {
    const engine = files(scratchFolder(t), { durable })
    const locks = processLocks(engine)
    const signals = []
    for (const way of ['acquire', 'attempt']) {
      const { [way]: original } = engine
      engine[way] = function (name, mode, signal, asker) {
        signals.push(signal)
        return original.call(this, name, mode, signal, asker)
      }
    }
    for (const options of [{}, { ifAvailable: true }, { maxHold: 60000 }, { maxHold: 60000, ifAvailable: true }]) {
      await locks.request('a', options, ({ token }) => token)
    }
    assert.ok(signals.every(signal => signal instanceof AbortSignal))
    // Locks that are made now ask the wrapper.
    await processLocks(engine).request('a', () => {})
    assert.ok(signals.length > 0 && signals.pop() instanceof AbortSignal)
  }
})
