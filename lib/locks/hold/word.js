'use strict'

/**
 * A word of shared memory: take, release and add permits without waiting. The word of a hold changes together with the
 * robust list, and so in robust-list.js.
 */

const { agent } = require('../../agent/agent')
const { FENCED } = require('../../agent/counters')
const {
  ADDRESS, AMOUNT, ANSWER, FREED, HELD_ELSEWHERE, KIND, NOT_LOCKED, RELEASING, operationError
} = require('../../agent/registers')
const { own } = require('../../realm')
const { bare, compareExchange, load } = require('../../util/intrinsics')
const { byteOffset, isWebAssemblyMemory, viewedArrayBuffer } = require('../../util/typed-arrays')
const { ownerDied: tellDeath } = require('../observe/diagnostics')
const { INNER, LOCK, MOST, NO_LIMIT, amountOf, kindOf } = require('./request')
const { robustList } = require('./robust-list')

/** The answer of `unlockUnheld` if the lock is free. */
const FREE = -1

/** A word by its `address`: one in memory, or a name's. named/names.js has the words of names. */
class Location {
  /** The number that users know it by. */
  get id () {
    return agent().native.binding.wordId(this.address)
  }

  /** The name of its line in native code, which tells the address. Undefined: it is known by its address. */
  get lineName () {
    return undefined
  }

  /**
   * Returns the `threadId` of a thread that holds it; otherwise null. Only holds by means of this package are known.
   */
  holder () {
    return agent().holderOf(this.address)
  }
}
bare(Location)

/**
 * Makes the class and its factory. It captures the registers and the list, for the reason given in robust-list.js.
 *
 * Between a change of the word and the last look at its line only built-ins and native code are called: at any
 * other call the engine may throw, since little of the stack is left, or a time limit of `vm` is over. So a
 * release need not ask for stack.
 */
function createWords (list) {
  const { native } = list
  const { binding, counters, floats, operations, words } = native
  const { words: counts } = counters

  /**
   * - `array`: the word, as an Int32Array of length 1
   * - `address`: of the word
   * - `counter`: the index of its counter of waiters
   * - `abandoned`: the index of its counter of abandoned locks, which other words share
   * - `onWebAssembly`: whether it is in a WebAssembly memory
   * - `limit`: of a view of a semaphore that has one: how many permits may be taken together; otherwise NO_LIMIT
   */
  class Word extends Location {
    constructor (array, address, onWebAssembly) {
      super()
      this.array = array
      this.address = address
      this.counter = counters.ofWord(address / 4)
      this.abandoned = counters.abandonedOf(address)
      this.onWebAssembly = onWebAssembly
      this.limit = NO_LIMIT
      // The QueueMemory of which it is the first word.
      this.queue = undefined
      // The word of the Condition whose notification the last hold of this owed: kept, since it has an address.
      this.creditor = undefined
    }

    /**
     * Takes a request, if that needs no waiting. `token`, a new one, becomes that of the entry; it is null for a
     * request without a holder.
     */
    take (request, token) {
      const isStrict = request !== LOCK && request !== INNER
      if (isStrict && counters.read(this.counter) !== 0) return takeInLine(this, request, token)
      if (!list.take(this, request, token)) return false
      try {
        if (token !== null && counters.peek(this.abandoned) !== 0) this.takeNoteOfDeath(request, token)
      } catch (_) {
        // No stack is left. It is held all the same; not knowing of a death is better than losing the token.
      }
      return true
    }

    /** Tells the token if a dead holder had abandoned the lock. */
    takeNoteOfDeath (request, token) {
      floats[ADDRESS] = this.address
      words[KIND] = kindOf(request)
      words[AMOUNT] = amountOf(request)
      operations.takeNoteOfDeath()
      if (words[ANSWER] !== 1) return
      token.ownerDied = true
      if (request !== INNER) tellDeath(this, request)
    }

    /** Notes a death: the next exclusive holder is told. */
    noteDeath () {
      floats[ADDRESS] = this.address
      operations.noteDeath()
    }

    /** Releases the request of the entry at `index`. `inJob`: see `releaseInLine`. */
    release (index, request, inJob = false) {
      const notify = request === LOCK ? hostNotify(this) : undefined
      if (counters.peek(this.counter) !== 0) {
        list.releaseInLine(index, false, inJob)
        if (notify !== undefined) notify(this.array, 0, 1)
        return
      }
      // The host's `notify` passes a fence.
      list.release(this, index, request, FENCED && notify !== undefined)
      try {
        if (notify !== undefined) notify(this.array, 0, 1)
      } finally {
        // A waiter that came after the first look was counted before it read the word, so it is seen
        // now (see core/src/lock/).
        if ((FENCED ? counts[this.counter] : load(counts, this.counter)) !== 0) {
          floats[ADDRESS] = this.address
          operations.released()
        }
        floats[RELEASING] = 0
      }
    }

    /** Notifies a plain waiter in the host's queue, if any. */
    notifyHost () {
      const notify = hostNotify(this)
      if (notify !== undefined) notify(this.array, 0, 1)
    }

    /** Turns a writer's entry into that of the reader `shared`. */
    downgrade (index, ownerDied, shared) {
      if (ownerDied) this.noteDeath()
      list.downgrade(index, ownerDied, shared)
      if ((FENCED ? counts[this.counter] : load(counts, this.counter)) !== 0) {
        floats[ADDRESS] = this.address
        operations.released()
      }
      floats[RELEASING] = 0
    }

    /** Adds permits. Returns how many there were, or -1 if there would be too many. */
    addPermits (amount) {
      for (;;) {
        const current = load(this.array, 0)
        if (current + amount > MOST) return -1
        floats[RELEASING] = this.address
        const isAdded = compareExchange(this.array, 0, current, current + amount) === current
        if (isAdded && (FENCED ? counts[this.counter] : load(counts, this.counter)) !== 0) {
          floats[ADDRESS] = this.address
          operations.released()
        }
        floats[RELEASING] = 0
        if (isAdded) return current
      }
    }

    /**
     * Frees a lock of another thread, unless its holder is known.
     * @returns {number | null} the holder's `threadId`, FREE if the lock is free, and null if it has been freed
     */
    unlockUnheld () {
      floats[ADDRESS] = this.address
      operations.free()
      const answer = words[ANSWER]
      if (answer === FREED) return null
      if (answer === HELD_ELSEWHERE) return words[AMOUNT]
      if (answer === NOT_LOCKED) return FREE
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

    /** Finds the index of an entry of this thread's for it; -1: none. */
    find () {
      return list.find(this.address)
    }

    /** The key that distinguishes it from other words in this thread. */
    get key () {
      return this.address
    }
  }

  /**
   * Returns the host's `notify`, if its queue may have plain waiters. It may where no install replaced `notify`, where
   * one left Workers alone, and always on a WebAssembly memory.
   */
  function hostNotify (word) {
    const { notify } = own.host
    return own.Atomics.notify === notify || word.onWebAssembly || native.besideHost ? notify : undefined
  }

  return (array, isPrivate) => {
    const buffer = viewedArrayBuffer(array)
    const address = binding.addressOf(array)
    if (!isPrivate) {
      list.keep(buffer)
      list.register(buffer, address - byteOffset(array))
    }
    return new Word(array, address, isWebAssemblyMemory(buffer))
  }
}

/** Takes a request where there may be waiters. (A lock goes to the thread that comes first.) */
function takeInLine (word, request, token) {
  if (!robustList().takeInLine(word, request, token)) return false
  try {
    if (token !== null && token.ownerDied) tellDeath(word, request)
  } catch (_) {
    // As in `take`.
  }
  return true
}

let create

/**
 * Makes the word of an Int32Array of length 1 on shared memory. `isPrivate`: no other thread will ever have the memory.
 */
function createWord (array, isPrivate) {
  if (create === undefined) create = createWords(robustList())
  return create(array, isPrivate)
}

module.exports = { FREE, Location, createWord, takeInLine }
