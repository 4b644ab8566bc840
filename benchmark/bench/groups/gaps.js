'use strict'

// The gaps of Node's own waitAsync, beside figures of timeouts and memory. A process for each sample.

const { now } = require('../sampling')
const { flags, inProcesses, runNode } = require('../processes')
const { open, variants } = require('../queues')
const { Member } = require('../team')

const PURE = require.resolve('../../../pure')

const figures = {
  /** Returns by how many milliseconds a waiting process ends too early. */
  alone (variant) {
    const milliseconds = 300
    const program = `const begin = Date.now()
      process.on('exit', () => console.log(Date.now() - begin))
      const { waitAsync } = ${variant === 'host' ? 'Atomics' : `require(${JSON.stringify(PURE)})`}
      waitAsync(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ${milliseconds})`
    return Math.max(0, milliseconds - parseFloat(runNode([...flags(), '-e', program])))
  },

  /** Returns by how many milliseconds a timeout is early at most. */
  async early (variant, quick) {
    const array = new Int32Array(new SharedArrayBuffer(4))
    const { waitAsync } = open(variant)
    let earliest = 0
    for (let round = 0; round < (quick ? 2 : 40); round++) {
      await Promise.all(Array.from({ length: 50 }, async (_, n) => {
        const timeout = 1 + n % 20 * 0.4
        const begin = now()
        await waitAsync(array, 0, 0, timeout).value
        earliest = Math.max(earliest, timeout - (now() - begin) / 1e6)
      }))
    }
    return earliest
  },

  /** Counts the overdue waits of a busy thread that `notify` finds. */
  async absorbed (variant) {
    const array = new Int32Array(new SharedArrayBuffer(8))
    const member = new Member('gaps', 'notifier', { variant, array })
    await member.ask()
    const found = member.ask()
    open(variant).waitAsync(array, 0, 0, 20)
    for (const end = now() + 200e6; now() < end;);
    Atomics.store(array, 1, 1)
    // The event loop must not turn before.
    while (Atomics.load(array, 1) === 1);
    return found
  }
}

const threads = {
  notifier ({ variant, array }) {
    let asked = 0
    return () => {
      if (asked++ === 0) return undefined
      while (Atomics.load(array, 1) === 0);
      const count = open(variant).notify(array, 0)
      Atomics.store(array, 1, 2)
      return count
    }
  }
}

module.exports = {
  run: kit => inProcesses(kit, 3, { alone: variants(), early: variants(), absorbed: variants() }),
  sample: async (figure, variant, { quick }) => ({ [figure]: await figures[figure](variant, quick) }),
  threads
}
