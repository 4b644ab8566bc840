'use strict'

// Waits with a timeout: what registering one costs, and how late the last of very many is told.

const { fresh, median, now, takeTurns } = require('../sampling')
const { open, variants } = require('../queues')

const SIZE = 1e5
/** Milliseconds: the first timeout, and the span in which they lie. */
const FIRST = 500
const SPAN = 100

/**
 * Waits whose lateness is looked at one by one; milliseconds to the first, and between them, of which not all are
 * whole.
 */
const FEW = 400
const EARLIEST = 20
const APART = 1.3

function register (waitAsync, array, promises, first, step) {
  for (let n = 0; n < promises.length; n++) promises[n] = waitAsync(array, 0, 0, first + n * step).value
}

async function run ({ rounds, quick }) {
  const size = quick ? 1e3 : SIZE
  const queues = {}
  for (const variant of variants()) queues[variant] = { ...open(variant), register: fresh(register) }
  const array = new Int32Array(new SharedArrayBuffer(4))
  const promises = new Array(size).fill(null)
  const samples = await takeTurns(Object.keys(queues), rounds(3), async (variant) => {
    const { register, waitAsync } = queues[variant]
    const begin = now()
    register(waitAsync, array, promises, FIRST, SPAN / size)
    const registered = now()
    await Promise.all(promises)
    // The last that was registered has the longest timeout.
    const late = now() - (registered + (FIRST + SPAN) * 1e6)
    promises.fill(null)
    return { 'register-timed': (registered - begin) / size, late: Math.max(0, late / 1e6) }
  })
  return Object.assign(samples, await lateness(Object.keys(queues), quick, rounds))
}

/** Returns the median lateness of a wait: few are due at once. */
async function lateness (names, quick, rounds) {
  const size = quick ? 20 : FEW
  const array = new Int32Array(new SharedArrayBuffer(4))
  return takeTurns(names, rounds(5), async (variant) => {
    const { waitAsync } = open(variant)
    const late = []
    const wait = async (timeout) => {
      const begin = now()
      await waitAsync(array, 0, 0, timeout).value
      late.push((now() - begin) / 1e6 - timeout)
    }
    await Promise.all(Array.from({ length: size }, (_, n) => wait(EARLIEST + n * APART)))
    return { 'late-median': median(late) }
  })
}

module.exports = { run }
