'use strict'

// These classes use the package's own queue, whichever functions the global Atomics has.
// subjects: force

// `ref` and `unref` of the promises of locks and their family: the promise that the user has, through all steps that it takes.

const assert = require('assert')
const { test } = require('../../harness')
const { runChild } = require('../../fixtures/queue-toolbox')
const { turns } = require('../../fixtures/family-toolbox')
const { api } = require('../../subject')

/** The pending promises, by name, as `(things) => promise`; `things.letGo[name]()` settles one. */
const FORMS = {
  lockAsync: it => it.lock.lockAsync(),
  executeLocked: it => it.lock.executeLocked(() => {}),
  'RwLock lockAsync': it => it.rwLock.lockAsync(),
  lockSharedAsync: it => it.rwLock.lockSharedAsync(),
  'RwLock executeLocked': it => it.rwLock.executeLocked(() => {}),
  executeShared: it => it.rwLock.executeShared(() => {}),
  acquireAsync: it => it.semaphore.acquireAsync(),
  use: it => it.semaphore.use(1, () => {}),
  'Condition waitAsync': it => it.condition.waitAsync(it.ownToken()),
  waitForAsync: it => it.condition.waitForAsync(it.ownToken(), () => it.isReady),
  'Barrier waitAsync': it => it.barrier.waitAsync(),
  'Latch waitAsync': it => it.latch.waitAsync(),
  putAsync: it => it.full.putAsync(2),
  takeAsync: it => it.empty.takeAsync(),
  'Queue use': it => it.empty.use(() => {}),
  'waitAsync with a signal': it => it.api.waitAsync(it.word, 0, 0, undefined, { signal: { aborted: false, addEventListener () {} } }).value
}

/** For other processes, too, so it sees nothing of this file. */
function createThings (api) {
  const { AsyncLock, Barrier, Condition, Latch, Queue, RwLock, Semaphore } = api
  const buffer = () => new SharedArrayBuffer(4)
  const it = {
    lock: new AsyncLock(buffer()),
    rwLock: new RwLock(buffer()),
    semaphore: new Semaphore(buffer()),
    condition: new Condition(buffer()),
    barrier: new Barrier(buffer(), { parties: 2 }),
    latch: new Latch(buffer(), { count: 1 }),
    empty: Queue.create({ capacity: 1, messageSize: 8 }),
    full: Queue.create({ capacity: 1, messageSize: 8 }),
    api,
    word: new Int32Array(buffer()),
    isReady: false,
    ownToken: () => new AsyncLock(buffer()).tryLock()
  }
  it.full.tryPut(1)
  const [token, writing] = [it.lock.tryLock(), it.rwLock.tryLock()]
  it.letGo = () => {
    it.isReady = true
    token.unlock()
    writing.unlock()
    it.semaphore.release()
    it.condition.notify()
    it.barrier.waitAsync()
    it.latch.countDown()
    it.empty.tryPut(1)
    it.full.tryTake()
    api.notify(it.word, 0)
  }
  return it
}

for (const [name, before] of Object.keys(FORMS).map(name => [name, 0]).concat(Object.keys(FORMS).map(name => [name, 1]))) {
  test(`${name}: ref and unref say whether the promise was pending${before ? ', though it began after their first call' : ''}`, async () => {
    const it = createThings(api)
    if (before) assert.strictEqual(api.unref(api.waitAsync(it.word, 0, 0).value), true)
    const promise = FORMS[name](it)
    for (let n = 0; n < 2; n++) {
      assert.strictEqual(api.unref(promise), true)
      assert.strictEqual(api.ref(promise), true)
      assert.strictEqual(api.ref(promise), true)
      await turns(1)
    }
    assert.strictEqual(api.unref(promise.then(() => {})), false)
    it.letGo()
    const value = await promise
    assert.strictEqual(api.ref(promise), false)
    assert.strictEqual(api.unref(promise), false)
    if (value instanceof api.UnlockToken) value.unlock()
    assert.strictEqual(it.lock.locked, false)
    assert.strictEqual(it.rwLock.locked, false)
  })

  test(`${name}: a process ends although it is pending, if it is unref'd, and waits for it if it is ref'd again`, async t => {
    const source = `async scope => {
      const { api, say, startWorker, until, words } = scope
      const run = ${FORMS[name]}
      const it = (${createThings})(api)
      const array = words(1)
      // Without another thread that might settle it, nothing would hold the loop.
      const other = startWorker(({ data }) => { data[0] = 1; setInterval(() => {}, 1000) }, array)
      await until(() => array[0] === 1)
      other.worker.unref()
      const promise = run(it)
      promise.then(() => say('settled'))
      api.unref(promise)
      if (scope.data) {
        api.ref(promise)
        setTimeout(() => it.letGo(), 50).unref()
        promise.then(() => process.exit())
      }
      process.on('exit', () => say('end'))
    }`
    for (const refed of [false, true]) {
      const { code, lines, stderr } = await runChild(t, source, refed)
      assert.strictEqual(stderr, '')
      assert.strictEqual(code, 0)
      assert.deepStrictEqual(lines, refed ? ['settled', 'end'] : ['end'])
    }
  })
}

test('an unref\'d promise stays so through its later steps: a Condition\'s promise that wants the lock again', async t => {
  const { code, lines, stderr } = await runChild(t, async ({ api, say, startWorker, until, words }) => {
    const array = words(3)
    const lock = new api.AsyncLock(array.buffer)
    const token = await lock.lockAsync()
    const other = startWorker(({ api, data }) => {
      const lock = new api.AsyncLock(data.buffer)
      // Takes the lock when the condition's promise has unlocked it, notifies, and keeps it.
      lock.lock()
      data[2] = new api.Condition(data.buffer, { byteOffset: 4 }).notify()
      setInterval(() => {}, 1000)
    }, array)
    const promise = new api.Condition(array.buffer, { byteOffset: 4 }).waitAsync(token)
    say(api.unref(promise))
    await until(() => array[2] === 1 && api.waiterCount(array, 0) === 1, 'the promise waits for the lock')
    other.worker.unref()
    process.on('exit', () => say('end'))
  })
  assert.strictEqual(stderr, '')
  assert.strictEqual(code, 0)
  assert.deepStrictEqual(lines, ['true', 'end'])
})

test('an unref\'d promise stays so between two steps: a predicate that is awaited', async t => {
  const { code, lines, stderr } = await runChild(t, async ({ api, say, sleep, startWorker, until, words }) => {
    const array = words(1)
    const other = startWorker(({ data }) => { data[0] = 1; setInterval(() => {}, 1000) }, array)
    await until(() => array[0] === 1)
    const [lock, condition] = [new api.AsyncLock(new SharedArrayBuffer(4)), new api.Condition(new SharedArrayBuffer(4))]
    let tries = 0
    const promise = condition.waitForAsync(lock.tryLock(), async () => {
      tries++
      await sleep(20)
      return false
    })
    say(api.unref(promise))
    await until(() => tries === 1 && !lock.locked, 'it waits')
    condition.notify()
    await until(() => tries === 2 && !lock.locked, 'it waits again')
    other.worker.unref()
    process.on('exit', () => say('end'))
  })
  assert.strictEqual(stderr, '')
  assert.strictEqual(code, 0)
  assert.deepStrictEqual(lines, ['true', 'end'])
})
