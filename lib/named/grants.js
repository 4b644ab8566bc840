'use strict'

/**
 * `Grants`: the right of a callback, or of a token, to several names. It is used as a Grant.
 *
 * The names are taken one after the other, in the same order by every request: so requests of this kind alone never
 * close a cycle. One may be held while the next is awaited.
 *
 * Invariants:
 * - All or none: whoever calls `attempt`, `claim` or `block` calls `end`, too, if that does not end with all of them.
 * - If one is stolen, the others are given back as soon as this thread hears of that. If code had all of them, that may
 *   be in the midst of a change: so the next exclusive holders of the others see a death.
 */

const { SERIAL } = require('../holding/request')
const { blockOrThrow, take } = require('../holding/acquire')
const { granted } = require('../holding/run')
const theList = require('../holding/the-list')
const { createArray, createWeakMap, max, now } = require('../util/intrinsics')
const observer = require('../waiting/observer')
const { Grant, NamedToken, newGrant, stolenError } = require('./names')

/** Of each token for several names: those of the single ones. They are collected with it, and that is reported. */
const parts = createWeakMap()

class Grants extends Grant {
  constructor (names, request) {
    super(undefined, request)
    this.names = names
    this.grants = createArray(names.length)
    /** The index of the next one to take. */
    this.next = 0
    /** Whether code of the program's has all of them. */
    this.isWhole = false
    /** The call that awaits one of them. */
    this.call = undefined
    for (let n = 0; n < names.length; n++) {
      const grant = this.grants[n] = newGrant(names[n], this.isShared)
      grant.onStolen = () => this.loseAll(grant.name)
    }
  }

  /** That of the first one: all are held, or none is, whenever code of the program's runs. */
  get entry () {
    return this.grants[0].entry
  }

  // ——— Acquiring ———

  attempt () {
    return this.takeFree() && this.begin()
  }

  /** Takes those that are free, up to the first that is not: `word` is that then, for errors. */
  takeFree () {
    while (this.next < this.grants.length) {
      this.word = this.grants[this.next]
      if (!take(this.word)) return false
      this.next++
    }
    return true
  }

  /** Begins to hold them, for code of the program's. */
  begin () {
    const { grants, token } = this
    // For the task of the callback: it has all of them.
    const serials = token[SERIAL] = createArray(grants.length)
    for (let n = 0; n < grants.length; n++) {
      serials[n] = grants[n].token[SERIAL]
      if (grants[n].token.ownerDied) token.ownerDied = true
    }
    this.isWhole = true
    return true
  }

  /** Awaits those that are not held yet, as `granted` does. */
  async claim ({ timeout, signal }, call) {
    const end = now() + timeout
    const here = observer.callOf()
    const claimNext = () => granted(this.word, { timeout: max(0, end - now()), signal }, call)
    const takeFree = () => this.takeFree()
    this.call = call
    do {
      const outcome = await observer.callFor(this.callWithin(here), claimNext)
      if (this.isStolen) throw stolenError(this.name)
      if (outcome !== undefined) return outcome
      this.next++
    } while (!observer.callFor(here, takeFree))
    this.begin()
  }

  /** Notes the call for the claim of the next one: those that are held already wait for that. */
  callWithin (here) {
    if (here === undefined || here.within === undefined) return here
    const within = createArray(0)
    for (let n = this.next - 1; n >= 0; n--) within[within.length] = this.grants[n].token[SERIAL]
    for (let n = 0; n < here.within.length; n++) within[within.length] = here.within[n]
    return { __proto__: null, place: here.place, within }
  }

  /** Blocks for those that are not held yet, as `blockOrThrow` does. */
  block (timeout, caller, whole) {
    const end = now() + timeout
    do {
      blockOrThrow(this.word, max(0, end - now()), caller, whole)
      this.next++
    } while (!this.takeFree())
    if (this.learnWhetherStolen()) throw stolenError(this.name)
    this.begin()
  }

  // ——— Holding ———

  /** Leaves the names to a token, which this does not refer to: see NamedToken. */
  keep () {
    const tokens = createArray(0)
    for (let n = 0; n < this.grants.length; n++) tokens[n] = this.grants[n].keep()
    // It refers to the promise of the token.
    this.call = undefined
    const token = new NamedToken(this)
    token.ownerDied = this.token.ownerDied
    parts.set(token, tokens)
    return token
  }

  repaired (caller) {
    for (let n = 0; n < this.grants.length; n++) this.grants[n].repaired(caller)
    this.token.ownerDied = false
  }

  // ——— Ending ———

  /** Gives back those that are held. False if that were not all. */
  end (failed, inJob, hasRepair) {
    let wasHeld = true
    this.isWhole = false
    for (let n = this.grants.length - 1; n >= 0; n--) {
      wasHeld = this.grants[n].end(failed, inJob, hasRepair) && wasHeld
    }
    return wasHeld
  }

  /** Gives them back for their token. */
  releaseEntry (index, reportsOwnerDied) {
    if (reportsOwnerDied) this.markAbandoned()
    return this.end(false)
  }

  markAbandoned () {
    for (let n = 0; n < this.grants.length; n++) this.grants[n].isAbandoned = true
  }

  abandon () {
    if (this.entry < 0 || this.learnWhetherStolen()) return false
    let isHeld = true
    for (let n = 0; n < this.grants.length; n++) isHeld = this.grants[n].abandon() && isHeld
    return isHeld
  }

  // ——— Stealing ———

  learnWhetherStolen () {
    for (let n = 0; n < this.grants.length && !this.isStolen; n++) {
      const grant = this.grants[n]
      if (grant.learnWhetherStolen(grant.entry)) this.loseAll(grant.name)
    }
    return this.isStolen
  }

  /** Gives back all since the one with this name was stolen. */
  loseAll (name) {
    if (this.isStolen) return
    this.isStolen = true
    // That of the errors; the names are in `names`.
    this.name = name
    const { call } = this
    if (this.isWhole && !this.isShared) this.markAbandoned()
    this.end(true)
    const claim = call === undefined ? undefined : call.claim
    if (claim !== undefined && claim.slot >= 0) claim.giveUp(stolenError(name))
    this.noteLoss()
    theList().door.open()
  }
}

module.exports = Grants
