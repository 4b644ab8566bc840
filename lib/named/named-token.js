'use strict'

/** `NamedToken`: the token of a name that is held without a callback. */

const { assertStack } = require('../agent/find-agent')
const { TypeError, shield } = require('../util/intrinsics')
const showState = require('../util/inspect')
const createSecrets = require('../util/secrets')
const { forget } = require('../holding/hold')
const theList = require('../holding/the-list')
const { UnlockToken } = require('../holding/token')
const { describeGrant } = require('./lock')

const { KEY, hidden, reveal } = createSecrets('atomics-waitasync.name')

/**
 * The token of a name, or of several. It refers to the grant (Grants, if there are several), which does not refer to it
 * any more: so a token that nobody has can be collected, and its hold is reported.
 */
class NamedToken extends UnlockToken {
  constructor (word) {
    super()
    this[KEY] = hidden(word)
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
shield(NamedToken, [KEY])
describeGrant(NamedToken, wordOf)
showState(NamedToken, ({ name, names, mode, locked, ownerDied }) => (
  names === undefined ? { name, mode, locked, ownerDied } : { names, mode, locked, ownerDied }))

function wordOf (token) {
  const word = reveal(token)
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

module.exports = NamedToken
