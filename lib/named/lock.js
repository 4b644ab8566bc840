'use strict'

/** `Lock`: the argument of the callback of a request. It describes a grant, to which other code has no way. */

const { TypeError, defineProperty, getOwnPropertyDescriptor, keys } = require('../util/intrinsics')
const showState = require('../util/inspect')
const createSecrets = require('../util/secrets')

const { KEY, hidden, reveal } = createSecrets('atomics-waitasync.grant')

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
  const grant = reveal(lock)
  if (grant === undefined) throw new TypeError('Lock: illegal invocation; this must be a Lock')
  return grant
}

/** Makes the Lock of a grant. Engines name an instance by this name. */
const GrantedLock = function Lock (grant) {
  this[KEY] = hidden(grant)
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

module.exports = { GrantedLock, asInterface, describeGrant, lockOf }
