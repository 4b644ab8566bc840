'use strict'

/**
 * This thread's holds, of words and by their tokens: finds, releases and repairs them.
 *
 * A token is the right to release a hold. It has the serial number of an entry of the robust list, and the entry's last
 * known index. All else is read from the list: so a token stands for an entry of the list or for nothing, even if
 * other code writes into it.
 */

const { agent, assertStack } = require('../agent/find-agent')
const { ANSWER, ENTRY } = require('../agent/registers')
const { TypeError, bare, createWeakMap, define, shield } = require('../util/intrinsics')
const { showState } = require('../util/instances')
const { notLocked } = require('../waiting/errors')
const observer = require('../waiting/observer')
const {
  EXCLUSIVE, INDEX, NOT_HELD, SERIAL, SHARED, amountOf, isBare, isExclusive, isOwned, owes, requestIn
} = require('./request')
const theList = require('./the-list')

/** A word by its `address`: one in memory (word.js), or a name's (named/names.js). */
class Location {
  /** The number that users know it by. */
  get id () {
    return agent().native.binding.wordId(this.address)
  }

  /** The key that distinguishes it from other words in this thread. */
  get key () {
    const { lineName } = this
    return lineName === undefined ? this.address : lineName
  }

  /** Finds the index of an entry of this thread's for it; -1: none. */
  find () {
    return theList().find(this.address)
  }

  holder () {
    return agent().holderOf(this.address)
  }

  /** Returns who has it: `{ pid, threadId }`; null if that is not known. */
  owner () {
    const threadId = this.holder()
    return threadId === null ? null : { pid: process.pid, threadId }
  }
}
bare(Location)
/** The name of its line in native code, which tells the address. Undefined: it is known by its address. */
Location.prototype.lineName = undefined

/** Takes a request where there may be waiters, as `take` of word.js. (A lock goes to the thread that comes first.) */
function takeInLine (word, request, token, isQuiet) {
  if (!theList().takeInLine(word, request, token)) return false
  try {
    if (token !== null && token.ownerDied) {
      observer.ownerDied(word, request)
      if (!isQuiet) theList().door.open()
    }
  } catch (_) {
    // No stack is left. It is held all the same; not knowing of a death is better than losing the token.
  }
  return true
}

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

class UnlockToken {
  constructor () {
    this[INDEX] = 0
    this[SERIAL] = NOT_HELD
    this.ownerDied = false
  }

  get locked () {
    return indexOf(this) >= 0
  }

  /** Unlocks. False if the token is not live: it was released, or a Condition's `waitAsync` is pending and rejects. */
  unlock () {
    if (this === undefined) refuseDetached()
    if (!theList().releaseToken(this)) return releaseHold(this)
    forget(this)
    return true
  }

  abandon () {
    if (this === undefined) refuseDetached()
    const index = indexOf(this)
    if (index < 0) return rejectWait(this)
    if (!isExclusive(requestIn(theList().entries[2 * index + 1]))) {
      throw new TypeError('abandon: the token must be that of a lock that is held exclusively, not of a share or of ' +
        'permits: use unlock()')
    }
    assertStack()
    return releaseHold(this, true)
  }
}

function refuseDetached () {
  throw new TypeError('this method must be called on a token: () => token.unlock()')
}

showState(UnlockToken, (token) => {
  const { locked, ownerDied } = token
  if (ownerDied === undefined) throw new TypeError('this is no token')
  return { locked, ownerDied }
})

shield(UnlockToken, [INDEX, SERIAL, 'ownerDied'])
// A promise that is resolved with a token looks for this property: here it is found sooner than on `Object.prototype`.
define(UnlockToken.prototype, 'then', undefined, false, true)

if (typeof Symbol.dispose === 'symbol') {
  define(UnlockToken.prototype, Symbol.dispose, function dispose () { this.unlock() }, false, true)
}

/** The token of a writer of an RwLock. */
class ExclusiveToken extends UnlockToken {
  // Written out: older engines pass the arguments of an implicit constructor by an iterator,
  // which may have been replaced.
  constructor () {
    super()
  }

  /** Does not say that the state is consistent: if this writer saw a death, so do its successors. */
  downgrade () {
    // A getter of the token's may unlock it.
    const ownerDied = sawOwnerDied(this)
    const call = observer.callHere()
    const held = holdOf(this)
    if (held === undefined || held.request !== EXCLUSIVE) throw notLocked('downgrade: the token is not locked any more')
    const hold = newHold(held.word, SHARED)
    if (call !== 0) hold.place = call
    readingTokens.set(this, hold.token)
    held.word.downgrade(held.index, ownerDied, hold)
    theList().door.open()
    return hold.token
  }
}

/** Makes a token for a request; null if that has no holder. */
function newToken (request) {
  if (request === EXCLUSIVE) return new ExclusiveToken()
  return isOwned(request) ? new UnlockToken() : null
}

const newHold = (word, request, token = newToken(request)) => new Hold(word, request, token, NOT_HELD, 0)

/** Takes a request without waiting: its token, or null. */
function takeToken (word, request) {
  const token = newToken(request)
  return word.take(request, token) ? token : null
}

/** Whether a value is a token, of any copy of the package. */
const isToken = (value) => typeof value === 'object' && value !== null && typeof value[SERIAL] === 'number'

module.exports = {
  Hold, Location, UnlockToken, forget, holdOf, indexOfHold, isToken, newHold, newToken, onEntry, permitsOf, release,
  releaseAfter, sawOwnerDied, takeInLine, takeToken
}
