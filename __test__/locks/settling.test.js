'use strict'

// A failing settlement affects no other one, and interrupted batches are continued.

const assert = require('assert')
const { Worker } = require('worker_threads')
const { test } = require('../harness')
const { rejection } = require('../fixtures/lock-toolbox')
const { runChild, until } = require('../fixtures/queue-toolbox')
const { api } = require('../subject')

const PRELOAD = ['-r', require.resolve('../fixtures/broken-settle.js')]

/** Runs `fn` in a process that has to end by itself; gives the lines it wrote. */
async function linesOf (t, fn, execArgv) {
  const { code, signal, lines, stderr } = await runChild(t, fn, undefined, { execArgv })
  assert.strictEqual(signal, null, stderr)
  assert.strictEqual(code, 0, stderr)
  return lines
}

test('a claimant that throws as it is settled keeps no other from that, and its error is uncaught', async t => {
  const lines = await linesOf(t, ({ Atomics, api, say, words, require }) => {
    process.on('uncaughtException', error => say(`uncaught: ${error.message}`))
    const { agent } = require('../../lib/agent/find-agent')
    const semaphore = new api.Semaphore(new SharedArrayBuffer(4))
    const array = words(1)
    const address = agent().addressOf(new Uint8Array(array.buffer))
    const wait = name => Atomics.waitAsync(array, 0, 0).value.then(outcome => say(`${name} ${outcome}`))
    wait('first')
    agent().waitClaim(address, false, 0, Infinity, { array, refed: true, settle () { throw new Error('mine') } }, false)
    wait('second')
    semaphore.acquireAsync().then(() => say('acquired'))
    Atomics.notify(array, 0)
    semaphore.release()
  })
  assert.deepStrictEqual(lines.sort(), ['acquired', 'first ok', 'second ok', 'uncaught: mine'])
})

test('a signal whose removeEventListener cannot be read keeps no promise from being settled', async t => {
  const lines = await linesOf(t, ({ api, say }) => {
    const semaphore = new api.Semaphore(new SharedArrayBuffer(4))
    const signal = { aborted: false, addEventListener () {} }
    Object.defineProperty(signal, 'removeEventListener', { get () { throw new Error('not to be got') } })
    for (const name of ['first', 'second', 'third']) {
      semaphore.acquireAsync(1, name === 'second' ? { signal } : {}).then(() => say(name), error => say(error.message))
    }
    semaphore.release(3)
  })
  assert.deepStrictEqual(lines, ['first', 'second', 'third'])
})

test('where Error.prototype is frozen, errors have their names, and promises are rejected with them', async t => {
  const lines = await linesOf(t, ({ api, busy, say, words }) => {
    Object.freeze(Error.prototype)
    const lock = new api.AsyncLock(new SharedArrayBuffer(4))
    const token = lock.tryLock()
    for (let n = 0; n < 3; n++) lock.lockAsync({ timeout: 20 }).catch(error => say(`${error.name} ${error.code}`))
    const signal = { aborted: false, addEventListener (_, listener) { this.abort = listener } }
    lock.lockAsync({ signal }).catch(error => say(`${error.name} ${error.code}`))
    signal.abort()
    token.unlock()
    try {
      lock.unlock()
    } catch (error) {
      say(error.code)
    }
    lock.tryLock()
    // All of them in one batch.
    busy(60)
  })
  const late = 'TimeoutError ERR_TIMEOUT'
  assert.deepStrictEqual(lines, ['ERR_NOT_LOCKED', 'AbortError ABORT_ERR', late, late, late])
})

test('a Condition needs no then of the promises\' prototype', async t => {
  const lines = await linesOf(t, ({ api, say }) => {
    const lock = new api.AsyncLock(new SharedArrayBuffer(4))
    const condition = new api.Condition(new SharedArrayBuffer(4))
    const { then } = Promise.prototype
    const wait = async name => {
      const token = await lock.lockAsync()
      say(`${name} ${await condition.waitAsync(token)}`)
      token.unlock()
      ended++
    }
    const once = (isSo, then) => isSo() ? then() : setTimeout(once, 1, isSo, then)
    let ended = 0
    wait('first')
    wait('second')
    once(() => condition.waiters === 2, () => {
      // eslint-disable-next-line no-extend-native
      Promise.prototype.then = () => { throw new Error('replaced') }
      condition.notify()
      once(() => ended === 2, () => {
        // eslint-disable-next-line no-extend-native
        Promise.prototype.then = then
        say(lock.locked)
      })
    })
  })
  assert.deepStrictEqual(lines, ['first true', 'second true', 'false'])
})

// ——— a batch that is interrupted ———

test('a batch that fails before any of its promises is settled comes again', async t => {
  const lines = await linesOf(t, async ({ Atomics, api, say, words }) => {
    process.on('uncaughtException', () => {})
    const array = words(1)
    const lock = new api.AsyncLock(new SharedArrayBuffer(4))
    const rwLock = new api.RwLock(new SharedArrayBuffer(4))
    const semaphore = new api.Semaphore(new SharedArrayBuffer(4))
    const other = new api.AsyncLock(new SharedArrayBuffer(4)).tryLock()
    const [token, writing] = [lock.tryLock(), rwLock.tryLock()]
    const claims = [lock.lockAsync(), semaphore.acquireAsync(), rwLock.lockSharedAsync(), rwLock.lockSharedAsync()]
    const waits = [Atomics.waitAsync(array, 0, 0).value, ...claims]
    global.broken.before = 3
    Atomics.notify(array, 0)
    semaphore.release()
    token.unlock()
    writing.unlock()
    const [outcome, granted, permit, ...shares] = await Promise.all(waits)
    say(`${outcome} ${granted.locked} ${permit} ${shares.map(token => token.locked)} ${rwLock.readers}`)
    say(global.broken.before)
    // It still holds its earlier locks, and can unlock all of them.
    say([other, granted, ...shares].map(token => token.unlock()))
    say(`${lock.locked} ${rwLock.readers} ${semaphore.available}`)
  }, PRELOAD)
  assert.deepStrictEqual(lines, ['ok true undefined true,true 2', '0', 'true,true,true,true', 'false 0 0'])
})

test('a batch that fails halfway goes on with the promises that have not been settled', async t => {
  const lines = await linesOf(t, async ({ Atomics, api, say, words, require }) => {
    process.on('uncaughtException', () => {})
    const { agent } = require('../../lib/agent/find-agent')
    const locks = Array.from({ length: 8 }, () => new api.AsyncLock(new SharedArrayBuffer(4)))
    const semaphore = new api.Semaphore(new SharedArrayBuffer(4))
    const tokens = locks.map(lock => lock.tryLock())
    const array = words(1)
    const address = agent().addressOf(new Uint8Array(array.buffer))
    const settled = []
    const promises = []
    const watch = (promise, name) => promises.push(promise.then(value => {
      settled.push(name)
      return value
    }))
    let thrown = 0
    locks.forEach((lock, n) => {
      watch(Atomics.waitAsync(array, 0, 0).value, `wait ${n}`)
      const claim = { array, refed: true, settle () { thrown++; throw new Error('mine') } }
      if (n % 3 === 1) agent().waitClaim(address, false, 0, Infinity, claim, false)
      watch(lock.lockAsync(), `lock ${n}`)
      watch(semaphore.acquireAsync(), `permit ${n}`)
    })
    global.broken.tick = 2
    semaphore.release(4)
    Atomics.notify(array, 0)
    tokens.forEach(token => token.unlock())
    semaphore.release(4)
    const granted = (await Promise.all(promises)).filter(value => value instanceof api.UnlockToken)
    say(`${thrown} ${settled.length} ${new Set(settled).size} ${global.broken.tick}`)
    say(granted.map(token => token.locked))
    say(granted.map(token => token.unlock()))
    say(`${locks.map(lock => lock.locked)} ${semaphore.available}`)
  }, PRELOAD)
  const all = (value) => new Array(8).fill(value).join()
  assert.deepStrictEqual(lines, ['3 24 24 0', all(true), all(true), `${all(false)} 0`])
})

test('locks and permits of a thread that ends within a batch go on to others', async t => {
  const sab = new SharedArrayBuffer(12)
  const lock = new api.AsyncLock(sab)
  const semaphore = new api.Semaphore(sab, { byteOffset: 4 })
  assert.strictEqual(api.uninstall(), true)
  const dying = new Worker(require.resolve('../fixtures/broken-settle-thread.js'), { workerData: sab })
  assert.strictEqual(api.install({ force: true }), true)
  t.after(() => dying.terminate())
  const token = lock.tryLock()
  await new Promise(resolve => dying.once('message', resolve))
  const waiting = semaphore.acquireAsync()
  await until(() => api.waiterCount(new Int32Array(sab), 1) === 2, 'both wait for a permit')
  token.unlock()
  semaphore.release()
  await until(() => api.waiterCount(new Int32Array(sab), 1) === 1 && lock.locked, 'the thread has been given both')
  const next = lock.lockAsync()
  await dying.terminate()
  await waiting
  assert.strictEqual((await next).ownerDied, true)
  assert.strictEqual((await rejection(semaphore.acquireAsync(1, { timeout: 0 }))).name, 'TimeoutError')
})
