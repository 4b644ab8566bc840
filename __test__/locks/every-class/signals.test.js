'use strict'

// Signals of the classes, and of the exported waitAsync: in the package's queue.

// Many waits on one signal: it has one listener, whatever the class and however many wait.

const assert = require('assert')
const { test } = require('../../harness')
const { api } = require('../../subject')
const createPending = require('../../fixtures/pending')
const { waiters } = require('../../fixtures/family-toolbox')
const { TinyController, rejection } = require('../../fixtures/lock-toolbox')

const { Semaphore } = api

/** Makes a signal that counts what it is asked. */
function counting ({ removes = true } = {}) {
  const controller = new TinyController({ removes, reason: 'aborted' })
  const { signal } = controller
  const counts = { added: 0, removed: 0 }
  for (const [method, count] of [['addEventListener', 'added'], ['removeEventListener', 'removed']]) {
    const original = signal[method]
    if (original === undefined) continue
    signal[method] = function () {
      counts[count]++
      return original.apply(this, arguments)
    }
  }
  return { controller, signal, counts }
}

for (const removes of [true, false]) {
  const which = removes ? 'a signal' : 'a signal without removeEventListener'
  test(`${which} has one listener for all that wait, and rejects them in their order`, async () => {
    const { forms } = createPending(1000)
    const { controller, signal, counts } = counting({ removes })
    const order = []
    const expected = []
    const rejected = []
    for (let round = 0; round < 50; round++) {
      for (const { name, run } of forms) {
        const number = expected.length
        expected.push(number)
        rejected.push(run({ signal }).then(() => assert.fail(name), reason => {
          order.push(number)
          assert.strictEqual(reason, 'aborted')
        }))
        if (/For/.test(name)) await null // its predicate is awaited
      }
    }
    await null
    assert.deepStrictEqual(counts, { added: 1, removed: 0 })
    assert.strictEqual(controller.listeners.size, 1)
    controller.abort()
    for (const { name, waiters } of forms) assert.strictEqual(waiters(), 0, name)
    await Promise.all(rejected)
    // How many turns a promise takes from there differs by form: the order is that of each form.
    for (let form = 0; form < forms.length; form++) {
      const of = list => list.filter(number => number % forms.length === form)
      assert.deepStrictEqual(of(order), of(expected), forms[form].name)
    }
    assert.deepStrictEqual(counts, { added: 1, removed: removes ? 1 : 0 })
  })
}

test('the listener goes with the last that waits, and comes again with the next', async () => {
  const { controller, signal, counts } = counting()
  const semaphore = new Semaphore(new SharedArrayBuffer(4))
  for (let round = 1; round <= 3; round++) {
    const waits = [
      semaphore.acquireAsync(1, { signal }),
      semaphore.acquireAsync(1, { signal, timeout: 1 }),
      semaphore.acquireAsync(1, { signal })
    ]
    assert.strictEqual((await rejection(waits[1])).name, 'TimeoutError')
    semaphore.release()
    await waits[0]
    assert.strictEqual(controller.listeners.size, 1)
    semaphore.release()
    await waits[2]
    assert.strictEqual(controller.listeners.size, 0)
    assert.deepStrictEqual(counts, { added: round, removed: round })
  }
  const last = rejection(semaphore.acquireAsync(1, { signal }))
  controller.abort()
  assert.strictEqual(await last, 'aborted')
})

test('a signal without removeEventListener is not listened to anew by each wait', async () => {
  const { controller, signal, counts } = counting({ removes: false })
  const semaphore = new Semaphore(new SharedArrayBuffer(4))
  for (let round = 0; round < 5; round++) {
    const wait = semaphore.acquireAsync(1, { signal })
    semaphore.release()
    await wait
  }
  assert.strictEqual(counts.added, 1)
  const last = rejection(semaphore.acquireAsync(1, { signal }))
  controller.abort()
  assert.strictEqual(await last, 'aborted')
})

test('a signal that refuses a listener is asked again by the next wait', async () => {
  const { controller, signal } = counting()
  const { addEventListener } = signal
  const semaphore = new Semaphore(new SharedArrayBuffer(4))
  signal.addEventListener = () => { throw new Error('refused') }
  assert.strictEqual((await rejection(semaphore.acquireAsync(1, { signal }))).message, 'refused')
  signal.addEventListener = addEventListener
  const next = rejection(semaphore.acquireAsync(1, { signal }))
  controller.abort()
  assert.strictEqual(await next, 'aborted')
  assert.strictEqual(waiters(semaphore.buffer), 0)
})

test('a reason whose getter throws: all of them reject with that error', async () => {
  const { controller, signal } = counting()
  const semaphore = new Semaphore(new SharedArrayBuffer(4))
  const waits = [1, 2, 3].map(() => rejection(semaphore.acquireAsync(1, { signal })))
  Object.defineProperty(signal, 'reason', { get () { throw new Error('no reason') } })
  controller.abort()
  for (const error of await Promise.all(waits)) assert.strictEqual(error.message, 'no reason')
})

test('a wait that begins while the others are aborted is aborted, too', async () => {
  const { controller, signal } = counting()
  const semaphore = new Semaphore(new SharedArrayBuffer(4))
  let late
  Object.defineProperty(signal, 'reason', {
    get () {
      if (late === undefined) {
        signal.aborted = false
        late = rejection(semaphore.acquireAsync(1, { signal }))
      }
      return 'aborted'
    }
  })
  const first = rejection(semaphore.acquireAsync(1, { signal }))
  controller.abort()
  assert.strictEqual(await first, 'aborted')
  assert.strictEqual(await late, 'aborted')
})

const needsController = { skip: typeof AbortController !== 'function' && 'no AbortController here' }
test('Node does not warn of many waits on one AbortSignal', needsController, async () => {
  const warnings = []
  const listener = warning => warnings.push(warning.name)
  process.on('warning', listener)
  const controller = new AbortController()
  const { forms } = createPending(1000)
  const waits = []
  for (let round = 0; round < 20; round++)
    for (const { run } of forms) waits.push(rejection(run({ signal: controller.signal })))
  await new Promise(resolve => setImmediate(resolve))
  controller.abort()
  for (const error of await Promise.all(waits)) assert.strictEqual(error.name, 'AbortError')
  await new Promise(resolve => setImmediate(resolve))
  process.removeListener('warning', listener)
  assert.deepStrictEqual(warnings, [])
})

const { addAbortListener } = require('events')

test('an earlier listener cannot keep an abort from a wait', {
  skip: addAbortListener === undefined && 'this Node has no events.addAbortListener'
}, async () => {
  const { forms } = createPending(1000)
  for (const { name, run } of forms) {
    const controller = new AbortController()
    controller.signal.addEventListener('abort', event => { event.stopImmediatePropagation() })
    const aborted = rejection(run({ signal: controller.signal }))
    controller.abort('stopped')
    assert.strictEqual(await aborted, 'stopped', name)
  }
})
