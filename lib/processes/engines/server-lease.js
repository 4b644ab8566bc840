'use strict'

/**
 * Leases of servers: for how long a lock is certainly ours.
 *
 * Invariant: `lost` aborts when the server says that the lease is over, or when it may be, whichever comes first: its
 * milliseconds have passed since the last renewal that succeeded was sent, or those of the whole hold since the grant.
 * Two clocks count, for one stops while a machine sleeps, and the other one may be set back.
 */

const { now: steadyClock } = require('../../util/intrinsics')
const { LONGEST_TIMER, clearTimeout, setTimeout, wallClock } = require('../../util/timers')
const { describe } = require('../../util/values')
const timers = require('../limit-timers')

/** Returns this moment by both clocks. */
const now = () => ({ steady: steadyClock(), wall: wallClock() })

/** Returns the milliseconds since a moment: by the clock that has counted more. */
const since = moment => Math.max(steadyClock() - moment.steady, wallClock() - moment.wall)

/** A lease, renewed three times as often as it needs to be. */
class Lease {
  /**
   * @param {number} milliseconds Infinity: it is over only if somebody says so, or with the hold
   * @param {{ steady: number, wall: number }} sent when the first request was sent
   * @param {(milliseconds: number) => Promise<boolean>} renew gives false if the lease is over
   */
  constructor (milliseconds, sent, renew) {
    this.milliseconds = milliseconds
    this.renew = renew
    this.sent = sent
    this.loser = new AbortController()
    this.isResting = false
    this.end = undefined
    this.beat = undefined
    /** The milliseconds of the whole hold, and when they began. */
    this.most = Infinity
    this.granted = undefined
    if (milliseconds < Infinity) this.wait()
  }

  get lost () { return this.loser.signal }

  /** Returns the milliseconds until it may be over. It looks at the clock: after a standstill no timer has run. */
  remaining () {
    return this.lost.aborted ? 0 : Math.max(0, Math.min(this.milliseconds - since(this.sent), this.left))
  }

  /** The milliseconds until the hold is over. */
  get left () { return this.most === Infinity ? Infinity : this.most - since(this.granted) }

  /** Whether the hold is over first. Not asked of the clock alone: timers may fire early. */
  get endsWithHold () { return this.left <= this.milliseconds - since(this.sent) }

  /**
   * Makes the grant of a lock that has this lease.
   * @param {object} how `token` and `ownerDied`; `held` and `release` ask the server; `maxHold`: how many milliseconds
   *   the hold may last, if that is limited, `from` a moment
   */
  grant ({ token, ownerDied, held, release, maxHold = Infinity, from = now() }) {
    if (maxHold < Infinity) {
      this.most = maxHold
      this.granted = from
      this.extend(this.sent)
    }
    return {
      token: Number(token),
      ownerDied,
      lost: this.lost,
      remaining: () => this.remaining(),
      held,
      release: async died => {
        this.rest()
        try {
          return await release(died)
        } finally {
          this.stop()
        }
      }
    }
  }

  /** Renews it no more, since it is being given back. It can still be over meanwhile. */
  rest () { this.isResting = true }

  /** Ends its timers. */
  stop () {
    this.rest()
    clearTimeout(this.beat)
    this.clear()
  }

  clear () {
    clearTimeout(this.end)
    timers.remove(this.end)
  }

  lose (reason = new Error(this.endsWithHold ? 'It was held for longer than its maxHold' : 'The lease is over')) {
    this.stop()
    this.loser.abort(reason)
  }

  extend (sent) {
    this.sent = sent
    this.clear()
    this.end = setTimeout(() => this.lose(), this.remaining())
    if (this.milliseconds === Infinity) timers.add(this.end)
  }

  wait () {
    this.beat = setTimeout(() => this.renewOnce(), this.milliseconds / 3)
  }

  /** Never rejects. If the server does not answer, it may do so before the lease is over. */
  async renewOnce () {
    const sent = now()
    // A process that stood still may be late.
    if (this.remaining() === 0) return this.lose()
    // Until now this timer was due before that of the end.
    if (this.end === undefined) this.extend(this.sent)
    // What there is lasts as long as the hold may.
    if (this.endsWithHold || this.isResting) return
    let isOurs
    try {
      isOurs = await this.renew(Math.min(this.milliseconds, this.left))
    } catch (_) {}
    if (this.isResting) return
    if (isOurs === false) return this.lose()
    if (isOurs) this.extend(sent)
    this.wait()
  }
}

/** @throws {TypeError | RangeError} it is not a number of milliseconds from `least` to the longest timer */
function assertLease (lease, caller, least) {
  if (typeof lease !== 'number') {
    throw new TypeError(caller + ': lease must be a number of milliseconds, not ' + describe(lease))
  }
  if (!(lease >= least && lease <= LONGEST_TIMER)) {
    const allowed = 'from ' + least + ' to ' + LONGEST_TIMER + ' milliseconds'
    throw new RangeError(caller + ': lease must be ' + allowed + ', not ' + lease)
  }
}

module.exports = { Lease, assertLease, now }
