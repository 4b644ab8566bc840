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

/** Returns this moment by both clocks. */
const now = () => ({ steady: steadyClock(), wall: wallClock() })

/** Returns the milliseconds since a moment: by the clock that has counted more. */
const since = moment => Math.max(steadyClock() - moment.steady, wallClock() - moment.wall)

/** The grant of a leased lock. It is renewed three times as often as it needs to be. */
class Lease {
  #lock
  #milliseconds
  #sent
  #timer
  #isRenewing = false
  #isResting = false
  #isLost = false
  #reason
  #loser
  #heed
  /** The milliseconds of the whole hold, and when they began. */
  #most = Infinity
  #granted

  /**
   * @param {number} milliseconds Infinity: it is over only if somebody says so, or with the hold
   * @param {{ steady: number, wall: number }} sent when the first request was sent
   * @param {object} lock asks the server: `renew(milliseconds)` resolves with false if the lease is over; `held()` and
   *   `release(died)` as those of a grant
   */
  constructor (milliseconds, sent, lock) {
    this.#lock = lock
    this.#milliseconds = milliseconds
    this.#sent = sent
    this.token = this.ownerDied = undefined
    if (milliseconds < Infinity) this.#wait()
  }

  /**
   * Begins the hold of a lock that has this lease. Returns the lease.
   * @param {object} how `maxHold`: how many milliseconds the hold may last, if that is limited, `from` a moment
   */
  begin ({ token, ownerDied, maxHold = Infinity, from }) {
    this.token = Number(token)
    this.ownerDied = ownerDied
    if (maxHold < Infinity) {
      this.#most = maxHold
      this.#granted = from
      this.#wait()
    }
    return this
  }

  /** Made once somebody asks for it: that takes as long as all else of a lock that is free. */
  get lost () {
    if (this.#loser === undefined) {
      this.#loser = new AbortController()
      if (this.#isLost) this.#loser.abort(this.#reason)
    }
    return this.#loser.signal
  }

  /** Calls back with the reason once it is lost. */
  whenLost (heed) {
    if (this.#isLost) heed(this.#reason)
    else this.#heed = heed
  }

  /** Returns the milliseconds until it may be over. It looks at the clock: after a standstill no timer has run. */
  remaining () {
    return this.#isLost ? 0 : Math.max(0, Math.min(this.#milliseconds - since(this.#sent), this.#left))
  }

  /** The milliseconds until the hold is over. */
  get #left () { return this.#most === Infinity ? Infinity : this.#most - since(this.#granted) }

  /** Whether the hold is over first. Not asked of the clock alone: timers may fire early. */
  get #endsWithHold () { return this.#left <= this.#milliseconds - since(this.#sent) }

  held () { return this.#lock.held() }

  /** It can still be over meanwhile, but is renewed no more. */
  async release (died) {
    this.#isResting = true
    return this.#lock.release(died).finally(() => this.stop())
  }

  stop () {
    this.#isResting = true
    clearTimeout(this.#timer)
  }

  lose (reason = new Error(this.#endsWithHold ? 'It was held for longer than its maxHold' : 'The lease is over')) {
    if (this.#isLost) return
    this.stop()
    this.#isLost = true
    this.#reason = reason
    if (this.#loser !== undefined) this.#loser.abort(reason)
    if (this.#heed !== undefined) this.#heed(reason)
  }

  /** Looks again when it is to be renewed, or may be over. Until then it keeps the process alive. */
  #wait () {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#look(), Math.min(this.remaining(), this.#milliseconds / 3))
  }

  #look () {
    // A process that stood still may be late.
    if (this.remaining() === 0) return this.lose()
    this.#wait()
    // What there is lasts as long as the hold may.
    if (!this.#isRenewing && !this.#isResting && !this.#endsWithHold) this.#renew()
  }

  /** Never rejects. If the server does not answer, it may do so before the lease is over. */
  async #renew () {
    const sent = now()
    this.#isRenewing = true
    let isOurs
    try {
      isOurs = await this.#lock.renew(Math.min(this.#milliseconds, this.#left))
    } catch (_) {}
    this.#isRenewing = false
    if (isOurs) this.#sent = sent
    else if (isOurs === false && !this.#isResting) this.lose()
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
