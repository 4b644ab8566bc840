'use strict'

/**
 * A program's views of a grant, to which it has no way.
 *
 * A callback gets a `Lock`. A name that is held without a callback has a `NamedToken`.
 */

const { assertStack } = require('../agent/find-agent')
const { TypeError, defineProperty, getOwnPropertyDescriptor, keys, shield } = require('../util/intrinsics')
const showState = require('../util/inspect')
const createSecrets = require('../util/secrets')
const { UnlockToken, forget } = require('../holding/hold')
const theList = require('../holding/the-list')

const ofLocks = createSecrets('atomics-waitasync.grant')
const ofTokens = createSecrets('atomics-waitasync.name')

// ——— Lock ———

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

// ——— Token ———

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
    return release(this, wordOf(this), false)
  }

  abandon () {
    const word = wordOf(this)
    const { entry } = word
    if (entry < 0 || word.learnWhetherStolen(entry)) return false
    if (word.isShared) {
      throw new TypeError('abandon: the name must be held exclusively, not shared: use unlock()')
    }
    assertStack()
    return release(this, word, true)
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
function release (token, word, reportsOwnerDied) {
  // The entry is found by the word: other code may have written a number into the token.
  const { entry } = word
  if (entry < 0) return false
  const wasHeld = word.releaseEntry(entry, reportsOwnerDied)
  forget(token)
  theList().door.open()
  return wasHeld
}

module.exports = { GrantedLock, NamedToken, asInterface, lockOf }
