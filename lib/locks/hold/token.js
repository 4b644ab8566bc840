'use strict'

/**
 * Tokens: the right to release what is held.
 *
 * A token has the serial number of an entry of the robust list, and the entry's last known index. All else is read from the list,
 * so whatever code writes into a token, it stands for an entry of the list or for nothing.
 */

const { agent, assertStack } = require('../../agent/agent')
const { ANSWER, ENTRY } = require('../../agent/registers')
const { TypeError, bare, createWeakMap, define, shield } = require('../../util/intrinsics')
const showState = require('../../util/inspect')
const { notLocked } = require('../../waiting/errors')
const { owes, requestIn } = require('./owed')
const { EXCLUSIVE, LOCK, SHARED, amountOf, isOwned } = require('./request')
const { INDEX, NOT_HELD, SERIAL, robustList } = require('./robust-list')
const { callHere } = require('../observe/taken')

/** By the token of a writer that has become a reader: its token as a reader. */
const readingTokens = createWeakMap()

class UnlockToken {
  /** @private */
  constructor () {
    this[INDEX] = 0
    this[SERIAL] = NOT_HELD
    this.ownerDied = false
  }

  /** Whether the lock is still held by this token. */
  get locked () {
    return indexOf(this) >= 0
  }

  /**
   * Releases what is held. True the first time; false if the token is not live: it was released already, or a Condition's
   * `waitAsync` with it is pending, which then rejects.
   */
  unlock () {
    return giveBack(this)
  }

  /**
   * Releases the lock as `unlock` does, and the next exclusive holder is told `ownerDied`: what the lock protects may be half changed. A
   * Condition's notification that the hold owes goes to another waiter.
   * @throws {TypeError} it is the token of a share or of permits
   */
  abandon () {
    const index = indexOf(this)
    if (index < 0) return rejectWait(this)
    if (!isExclusive({ request: requestIn(theList().entries[2 * index + 1]) })) {
      throw new TypeError('abandon: the token must be that of a lock that is held exclusively, not of a share or of permits: use unlock()')
    }
    assertStack()
    return giveBack(this, true)
  }
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
  // Written out: older engines pass the arguments of an implicit constructor by an iterator, which may have been replaced.
  constructor () {
    super()
  }

  /**
   * Becomes a reader, with no other writer in between. This does not say that the state is consistent: if this writer was told of a
   * death, so are all readers and the next writer.
   * @returns {UnlockToken} the token of a reader; this one is no longer locked
   */
  downgrade () {
    // A getter of the token's may unlock it.
    const told = wasTold(this)
    const call = callHere()
    const held = holdOf(this)
    if (held === undefined || held.request !== EXCLUSIVE) throw notLocked('downgrade: the token is not locked any more')
    const hold = newHold(held.word, SHARED)
    if (call !== 0) hold.place = call
    readingTokens.set(this, hold.token)
    held.word.downgrade(held.index, told, hold)
    return hold.token
  }
}

/** A new token for what is requested; null if that has no holder. */
function newToken (request) {
  if (request === EXCLUSIVE) return new ExclusiveToken()
  return isOwned(request) ? new UnlockToken() : null
}

/**
 * A request to a word, and the token that stands for it once it is granted. It never leaves the package, since the word has an
 * address.
 */
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
    // If stalls are reported it gets a property `place`: the number of the call that claims or takes it (taken.js).
  }

  // ——— For callback forms: a Grant, of named/names.js, has the same ———

  /** What a callback is given. */
  get given () {
    return this.token
  }

  get isShared () {
    return this.request === SHARED
  }

  /** See `giveBackAfter`. */
  end (failed, inJob, hasRepair) {
    giveBackAfter(this.token, failed, inJob, hasRepair)
  }

  /** A repair begins. Until it has ended well, the death is noted as if nobody had been told. */
  noteDeath () {
    this.word.noteDeath()
  }

  /**
   * A repair has ended well: nobody else is told of the death.
   * @throws {Error} with code ERR_NOT_LOCKED if the repair has given the lock back
   */
  repaired (caller) {
    const index = indexOfHold(this)
    if (index < 0) throw notLocked(caller + ': repair has given the lock back, so it is not known to be repaired')
    forgetDeath(index)
    try {
      this.token.ownerDied = false
    } catch (_) {
      // It is frozen.
    }
  }
}
bare(Hold)

/**
 * What a dead holder left behind under the entry at `index` is repaired: nobody else is told. False if that is a named lock that was stolen.
 */
function forgetDeath (index) {
  const { operations, words } = theList().native
  words[ENTRY] = index
  operations.repaired()
  return words[ANSWER] !== 0
}

/** A hold with a new token. */
const newHold = (word, request, token = newToken(request)) => new Hold(word, request, token, NOT_HELD, 0)

/** The hold of a live token; undefined for any other. */
function holdOf (token) {
  const index = indexOf(token)
  if (index < 0) return undefined
  const { entries, held, serials } = theList()
  return new Hold(held[index], requestIn(entries[2 * index + 1]), token, serials[index], index)
}

let list

/** `robustList()`, without its call: that would be a tenth of what a lock costs. */
function theList () {
  if (list === undefined) list = robustList()
  return list
}

/** Whether a promise of this thread claims the word. */
function isAwaited ({ address, key }) {
  // The counter of the word's waiters spares most searches.
  return theList().reserved > 0 && agent().mayBeWaiting(address / 4) &&
    agent().someWaiter((waiter) => waiter.isReserved && waiter.word.key === key)
}

/** How many permits of a word this thread holds. */
function permitsOf ({ address }) {
  const list = theList()
  let permits = 0
  if (list.find(address) < 0) return permits
  for (let index = 0; index < list.length; index++) {
    if (list.entries[2 * index] === address) permits += amountOf(list.entries[2 * index + 1])
  }
  return permits
}

/** The index of a token's entry in the robust list; -1 if there is none any more. */
function indexOf (token) {
  const serial = token[SERIAL]
  const index = token[INDEX] | 0
  return serial > 0 && theList().serials[index] === serial ? index : theList().indexOf(serial, index)
}

/** The index of a hold's entry, which may have moved. Not by a token that the user has had before, which may be a proxy. */
const indexOfHold = ({ token, serial, index }) => serial === NOT_HELD ? indexOf(token) : theList().indexOf(serial, index)

/** A token, if the request can be granted by the word without waiting; otherwise null. */
function takeToken (word, request) {
  const token = newToken(request)
  return word.take(request, token) ? token : null
}

/** Takes again what a hold's token had, if that needs no waiting. */
function takeAgain (hold) {
  const taken = newToken(hold.request)
  if (!hold.word.take(hold.request, taken)) return false
  const list = theList()
  // Diagnostics may have run code that moved or released it.
  const index = list.indexOf(taken[SERIAL], taken[INDEX])
  if (index < 0) return true
  list.assign(hold, index, taken.ownerDied)
  list.inform(hold, taken.ownerDied)
  return true
}

/**
 * `unlock` of a token of whatever kind, or `abandon`: that tells of a death. `inJob`: whether the job of a callback is about to end with it;
 * `failed`: whether by an error.
 */
function giveBack (token, tellsOfDeath = false, inJob = false, failed = false) {
  const index = indexOf(token)
  if (index < 0) return rejectWait(token)
  release(index, tellsOfDeath, inJob, failed)
  try {
    token[SERIAL] = NOT_HELD
  } catch (_) {
    // The token is frozen.
  }
  return true
}

/** The holder with this token was told of a death. The token may be a proxy. */
function wasTold (token) {
  try {
    return token.ownerDied === true
  } catch (_) {
    return false
  }
}

/**
 * Releases what a callback was given this token for, in whatever form it is held now. If the callback ended by an error, it has not said
 * that it repaired what a dead holder left behind: so the next one is told, too, as it is if the callback has a repair. Nor has the callback
 * made use of a notification.
 */
function giveBackAfter (token, failed, inJob = false, hasRepair = false) {
  if (giveBack(token, failed && (hasRepair || wasTold(token)), inJob, failed)) return
  const reading = readingTokens.get(token)
  if (reading !== undefined) giveBack(reading, false, inJob)
}

/**
 * Releases what the entry at `index` stands for. Where that tells of a death, the next exclusive holder hears of it, unless this was a reader.
 * After a failure, a notification that it owes goes to another waiter.
 */
function release (index, tellsOfDeath, inJob = false, failed = false) {
  const list = theList()
  const word = list.held[index]
  const number = list.entries[2 * index + 1]
  const request = requestIn(number)
  if (!tellsOfDeath && !(failed && owes(number))) {
    word.release(index, request, inJob)
  } else {
    list.releaseInLine(index, tellsOfDeath, inJob, failed)
    if (request === LOCK) word.notifyHost()
  }
  list.holds.tell()
}

/** Whether a value is a token, of whichever copy of this package. */
const isToken = (value) => typeof value === 'object' && value !== null && typeof value[SERIAL] === 'number'

/** Whether the hold excludes all others. */
const isExclusive = ({ request }) => request === LOCK || request === EXCLUSIVE

/**
 * A token that is not live is unlocked. If a Condition's `waitAsync` with it is pending, that would take the lock again, which
 * nothing would release: so it rejects. Returns false.
 */
function rejectWait (token) {
  const steps = theList().stepsOf.get(token[SERIAL])
  if (steps === undefined) return false
  assertStack()
  steps.reject(notLocked('The token was unlocked while a promise was waiting with it'))
  return false
}

module.exports = {
  UnlockToken,
  forgetDeath,
  giveBack,
  giveBackAfter,
  holdOf,
  indexOfHold,
  isAwaited,
  isExclusive,
  isToken,
  newHold,
  newToken,
  permitsOf,
  release,
  takeAgain,
  takeToken,
  theList,
  wasTold
}
