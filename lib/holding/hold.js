'use strict'

/** This thread's holds, by their tokens: finds, releases and repairs them. */

const { assertStack } = require('../agent/find-agent')
const { ANSWER, ENTRY } = require('../agent/registers')
const { bare, createWeakMap } = require('../util/intrinsics')
const { notLocked } = require('../waiting/errors')
const { INDEX, NOT_HELD, SERIAL, owes, requestIn } = require('./entry')
const { SHARED, amountOf, isBare } = require('./request')
const theList = require('./the-list')

/** The reader's token of each writer that has become a reader. */
const readingTokens = createWeakMap()

/** A word, a request to it, and the token for the grant. It never leaves the package, since the word has an address. */
class Hold {
  constructor (word, request, token, serial, index) {
    this.word = word
    this.request = request
    this.token = token
    // If the token is to stay the same: the serial number and the index that it knows. NOT_HELD if it is new.
    this.serial = serial
    this.index = index
    // If it is taken again after a notification: the word of the Condition, whose notification it then owes.
    this.notifiedAt = undefined
    // If stalls are reported it gets a property `place`: the number of the call that claims or takes it (stalls.js).
  }

  // ——— For callback forms: a Grant, of named/names.js, has the same ———

  get given () {
    return this.token
  }

  get isShared () {
    return this.request === SHARED
  }

  end (failed, inJob, hasRepair) {
    releaseAfter(this.token, failed, inJob, hasRepair)
  }

  /** Begins a repair. Until it has ended well, the death is noted as if nobody had seen it. */
  noteDeath () {
    this.word.noteDeath()
  }

  /**
   * Ends a repair that succeeded: nobody else sees the death.
   * @throws {Error} with code ERR_NOT_LOCKED if the repair has given the lock back
   */
  repaired (caller) {
    const index = indexOfHold(this)
    if (index < 0) throw notLocked(caller + ': repair has given the lock back, so it is not known to be repaired')
    onEntry(index, 'repaired')
    try {
      this.token.ownerDied = false
    } catch (_) {
      // It is frozen.
    }
  }
}
bare(Hold)

/**
 * Runs an operation on an entry: nobody else sees a death, since it is repaired; or the next holder of the name does.
 * Or asks whether that was stolen.
 * @param {'repaired' | 'abandoned' | 'wasStolen'} operation the first two return false for a name that was stolen
 */
function onEntry (index, operation) {
  const { operations, words } = theList().native
  words[ENTRY] = index
  operations[operation]()
  return words[ANSWER] !== 0
}

/** Finds the hold of a live token; undefined for any other. */
function holdOf (token) {
  const index = indexOf(token)
  if (index < 0) return undefined
  const { entries, held, serials } = theList()
  return new Hold(held[index], requestIn(entries[2 * index + 1]), token, serials[index], index)
}

function permitsOf ({ address }) {
  const list = theList()
  let permits = 0
  if (list.find(address) < 0) return permits
  for (let index = 0; index < list.length; index++) {
    if (list.entries[2 * index] === address) permits += amountOf(list.entries[2 * index + 1])
  }
  return permits
}

/** Finds the index of a token's entry; -1 if there is none any more. */
function indexOf (token) {
  const serial = token[SERIAL]
  const index = token[INDEX] | 0
  return serial > 0 && theList().serials[index] === serial ? index : theList().indexOf(serial, index)
}

/** Finds the index of a hold's entry. It reads no token that the user has had before, which may be a proxy. */
const indexOfHold = ({ token, serial, index }) => (
  serial === NOT_HELD ? indexOf(token) : theList().indexOf(serial, index))

/**
 * Releases the hold of a token, for `unlock`, `abandon` or a callback. `reportsOwnerDied`: whether to report a death,
 * as `abandon` does; `inJob`: whether the job of a callback is about to end with it; `failed`: whether by an error.
 */
function releaseHold (token, reportsOwnerDied = false, inJob = false, failed = false) {
  const index = indexOf(token)
  if (index < 0) return rejectWait(token)
  release(index, reportsOwnerDied, inJob, failed)
  forget(token)
  theList().door.open()
  return true
}

/** Lets a token forget the number of its entry, which has gone: it may come again. */
function forget (token) {
  try {
    token[SERIAL] = NOT_HELD
  } catch (_) {
    // The token is frozen.
  }
}

/** Whether the holder with this token saw a death. The token may be a proxy. */
function sawOwnerDied (token) {
  try {
    return token.ownerDied === true
  } catch (_) {
    return false
  }
}

/**
 * Releases the callback's hold, even if it was downgraded meanwhile. If the callback failed, it has not declared the
 * state repaired after a death: so the next holder sees the death, too, and also if the form has a repair. Nor has a
 * callback that failed used a notification.
 */
function releaseAfter (token, failed, inJob = false, hasRepair = false) {
  if (releaseHold(token, failed && (hasRepair || sawOwnerDied(token)), inJob, failed)) return
  const reading = readingTokens.get(token)
  if (reading !== undefined) releaseHold(reading, false, inJob)
}

/**
 * Releases the hold of an entry. Where that saw a death, the next exclusive holder sees it, unless this was a
 * reader. After a failure, a notification that it owes goes to another waiter. The caller opens the door.
 * @returns {boolean} false for a name that was stolen before
 */
function release (index, reportsOwnerDied, inJob = false, failed = false) {
  const list = theList()
  const word = list.held[index]
  const number = list.entries[2 * index + 1]
  const request = requestIn(number)
  if (!reportsOwnerDied && !(failed && owes(number))) return word.release(index, request, inJob)
  const wasHeld = list.releaseInLine(index, reportsOwnerDied, inJob, failed)
  if (isBare(request)) word.notifyHost()
  return wasHeld
}

/**
 * Rejects the pending `waitAsync` of a token that is unlocked. A Condition's `waitAsync` would take the lock again, and
 * nothing would release it. Returns false.
 */
function rejectWait (token) {
  const steps = theList().stepsOf.get(token[SERIAL])
  if (steps === undefined) return false
  assertStack()
  steps.reject(notLocked('The token was unlocked while a promise was waiting with it'))
  return false
}

module.exports = {
  Hold, forget, releaseHold, releaseAfter, holdOf, indexOf, indexOfHold, onEntry, permitsOf, readingTokens, rejectWait,
  release, sawOwnerDied
}
