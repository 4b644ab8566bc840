'use strict'

/** `NamedToken`: the token of a name that is held without a callback. */

const { assertStack } = require('../agent/find-agent')
const { TypeError, shield } = require('../util/intrinsics')
const showState = require('../util/inspect')
const createSecrets = require('../util/secrets')
const { NOT_HELD, SERIAL } = require('../holding/entry')
const { indexOf } = require('../holding/hold')
const theList = require('../holding/the-list')
const { UnlockToken } = require('../holding/token')
const { nameOf } = require('./lock')

const { KEY, hide, reveal } = createSecrets('atomics-waitasync.name')

/**
 * The token of a name, or of several. It refers to the word of its request (Grants, if there are several), which does
 * not refer to it: so a token that nobody has any more can be collected, and its hold is reported.
 */
class NamedToken extends UnlockToken {
  constructor (word) {
    super()
    hide(this, word)
  }

  get name () { return nameOf(wordOf(this)) }
  get names () { return wordOf(this).names }
  get mode () { return wordOf(this).mode }
  get tookOver () { return wordOf(this).tookOver }

  get stolen () {
    const word = wordOf(this)
    return word.learnWhetherStolen(entryOf(this, word))
  }

  get signal () {
    const word = wordOf(this)
    return word.makeSignal(entryOf(this, word))
  }

  /** Native code is asked, since the name may have been stolen. */
  get locked () {
    const word = wordOf(this)
    const index = entryOf(this, word)
    return index >= 0 && !word.learnWhetherStolen(index)
  }

  unlock () {
    const word = wordOf(this)
    return releaseHold(this, word, entryOf(this, word), false)
  }

  abandon () {
    const word = wordOf(this)
    const index = entryOf(this, word)
    if (index < 0 || word.learnWhetherStolen(index)) return false
    if (word.isShared) {
      throw new TypeError('abandon: the name must be held exclusively, not shared: use unlock()')
    }
    assertStack()
    return releaseHold(this, word, index, true)
  }
}
shield(NamedToken, [KEY])
showState(NamedToken, ({ name, names, mode, locked, ownerDied }) => (
  names === undefined ? { name, mode, locked, ownerDied } : { names, mode, locked, ownerDied }))

function wordOf (token) {
  const word = reveal(token)
  if (word === undefined) throw new TypeError('this method must be called on the token of a name')
  return word
}

/** Finds the index of the hold's entry; -1: it is not held. Other code may have written a number into the token. */
function entryOf (token, word) {
  // To find that there is none would be to look through all holds.
  if (word.isStolen) return -1
  if (word.names !== undefined) return word.entry
  const index = indexOf(token)
  return index >= 0 && theList().held[index] === word ? index : -1
}

/** Gives the name back. False if it is not held any more. */
function releaseHold (token, word, index, reportsOwnerDied) {
  if (index < 0) return false
  const wasHeld = word.releaseEntry(index, reportsOwnerDied)
  try {
    token[SERIAL] = NOT_HELD
  } catch (_) {
    // The token is frozen.
  }
  theList().door.open()
  return wasHeld
}

module.exports = NamedToken
