'use strict'

// Resident memory: of waits and of requests for a named lock that are pending, and of waits that are over. A process
// for each sample, for remains of one would be in the next.

const { resident } = require('../sampling')
const { inProcesses } = require('../processes')
const { open, variants } = require('../queues')
const named = require('./named')

/** Milliseconds. Never comes. */
const FAR = 600000

/** Returns the bytes of one more promise. Those of the first ones are not theirs alone. */
async function pending (first, size, promise) {
  const promises = new Array(size).fill(null)
  for (let n = 0; n < first; n++) promises[n] = promise()
  const before = await resident()
  for (let n = first; n < size; n++) promises[n] = promise()
  const after = await resident()
  if (promises.includes(null)) throw new Error('a promise is missing')
  return (after - before) / (size - first)
}

const waits = (variant, timeout, quick) => {
  const { waitAsync } = open(variant)
  const array = new Int32Array(new SharedArrayBuffer(4))
  return pending(1000, quick ? 2e4 : 5e5, () => waitAsync(array, 0, 0, timeout).value)
}

/** Returns the bytes that a wait leaves, notified before its timeout. */
async function left (variant, size) {
  const { notify, waitAsync } = open(variant)
  const array = new Int32Array(new SharedArrayBuffer(4))
  const round = async () => {
    const promises = new Array(size).fill(null)
    for (let n = 0; n < size; n++) promises[n] = waitAsync(array, 0, 0, FAR).value
    notify(array, 0)
    await Promise.all(promises)
  }
  // The first rounds make room that later ones use again, and V8's heap takes a while to have found its size.
  for (let n = 0; n < 14; n++) await round()
  const before = await resident()
  for (let n = 0; n < 10; n++) await round()
  return Math.max(0, (await resident() - before) / (10 * size))
}

const figures = {
  memory: (variant, quick) => waits(variant, undefined, quick),
  'memory-timed': (variant, quick) => waits(variant, FAR, quick),
  'memory-left': (variant, quick) => left(variant, quick ? 2e3 : 5e4),
  'named-memory' (variant, quick) {
    const locks = named.open(variant)
    const callback = () => {}
    locks.request('x', () => new Promise(() => {}))
    const size = quick ? 500 : 5000
    return pending(size, 3 * size, () => locks.request('x', callback))
  }
}

module.exports = {
  run: (kit) =>
    inProcesses(kit, 3, {
      memory: variants('floor'),
      'memory-timed': variants(),
      'memory-left': variants(),
      'named-memory': named.variants()
    }),
  sample: async (figure, variant, { quick }) => ({ [figure]: await figures[figure](variant, quick) })
}
