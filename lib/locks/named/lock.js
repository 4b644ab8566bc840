'use strict'

/**
 * `Lock`: the argument of the callback of a request. It describes a grant, to which other code has no way: a Lock has a
 * function that puts its grant into an object of this module.
 */

const { TypeError, defineProperty } = require('../../util/intrinsics')
const showState = require('../../util/inspect')
const { isObject } = require('../../util/values')

const SHOW = Symbol('atomics-waitasync.grant')

const shown = { grant: undefined }

class Lock {
  constructor () {
    throw new TypeError('Lock: illegal constructor; locks.request passes a Lock to its callback')
  }

  get name () { return grantOf(this).name }
  get mode () { return grantOf(this).isShared ? 'shared' : 'exclusive' }
  get ownerDied () { return grantOf(this).token.ownerDied }
  get tookOver () { return grantOf(this).tookOver }
  get stolen () { return grantOf(this).learnWhetherStolen() }
  get signal () { return grantOf(this).makeSignal() }

  abandon () {
    const grant = grantOf(this)
    if (!grant.learnWhetherHeld()) return false
    if (grant.isShared) throw new TypeError('abandon: the lock must be held exclusively, not shared')
    return grant.abandon()
  }
}
showState(Lock, ({ name, mode, ownerDied }) => ({ name, mode, ownerDied }))

function grantOf (lock) {
  const show = isObject(lock) ? lock[SHOW] : undefined
  // Cleared before, since a function that is not ours may show nothing; and after, since it may show another.
  shown.grant = undefined
  if (typeof show === 'function') show()
  const { grant } = shown
  shown.grant = undefined
  if (grant === undefined) throw new TypeError('Lock: illegal invocation; this must be a Lock')
  return grant
}

/**
 * Makes the Lock of a grant. Engines name an instance by this name. By assignment, since to define a property takes
 * half a microsecond: a setter of `Object.prototype` would get no more than everybody can read from any Lock.
 */
const GrantedLock = function Lock (grant) {
  this[SHOW] = () => { shown.grant = grant }
}

/** Lets Locks have the prototype of a late class. Returns the loaded class. */
function lockOf (prototype) {
  GrantedLock.prototype = prototype
  return Lock
}

/** Gives a class the members of an interface, as WebIDL has them. */
function asInterface (Class, members) {
  for (const name of members) defineProperty(Class.prototype, name, { enumerable: true })
  defineProperty(Class.prototype, Symbol.toStringTag, { value: Class.name, configurable: true })
}
asInterface(Lock, ['name', 'mode', 'ownerDied', 'tookOver', 'stolen', 'signal', 'abandon'])

module.exports = { GrantedLock, asInterface, lockOf }
