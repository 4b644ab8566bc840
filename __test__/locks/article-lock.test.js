'use strict'

// What an install puts into another object changes nothing for a lock.
// subjects: export, force
// timeout: 300

// The article's own class (fixtures/lock-article.js): on the subject, alone and on one word with AsyncLock.

const assert = require('assert')
const { Worker } = require('worker_threads')
const { test } = require('../harness')
const { Atomics, api, name: subject } = require('../subject')
const createArticleLock = require('../fixtures/lock-article')
const { MAJOR, sleep, startWorker, until } = require('../fixtures/queue-toolbox')
const { startLocker, untilWaiters } = require('../fixtures/lock-toolbox')

const TIMES = 100000
const WORKERS = 3
const { AsyncLock } = api
const ArticleLock = createArticleLock(Atomics)

/**
 * Lets workers, which block, and main count together to TIMES; `kinds`: which class each uses, main last. The counter
 * is only right if no two threads are ever inside together, and the test ends only if no claim is ever forgotten.
 */
async function count (t, kinds, MainLock) {
  const sab = new SharedArrayBuffer(4)
  const counter = new SharedArrayBuffer(8)
  const words = new Int32Array(counter)
  const perMain = TIMES / 20
  const perWorker = (TIMES - perMain) / WORKERS
  const workers = kinds.map((kind, n) => {
    const times = n === 0 ? TIMES - perMain - (WORKERS - 1) * Math.floor(perWorker) : Math.floor(perWorker)
    const workerData = { sab, counter, times, kind }
    const worker = new Worker(require.resolve('../fixtures/lock-counting.js'), { workerData })
    t.after(() => { worker.terminate() })
    return worker
  })
  const ended = workers.map(worker => new Promise((resolve, reject) => {
    worker.on('error', reject)
    worker.on('exit', resolve)
  }))
  const failure = Promise.all(ended)
  failure.catch(() => {})
  await until(() => words[1] === WORKERS, 'all workers are ready')
  for (const worker of workers) worker.postMessage('go')
  const lock = new MainLock(sab)
  const main = (async () => {
    for (let n = 0; n < perMain; n++) {
      await lock.executeLocked(() => { words[0]++ })
      // Not all at once, so that main is there until the end.
      if (n % 50 === 0) await sleep(0)
    }
  })()
  await Promise.all([main, failure])
  assert.strictEqual(words[0], TIMES)
  assert.strictEqual(Atomics.load(new Int32Array(sab), 0), 0)
}

for (const [MainLock, ...kinds] of [
  [ArticleLock, 'article', 'article', 'article'], [ArticleLock, 'ours', 'ours', 'ours'],
  [AsyncLock, 'article', 'article', 'article'], [AsyncLock, 'ours', 'ours', 'ours'],
  [AsyncLock, 'article', 'ours', 'article']
]) {
  const main = MainLock === AsyncLock ? 'ours' : 'article'
  test(`on one word, main: ${main}, workers: ${kinds.join(', ')}`, { timeout: 120000 }, t => count(t, kinds, MainLock))
}

const { waitAsync } = global.Atomics
const hasOwn = waitAsync !== undefined && waitAsync[Symbol.for('atomics-waitasync')] === undefined
const noHost = !hasOwn && `Node ${MAJOR} has no Atomics.waitAsync of its own`
test('over the host\'s own queue, where it has one', {
  timeout: 120000,
  skip: subject === 'force' ? 'the global Atomics is the subject' : noHost
}, async t => {
  // A pending wait in the host's queue does not keep main alive.
  const alive = setInterval(() => {}, 1000)
  t.after(() => clearInterval(alive))
  await count(t, Array(WORKERS).fill('article over the host'), createArticleLock(global.Atomics))
})

// ——— no wake-up is lost, either way ———

for (const waiter of ['blocks', 'awaits']) {
  test(`ours gives up the lock: the article's, which ${waiter}, has it next`, { timeout: 60000 }, async t => {
    const sab = new SharedArrayBuffer(4)
    const lock = new AsyncLock(sab)
    for (let round = 0; round < 20; round++) {
      const token = lock.tryLock()
      assert.ok(token !== null)
      if (waiter === 'awaits') {
        const result = new ArticleLock(sab).executeLocked(() => lock.locked)
        token.unlock()
        assert.strictEqual(await result, true)
      } else if (round < 3) {
        const worker = startArticle(t, sab)
        await untilWaiters(lock, 1)
        token.unlock()
        assert.strictEqual(await worker.done(), 'had it')
      } else {
        token.unlock()
      }
      assert.strictEqual(lock.locked, false)
    }
  })

  test(`the article's gives up the lock: ours, which ${waiter}, has it next`, { timeout: 60000 }, async t => {
    const sab = new SharedArrayBuffer(4)
    const [theirs, ours] = [new ArticleLock(sab), new AsyncLock(sab)]
    const locker = waiter === 'blocks' ? await startLocker(t, sab) : undefined
    for (let round = 0; round < 20; round++) {
      assert.strictEqual(theirs.tryLock(), true)
      if (locker) {
        const result = locker.call('lock', 0)
        await untilWaiters(ours, 1)
        theirs.unlock()
        assert.strictEqual((await result).ownerDied, false)
        assert.strictEqual(theirs.tryLock(), false)
        await locker.call('unlock', 0)
      } else {
        const result = ours.lockAsync()
        theirs.unlock()
        const token = await result
        assert.strictEqual(theirs.tryLock(), false)
        token.unlock()
      }
    }
  })
}

function startArticle (t, sab) {
  return startWorker(t, { sab, file: require.resolve('../fixtures/lock-article') }, ({ Atomics, data, require }) => {
    const ArticleLock = require(data.file)(Atomics)
    const lock = new ArticleLock(data.sab)
    lock.lock()
    lock.unlock()
    return 'had it'
  })
}

test('a line of both kinds, blocked and awaiting: each has its turn', { timeout: 60000 }, async t => {
  const sab = new SharedArrayBuffer(4)
  const [theirs, ours] = [new ArticleLock(sab), new AsyncLock(sab)]
  const locker = await startLocker(t, sab)
  for (let round = 0; round < 10; round++) {
    const token = ours.tryLock()
    const workers = round < 2 ? [startArticle(t, sab)] : []
    const turns = []
    const all = [
      theirs.executeLocked(() => { turns.push('theirs') }),
      ours.executeLocked(() => { turns.push('ours') }),
      theirs.executeLocked(() => { turns.push('theirs') }),
      ours.executeLocked(() => { turns.push('ours') })
    ]
    const blocked = locker.call('lock', 0).then(() => locker.call('unlock', 0))
    await untilWaiters(ours, 5 + workers.length)
    token.unlock()
    await Promise.all(all.concat(blocked, workers.map(worker => worker.done())))
    assert.strictEqual(turns.length, 4)
    assert.strictEqual(ours.locked, false)
    assert.strictEqual(api.waiterCount(ours.i32a, 0), 0)
  }
})

test('a holder of ours that dies leaves the lock to the article\'s', async t => {
  const sab = new SharedArrayBuffer(4)
  const locker = await startLocker(t, sab)
  await locker.call('lock', 0)
  const result = new ArticleLock(sab).executeLocked(() => 'had it')
  await locker.terminate()
  assert.strictEqual(await result, 'had it')
  // The next holder of ours is told; the article's class does not ask.
  assert.strictEqual(new AsyncLock(sab).tryLock().ownerDied, true)
})
