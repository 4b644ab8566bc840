'use strict'

// Workers that take one lock in loops, with about a microsecond inside. They block where the lock can. Under the lock,
// a number is read, and written one larger only after the work: if two are inside at once, updates get lost, and the
// sum shows how many.

const { now, sleep, takeTurns } = require('./sampling')
const { BYTES, open } = require('./locks')
const { Member, begin, goesOn, tie, together } = require('./team')

/** Nanoseconds of work under the lock. */
const INSIDE = 1000

// Words of the memory that the threads share, beside the lock's: the number; on another cache line those of team.js.
const COUNTER = 0
const GATE = 16
const WORDS = 32

/** Does the work under the lock. */
function work (words, steps) {
  const value = words[COUNTER]
  let sum = value
  for (let n = 0; n < steps; n++) sum = (sum * 5 + n) | 0
  // Never true, but the engine cannot know.
  words[COUNTER] = sum === 0.5 ? sum : value + 1
}

/** Finds how many steps of `work` last as long as is wanted. */
function calibrate () {
  const words = new Int32Array(new SharedArrayBuffer(4 * WORDS))
  let best = Infinity
  for (let n = 0; n < 200; n++) {
    const begin = now()
    for (let k = 0; k < 10; k++) work(words, 1000)
    best = Math.min(best, (now() - begin) / 1e4)
  }
  return Math.round(INSIDE / best)
}

/** Does nothing meanwhile in main, so that each worker has a core. */
async function asleep (end) {
  await sleep(Math.max(0, (end - now()) / 1e6))
  return () => 0
}

/** A lock by its name, and the workers that race for it. */
class Team {
  /**
   * @param {string} group of figures; its module has `threads.loop`
   * @param {(number|string|undefined)[]} places for each worker, the core or cores that it is tied to, or undefined
   * @param {number} steps of work under the lock
   */
  constructor (group, name, places, steps) {
    this.sab = new SharedArrayBuffer(BYTES)
    this.words = new Int32Array(new SharedArrayBuffer(4 * WORDS))
    this.work = () => work(this.words, steps)
    /** How many updates are lost, of all races so far. */
    this.lost = 0
    const { sab, words } = this
    this.members = places.map(core => new Member(group, 'loop', { name, sab, words, steps, core }))
  }

  /**
   * Runs the workers for a while, and meanwhile `other`. Its promise gives a function: that one gives how often it has
   * had the lock.
   * @returns {Promise<{ throughput: number, cpu: number, share: number }>} thousands a second; microseconds of
   *   processor time for each; the slowest worker's share of the fastest's
   */
  async race (milliseconds, other = asleep) {
    const { members, words } = this
    let served
    words[COUNTER] = 0
    const { answers, took, cpu } = await together(members, words.subarray(GATE), undefined, async (_, begun) => {
      served = await other(begun + milliseconds * 1e6)
    })
    const done = answers.reduce((sum, count) => sum + count, 0)
    this.lost += done + await served() - words[COUNTER]
    return {
      throughput: (done / took) * 1e6,
      cpu: cpu / done,
      share: Math.min(...answers) / Math.max(...answers)
    }
  }

  end () {
    return Promise.all(this.members.map(member => member.end()))
  }
}

/**
 * Takes samples of teams as `takeTurns` does: `measure(team, name)`. Others' locks may fail, and may lose updates: that
 * is a result, unless `options.exact`.
 * @param {(name: string) => Team} teamOf
 * @returns {Promise<object>} the samples; `failures`: by name, why a lock could not be used to the end; `lost`: by
 *   name, how many updates
 */
async function teamsInTurn (names, teamOf, rounds, measure, options = {}) {
  const teams = {}
  const failures = {}
  const lost = {}
  for (const name of names) teams[name] = teamOf(name)
  const samples = await takeTurns(names, rounds, async (name) => {
    if (failures[name] !== undefined) return {}
    try {
      return await measure(teams[name], name)
    } catch (error) {
      if (name === 'ours' || name === 'again') throw error
      failures[name] = error.message
      await teams[name].end()
      return {}
    }
  }, options)
  for (const name of names) {
    await teams[name].end()
    lost[name] = [teams[name].lost]
  }
  if (options.exact && Object.values(lost).some(([count]) => count !== 0))
    throw new Error(`updates are lost, because two were inside at once: ${JSON.stringify(lost)}`)
  return { ...samples, failures, lost }
}

const threads = {
  async loop ({ name, sab, words, steps, core }) {
    if (core !== undefined) tie(core)
    const lock = await open(name, { sab })
    const gate = words.subarray(GATE)
    return async () => {
      // A loop that begins at once is compiled as one with the work, which then takes a fifth of the time.
      await undefined
      begin(gate)
      let count = 0
      if (lock.block === undefined) {
        for (; goesOn(gate); count++) await lock.execute(() => work(words, steps))
      } else {
        for (; goesOn(gate); count++) {
          lock.block()
          work(words, steps)
          lock.release()
        }
      }
      return count
    }
  }
}

module.exports = { INSIDE, Team, calibrate, teamsInTurn, threads }
