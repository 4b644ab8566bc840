'use strict'

/**
 * A word of shared memory, and what a thread does to it without waiting: take, release, add permits. The invariants of
 * robust-list.js apply: a word and the list change together.
 */

const { FENCED } = require('../../agent/counters')
const {
  ACQUIRED, ACQUIRED_FROM_DEAD, ADDRESS, AMOUNT, ANSWER, FREED, HELD, HELD_ELSEWHERE, KIND, NOT_LOCKED, RELEASING, operationError
} = require('../../agent/registers')
const {
  add, bare, compareExchange, createMap, load, store, sub
} = require('../../util/intrinsics')
const { byteOffset, isWebAssemblyMemory, viewedArrayBuffer } = require('../../util/typed-arrays')
const { ownerDied } = require('./diagnostics')
const createLastHold = require('./last-hold')
const createMemories = require('./memories')
const { LOCK, LOCKED, MOST, PERMITS, SHARED, UNAVAILABLE, UNLOCKED, after, amountOf, isOwned, kindOf } = require('./request')

/** `unlockUnheld` returns it if the lock is free. */
const FREE = -1

/** Returns a function from an Int32Array of length 1 on shared memory to its word. */
function createWords (list, { binding, counters, floats, operations, words }) {
  const { adopt, makeRoom, nextSerial, numberLast, releaseInLine, toEnd } = list
  const keep = createLastHold(binding)
  const register = createMemories(binding)
  // By address: how many claims of this thread's promises are enqueued there.
  const awaited = createMap()

  /**
   * - `array`: the word, as an Int32Array of length 1
   * - `address`: of the word
   * - `counter`: the index of its counter of waiters
   * - `abandoned`: the index of the counter of what dead holders have left behind in its bucket
   * - `onWebAssembly`: whether it is in a WebAssembly memory
   */
  class Word {
    constructor (array, address, counter, abandoned, onWebAssembly) {
      this.array = array
      this.address = address
      this.counter = counter
      this.abandoned = abandoned
      this.onWebAssembly = onWebAssembly
    }

    /** Takes the lock that this word is, if it is free. Returns the index of the entry, which has no token yet; or -1. */
    takeLock () {
      makeRoom()
      const index = words[HELD]
      list.entries[2 * index] = this.address
      list.entries[2 * index + 1] = LOCK
      list.serials[index] = nextSerial()
      if (compareExchange(this.array, 0, UNLOCKED, LOCKED) !== UNLOCKED) {
        list.serials[index] = 0
        list.serial--
        return -1
      }
      words[HELD] = index + 1
      list.held[index] = this
      return index
    }

    /** Takes anything else, where no waiter is counted. Returns the index likewise; for SIGNALS any number from 0 on. */
    takeUncontended (request) {
      const kind = kindOf(request)
      const amount = amountOf(request)
      const index = words[HELD]
      const serial = nextSerial()
      list.entries[2 * index] = this.address
      list.entries[2 * index + 1] = request
      for (;;) {
        const current = load(this.array, 0)
        const next = after(kind, amount, current)
        if (next === UNAVAILABLE) return -1
        if (compareExchange(this.array, 0, current, next) === current) break
      }
      if (!isOwned(request)) return index
      words[HELD] = index + 1
      list.held[index] = this
      list.serials[index] = serial
      return index
    }

    /**
     * Takes what is requested, if that needs no waiting. Returns the index likewise, or -1. Then `list.ownerDied` says whether a
     * dead holder had left it behind.
     */
    take (request) {
      if (request === LOCK) {
        const index = this.takeLock()
        if (index >= 0) list.ownerDied = this.inherits(LOCK)
        return index
      }
      makeRoom()
      // Where there may be waiters the line decides, so that no waiter is overtaken.
      if (counters === undefined || counters.read(this.counter) !== 0) return this.takeInLine(request)
      const index = this.takeUncontended(request)
      if (index >= 0 && isOwned(request)) list.ownerDied = this.inherits(request)
      return index
    }

    takeInLine (request) {
      this.setRequest(request)
      operations.tryTake()
      const answer = words[ANSWER]
      if (answer < ACQUIRED) return -1
      list.ownerDied = answer === ACQUIRED_FROM_DEAD
      const index = isOwned(request) ? numberLast(this) : 0
      if (list.ownerDied) {
        try {
          ownerDied(this, request)
        } catch (_) {
          // No stack is left for the call.
        }
      }
      return index
    }

    setRequest (request) {
      floats[ADDRESS] = this.address
      words[KIND] = kindOf(request)
      words[AMOUNT] = amountOf(request)
    }

    /** Whether a dead holder had left behind what was just taken. */
    inherits (request) {
      if (counters !== undefined && counters.peek(this.abandoned) === 0) return false
      let inherits = false
      try {
        this.setRequest(request)
        operations.inherit()
        inherits = words[ANSWER] === 1
        if (inherits) ownerDied(this, request)
      } catch (_) {
        // No stack is left for the call. It is held all the same; not knowing is better than losing its token.
      }
      return inherits
    }

    /** Releases the lock that this word is, by the entry at `index`. */
    unlock (index) {
      if (counters === undefined || counters.peek(this.counter) !== 0) {
        releaseInLine(index)
        return
      }
      const last = toEnd(index)
      floats[RELEASING] = this.address
      store(this.array, 0, UNLOCKED)
      words[HELD] = last
      list.serials[last] = 0
      list.held[last] = undefined
      // A waiter that came after the first look was counted before it read the word, so it is seen now (see src/lock/).
      // Not by `tellLine`: that would need more stack than the first look, which has shown that there is as much.
      if (counters.read(this.counter) !== 0) {
        floats[ADDRESS] = this.address
        operations.released()
      }
      floats[RELEASING] = 0
    }

    /**
     * The same where there may be waiters in the host's queue; `hostNotify` is the host's `notify`. That passes a fence anyway, so
     * the word is freed by a plain write, on processors where such a write comes after all earlier writes.
     */
    unlockBesideHost (index, hostNotify) {
      if (!FENCED || counters === undefined || counters.peek(this.counter) !== 0) {
        this.unlock(index)
        hostNotify(this.array, 0, 1)
        return
      }
      const last = toEnd(index)
      floats[RELEASING] = this.address
      this.array[0] = UNLOCKED
      words[HELD] = last
      list.serials[last] = 0
      list.held[last] = undefined
      try {
        hostNotify(this.array, 0, 1)
      } finally {
        // As in `unlock`.
        if (counters.read(this.counter) !== 0) {
          floats[ADDRESS] = this.address
          operations.released()
        }
        floats[RELEASING] = 0
      }
    }

    /** Releases what `request` has taken, by the entry at `index`. */
    release (index, request) {
      if (counters === undefined || counters.peek(this.counter) !== 0) {
        releaseInLine(index)
        return
      }
      const kind = kindOf(request)
      const amount = amountOf(request)
      const last = toEnd(index)
      floats[RELEASING] = this.address
      if (kind === SHARED) sub(this.array, 0, 1)
      else if (kind === PERMITS) add(this.array, 0, amount)
      else store(this.array, 0, UNLOCKED)
      words[HELD] = last
      list.serials[last] = 0
      list.held[last] = undefined
      // As in `unlock`.
      if (counters.read(this.counter) !== 0) {
        floats[ADDRESS] = this.address
        operations.released()
      }
      floats[RELEASING] = 0
    }

    /** The writer with the entry at `index` becomes a reader: the entry becomes that of the hold `shared`. */
    downgrade (index, ownerDied, shared) {
      floats[RELEASING] = this.address
      store(this.array, 0, 1)
      list.entries[2 * index + 1] = SHARED
      adopt(shared, index, ownerDied)
      this.tellLine()
    }

    /** Adds permits. Returns how many there were, or -1 if there would be too many. */
    addPermits (amount) {
      floats[RELEASING] = this.address
      let current
      do {
        current = load(this.array, 0)
        if (current + amount > MOST) {
          floats[RELEASING] = 0
          return -1
        }
      } while (compareExchange(this.array, 0, current, current + amount) !== current)
      this.tellLine()
      return current
    }

    /**
     * Frees a lock that this thread does not hold, unless another holder is known.
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

    /** The word has been changed: its line is served. */
    tellLine () {
      if (counters === undefined || counters.read(this.counter) !== 0) {
        floats[ADDRESS] = this.address
        operations.released()
      }
      floats[RELEASING] = 0
    }

    /** A promise of this thread is about to be enqueued. */
    claimBegins () {
      awaited.set(this.address, (awaited.get(this.address) || 0) + 1)
      list.claims++
      list.room--
    }

    claimEnds () {
      const left = awaited.get(this.address) - 1
      if (left > 0) awaited.set(this.address, left)
      else awaited.delete(this.address)
      list.claims--
      list.room++
    }

    /** Whether a promise of this thread is enqueued. */
    isAwaited () {
      return awaited.has(this.address)
    }

    /** The index of an entry of this thread's for the word; -1 if there is none. */
    find () {
      let index = words[HELD] - 1
      while (index >= 0 && list.entries[2 * index] !== this.address) index--
      return index
    }

    /** The `threadId` of a thread that holds it by means of this package; null if there is none. */
    holder () {
      floats[ADDRESS] = this.address
      const holder = binding.holder()
      return typeof holder === 'number' ? holder : null
    }
  }
  bare(Word)

  return function createWord (array) {
    const buffer = viewedArrayBuffer(array)
    keep(buffer)
    const address = binding.addressOf(array)
    register(buffer, address - byteOffset(array))
    const onWebAssembly = isWebAssemblyMemory(buffer)
    return counters === undefined
      ? new Word(array, address, 0, 0, onWebAssembly)
      : new Word(array, address, counters.of(address), counters.abandonedOf(address), onWebAssembly)
  }
}

module.exports = { FREE, createWords }
