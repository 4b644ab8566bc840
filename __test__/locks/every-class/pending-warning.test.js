'use strict'

// An event loop that runs dry while a promise of the family is pending: nothing can settle it any more, and a warning says so.

const assert = require('assert')
const { test } = require('../../harness')
const { runChild } = require('../../fixtures/queue-toolbox')
const { runNode } = require('../../fixtures/run-node')

/** Runs `fn` in a process of its own, with `warnings` in its scope, which it says at its end; gives the lines. */
async function linesOf (t, fn) {
  const source = `async scope => {
    process.on('warning', ({ name, code, message }) => { if (code) scope.say(name + ' ' + code + ': ' + message) })
    await (${fn})(scope)
  }`
  const { code, signal, lines, stderr } = await runChild(t, source)
  assert.strictEqual(signal, null, stderr)
  assert.strictEqual(code, 0, stderr)
  return lines
}

const PENDING = 'Warning ATOMICS_WAITASYNC_PENDING: A promise that waits for '
const DRY = ' is pending, and the event loop of this thread has nothing left to do that could settle it.'
const ITSELF = ' This thread holds it itself.'

test('executeLocked within its own callback is warned of, before the program ends', async t => {
  assert.deepStrictEqual(await linesOf(t, ({ api, say }) => {
    const lock = new api.AsyncLock(new SharedArrayBuffer(4))
    process.on('exit', () => say('end'))
    lock.executeLocked(() => lock.executeLocked(() => say('never')))
  }), [PENDING + 'an AsyncLock' + DRY + ITSELF, 'end'])
})

test('a lock that is awaited with a signal that holds no loop is warned of', async t => {
  assert.deepStrictEqual(await linesOf(t, ({ api, say }) => {
    const lock = new api.AsyncLock(new SharedArrayBuffer(4))
    lock.tryLock()
    const signal = { aborted: false, addEventListener (_, listener) { setTimeout(listener, 20000).unref() } }
    lock.lockAsync({ signal }).then(say, say)
  }), [PENDING + 'an AsyncLock' + DRY + ITSELF])
})

test('the warning names each promise by its kind, and says whether this thread holds the lock itself', async t => {
  assert.deepStrictEqual(await linesOf(t, ({ api }) => {
    const buffer = () => new SharedArrayBuffer(4)
    const taken = (Lock, method) => {
      const lock = new Lock(buffer())
      lock[method]()
      return lock
    }
    // By hand, as code on the bare word does it.
    const foreign = new api.AsyncLock(buffer())
    foreign.i32a[0] = 1
    foreign.lockAsync()
    taken(api.RwLock, 'tryLockShared').executeLocked(() => {})
    taken(api.RwLock, 'tryLock').lockSharedAsync()
    new api.Semaphore(buffer()).acquireAsync()
    const semaphore = new api.Semaphore(buffer())
    semaphore.release()
    semaphore.use(1, () => semaphore.use(1, () => {}))
    new api.Condition(buffer()).waitAsync(new api.AsyncLock(buffer()).tryLock())
    new api.Barrier(buffer(), { parties: 2 }).waitAsync()
    new api.Latch(buffer(), { count: 1 }).waitAsync()
    const queues = [1, 2].map(() => api.Queue.create({ capacity: 1, messageSize: 8 }))
    queues[0].takeAsync()
    queues[1].tryPut(1)
    queues[1].putAsync(2)
  }), [
    'an AsyncLock' + DRY,
    'an RwLock (exclusive)' + DRY + ITSELF,
    'an RwLock (shared)' + DRY + ITSELF,
    'permits of a Semaphore' + DRY,
    'permits of a Semaphore' + DRY + ITSELF,
    'a Condition' + DRY,
    'the other parties of a Barrier' + DRY,
    'a Latch' + DRY,
    'a message of a Queue' + DRY,
    'room in a Queue' + DRY
  ].map(text => PENDING + text))
})

test('each lock is warned of once, for many promises and when the loop runs dry again', async t => {
  assert.deepStrictEqual(await linesOf(t, ({ api, say }) => {
    const lock = new api.AsyncLock(new SharedArrayBuffer(4))
    lock.tryLock()
    for (let n = 0; n < 5; n++) lock.lockAsync()
    let rest = 3
    process.on('beforeExit', () => { if (rest-- > 0) setImmediate(() => say('again')) })
  }), [PENDING + 'an AsyncLock' + DRY + ITSELF, 'again', 'again', 'again'])
})

test('what a later listener of beforeExit settles is not warned of', async t => {
  assert.deepStrictEqual(await linesOf(t, ({ api, say }) => {
    const lock = new api.AsyncLock(new SharedArrayBuffer(4))
    const token = lock.tryLock()
    lock.lockAsync().then(() => say('locked'))
    process.once('beforeExit', () => token.unlock())
  }), ['locked'])
})

test('of many locks ten are warned of one by one, and the others are counted', async t => {
  const lines = await linesOf(t, ({ api }) => {
    for (let n = 0; n < 500; n++) {
      api.locks.request('name ' + n, () => new Promise(() => {}))
      api.locks.request('name ' + n, () => {})
    }
  })
  assert.strictEqual(lines.length, 11)
  assert.strictEqual(lines[0], PENDING + 'the lock named "name 0"' + DRY + ITSELF)
  assert.strictEqual(lines[10], 'Warning ATOMICS_WAITASYNC_PENDING: 490 more promises that wait for other locks are pending, and the event loop of this thread ' +
  'has nothing left to do that could settle them.')
})

test('promises that are unref\'d, have a timeout or are settled in time are not listed', async t => {
  assert.deepStrictEqual(await linesOf(t, ({ api, say }) => {
    const lock = new api.AsyncLock(new SharedArrayBuffer(4))
    const latch = new api.Latch(new SharedArrayBuffer(4), { count: 1 })
    const token = lock.tryLock()
    say(api.unref(latch.waitAsync()))
    new api.Latch(new SharedArrayBuffer(4), { count: 1 }).waitAsync({ timeout: 50 }).catch(error => say(error.name))
    lock.lockAsync().then(() => say('locked'))
    setTimeout(() => token.unlock(), 20)
  }), ['true', 'locked', 'TimeoutError'])
})

test('a forgotten wait of Atomics.waitAsync is not warned of', async t => {
  assert.deepStrictEqual(await linesOf(t, ({ Atomics, words, say }) => {
    Atomics.waitAsync(words(1), 0, 0).value.then(say)
  }), [])
})

test('a worker whose loop runs dry warns, too', async t => {
  const pure = JSON.stringify(require.resolve('../../../pure'))
  const source = `
    const { AsyncLock } = require(${pure})
    const lock = new AsyncLock(new SharedArrayBuffer(4))
    lock.tryLock()
    lock.lockAsync()
    process.on('warning', ({ code }) => console.log(code))`
  const { code, stdout } = await runNode(t, ['-e', `new (require('worker_threads').Worker)(${JSON.stringify(source)}, { eval: true })`])
  assert.strictEqual(code, 0)
  assert.ok(stdout.split('\n').includes('ATOMICS_WAITASYNC_PENDING'), stdout)
})
