'use strict'
// nodes: >=20 (the scripts that install packages need it)
// timeout: 300

// docs/coming-from-async-mutex.md, with the real package beside this one.

const assert = require('assert')
const { once } = require('events')
const path = require('path')
const { setTimeout: sleep } = require('timers/promises')
const { transferableAbortController } = require('util')
const { Worker } = require('worker_threads')
const { codeOf, load, movingFrom } = require('../fixtures/moving')
const { runNode } = require('../fixtures/run-node')
const { AsyncLock, Semaphore, locks } = require('../..')

const moving = movingFrom('async-mutex', ['async-mutex'])
const { test } = moving

/** Makes the locks of both; `theirs` and `ours` run a cell of a pair. */
async function pairOfLocks () {
  const async = await load('async-mutex')
  const made = {
    theirs: { mutex: new async.Mutex(), semaphore: new async.Semaphore(2), signals: new async.Semaphore(0) },
    ours: { lock: new AsyncLock(), limit: Semaphore.create({ permits: 2 }), events: new Semaphore() }
  }
  return {
    ...async, ...made.theirs, ...made.ours,
    theirs: (pair, names) => moving.theirs(pair, { ...async, ...made.theirs, ...names }),
    ours: (pair, names) => moving.ours(pair, { AsyncLock, Semaphore, ...made.ours, ...names })
  }
}

/** Expects these codes of a pair while it is taken: of theirs, which is one of its constants, and of ours. */
async function refused ({ theirs, ours, ...constants }, pair, expected, names) {
  const error = await theirs(pair, names).catch(each => each)
  assert.strictEqual(error, constants[expected[0]], pair)
  assert.strictEqual(await codeOf(ours(pair, names)), expected[1], pair)
}

test('a mutex: made, taken, asked and released', async () => {
  const { theirs, ours } = await pairOfLocks()
  const [mutex, lock] = [await theirs('new Mutex()'), await ours('new Mutex()')]
  const names = { mutex, lock }
  const isLocked = async () => [await theirs('mutex.isLocked()', names), await ours('mutex.isLocked()', names)]
  assert.deepStrictEqual(await isLocked(), [false, false])
  const release = await theirs('await mutex.acquire()', names)
  const token = await ours('await mutex.acquire()', names)
  assert.deepStrictEqual(await isLocked(), [true, true])
  for (const n of [1, 2]) {
    await theirs('release()', { release })
    await ours('release()', { token })
    assert.deepStrictEqual(await isLocked(), [false, false], String(n))
  }
  await mutex.acquire()
  await lock.lockAsync()
  await theirs('mutex.release()', names)
  await ours('mutex.release()', names)
  assert.deepStrictEqual(await isLocked(), [false, false])
  assert.strictEqual(await codeOf(theirs('mutex.release()', names)), 'none')
  assert.strictEqual(await codeOf(ours('mutex.release()', names)), 'ERR_NOT_LOCKED')
})

test('runExclusive: one task at a time, and its result', async () => {
  const { theirs, ours } = await pairOfLocks()
  for (const side of [theirs, ours]) {
    let [inside, most] = [0, 0]
    const callback = async () => {
      most = Math.max(most, ++inside)
      await sleep(1)
      inside--
      return 'result'
    }
    const all = Array.from({ length: 5 }, () => side('await mutex.runExclusive(callback)', { callback }))
    assert.deepStrictEqual(await Promise.all(all), Array(5).fill('result'))
    assert.strictEqual(most, 1)
  }
})

test('tryAcquire and withTimeout: what is taken is refused, what is free is given', async () => {
  const both = await pairOfLocks()
  const { theirs, ours, mutex, lock } = both
  const [release, token] = [await mutex.acquire(), await lock.lockAsync()]
  const callback = () => 'result'
  const [tryIt, tryRun] = ['acquire()', 'runExclusive(callback)'].map(call => `await tryAcquire(mutex).${call}`)
  const [wait, waitRun] = ['acquire()', 'runExclusive(callback)'].map(call => `await withTimeout(mutex, 50).${call}`)
  await refused({ ...both, ours: async (...args) => assert.strictEqual(await ours(...args), null) }, tryIt,
    ['E_ALREADY_LOCKED', 'none'])
  await refused(both, tryRun, ['E_ALREADY_LOCKED', 'ERR_TIMEOUT'], { callback })
  await refused(both, wait, ['E_TIMEOUT', 'ERR_TIMEOUT'])
  await refused(both, waitRun, ['E_TIMEOUT', 'ERR_TIMEOUT'], { callback })
  release()
  token.unlock()
  for (const pair of [tryRun, waitRun]) {
    assert.strictEqual(await theirs(pair, { callback }), 'result')
    assert.strictEqual(await ours(pair, { callback }), 'result')
  }
  for (const pair of [tryIt, wait]) {
    (await theirs(pair))();
    (await ours(pair)).unlock()
  }
})

test('cancel: the waits reject, the holder stays', async () => {
  const { theirs, ours, mutex, lock, E_CANCELED } = await pairOfLocks()
  const [release, token] = [await mutex.acquire(), await lock.lockAsync()]
  const controller = new AbortController()
  const waits = [1, 2].map(() => mutex.acquire().catch(error => error))
  const aborted = [1, 2].map(() => codeOf(lock.lockAsync({ signal: controller.signal })))
  await theirs('mutex.cancel()')
  await ours('mutex.cancel()', { controller })
  assert.deepStrictEqual(await Promise.all(waits), [E_CANCELED, E_CANCELED])
  assert.deepStrictEqual(await Promise.all(aborted), [controller.signal.reason.code, controller.signal.reason.code])
  assert.deepStrictEqual([mutex.isLocked(), lock.locked], [true, true])
  // Theirs can be repeated; a signal stays aborted.
  const again = mutex.acquire().catch(error => error)
  await theirs('mutex.cancel()')
  assert.strictEqual(await again, E_CANCELED)
  release()
  token.unlock()
  const { signal } = controller
  assert.strictEqual(await codeOf(lock.lockAsync({ signal })), signal.reason.code)
  assert.strictEqual(await codeOf(locks.holdAsync('free', { signal })), signal.reason.code)
})

/** Resolves once `count` requests for the name are waiting. */
async function waiting (name, count) {
  while ((await locks.query()).pending.filter(each => each.name === name).length < count) await sleep(1)
}

test('cancel, of all threads: a transferable signal ends their waits, without the code of its reason', async t => {
  const code = `
    const { parentPort, workerData: { entry, signal } } = require('worker_threads')
    const wait = require(entry).locks.holdAsync('wanted', { signal })
    wait.catch(error => { parentPort.postMessage([error.message, error.code]) })`
  assert.deepStrictEqual({ ...structuredClone(new AbortController().signal) }, {})
  const held = locks.tryHold('wanted')
  const controller = transferableAbortController()
  const { signal } = controller
  const ends = [1, 2].map(() => {
    const workerData = { entry: require.resolve('../..'), signal }
    const worker = new Worker(code, { eval: true, workerData, transferList: [signal] })
    t.after(() => worker.terminate())
    return once(worker, 'message')
  })
  const own = codeOf(locks.holdAsync('wanted', { signal }))
  await waiting('wanted', 3)
  controller.abort(Object.assign(new Error('over'), { code: 'OVER' }))
  assert.strictEqual(await own, 'OVER')
  for (const [message] of await Promise.all(ends)) assert.deepStrictEqual(message, ['over', undefined])
  held.unlock()
})

test('options: undefined counts as missing, null is refused', async () => {
  for (const take of [options => new AsyncLock().lockAsync(options), options => locks.holdAsync('optional', options)]) {
    (await take({ timeout: undefined, signal: undefined })).unlock()
    for (const options of [{ timeout: null }, { signal: null }])
      assert.strictEqual(await codeOf((async () => take(options))()), 'TypeError')
  }
})

test('waitForUnlock: until it is free', async () => {
  const { theirs, ours, mutex, lock } = await pairOfLocks()
  const [release, token] = [await mutex.acquire(), await lock.lockAsync()]
  const done = []
  const pair = 'await mutex.waitForUnlock()'
  const waits = [theirs, ours].map(side => side(pair).then(() => done.push(side)))
  await sleep(20)
  assert.strictEqual(done.length, 0)
  release()
  token.unlock()
  await Promise.all(waits)
  assert.deepStrictEqual([mutex.isLocked(), lock.locked], [false, false])
})

test('a map of mutexes: one for each key', async () => {
  const { theirs, ours, Mutex } = await pairOfLocks()
  const names = { mutexes: new Map([['a', new Mutex()], ['b', new Mutex()]]), locks }
  for (const [side, whose] of [[theirs, 'theirs'], [ours, 'ours']]) {
    const run = key => side('await mutexes.get(key).runExclusive(callback)', { ...names, key, callback: () => key })
    const held = await side('await mutexes.get(key).acquire()', { ...names, key: 'a' })
    const waits = run('a')
    assert.strictEqual(await run('b'), 'b', whose)
    assert.strictEqual(await Promise.race([waits, sleep(20, 'waits')]), 'waits', whose)
    if (side === theirs) held()
    else held.unlock()
    assert.strictEqual(await waits, 'a', whose)
  }
})

test('a map of mutexes: asked, tried and awaited for a time', async () => {
  const { theirs, ours, Mutex, E_ALREADY_LOCKED, E_TIMEOUT } = await pairOfLocks()
  const names = { mutexes: new Map([['of a map', new Mutex()]]), locks, key: 'of a map' }
  const [ask, tryIt, late] = [
    'mutexes.get(key).isLocked()',
    'await tryAcquire(mutexes.get(key)).acquire()',
    'await withTimeout(mutexes.get(key), 50).acquire()'
  ]
  const isLocked = async () => [await theirs(ask, names), await ours(ask, names)]
  assert.deepStrictEqual(await isLocked(), [false, false])
  const [release, token] = [await theirs(tryIt, names), await ours(tryIt, names)]
  assert.deepStrictEqual(await isLocked(), [true, true])
  assert.strictEqual(await theirs(tryIt, names).catch(error => error), E_ALREADY_LOCKED)
  assert.strictEqual(await ours(tryIt, names), null)
  assert.strictEqual(await theirs(late, names).catch(error => error), E_TIMEOUT)
  assert.strictEqual(await codeOf(ours(late, names)), 'ERR_TIMEOUT')
  release()
  token.unlock();
  (await theirs(late, names))();
  (await ours(late, names)).unlock()
})

test('the class with a map of mutexes, before and after: one task for each key of an instance', async t => {
  const project = await moving.project(t)
  for (const name of ['accounts-before', 'accounts-after']) {
    const { Accounts } = require(path.join(project, `${name}.js`))
    const [one, other] = [new Accounts('one'), new Accounts('other')]
    const order = []
    let next
    await one.change('Ann', async () => {
      next = one.change('Ann', () => { order.push('next') })
      await one.change('Bob', () => { order.push('Bob') })
      await other.change('Ann', () => { order.push('of another instance') })
      await sleep(20)
      order.push('Ann')
    })
    await next
    assert.deepStrictEqual(order, ['Bob', 'of another instance', 'Ann', 'next'], name)
    const fail = () => { throw Object.assign(new Error(), { code: 'OWN' }) }
    assert.strictEqual(await codeOf(one.change('Ann', fail)), 'OWN')
  }
})

test('the class after the change repairs after a worker that ended, an error, and a repair that failed', async t => {
  const file = path.join(await moving.project(t), 'accounts-after.js')
  const code = `
    const { workerData, parentPort } = require('worker_threads')
    const { Accounts } = require(workerData)
    new Accounts('dying').change('Ann', () => new Promise(() => { parentPort.postMessage('inside') }))
    setInterval(() => {}, 1000)`
  const worker = new Worker(code, { eval: true, workerData: file })
  t.after(() => worker.terminate())
  await once(worker, 'message')
  const { Accounts } = require(file)
  let [repairs, isBroken] = [0, true]
  const accounts = new Accounts('dying', () => {
    repairs++
    if (isBroken) throw Object.assign(new Error(), { code: 'BROKEN' })
  })
  const change = (callback = () => {}) => codeOf(accounts.change('Ann', callback))
  const waits = change()
  await waiting('accounts:dying:Ann', 1)
  worker.terminate()
  assert.deepStrictEqual([await waits, repairs], ['BROKEN', 1])
  isBroken = false
  assert.deepStrictEqual([await change(), repairs], ['none', 2])
  assert.deepStrictEqual([await change(), repairs], ['none', 2])
  await change(() => { throw new Error('halfway') })
  assert.deepStrictEqual([await change(), repairs], ['none', 3])
  // What the page warns of: unlock() after a repair that has failed.
  locks.tryHold('accounts:dying:Ann').abandon()
  assert.strictEqual(locks.tryHold('accounts:dying:Ann').unlock(), true)
  assert.deepStrictEqual([await change(), repairs], ['none', 3])
})

test('a semaphore: at most two, by weights, with its value', async () => {
  const { theirs, ours } = await pairOfLocks()
  const [semaphore, limit] = [await theirs('new Semaphore(2)'), await ours('new Semaphore(2)')]
  const names = { semaphore, limit }
  const state = async () => [
    await theirs('semaphore.getValue()', names), await ours('semaphore.getValue()', names),
    await theirs('semaphore.isLocked()', names), await ours('semaphore.isLocked()', names)
  ]
  assert.deepStrictEqual(await state(), [2, 2, false, false])
  const [value, release] = await theirs('await semaphore.acquire(2)', names)
  const token = await ours('await semaphore.acquire(2)', names)
  assert.deepStrictEqual([value, ...await state()], [2, 0, 0, true, true])
  assert.strictEqual(await ours('await tryAcquire(semaphore).acquire()', names), null)
  const refuses = (pair, more) => codeOf(theirs(pair, { ...names, ...more }))
  assert.strictEqual(await refuses('await tryAcquire(semaphore).acquire()'), 'Error')
  const late = 'await withTimeout(semaphore, 50).acquire()'
  assert.deepStrictEqual([await refuses(late), await codeOf(ours(late, names))], ['Error', 'ERR_TIMEOUT'])
  release()
  token.unlock()
  for (const pair of ['await semaphore.runExclusive(callback)', 'await semaphore.runExclusive(callback, 2)']) {
    const weight = pair.includes('2') ? 2 : 1
    await theirs(pair, { ...names, callback: () => assert.strictEqual(semaphore.getValue(), 2 - weight) })
    await ours(pair, { ...names, callback: () => assert.strictEqual(limit.available, 2 - weight) })
  }
  assert.deepStrictEqual(await state(), [2, 2, false, false])
  const [[, free], tried] = [
    await theirs('await tryAcquire(semaphore).acquire()', names),
    await ours('await tryAcquire(semaphore).acquire()', names)
  ]
  free()
  tried.unlock()
  await theirs('semaphore.setValue(3)', names)
  const wider = await ours('semaphore.setValue(3)', names)
  assert.deepStrictEqual([semaphore.getValue(), wider.available], [3, 3])
  // More than there ever was.
  assert.strictEqual(await Promise.race([semaphore.acquire(4), sleep(20, 'waits')]), 'waits')
  assert.strictEqual(await codeOf(limit.holdAsync(4)), 'RangeError')
})

test('signals: a release that nobody waits for is kept', async () => {
  const { theirs, ours } = await pairOfLocks()
  const done = []
  const waits = [theirs, ours].map(side => side('await signals.acquire()').then(() => done.push(side)))
  await sleep(20)
  assert.strictEqual(done.length, 0)
  for (const side of [theirs, ours]) {
    await side('signals.release()')
    await side('signals.release()')
  }
  await Promise.all(waits)
  await Promise.all([theirs, ours].map(side => side('await signals.acquire()')))
})

test('what has given up keeps its place in theirs, and leaves ours', async () => {
  const { semaphore, limit, withTimeout, E_TIMEOUT } = await pairOfLocks()
  const [[, release], token] = [await semaphore.acquire(), await limit.holdAsync()]
  assert.strictEqual(await withTimeout(semaphore, 20).acquire(2).catch(error => error), E_TIMEOUT)
  assert.strictEqual(await codeOf(limit.holdAsync(2, { timeout: 20 })), 'ERR_TIMEOUT')
  const behind = semaphore.acquire()
  assert.strictEqual(await Promise.race([behind, sleep(20, 'waits')]), 'waits');
  (await limit.holdAsync()).unlock()
  release();
  (await behind)[1]()
  token.unlock()
})

test('a task that waits for itself hangs, with detectReentry it rejects', async () => {
  const { mutex, lock } = await pairOfLocks()
  const nested = mutex.runExclusive(() => mutex.runExclusive(() => {}))
  assert.strictEqual(await Promise.race([nested, sleep(20, 'hangs')]), 'hangs')
  const inner = lock.executeLocked(() => lock.executeLocked(() => {}, { timeout: 20 }))
  assert.strictEqual(await codeOf(inner), 'ERR_TIMEOUT')
  const detecting = AsyncLock.create({ detectReentry: true })
  assert.strictEqual(await codeOf(detecting.executeLocked(() => detecting.executeLocked(() => {}))), 'ERR_DEADLOCK')
})

test('the programs before and after the change count right', { timeout: 60000 }, async t => {
  const project = await moving.project(t)
  for (const [name, total] of [['before', '10'], ['after', '30']]) {
    const args = [path.join(project, `${name}.js`), path.join(project, 'total')]
    const { code, stdout, stderr } = await runNode(t, args)
    assert.deepStrictEqual([code, stdout, stderr], [0, `${total}\n`, ''])
  }
})

moving.finish()
