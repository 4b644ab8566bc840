'use strict'

// Calls that need no waiting.

const { fresh, median, now, takeTurns, timeCalls } = require('../sampling')
const { open, variants } = require('../queues')

function notifyNobody (notify, array, count) {
  let sum = 0
  for (let n = 0; n < count; n++) sum += notify(array, 0)
  return sum
}

function waitNotEqual (wait, array, count) {
  let last
  for (let n = 0; n < count; n++) last = wait(array, 0, 1)
  return last
}

function waitAsyncNotEqual (waitAsync, array, count, results) {
  // Kept, so that the engine cannot do without the object.
  for (let n = 0; n < count; n++) results[n & 15] = waitAsync(array, 0, 1)
}

function notifyEach (notify, array, count, stride) {
  let sum = 0
  for (let n = 0; n < count; n++) sum += notify(array, n * stride)
  return sum
}

/** The one atomic read and the answer, without which none of them can do. */
const floor = {
  notify: (array, index) => (Atomics.load(array, index) === 0 ? 0 : 1),
  wait: (array, index, value) => (Atomics.load(array, index) === value ? 'ok' : 'not-equal'),
  waitAsync: (array, index, value) => ({
    async: false,
    value: Atomics.load(array, index) === value ? 'ok' : 'not-equal'
  })
}

const IMMEDIATE = {
  'notify-none': { method: 'notify', loop: notifyNobody },
  'wait-not-equal': { method: 'wait', loop: waitNotEqual },
  'wait-async-not-equal': { method: 'waitAsync', loop: waitAsyncNotEqual }
}

/** How many calls a sample has. */
const COUNT = 1e4
/** Bytes. Words that far apart have nothing in common. */
const PAGE = 4096

async function run ({ rounds, quick }) {
  const results = {}
  const array = new Int32Array(new SharedArrayBuffer(4))
  for (const [name, { method, loop }] of Object.entries(IMMEDIATE)) {
    const loops = {}
    // `wait` and `notify` are everywhere, `waitAsync` is not.
    for (const variant of ['host', 'ours', 'again', 'floor']) {
      const fn = variant === 'floor' ? floor[method] : open(variant)[method]
      if (fn !== undefined) loops[variant] = { fn, loop: fresh(loop) }
    }
    const kept = new Array(16).fill(null)
    const call = (variant) => { loops[variant].loop(loops[variant].fn, array, COUNT, kept) }
    Object.assign(results, await timeCalls(name, Object.keys(loops), rounds(300), COUNT, call, 20))
  }
  return Object.assign(results,
    await amongWaiters('notify-each', { size: quick ? 1e3 : 1e5 }, rounds),
    await amongWaiters('notify-each-page', { size: quick ? 100 : 1e4, stride: PAGE / 4 }, rounds),
    await amongWaiters('notify-none-beside', { size: quick ? 1e3 : 1e5 }, rounds, notifyTime))
}

/**
 * Samples a figure beside waiters at many locations, so many words apart: of the result of `measure` meanwhile, or of
 * waking each by a call of its own.
 */
function amongWaiters (figure, { size, stride = 1 }, rounds, measure = () => undefined) {
  const array = new Int32Array(new SharedArrayBuffer(4 * size * stride))
  const queues = {}
  for (const variant of variants())
    queues[variant] = { ...open(variant), loop: fresh(notifyNobody), loops: fresh(notifyEach) }
  return takeTurns(Object.keys(queues), rounds(9), async (variant) => {
    const { waitAsync, notify, loops } = queues[variant]
    const promises = new Array(size).fill(null)
    for (let n = 0; n < size; n++) promises[n] = waitAsync(array, n * stride, 0).value
    const value = measure(queues[variant])
    const begin = now()
    const woken = loops(notify, array, size, stride)
    const each = (now() - begin) / size
    if (woken !== size) throw new Error(`${woken} of ${size} were woken`)
    await Promise.all(promises)
    return { [figure]: value === undefined ? each : value }
  })
}

/** Times a `notify` of a word without waiters. */
function notifyTime ({ notify, loop }) {
  const array = new Int32Array(new SharedArrayBuffer(4))
  const samples = []
  for (let n = 0; n < 20; n++) {
    const begin = now()
    loop(notify, array, COUNT)
    samples.push((now() - begin) / COUNT)
  }
  return median(samples)
}

module.exports = { run }
