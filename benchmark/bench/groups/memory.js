'use strict'

// Resident memory: of waits that are pending, and of waits that are over. A process for each sample, for what one leaves behind
// would be in the next.

const { resident } = require('../sampling')
const { inProcesses } = require('../processes')
const { open, variants } = require('../queues')

/** Milliseconds. Never comes. */
const FAR = 600000

/** What one more pending wait takes. */
async function pending (queue, array, timeout, size) {
  const promises = new Array(size).fill(null)
  // What the first ones take is not theirs alone.
  for (let n = 0; n < 1000; n++) promises[n] = queue.waitAsync(array, 0, 0, timeout).value
  const before = await resident()
  for (let n = 1000; n < size; n++) promises[n] = queue.waitAsync(array, 0, 0, timeout).value
  const after = await resident()
  if (promises.includes(null)) throw new Error('a promise is missing')
  return (after - before) / (size - 1000)
}

/** What a wait leaves that was notified before its time-out. */
async function left (queue, array, timeout, size) {
  const round = async () => {
    const promises = new Array(size).fill(null)
    for (let n = 0; n < size; n++) promises[n] = queue.waitAsync(array, 0, 0, timeout).value
    queue.notify(array, 0)
    await Promise.all(promises)
  }
  // The first rounds make room that later ones use again, and V8's heap takes a while to have found its size.
  for (let n = 0; n < 14; n++) await round()
  const before = await resident()
  for (let n = 0; n < 10; n++) await round()
  return Math.max(0, (await resident() - before) / (10 * size))
}

const figures = {
  memory: (queue, array, quick) => pending(queue, array, undefined, quick ? 2e4 : 5e5),
  'memory-timed': (queue, array, quick) => pending(queue, array, FAR, quick ? 2e4 : 5e5),
  'memory-left': (queue, array, quick) => left(queue, array, FAR, quick ? 2e3 : 5e4)
}

module.exports = {
  run: kit => inProcesses(kit, 3, { memory: variants('floor'), 'memory-timed': variants(), 'memory-left': variants() }),
  sample: async (figure, variant, { quick }) => ({ [figure]: await figures[figure](open(variant), new Int32Array(new SharedArrayBuffer(4)), quick) })
}
