'use strict'
// nodes: >=20 (the scripts that install packages need it)
// timeout: 300

// docs/coming-from-async-mutex.md, with the real package beside this one.

const assert = require('assert')
const path = require('path')
const { setTimeout: sleep } = require('timers/promises')
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
  release()
  token.unlock()
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
