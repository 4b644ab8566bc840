'use strict'

/**
 * Who hears an AbortSignal. One listener for all claimants of a signal, since an EventTarget looks through its listeners for each
 * that comes or goes, and warns of so many.
 *
 * Invariant: the signal has the listener, at the latest when a claimant has come, and at least as long as there is one. Claimants
 * are in the order in which they came, and are told in that order.
 */

const { bare, createWeakMap } = require('../intrinsics')

const { nextTick } = process

/** By signal. */
const audiences = createWeakMap()

class Audience {
  constructor (signal) {
    this.signal = signal
    this.first = undefined
    this.last = undefined
    // Whether the signal has the listener.
    this.listens = false
    this.listener = () => this.hear()
  }

  add (claimant) {
    claimant.previous = this.last
    if (this.last === undefined) this.first = claimant
    else this.last.next = claimant
    this.last = claimant
    claimant.audience = this
    if (this.listens) return
    this.listens = true
    try {
      this.signal.addEventListener('abort', this.listener, { once: true })
    } catch (error) {
      this.listens = false
      throw error
    }
  }

  remove (claimant) {
    const { previous, next } = claimant
    if (previous === undefined) this.first = next
    else previous.next = next
    if (next === undefined) this.last = previous
    else next.previous = previous
    claimant.previous = claimant.next = claimant.audience = undefined
    if (this.first === undefined && this.listens) this.stop()
  }

  /** Lets go of the signal, if that is possible: otherwise it would keep what its listener knows. */
  stop () {
    try {
      const { signal } = this
      if (typeof signal.removeEventListener !== 'function') return
      this.listens = false
      signal.removeEventListener('abort', this.listener)
    } catch (_) {
      // It has nothing to do with whoever is being settled. The same listener is added again if need be.
    }
  }

  hear () {
    try {
      while (this.first !== undefined) {
        const claimant = this.first
        this.remove(claimant)
        claimant.abort()
      }
      // It may have called it for the last time.
      this.listens = false
    } catch (error) {
      // The others are to hear it nevertheless.
      if (this.first !== undefined) nextTick(this.listener)
      throw error
    }
  }
}

bare(Audience)

/** Lets a claimant be told of its signal. Throws what the signal throws. */
exports.join = function join (claimant) {
  const { signal } = claimant
  let audience = audiences.get(signal)
  if (audience === undefined) {
    audience = new Audience(signal)
    audiences.set(signal, audience)
  }
  audience.add(claimant)
}

exports.leave = function leave (claimant) {
  const { audience } = claimant
  if (audience !== undefined) audience.remove(claimant)
}
