'use strict'

// A worker here replaces a function of Atomics before it loads the package, so nothing may load it there before.
// subjects: export

// Waits for a Queue that end early, what is notified then, and what its numbers say meanwhile.

const assert = require('assert')
const { Worker } = require('worker_threads')
const { test } = require('../harness')
const { Atomics, api } = require('../subject')
const { TAKE_LOCK, PUT_LOCK } = require('../../lib/queue/layout')
const { startWorker, until } = require('../fixtures/queue-toolbox')
const { TinyController, rejection } = require('../fixtures/lock-toolbox')
const { waiting } = require('../fixtures/queue-messages')

const { Queue } = api

const make = (options) => Queue.create(Object.assign({ capacity: 1, messageSize: 64 }, options))

/** Promises of these forms wait for something; `satisfy(queue)` makes one of them go on. */
const FORMS = [
  ['takeAsync', (queue, options) => queue.takeAsync(options), queue => queue.tryPut('m')],
  ['use', (queue, options) => queue.use(() => {}, options), queue => queue.tryPut('m')],
  ['putAsync', (queue, options) => queue.putAsync('m', options), queue => queue.tryTake()]
]

for (const [form, wait, satisfy] of FORMS) {
  for (const throws of [false, true]) {
    const how = throws ? 'whose signal throws' : 'that is aborted'
    test(`${form}: a promise ${how} after it was notified leaves the notification to the next`, async t => {
      const queue = make()
      if (form === 'putAsync') queue.tryPut('full')
      const controller = new TinyController()
      let fails = false
      const signal = throws
        ? { get aborted () { return fails && controller.none.none }, addEventListener () {}, removeEventListener () {} }
        : controller.signal
      const first = rejection(wait(queue, { signal }))
      const next = wait(queue)
      await waiting(queue, 2)
      satisfy(queue)
      fails = true
      controller.abort()
      await first
      await next
      assert.strictEqual(queue.waiters, 0)
    })
  }

  test(`${form}: the same while another thread is inside a step, whose end was what notified it`, async t => {
    const queue = make({ capacity: 2 })
    if (form === 'putAsync') for (let n = 0; n < 2; n++) queue.tryPut('full')
    const words = new Int32Array(queue.buffer)
    const lock = form === 'putAsync' ? PUT_LOCK : TAKE_LOCK
    if (form === 'putAsync') queue.tryTake()
    else queue.tryPut('m')
    // As if another thread were in it.
    Atomics.store(words, lock, 1)
    const controller = new TinyController()
    const first = rejection(wait(queue, { signal: controller.signal }))
    const next = wait(queue)
    await until(() => api.waiterCount(words, lock) === 2, 'both wait for the lock')
    Atomics.store(words, lock, 0)
    api.notify(words, lock, 1)
    controller.abort()
    await first
    await next
  })
}

for (const [method, lock, ...args] of [['put', PUT_LOCK, 'm'], ['take', TAKE_LOCK], ['useSync', TAKE_LOCK]]) {
  test(`${method}: a timeout is obeyed while the lock of a step is stuck, and a notification passed on`, async t => {
    const queue = make()
    const words = new Int32Array(queue.buffer)
    Atomics.store(words, lock, 1)
    const worker = startWorker(t, [queue, method, args], async ({ api, data: [clone, method, args] }) => {
      const queue = new api.Queue(clone)
      const codes = []
      for (const timeout of [0, 5]) {
        try {
          if (method === 'useSync') queue.useSync(() => {}, { timeout })
          else queue[method](...args, { timeout })
          codes.push('none')
        } catch ({ code }) {
          codes.push(code)
        }
      }
      return codes
    })
    assert.deepStrictEqual(await worker.done(), ['ERR_TIMEOUT', 'ERR_TIMEOUT'])
    Atomics.store(words, lock, 0)
    assert.strictEqual(queue.tryPut('after'), true)
    assert.strictEqual(queue.tryTake(), 'after')
  })
}

/** Reads properties of queues, and lets the test's thread change a queue after each of the first `moves` looks. */
const READER = `
  const { parentPort, workerData: sync } = require('worker_threads')
  const { load, wait } = Atomics
  let left = 0
  Atomics.load = (array, index) => {
    const value = load(array, index)
    if (array.length > 8 && left-- > 0) {
      const before = load(sync, 0)
      parentPort.postMessage({ looked: true })
      while (load(sync, 0) === before) wait(sync, 0, before, 10)
    }
    return value
  }
  const { Queue } = require(${JSON.stringify(require.resolve('../../pure'))})
  parentPort.on('message', ({ clone, key, moves }) => {
    const queue = new Queue(clone)
    left = moves
    const value = queue[key]
    left = 0
    parentPort.postMessage({ value })
  })`

for (const key of ['length', 'inUse']) {
  test(`${key} of a busy queue is its value at one moment, whatever changes while it is read`, async t => {
    const sync = new Int32Array(new SharedArrayBuffer(4))
    const worker = new Worker(READER, { eval: true, workerData: sync })
    t.after(() => worker.terminate())
    for (let moves = 1; moves < 9; moves++) {
      const queue = make({ capacity: 3 })
      queue.tryPut('m')
      const seen = new Set([queue[key]])
      const read = new Promise((resolve, reject) => worker.once('error', reject).on('message', ({ value }) => {
        if (value !== undefined) return resolve(value)
        // More messages pass than there is room for, and some come back.
        for (let n = 0; n < 5; n++) {
          queue.tryTake()
          queue.tryPut('m')
          if (n % 2 === 0) queue.tryPut('n')
          queue.use((_, { putBack }) => {
            seen.add(queue[key])
            if (n % 2 === moves % 2) putBack()
          })
          seen.add(queue[key])
        }
        return Atomics.add(sync, 0, 1)
      }))
      worker.postMessage({ clone: queue, key, moves })
      const value = await read
      worker.removeAllListeners('message')
      worker.removeAllListeners('error')
      assert.ok(seen.has(value), `${value} is none of ${Array.from(seen)}`)
    }
  })
}
