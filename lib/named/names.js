'use strict'

/**
 * Locks by name: taking, releasing and stealing them, and a program's views of that.
 *
 * The native side knows the names of the process, with their lines (core/src/lock/names.rs); held ones are in this
 * thread's robust list, as every lock is. A callback gets a `Lock`; a name that is held without one has a `NamedToken`:
 * from these a program has no way to the grant.
 */

const { agent, assertStack } = require('../agent/find-agent')
const { ANSWER } = require('../agent/registers')
const { globalObject } = require('../util/quirks')
const { createSecrets, showState } = require('../util/instances')
const {
  TypeError, defineProperty, getOwnPropertyDescriptor, keys, nextTick, shield
} = require('../util/intrinsics')
const { quote } = require('../util/values')
const { notLocked } = require('../waiting/errors')
const { INDEX, NAMED_EXCLUSIVE, NAMED_SHARED, NOT_HELD, NO_LIMIT, SERIAL } = require('../holding/request')
const {
  Location, UnlockToken, forget, indexOfHold, newToken, onEntry, release, takeInLine
} = require('../holding/hold')
const { blockOrThrow, take } = require('../holding/acquire')
const { granted } = require('../holding/run')
const theList = require('../holding/the-list')
const { createException } = require('./arguments')

/** The serial number of an entry that has gone. */
const RELEASED = 0

/**
 * A request for a name, and the right to it. It is a Hold, and the word of this Hold. Each request has its own in
 * JavaScript, since a name is requested anew each time; native code knows which are of one name. It never leaves the
 * package.
 */
class Grant extends Location {
  /** @param {boolean} [keeps] whether it is left to a token, which it refers to until `keep` only */
  constructor (name, request, keeps) {
    super()
    const { native } = agent()
    // The first copy of the package to request a name tells the words of all.
    if (native.onSteal === undefined) native.onSteal = reportSteals
    this.name = name
    this.request = request
    this.word = this
    this.token = keeps ? new NamedToken(this) : newToken(request)
    this.serial = NOT_HELD
    this.index = 0
    /** Whether the holder has abandoned it: at its end, the next exclusive holder sees a death. */
    this.isAbandoned = false
    /** The Lock of the callback, once it is needed. */
    this.lock = undefined
    /** Of the native word, once the name has been requested. */
    this.address = 0
    this.limit = NO_LIMIT
    /** Whether it takes the name from whoever holds it; and whether it did, from a living holder. */
    this.steals = false
    this.tookOver = false
    /** Whether this thread has heard that another request stole the name. */
    this.isStolen = false
    /** Called at most once, if another request steals the name: in a later turn, or when this thread asks. */
    this.onStolen = undefined
    /** The AbortController of its holder's signal, once that is asked for. */
    this.controller = undefined
  }

  get isShared () {
    return this.request === NAMED_SHARED
  }

  get mode () {
    return this.isShared ? 'shared' : 'exclusive'
  }

  /** The index of its entry; -1: it is not held. */
  get entry () {
    return this.isStolen ? -1 : indexOfHold(this)
  }

  /**
   * Gives the name back. False if it was stolen before. The caller opens the door.
   * @param {boolean} reportsOwnerDied whether the next exclusive holder sees a death
   */
  releaseEntry (index, reportsOwnerDied, inJob) {
    const wasHeld = release(index, reportsOwnerDied, inJob)
    this.serial = RELEASED
    this.isStolen = !wasHeld
    if (!wasHeld) this.noteLoss()
    return wasHeld
  }

  // ——— Stealing ———

  /** Takes the name alone and at once. All holders have lost it, and hear of that by `onStolen`. */
  steal (token) {
    this.steals = true
    return this.take(this.request, token)
  }

  /** Whether another request has stolen the name. Native code is asked, since this thread may not have heard of it. */
  learnWhetherStolen (index) {
    if (this.isStolen) return true
    assertStack()
    if (index >= 0 && onEntry(index, 'wasStolen')) this.lose(index)
    return this.isStolen
  }

  /** Removes the entry at `index`, whose name was stolen. The holder's code runs on without the name. */
  lose (index) {
    this.release(index)
    // Behind it: from now on nobody looks for the entry.
    this.isStolen = true
    this.noteLoss()
    theList().door.open()
  }

  /** Notes that the holder is to hear of the loss. An error of its signal's is reported as an uncaught one. */
  noteLoss () {
    const { controller, onStolen } = this
    const { door } = theList()
    if (onStolen !== undefined) door.note(onStolen)
    if (controller !== undefined) door.note(() => abort(controller, this.name))
  }

  makeSignal (index) {
    if (this.controller === undefined) {
      const { AbortController } = globalObject
      if (typeof AbortController !== 'function') return undefined
      const controller = new AbortController()
      // Not that of another call, which the class may have made if a program has replaced it.
      if (this.controller === undefined) this.controller = controller
    }
    const { controller } = this
    if (this.learnWhetherStolen(index) && !controller.signal.aborted) abort(controller, this.name)
    return controller.signal
  }

  // ——— As of a Word ———

  get lineName () {
    return this.name
  }

  take (request, token, isQuiet) {
    return takeInLine(this, request, token, isQuiet)
  }

  release (index, request, inJob) {
    return theList().releaseInLine(index, false, inJob)
  }

  // ——— Acquiring: Grants have the same ———

  attempt () {
    return take(this)
  }

  claim (wait, call) {
    return granted(this, wait, call)
  }

  block (timeout, caller, whole) {
    blockOrThrow(this, timeout, caller, whole)
  }

  /** Leaves the name to the token, and refers to it no more: see NamedToken. */
  keep () {
    const { token } = this
    this.serial = token[SERIAL]
    this.index = token[INDEX]
    this.token = undefined
    return token
  }

  // ——— As of a Hold ———

  get given () {
    if (this.lock === undefined) this.lock = new GrantedLock(this)
    return this.lock
  }

  /**
   * Gives the name back; false if it was given back or stolen before. Where the callback failed, or has not begun, the
   * next exclusive holder sees a death that this one saw. And so it is where a callback that has a
   * repair failed.
   */
  end (failed, inJob = false, hasRepair = false) {
    const { entry: index, token } = this
    if (index < 0) return false
    const sawDeath = token !== undefined && token.ownerDied
    const wasHeld = this.releaseEntry(index, this.isAbandoned || (failed && (hasRepair || sawDeath)), inJob)
    theList().door.open()
    return wasHeld
  }

  /**
   * Does nothing: if a repair does not end well, the next holder sees the death, since this one did. A stealing request
   * sees it, too.
   */
  noteDeath () {}

  /**
   * Ends a repair that succeeded: nobody else sees the death.
   * @throws {Error} with code ERR_NOT_LOCKED if the repair has abandoned the name; an AbortError if that was stolen
   */
  repaired (caller) {
    if (this.isAbandoned) throw notLocked(caller + ': repair has abandoned the lock')
    const { entry: index } = this
    if (index < 0 || !onEntry(index, 'repaired')) {
      if (index >= 0) this.lose(index)
      throw stolenError(this.name)
    }
    this.token.ownerDied = false
  }

  /** Marks the state as unsound, at once: a stealing request sees it, too. False if the name is not held any more. */
  abandon () {
    const { entry: index } = this
    if (this.learnWhetherStolen(index) || index < 0) return false
    if (this.isShared) throw new TypeError('abandon: the lock must be held exclusively, not shared')
    const wasHeld = onEntry(index, 'abandoned')
    if (wasHeld) this.isAbandoned = true
    else this.lose(index)
    return wasHeld
  }
}

function newGrant (name, shared, keeps, Class = Grant) {
  theList().makeRoom()
  return new Class(name, shared ? NAMED_SHARED : NAMED_EXCLUSIVE, keeps)
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

/** Tells the words whose names were stolen from this thread. */
function reportSteals () {
  const { operations, words } = agent().native
  const list = theList()
  for (;;) {
    operations.nextStolen()
    const number = words[ANSWER] >>> 0
    if (number === 0) return
    // Undefined: it was released, or had asked, before this thread heard of the steal.
    const index = list.findNamed(number)
    const word = list.held[index]
    if (word !== undefined) word.lose(index)
  }
}

const ofLocks = createSecrets('atomics-waitasync.grant')
const ofTokens = createSecrets('atomics-waitasync.name')

class Lock {
  constructor () {
    throw new TypeError('Lock: illegal constructor; locks.request passes a Lock to its callback')
  }

  get ownerDied () { return grantOf(this).token.ownerDied }

  abandon () {
    return grantOf(this).abandon()
  }
}
showState(Lock, ({ name, names, mode, ownerDied }) => (
  names === undefined ? { name, mode, ownerDied } : { names, mode, ownerDied }))

/** Gives a class the getters that tell of a grant. `find` finds that of an instance. */
function describeGrant (Class, find) {
  const getters = {
    // Grants have `names`; then this is that of errors.
    get name () { return find(this).names === undefined ? find(this).name : undefined },
    get names () { return find(this).names },
    get mode () { return find(this).mode },
    get tookOver () { return find(this).tookOver },
    get stolen () { return find(this).learnWhetherStolen(find(this).entry) },
    get signal () { return find(this).makeSignal(find(this).entry) }
  }
  for (const key of keys(getters)) {
    defineProperty(Class.prototype, key, { get: getOwnPropertyDescriptor(getters, key).get, configurable: true })
  }
}
describeGrant(Lock, grantOf)

function grantOf (lock) {
  const grant = ofLocks.reveal(lock)
  if (grant === undefined) throw new TypeError('Lock: illegal invocation; this must be a Lock')
  return grant
}

/** Makes the Lock of a grant. Engines name an instance by this name. */
const GrantedLock = function Lock (grant) {
  this[ofLocks.KEY] = ofLocks.hidden(grant)
}

/** Lets Locks have the prototype of a lazy class. Returns the loaded class. */
function lockOf (prototype) {
  GrantedLock.prototype = prototype
  return Lock
}

/** Gives a class the members of an interface, as WebIDL has them. */
function asInterface (Class, members) {
  for (const name of members) defineProperty(Class.prototype, name, { enumerable: true })
  defineProperty(Class.prototype, Symbol.toStringTag, { value: Class.name, configurable: true })
}
asInterface(Lock, ['name', 'names', 'mode', 'ownerDied', 'tookOver', 'stolen', 'signal', 'abandon'])

/**
 * The token of a name, or of several. It refers to the grant (Grants, if there are several), which does not refer to it
 * any more: so a token that nobody has can be collected, and its hold is reported.
 */
class NamedToken extends UnlockToken {
  constructor (word) {
    super()
    this[ofTokens.KEY] = ofTokens.hidden(word)
  }

  /** Native code is asked, since the name may have been stolen. */
  get locked () {
    const word = wordOf(this)
    const { entry } = word
    return entry >= 0 && !word.learnWhetherStolen(entry)
  }

  unlock () {
    return unlock(this, wordOf(this), false)
  }

  abandon () {
    const word = wordOf(this)
    const { entry } = word
    if (entry < 0 || word.learnWhetherStolen(entry)) return false
    if (word.isShared) {
      throw new TypeError('abandon: the name must be held exclusively, not shared: use unlock()')
    }
    assertStack()
    return unlock(this, word, true)
  }
}
shield(NamedToken, [ofTokens.KEY])
describeGrant(NamedToken, wordOf)
showState(NamedToken, ({ name, names, mode, locked, ownerDied }) => (
  names === undefined ? { name, mode, locked, ownerDied } : { names, mode, locked, ownerDied }))

function wordOf (token) {
  const word = ofTokens.reveal(token)
  if (word === undefined) throw new TypeError('this method must be called on the token of a name')
  return word
}

/** Gives the name back. False if it is not held any more. */
function unlock (token, word, reportsOwnerDied) {
  // The entry is found by the word: other code may have written a number into the token.
  const { entry } = word
  if (entry < 0) return false
  const wasHeld = word.releaseEntry(entry, reportsOwnerDied)
  forget(token)
  theList().door.open()
  return wasHeld
}

module.exports = { Grant, NamedToken, asInterface, lockOf, newGrant, stolenError }
