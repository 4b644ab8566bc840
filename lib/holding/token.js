'use strict'

/**
 * Tokens: the right to release a hold.
 *
 * A token has the serial number of an entry of the robust list, and the entry's last known index. All else is read from
 * the list: so a token stands for an entry of the list or for nothing, even if other code writes into it.
 */

const { assertStack } = require('../agent/find-agent')
const { TypeError, define, shield } = require('../util/intrinsics')
const showState = require('../util/inspect')
const { notLocked } = require('../waiting/errors')
const observer = require('../waiting/observer')
const { Hold, forget, releaseHold, holdOf, indexOf, readingTokens, rejectWait, sawOwnerDied } = require('./hold')
const { INDEX, NOT_HELD, SERIAL, requestIn } = require('./entry')
const { EXCLUSIVE, SHARED, isExclusive, isOwned } = require('./request')
const theList = require('./the-list')

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

module.exports = { UnlockToken, isToken, newHold, newToken, takeToken }
