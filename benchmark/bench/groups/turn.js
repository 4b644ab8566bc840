'use strict'

// A wait, its notification, and awaiting its promise, all in one thread. The floor is a turn of the event loop.

const { fresh, timeCalls } = require('../sampling')
const { open, variants } = require('../queues')

async function loop (waitAsync, notify, array, count) {
  for (let n = 0; n < count; n++) {
    const { value } = waitAsync(array, 0, 0)
    notify(array, 0)
    await value
  }
}

async function turns (setImmediate, _, array, count) {
  for (let n = 0; n < count; n++) await new Promise(resolve => setImmediate(resolve))
}

async function run ({ rounds }) {
  const count = 500
  const queues = {}
  for (const variant of variants()) queues[variant] = { ...open(variant), loop: fresh(loop) }
  queues.floor = { waitAsync: setImmediate, loop: fresh(turns) }
  const array = new Int32Array(new SharedArrayBuffer(4))
  return timeCalls('turn', Object.keys(queues), rounds(150), count, (variant) => {
    const { loop, waitAsync, notify } = queues[variant]
    return loop(waitAsync, notify, array, count)
  }, 10)
}

module.exports = { run }
