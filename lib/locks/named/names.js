'use strict'

/**
 * Locks by name: taking, releasing and stealing them. The native side knows the names of the process, each with its line
 * (src/lock/names.rs); what is held is in this thread's robust list, as every lock is.
 */

const { agent } = require('../../agent/agent')
const { ANSWER } = require('../../agent/registers')
const { NAMED_EXCLUSIVE, NAMED_SHARED } = require('../held/request')
const { NOT_HELD } = require('../held/robust-list')
const { giveBack, newToken, theList } = require('../held/token')
const { Location, takeInLine } = require('../held/word')

/**
 * The right to a name, until it is released or stolen: a Hold, and the word of this Hold, since a name is requested anew each time. It never
 * leaves the package.
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
    /** Whether another request has stolen the name, as far as this thread has heard. */
    this.isStolen = false
    /** Called in a later turn of the event loop, at most once, if another request steals the name: see `steal`. */
    this.onStolen = undefined
  }

  /**
   * Gives the name back; false if it was given back or stolen before. Where the callback failed, or has not begun, the next exclusive
   * holder is told of a death of which this one was told.
   */
  end (failed, inJob = false) {
    return giveBack(this.token, failed && this.token.ownerDied, inJob) && agent().native.words[ANSWER] !== 0
  }

  // ——— As of a Word ———

  /** That of a Word is a number. */
  get key () {
    return this.name
  }

  find () {
    return theList().find(this.address)
  }

  release (index, request, inJob) {
    theList().releaseInLine(index, false, inJob)
  }
}

/** A new grant, of nothing yet. */
function newGrant (name, shared) {
  theList().tidy()
  return new Grant(name, shared ? NAMED_SHARED : NAMED_EXCLUSIVE)
}

/** Takes the name, if that needs no waiting. No call that may fail follows. */
const take = (grant) => takeInLine(grant, grant.request, grant.token, agent().native.operations.takeName)

/** Takes the name alone and at once. Everyone who held it has lost it, and hears of that by `onStolen`. */
const steal = (grant) => takeInLine(grant, grant.request, grant.token, agent().native.operations.stealName)

/** Tells the grants that were stolen from this thread. Their entries go: what the callbacks still do, they do without the name. */
function tellOfSteals () {
  const { operations, words } = agent().native
  const list = theList()
  for (;;) {
    operations.nextStolen()
    const number = words[ANSWER] >>> 0
    if (number === 0) return
    // Undefined: it was released before this thread heard of the steal.
    const index = list.findNamed(number)
    const grant = list.held[index]
    if (grant === undefined) continue
    grant.isStolen = true
    try {
      grant.release(index)
      if (grant.onStolen !== undefined) grant.onStolen()
    } catch (error) {
      // It must not keep the others from being told: it is reported as an uncaught error.
      process.nextTick(() => { throw error })
    }
  }
}

module.exports = { newGrant, steal, take }
