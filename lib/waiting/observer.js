'use strict'

/**
 * The observer of this thread's waits and holds: nobody, until observe/attach.js puts its functions here.
 *
 * A wait or a hold needs none of their answers: it passes the answers on to the functions that end what was begun.
 */

const { bare } = require('../util/intrinsics')

const nothing = () => undefined

/** The observer of the robust list's entries: see observe/channels.js. */
const NO_HOLDS = { __proto__: null, count: 0, hasSubscribers: false }

class Observer {
  constructor () {
    /** Returns native code's number of this call's stack; 0: it is not noted. */
    this.callHere = () => 0
    /** Returns this call; undefined: it is not noted. */
    this.callOf = nothing
    /** Calls a function for a call of `callOf`: that is where it takes something, and waits. */
    this.callFor = (call, fn) => fn()
    /** Notes this call for the hold that it is about to claim. Or notes another one. */
    this.claims = nothing
    /** Returns the asynchronous context for subscribers; undefined: there are none. */
    this.contextOfWait = nothing
    /**
     * Notes since when this thread's next wait lasts. Returns that, for the next step of the wait; undefined stands for
     * now.
     */
    this.goesOn = nothing
    /** Notes that this call's callback leaves its hold to other code. */
    this.keepsHold = nothing
    /** Takes the sample of a wait before it begins; of a promise, before its first step. */
    this.sample = nothing
    this.sampleOf = nothing
    /** Records a wait. Returns the argument of `recordEnds`, if it is recorded. A promise's own `end` does that. */
    this.recordBegins = nothing
    this.recordEnds = nothing
    this.promiseBegins = nothing
    this.waits = nothing
    this.waited = nothing
    this.ownerDied = nothing
    /** Called before the first use of a lock by this copy. */
    this.locksBegin = nothing
    /** Returns what observes entries, and what says whether (`hasSubscribers`). */
    this.holdsOf = () => ({ holds: NO_HOLDS, channel: NO_HOLDS })
  }
}
bare(Observer)

module.exports = new Observer()
