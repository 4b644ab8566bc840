'use strict'

// An actor: does one random operation after the other until the round is over, and checks each against the laws.

const { writeSync } = require('fs')
const { threadId } = require('worker_threads')
const Arena = require('./arena')
const { Atomics, TinyController, busy, now, randomOf, slowness, sleep } = require('./subject')

const { ACTORS, LANES } = Arena
/** The reason of an aborted wait. */
const ABORTED = 'aborted by the soak'
const ON_PURPOSE = 'thrown by the soak'
/** Milliseconds after which a law that a dying thread may break for a moment is broken. */
const PATIENCE = slowness * 20000

class Actor {
  /**
   * @param {object} options `id`: of the thread; `n`: which of its actors; `blocks`: whether it may block; `steady`:
   *   whether its thread lives until the end; `party`: its number at barriers, or undefined; `alone`: whether it is its
   *   thread's only one
   */
  constructor (arena, { id, n, blocks, steady, party, alone, seed }) {
    Object.assign(this, { arena, id, blocks, steady, party, alone, threadId })
    this.number = ACTORS * id + n
    this.random = randomOf(seed + 7919 * this.number)
    this.counts = Object.create(null)
  }

  below (limit) { return Math.floor(this.random() * limit) }
  chance (probability) { return this.random() < probability }
  get stopped () { return this.arena.get('stop') === 1 }
  get time () { return Math.floor(now()) - this.arena.get('start') }
  count (what) { this.counts[what] = (this.counts[what] || 0) + 1 }

  /** Reports a broken law: says so at once, for the thread may be ended. */
  violation (text) {
    const { arena } = this
    if (this.arena.isDying(this.number)) return
    if (Atomics.exchange(arena.ledger, arena.at('violated'), 1) === 0) {
      writeSync(2, `\nVIOLATION: thread ${this.id}, actor ${this.number % ACTORS}: ${text}\n`)
    }
    throw new Error(text)
  }

  require (holds, text) {
    if (!holds) this.violation(text())
  }

  /** Checks that `holds()` comes true before PATIENCE is over. */
  assertBefore (holds, text) {
    for (const start = now(); !holds();) if (now() - start > PATIENCE) this.violation(`${text()}, for ${PATIENCE} ms`)
  }

  /**
   * Checks that `holds()` once dying threads are dead and taken off. An actor that blocks has an answer when this
   * returns.
   */
  async assertSoon (holds, text) {
    for (const start = now(); !holds();) {
      if (this.arena.get('dying') === 0 && !holds()) this.violation(text())
      if (now() - start > PATIENCE) this.violation(`${text()}, for ${PATIENCE} ms`)
      if (!this.blocks) await sleep(1)
    }
  }

  /** Returns a timeout from 0 to seconds, mostly short. */
  timeout () {
    const dice = this.random()
    if (dice < 0.1) return 0
    if (dice < 0.8) return this.random() * 3
    if (dice < 0.97) return this.random() * 40
    return dice < 0.998 ? this.random() * 300 : this.random() * 3000
  }

  /** Returns options for a wait: none, a timeout, a signal, or both. */
  options () {
    const dice = this.random()
    if (dice < 0.4) return undefined
    const options = {}
    if (dice < 0.8) options.timeout = this.timeout()
    if (dice > 0.7 && !this.blocks) options.signal = this.signal()
    return options
  }

  /** Returns a signal that may be aborted some time. */
  signal () {
    const { abort, signal } = new TinyController({ reason: ABORTED, removes: this.chance(0.5) })
    const dice = this.random()
    if (dice < 0.1) abort()
    else if (dice < 0.3) process.nextTick(abort)
    else if (dice < 0.6) setImmediate(abort)
    else if (dice < 0.9) setTimeout(abort, this.random() * 20)
    return signal
  }

  /**
   * Returns the result of `call()`; undefined if it gave up, for a reason that `options` contain.
   */
  async attempt (options, call) {
    const start = now()
    try {
      const value = await call()
      return value === undefined ? true : value
    } catch (error) {
      const took = now() - start
      if (error === ABORTED) {
        this.require(options && options.signal && options.signal.aborted, () => 'aborted without a signal')
      } else if (error.name === 'TimeoutError') {
        const { timeout } = options || {}
        this.require(timeout !== undefined && took >= timeout, () => `timed out after ${took} of ${timeout} ms`)
      } else {
        throw error
      }
      this.count('gave up')
      return undefined
    }
  }

  /** Spends some time with something held. */
  async linger () {
    const dice = this.random()
    if (dice < 0.5) busy(this.random() / 10)
    else if (dice < 0.75 && !this.blocks) await (dice < 0.7 ? new Promise(setImmediate) : sleep(this.random() * 3))
    else if (dice > 0.995) this.pause()
    await this.mayDie(0.01)
  }

  /** Spends some time within a synchronous callback. */
  lingerSync () {
    const dice = this.random()
    if (dice < 0.5) busy(this.random() / 10)
    else if (dice > 0.995) this.pause()
    if (this.steady || !this.chance(0.01)) return
    this.arena.announceDeath(this.id)
    process.exit(1)
  }

  /** Computes for long: its promises cannot go on. */
  pause () {
    this.arena.set('isPaused', this.id, 1)
    busy(this.random() < 0.9 ? this.random() * 50 : this.random() * 1500)
    this.arena.set('isPaused', this.id, 0)
  }

  /** Ends a thread that may die, with whatever it holds. */
  async mayDie (probability) {
    if (this.steady || !this.chance(probability)) return
    this.arena.announceDeath(this.id)
    if (this.chance(0.5)) process.exit(1)
    setImmediate(() => { throw new Error(ON_PURPOSE) })
    // Nothing is released on the way, as it would be if this threw.
    await new Promise(() => {})
  }

  begin (code, object) {
    const { arena, number } = this
    arena.set('object', number, object)
    arena.set('since', number, arena.get('ticks'))
    arena.set('operation', number, code + 1)
  }

  /** @param {object[]} operations of operations.js: those that this actor may do, each with its `weight` and `code` */
  async run (operations) {
    const mine = operations.filter(({ needs = () => true }) => needs(this))
    const total = mine.reduce((sum, { weight }) => sum + weight, 0)
    const pick = () => {
      let dice = this.random() * total
      return mine.find(({ weight }) => { dice -= weight; return dice < 0 }) || mine[0]
    }
    while (!this.stopped) {
      const { name, code, of, run, bursts } = pick()
      const index = of === undefined ? 0 : this.index(of)
      const object = of === undefined ? 0 : Arena.encode(of, index)
      this.begin(code, object)
      // Races need haste.
      let left = bursts && this.chance(0.1) ? 200 : 1
      do {
        await run(this, index)
        this.count(name)
      } while (--left > 0 && !this.stopped)
      this.arena.set('operation', this.number, 0)
      // A loop that never turns hears no abort, no message and no end.
      if (this.chance(0.1)) await new Promise(setImmediate)
    }
    return this.counts
  }

  /**
   * Returns the index of an object of a kind. Threads that may die use values of their own, since what they were told
   * may be lost.
   */
  index (kind) {
    const count = Arena.COUNT[kind]
    if (kind === 'messages') return this.arena.queueOf(this.below(LANES))
    if (kind !== 'value') return this.below(count)
    // Half of the time one of a few, so that they meet.
    const most = this.chance(0.5) ? 8 : count / 2
    return this.below(most) + (this.steady ? 0 : count / 2)
  }
}

/**
 * Runs actors in this thread until the round is over; those of a steady thread then meet all others at the latch. Gives
 * what they did.
 */
async function runActors (arena, { id, steady, seed, actors }, operations) {
  const mine = actors.map(
    actor => new Actor(arena, Object.assign({ id, steady, seed, alone: actors.length === 1 }, actor))
  )
  const counts = await Promise.all(mine.map(actor => actor.run(operations)))
  if (!steady) return counts
  const [latch] = arena.latches
  latch.countDown()
  if (mine[0].blocks) latch.wait({ timeout: PATIENCE })
  else await latch.waitAsync({ timeout: PATIENCE })
  return counts
}

module.exports = Object.assign(Actor, { ON_PURPOSE, runActors })
