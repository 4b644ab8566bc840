'use strict'

/** A word by its `address`: one in memory (word.js), or a name's (named/names.js). */

const { agent } = require('../agent/find-agent')
const { bare } = require('../util/intrinsics')
const observer = require('../waiting/observer')
const theList = require('./the-list')

class Location {
  /** The number that users know it by. */
  get id () {
    return agent().native.binding.wordId(this.address)
  }

  /** The key that distinguishes it from other words in this thread. */
  get key () {
    return this.address
  }

  /** The name of its line in native code, which tells the address. Undefined: it is known by its address. */
  get lineName () {
    return undefined
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

module.exports = { Location, takeInLine }
