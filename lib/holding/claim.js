'use strict'

/** Claims: promises that wait for a hold. */

const { agent } = require('../agent/find-agent')
const { CALL } = require('../agent/registers')
const { shield } = require('../util/intrinsics')
const { LATE } = require('../waiting/errors')
const observer = require('../waiting/observer')
const Waiter = require('../waiting/waiter')
const { indexOfHold, release } = require('./hold')
const { amountOf, isBare, isOwned, kindOf, nounOfHold } = require('./request')
const theList = require('./the-list')

/** A promise that waits for a hold, and later serves as one. When its time is over it is resolved with LATE. */
class Claim extends Waiter {
  /**
   * @param {Hold} hold copied, so that a claim that waits keeps one object alive and not two
   * @param {Function} [reject] without it the promise never rejects: that would take a second function
   * @param {Steps} [steps] the user's promise, of which this is a step
   */
  constructor (hold, { timeout, signal }, resolve, reject, steps) {
    super(hold.word, signal, steps)
    this.resolve = resolve
    if (reject !== undefined) this.reject = reject
    this.request = hold.request
    this.token = hold.token
    this.serial = hold.serial
    this.index = hold.index
    this.timeout = timeout
    if (hold.notifiedAt !== undefined) this.notifiedAt = hold.notifiedAt
    this.isReserved = false
    this.hasGivenUp = false
    this.ownerDied = false
  }

  reject (reason) {
    this.resolve({ __proto__: null, reason })
  }

  prepare () {
    const { steps } = this
    const since = observer.waits(steps === undefined ? undefined : steps.context)
    if (since !== undefined) this.since = since
    const call = steps === undefined ? observer.callOf() : steps.call
    if (call === undefined) return
    this.within = call.within
    observer.claims(this, call)
  }

  enqueue () {
    const { notifiedAt, place, request, within, word } = this
    const list = theList()
    if (place !== undefined) {
      list.native.words[CALL] = place
      if (list.tasks !== undefined) list.native.binding.claimsWithin(within)
    }
    list.reserve()
    this.isReserved = true
    list.expect(word)
    const relay = notifiedAt === undefined ? 0 : notifiedAt.address
    // Native code does not spin for a lock that this thread itself holds.
    const amount = isBare(request) && list.mayHold(word.address) ? 1 : amountOf(request)
    const ownerDied = agent().claimAsync(word, kindOf(request), amount, this.timeout, this, relay)
    // Before anything else can run, which might change the list.
    if (this.owned && ownerDied !== undefined) list.adoptLast(this, ownerDied)
    list.expected = undefined
    return ownerDied
  }

  finish (ownerDied) {
    this.resolve()
    if (ownerDied) observer.ownerDied(this.word, this.request, this.since)
    theList().door.open()
  }

  giveUp (reason) {
    if (this.hasGivenUp) return
    this.hasGivenUp = true
    // If it is too late, the grant is released when it comes.
    this.dequeue()
    this.note('aborted')
    this.reject(reason)
    theList().door.open()
  }

  note (outcome) {
    if (this.since !== undefined) observer.waited(this.since, this, outcome)
  }

  adopt (index, ownerDied) {
    this.ownerDied = ownerDied
    if (this.owned) theList().adopt(this, index, ownerDied)
  }

  settle (value) {
    this.end()
    if (value === 'timed-out') {
      if (!this.hasGivenUp) this.note('timed-out')
      this.resolve(LATE)
      theList().door.open()
    } else if (!this.hasGivenUp) {
      this.note('acquired')
      if (this.owned) theList().markDelivered(this, this.ownerDied)
      this.finish(this.ownerDied)
    } else {
      this.releaseGrant()
      theList().door.open()
    }
  }

  /** Passes on a grant that came too late. So it does with the note of a death, and with a notification. */
  releaseGrant () {
    if (!this.owned) {
      this.word.addPermits(amountOf(this.request))
      return
    }
    const index = indexOfHold(this)
    // A subscriber that saw another grant may have released it: `unlock()` of a lock asks for no token.
    if (index >= 0) release(index, this.ownerDied, false, true)
  }

  end () {
    if (this.isReserved) theList().unreserve()
    this.isReserved = false
    super.end()
  }

  get owned () {
    return isOwned(this.request)
  }

  get waitsFor () {
    return nounOfHold(this)
  }
}

// Few claims have these: where this thread was notified, as of a Hold; since when it waits, for diagnostics; within
// which callbacks it was made, and the number of its call (observe/stalls.js).
shield(Claim, ['notifiedAt', 'since', 'within', 'place'])

/** Whether a promise of this thread claims the word. */
function isAwaited ({ address, key, lineName }) {
  // The counter of the word's waiters spares most searches. Where that of a name is, it may not be known yet.
  return theList().reserved > 0 && (lineName !== undefined || agent().mayBeWaiting(address / 4)) &&
    agent().someWaiter((waiter) => waiter.isReserved && waiter.word.key === key)
}

module.exports = { Claim, isAwaited }
