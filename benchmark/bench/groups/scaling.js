'use strict'

// Threads that share nothing, each with waits at a location of its own: what eight of them achieve together, against
// one alone.

const { now, takeTurns } = require('../sampling')
const { open, variants } = require('../queues')
const { Member } = require('../team')

const THREADS = 8
/** How many waits are registered before they are notified. */
const BATCH = 100

async function run ({ rounds, quick }) {
  const milliseconds = quick ? 20 : 300
  const gate = new Int32Array(new SharedArrayBuffer(8))
  const members = Array.from({ length: THREADS }, () => new Member('scaling', 'waiter', { gate }))

  /** Waits per second of so many threads. */
  const throughput = async (variant, threads) => {
    Atomics.store(gate, 0, 0)
    Atomics.store(gate, 1, threads)
    const counts = await Promise.all(members.slice(0, threads).map(member => member.ask({ variant, milliseconds })))
    return counts.reduce((sum, count) => sum + count, 0) * 1000
  }

  const samples = await takeTurns(variants('floor'), rounds(7), async (variant) => {
    const one = await throughput(variant, 1)
    const all = await throughput(variant, THREADS)
    return { scaling: all / one, 'scaling-waits': all }
  })
  await Promise.all(members.map(member => member.end()))
  return samples
}

const threads = {
  waiter: ({ gate }) => async ({ variant, milliseconds }) => {
    const { waitAsync, notify } = open(variant)
    const array = new Int32Array(new SharedArrayBuffer(4))
    const alive = setInterval(() => {}, 1000)
    const batch = async () => {
      let last
      for (let n = 0; n < BATCH; n++) last = waitAsync(array, 0, 0).value
      notify(array, 0)
      await last
    }
    await batch()
    // All begin at the same time.
    Atomics.add(gate, 0, 1)
    while (Atomics.load(gate, 0) < Atomics.load(gate, 1)) await new Promise(resolve => setTimeout(resolve, 1))
    const begin = now()
    let count = 0
    while (now() - begin < milliseconds * 1e6) {
      await batch()
      count += BATCH
    }
    clearInterval(alive)
    // For each millisecond.
    return count / (now() - begin) * 1e6
  }
}

module.exports = { run, threads }
