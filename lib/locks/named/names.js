'use strict'

/**
 * Locks by name: taking, releasing and stealing them. The native side knows the names of the process, with their lines
 * (core/src/lock/names.rs); held ones are in this thread's robust list, as every lock is.
 */

const { agent, assertStack } = require('../../agent/agent')
const { ANSWER } = require('../../agent/registers')
const globalObject = require('../../util/global')
const { nextTick } = require('../../util/intrinsics')
const { quote } = require('../../util/values')
const { notLocked } = require('../../waiting/errors')
const { NAMED_EXCLUSIVE, NAMED_SHARED, NO_LIMIT } = require('../hold/request')
const { NOT_HELD, SERIAL } = require('../hold/entry')
const { indexOfHold, release, tellOf, theList } = require('../hold/hold')
const { newToken } = require('../hold/token')
const { Location, takeInLine } = require('../hold/location')
const { createException } = require('./dom-exception')
const { GrantedLock } = require('./lock')

/**
 * The right to a name, until it is released or stolen. It is a Hold, and the word of this Hold, since a name is
 * requested anew each time. It never leaves the package.
 */
class Grant extends Location {
  constructor (name, request) {
    super()
    const { native } = agent()
    // The first copy of the package to request a name tells the grants of all.
    if (native.onSteal === undefined) native.onSteal = tellOfSteals
    this.word = this
    this.name = name
    this.request = request
    this.token = newToken(request)
    this.serial = NOT_HELD
    this.index = 0
    /** Of the native word, once the name has been requested. */
    this.address = 0
    this.limit = NO_LIMIT
    /** Whether it takes the name from whoever holds it; and whether it did, from a living holder. */
    this.steals = false
    this.tookOver = false
    /** Whether the callback has abandoned it: when that ends, the next exclusive holder is told of a death. */
    this.isAbandoned = false
    /** Whether this thread has heard that another request stole the name. */
    this.isStolen = false
    /** Called at most once, if another request steals the name: in a later turn, or when this thread asks. */
    this.onStolen = undefined
    /** The Lock of a callback, and its signal's AbortController. Each is made when it is needed. */
    this.lock = this.controller = undefined
  }

  get isShared () {
    return this.request === NAMED_SHARED
  }

  get given () {
    if (this.lock === undefined) this.lock = new GrantedLock(this)
    return this.lock
  }

  /**
   * Gives the name back; false if it was given back or stolen before. Where the callback failed, or has not begun, the
   * next exclusive holder is told of a death of which this one was told. And so it is where a callback that has a
   * repair failed.
   */
  end (failed, inJob = false, hasRepair = false) {
    const { token } = this
    const index = indexOfHold(this)
    if (index < 0) return false
    const wasHeld = release(index, this.isAbandoned || (failed && (hasRepair || token.ownerDied)), inJob)
    token[SERIAL] = NOT_HELD
    this.isStolen = !wasHeld
    if (!wasHeld) this.noteLoss()
    theList().door.open()
    return wasHeld
  }

  /** Does nothing: if a repair does not end well, the next holder is told, since this one was; so is a thief. */
  noteDeath () {}

  /**
   * Ends a repair that succeeded: nobody else is told of the death.
   * @throws {Error} with code ERR_NOT_LOCKED if the repair has abandoned the name; an AbortError if that was stolen
   */
  repaired (caller) {
    if (this.isAbandoned) throw notLocked(caller + ': repair has abandoned the lock')
    const index = indexOfHold(this)
    if (index < 0 || !tellOf(index, 'repaired')) {
      if (index >= 0) this.lose(index)
      throw stolenError(this.name)
    }
    this.token.ownerDied = false
  }

  // ——— Stealing ———

  /** Takes the name alone and at once. All holders have lost it, and hear of that by `onStolen`. */
  steal () {
    this.steals = true
    return this.take(this.request, this.token)
  }

  /** Whether another request has stolen the name. Native code is asked, since this thread may not have heard of it. */
  learnWhetherStolen () {
    if (this.isStolen) return true
    assertStack()
    const index = indexOfHold(this)
    if (index >= 0 && tellOf(index, 'wasStolen')) this.lose(index)
    return this.isStolen
  }

  learnWhetherHeld () {
    return !this.learnWhetherStolen() && indexOfHold(this) >= 0
  }

  /** Marks the state as unsound, at once: a thief is told, too. False if the name was stolen before. */
  abandon () {
    const index = indexOfHold(this)
    const wasHeld = tellOf(index, 'abandoned')
    if (wasHeld) this.isAbandoned = true
    else this.lose(index)
    return wasHeld
  }

  /** Removes the entry at `index`, whose name was stolen. The callback runs on without the name. */
  lose (index) {
    this.isStolen = true
    this.release(index)
    this.noteLoss()
    theList().door.open()
  }

  /** Notes that the callback is to hear of the loss. An error of its signal's is reported as an uncaught one. */
  noteLoss () {
    const { controller, onStolen } = this
    const { door } = theList()
    if (onStolen !== undefined) door.note(onStolen)
    if (controller !== undefined) door.note(() => abort(controller, this.name))
  }

  makeSignal () {
    if (this.controller === undefined) {
      const { AbortController } = globalObject
      if (typeof AbortController !== 'function') return undefined
      const controller = new AbortController()
      // Not that of another call, which the class may have made if a program has replaced it.
      if (this.controller === undefined) this.controller = controller
    }
    const { controller } = this
    if (this.learnWhetherStolen() && !controller.signal.aborted) abort(controller, this.name)
    return controller.signal
  }

  // ——— As of a Word ———

  get lineName () {
    return this.name
  }

  get key () {
    return this.name
  }

  take (request, token, isQuiet) {
    return takeInLine(this, request, token, isQuiet)
  }

  release (index, request, inJob) {
    return theList().releaseInLine(index, false, inJob)
  }
}

function newGrant (name, shared) {
  theList().tidy()
  return new Grant(name, shared ? NAMED_SHARED : NAMED_EXCLUSIVE)
}

function stolenError (name) {
  return createException('AbortError', 'The lock named ' + quote(name) + ' was stolen by another request')
}

/** Aborts a signal because of a steal. An error, which a patched class may throw, is reported as an uncaught one. */
function abort (controller, name) {
  try {
    controller.abort(stolenError(name))
  } catch (error) {
    // eslint-disable-next-line own/one-door -- called by the door, or last
    nextTick(() => { throw error })
  }
}

/** Tells the grants that were stolen from this thread. */
function tellOfSteals () {
  const { operations, words } = agent().native
  const list = theList()
  for (;;) {
    operations.nextStolen()
    const number = words[ANSWER] >>> 0
    if (number === 0) return
    // Undefined: it was released, or had asked, before this thread heard of the steal.
    const index = list.findNamed(number)
    const grant = list.held[index]
    if (grant !== undefined) grant.lose(index)
  }
}

module.exports = { newGrant, stolenError }
