'use strict'

// Threads that share nothing, each with waits at its own location: the achievement of eight together, against one
// alone.

const { now, takeTurns } = require('../sampling')
const { open, variants } = require('../queues')
const { Member, begin, together } = require('../team')

const THREADS = 8
/** How many waits are registered before they are notified. */
const BATCH = 100

async function run ({ rounds, quick }) {
  const milliseconds = quick ? 20 : 300
  const gate = new Int32Array(new SharedArrayBuffer(12))
  const members = Array.from({ length: THREADS }, () => new Member('scaling', 'waiter', { gate }))

  /** Returns the waits per second of so many threads. */
  const throughput = async (variant, threads) => {
    const { answers } = await together(members.slice(0, threads), gate, { variant, milliseconds })
    return answers.reduce((sum, count) => sum + count, 0) * 1000
  }

  return takeTurns(variants('floor'), rounds(7), async (variant) => {
    const one = await throughput(variant, 1)
    const all = await throughput(variant, THREADS)
    return { scaling: all / one, 'scaling-waits': all }
  })
}

const threads = {
  waiter: ({ gate }) => async ({ variant, milliseconds }) => {
    const { waitAsync, notify } = open(variant)
    const array = new Int32Array(new SharedArrayBuffer(4))
    const batch = async () => {
      let last
      for (let n = 0; n < BATCH; n++) last = waitAsync(array, 0, 0).value
      notify(array, 0)
      await last
    }
    await batch()
    begin(gate)
    const begun = now()
    let count = 0
    while (now() - begun < milliseconds * 1e6) {
      await batch()
      count += BATCH
    }
    // For each millisecond.
    return count / (now() - begun) * 1e6
  }
}

module.exports = { run, threads }
