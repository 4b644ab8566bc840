'use strict'

/**
 * A word of shared memory: take, release and add permits without waiting. robust-list.js changes the words of holds.
 *
 * Between a change of the word and the last look at its line only built-ins and native code are called: at any
 * other call the engine may throw, since little of the stack is left, or a time limit of `vm` is over. So a
 * release need not ask for stack.
 */

const { agent } = require('../agent/find-agent')
const {
  ADDRESS, AMOUNT, ANSWER, FENCED, FREED, HELD_ELSEWHERE, KIND, NOT_LOCKED, RELEASING, operationError
} = require('../agent/registers')
const { own } = require('../util/realm')
const { assertStackToLoad } = require('../util/stack')
const { bufferOf, byteOffsetOf, compareExchange, isWebAssemblyMemory, load } = require('../util/intrinsics')
const observer = require('../waiting/observer')
const { Location, takeInLine } = require('./hold')
const { INNER, MOST, NO_LIMIT, UNLOCKED, amountOf, isBare, isStrict, kindOf } = require('./request')
const theList = require('./the-list')

// Captured for the reason given in entries.js.
const list = theList()
const { native } = agent()
const { binding, counters, floats, operations, words } = native
const { words: counts } = counters

class Word extends Location {
  constructor (array, address, onWebAssembly) {
    super()
    // An Int32Array of length 1.
    this.array = array
    this.address = address
    // The indexes of its counters of waiters, and of abandoned locks.
    this.counter = counters.ofWord(address / 4)
    this.abandoned = counters.abandonedOf(address)
    this.onWebAssembly = onWebAssembly
    // Of a view of a semaphore that has one: how many permits may be taken together.
    this.limit = NO_LIMIT
    // Whether it is that of a view that detects re-entry (reentry.js).
    this.detectsReentry = false
    // Of a queue's first word: its QueueMemory.
    this.queue = undefined
    // See `owe`.
    this.notifier = undefined
  }

  /**
   * Takes a request, if that needs no waiting. `token`: as of the list's `take`. `isQuiet`: the caller opens the door.
   */
  take (request, token, isQuiet) {
    if (isBare(request) && !isQuiet && list.takeFree(this, token)) return true
    if (isStrict(request) && counters.read(this.counter) !== 0) return takeInLine(this, request, token, isQuiet)
    if (!list.take(this, request, token)) return false
    try {
      if (token !== null && counts[this.abandoned] !== 0) this.takeNoteOfDeath(request, token, isQuiet)
    } catch (_) {
      // No stack is left. It is held all the same; not knowing of a death is better than losing the token.
    }
    return true
  }

  /** Takes a request for a promise. That overtakes no promise of this thread that is first in line for a lock. */
  takeForPromise (request, token, isQuiet) {
    const isInLine = !isStrict(request) && list.reserved !== 0 && this.array[0] === UNLOCKED &&
      counts[this.counter] !== 0
    return isInLine ? takeInLine(this, request, token, isQuiet) : this.take(request, token, isQuiet)
  }

  /** Whether nobody has or awaits it: a lock could be taken at once for a promise. */
  get isFree () {
    return this.array[0] === UNLOCKED && counts[this.counter] === 0
  }

  /** Tells the token if a dead holder had abandoned the lock. */
  takeNoteOfDeath (request, token, isQuiet) {
    floats[ADDRESS] = this.address
    words[KIND] = kindOf(request)
    words[AMOUNT] = amountOf(request)
    operations.takeNoteOfDeath()
    if (words[ANSWER] !== 1) return
    token.ownerDied = true
    if (request === INNER) return
    observer.ownerDied(this, request)
    if (!isQuiet) list.door.open()
  }

  /** Notes a death: the next exclusive holder sees it. */
  noteDeath () {
    floats[ADDRESS] = this.address
    operations.noteDeath()
  }

  /** Releases the request of the entry at `index`. `inJob`, and the result: see `releaseInLine`. */
  release (index, request, inJob = false) {
    const notify = isBare(request) ? hostNotify(this) : undefined
    if (counts[this.counter] !== 0) {
      list.releaseInLine(index, false, inJob)
      if (notify !== undefined) notify(this.array, 0, 1)
      return true
    }
    list.release(this, index, request)
    try {
      if (notify !== undefined) notify(this.array, 0, 1)
    } finally {
      // A waiter that came after the first look was counted before it read the word, so it is seen now.
      if ((FENCED ? counts[this.counter] : load(counts, this.counter)) !== 0) {
        floats[ADDRESS] = this.address
        operations.released()
      }
      floats[RELEASING] = 0
    }
    return true
  }

  notifyHost () {
    const notify = hostNotify(this)
    if (notify !== undefined) notify(this.array, 0, 1)
  }

  downgrade (index, ownerDied, shared) {
    if (ownerDied) this.noteDeath()
    list.downgrade(index, ownerDied, shared)
    if ((FENCED ? counts[this.counter] : load(counts, this.counter)) !== 0) {
      floats[ADDRESS] = this.address
      operations.released()
    }
    floats[RELEASING] = 0
  }

  /** Adds permits. False if there would be too many. */
  addPermits (amount) {
    for (;;) {
      const current = load(this.array, 0)
      if (current + amount > MOST) return false
      floats[RELEASING] = -this.address
      const isAdded = compareExchange(this.array, 0, current, current + amount) === current
      if (isAdded && (FENCED ? counts[this.counter] : load(counts, this.counter)) !== 0) {
        floats[ADDRESS] = this.address
        operations.released()
      }
      floats[RELEASING] = 0
      if (isAdded) return true
    }
  }

  /**
   * Frees a lock of another thread, unless its holder is known.
   * @returns {number | null | undefined} the holder's `threadId`; undefined if it is free, null if it has been freed
   */
  unlockUnheld () {
    floats[ADDRESS] = this.address
    operations.free()
    const answer = words[ANSWER]
    if (answer === FREED) return null
    if (answer === HELD_ELSEWHERE) return words[AMOUNT]
    if (answer === NOT_LOCKED) return undefined
    throw operationError(answer)
  }

  /** The name that a program has given it, for people; undefined if there is none. */
  get name () {
    const name = binding.labelOf(this.address)
    return name === null ? undefined : name
  }

  set name (name) {
    binding.setLabel(this.address, name)
  }
}

/** For the short way: its callers have no list before their first word. */
Word.prototype.list = list
/** Whether several processes have it: then it is a SharedWord. */
Word.prototype.isShared = false

/** The class for memory that several processes share, once it is loaded. */
let SharedWord

/**
 * Returns the host's `notify`, if its queue may have plain waiters. It may where no install replaced `notify`, where
 * one left Workers alone, and always on a WebAssembly memory.
 */
function hostNotify (word) {
  const { notify } = own.host
  return own.Atomics.notify === notify || word.onWebAssembly || native.besideHost ? notify : undefined
}

/** Makes the word of an Int32Array of length 1 on shared memory. */
module.exports = function createWord (array) {
  const buffer = bufferOf(array)
  const address = binding.addressOf(array)
  list.register(buffer, address - byteOffsetOf(array))
  if (!binding.isShared(address)) return new Word(array, address, isWebAssemblyMemory(buffer))
  if (SharedWord === undefined) {
    assertStackToLoad()
    SharedWord = require('./shared-word')(Word)
  }
  return new SharedWord(array, address)
}
