'use strict'

// How figures are taken: what is compared takes turns, round for round, in one process, so that whatever disturbs the
// machine meanwhile disturbs all alike; and every round begins with another.

const fs = require('fs')
const path = require('path')

/** Returns the nanoseconds. */
const now = () => {
  const [seconds, nanoseconds] = process.hrtime()
  return seconds * 1e9 + nanoseconds
}

const sleep = milliseconds => new Promise(resolve => setTimeout(resolve, milliseconds))

/** Returns how often the system has interrupted threads of this process. */
function timesInterrupted () {
  return typeof process.resourceUsage === 'function' ? process.resourceUsage().involuntaryContextSwitches : 0
}

/** How long is waited at most for other processes to be idle, before a sample that needs all cores. Milliseconds. */
const PATIENCE = 300
/** How long a figure may take with samples being taken again; then they are taken as they come. Nanoseconds. */
const RETRYING = 20e9

/**
 * Waits until nothing else runs on the machine: where the system says so, for as long as that makes sense.
 */
async function quiet () {
  for (let n = 0; n < PATIENCE && othersRun(); n++) await sleep(1)
}

function othersRun () {
  try {
    return /^procs_running (\d+)$/m.exec(fs.readFileSync('/proc/stat', 'latin1'))[1] > 1
  } catch (_) {
    return false
  }
}

let copies = 0

/**
 * Copies a function, for type feedback and machine code of its own: a loop that has called one implementation is
 * compiled otherwise than one that has called two. The function may use nothing but its parameters and globals.
 */
function fresh (fn) {
  // The number keeps the engine from giving the copy that it made of the same text before.
  return new Function(`'use strict'; return (${fn}) // ${++copies}`)() // eslint-disable-line no-new-func
}

/** Collects the garbage of a sample: so the next one does not. */
function collect () {
  if (typeof gc === 'function') gc() // eslint-disable-line no-undef
}

/** Returns the bytes, without garbage. */
async function resident () {
  for (let n = 0; n < 3; n++) {
    collect()
    await sleep(20)
  }
  return process.memoryUsage().rss
}

/**
 * Takes samples of the variants by turns, after some rounds of warm-up.
 *
 * Where a sample is a loop of calls, many that last about a millisecond each are better than few long ones: most of
 * them are then over before the system gives the core to somebody else, and the median is one of those.
 *
 * @param {string[]} variants
 * @param {number} rounds
 * @param {(variant: string) => Promise<Object<string, number>>} measure one sample of each figure
 * @param {{ warmUp?: number, gc?: boolean, tries?: number }} [options] the rounds that do not count; whether garbage is
 *   collected before a sample; how often one is taken again if the system has taken a core from this process meanwhile
 *   (above 1, it is also waited for a moment at which no other process runs)
 * @returns {Promise<Object<string, Object<string, number[]>>>} samples by figure and variant
 */
async function takeTurns (variants, rounds, measure, { warmUp = 1, gc = true, tries = 1 } = {}) {
  const samples = {}
  const begin = now()
  for (let round = -warmUp; round < rounds; round++) {
    const first = (round + warmUp) % variants.length
    for (let n = 0; n < variants.length; n++) {
      const variant = variants[(first + n) % variants.length]
      if (gc) collect()
      let values
      for (let left = round < 0 ? 1 : tries; left > 0; left--) {
        const retries = tries > 1 && now() - begin < RETRYING
        if (retries) await quiet()
        const before = timesInterrupted()
        values = await measure(variant)
        if (!retries || timesInterrupted() === before) break
      }
      if (round < 0) continue
      for (const figure of Object.keys(values)) {
        const of = samples[figure] = samples[figure] || {}
        of[variant] = of[variant] || []
        of[variant].push(values[figure])
      }
    }
  }
  return samples
}

/**
 * Samples the nanoseconds of a call: `loop(variant)` makes `count` of them, and may give a promise. They make little
 * garbage.
 */
function timeCalls (figure, variants, rounds, count, loop, warmUp) {
  return takeTurns(variants, rounds, async (variant) => {
    const begin = now()
    await loop(variant)
    return { [figure]: (now() - begin) / count }
  }, { warmUp, gc: false })
}

function median (numbers) {
  const sorted = numbers.slice().sort((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
}

/** Returns the number below which the given share of them lies. */
function quantile (numbers, share) {
  const sorted = numbers.slice().sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]
}

/** The threads of this process; Linux has it. */
const TASKS = '/proc/self/task'

/** Returns how often a thread of this process has gone to sleep: as often as one was woken, as none is busy. */
function timesSlept () {
  if (!fs.existsSync(TASKS)) return NaN
  let sum = 0
  for (const thread of fs.readdirSync(TASKS)) {
    sum += Number(
      /^voluntary_ctxt_switches:\s*(\d+)$/m.exec(fs.readFileSync(path.join(TASKS, thread, 'status'), 'latin1'))[1]
    )
  }
  return sum
}

module.exports = { collect, fresh, median, now, quantile, resident, sleep, takeTurns, timeCalls, timesSlept }
