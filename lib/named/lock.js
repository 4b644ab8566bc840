'use strict'

/** `Lock`: the argument of the callback of a request. It describes a grant, to which other code has no way. */

const { TypeError, defineProperty } = require('../util/intrinsics')
const showState = require('../util/inspect')
const createSecrets = require('../util/secrets')

const { hide, reveal } = createSecrets('atomics-waitasync.grant')

class Lock {
  constructor () {
    throw new TypeError('Lock: illegal constructor; locks.request passes a Lock to its callback')
  }

  get name () { return nameOf(grantOf(this)) }
  get names () { return grantOf(this).names }
  get mode () { return grantOf(this).mode }
  get ownerDied () { return grantOf(this).token.ownerDied }
  get tookOver () { return grantOf(this).tookOver }

  get stolen () {
    const grant = grantOf(this)
    return grant.learnWhetherStolen(grant.entry)
  }

  get signal () {
    const grant = grantOf(this)
    return grant.makeSignal(grant.entry)
  }

  abandon () {
    return grantOf(this).abandon()
  }
}
showState(Lock, ({ name, names, mode, ownerDied }) => (
  names === undefined ? { name, mode, ownerDied } : { names, mode, ownerDied }))

/** Returns the name of a word; of Grants, which have `names`, undefined. */
const nameOf = ({ name, names }) => names === undefined ? name : undefined

function grantOf (lock) {
  const grant = reveal(lock)
  if (grant === undefined) throw new TypeError('Lock: illegal invocation; this must be a Lock')
  return grant
}

/** Makes the Lock of a grant. Engines name an instance by this name. */
const GrantedLock = function Lock (grant) {
  hide(this, grant)
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

module.exports = { GrantedLock, asInterface, lockOf, nameOf }
