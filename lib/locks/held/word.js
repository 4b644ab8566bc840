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

// The fields of a token. Two copies of the package share the symbols, since they share this thread's list.
const INDEX = Symbol.for('atomics-waitasync.place')
const SERIAL = Symbol.for('atomics-waitasync.serial')

/** Returns a function from an Int32Array of length 1 on shared memory to its word. */
function createWords (list, { binding, counters, floats, operations, words }) {
  const { adopt, makeRoom, nextSerial, releaseInLine, toEnd } = list
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

    /**
     * Takes the lock that this word is, if it is free; `token`, a new one, then becomes that of the entry. No call that may fail follows
     * the change: there might be no stack left for it.
     */
    takeLock (token) {
      makeRoom()
      const index = words[HELD]
      const serial = nextSerial()
      list.entries[2 * index] = this.address
      list.entries[2 * index + 1] = LOCK
      list.serials[index] = serial
      if (compareExchange(this.array, 0, UNLOCKED, LOCKED) !== UNLOCKED) {
        list.serials[index] = 0
        list.serial--
        return false
      }
      words[HELD] = index + 1
      list.held[index] = this
      token[INDEX] = index
      token[SERIAL] = serial
      try {
        this.inherit(LOCK, token)
      } catch (_) {
        // No stack is left. It is held all the same; not knowing of a death is better than losing the token.
      }
      return true
    }

    /** Takes anything else likewise, where no waiter is counted. */
    takeUncontended (request, token) {
      const kind = kindOf(request)
      const amount = amountOf(request)
      const owned = isOwned(request)
      const index = words[HELD]
      const serial = nextSerial()
      list.entries[2 * index] = this.address
      list.entries[2 * index + 1] = request
      for (;;) {
        const current = load(this.array, 0)
        const next = after(kind, amount, current)
        if (next === UNAVAILABLE) return false
        if (compareExchange(this.array, 0, current, next) === current) break
      }
      if (!owned) return true
      words[HELD] = index + 1
      list.held[index] = this
      list.serials[index] = serial
      token[INDEX] = index
      token[SERIAL] = serial
      try {
        this.inherit(request, token)
      } catch (_) {
        // As in `takeLock`.
      }
      return true
    }

    /**
     * Takes what is requested, if that needs no waiting; `token`, a new one, then becomes that of the entry. It is null for what has no
     * holder.
     */
    take (request, token) {
      if (request === LOCK) return this.takeLock(token)
      makeRoom()
      // Where there may be waiters the line decides, so that no waiter is overtaken.
      const isLined = counters === undefined || counters.read(this.counter) !== 0
      return isLined ? this.takeInLine(request, token) : this.takeUncontended(request, token)
    }

    takeInLine (request, token) {
      const owned = isOwned(request)
      const serial = nextSerial()
      this.setRequest(request)
      operations.tryTake()
      const answer = words[ANSWER]
      if (answer < ACQUIRED) return false
      if (!owned) return true
      const index = words[HELD] - 1
      list.held[index] = this
      list.serials[index] = serial
      token[INDEX] = index
      token[SERIAL] = serial
      token.ownerDied = answer === ACQUIRED_FROM_DEAD
      try {
        if (token.ownerDied) ownerDied(this, request)
      } catch (_) {
        // No stack is left for the call.
      }
      return true
    }

    setRequest (request) {
      floats[ADDRESS] = this.address
      words[KIND] = kindOf(request)
      words[AMOUNT] = amountOf(request)
    }

    /** Tells the token whether a dead holder had left behind what was just taken. */
    inherit (request, token) {
      if (counters !== undefined && counters.peek(this.abandoned) === 0) return
      this.setRequest(request)
      operations.inherit()
      if (words[ANSWER] !== 1) return
      token.ownerDied = true
      ownerDied(this, request)
    }

    /** The next exclusive holder is told of a death. */
    noteDeath () {
      floats[ADDRESS] = this.address
      operations.noteDeath()
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
      if (ownerDied) this.noteDeath()
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

    /** The number that stands for it in what users read. */
    get id () {
      return binding.wordId(this.address)
    }

    /** The name that a program has given it, for people; undefined if there is none. */
    get name () {
      const name = binding.labelOf(this.address)
      return name === null ? undefined : name
    }

    set name (name) {
      binding.setLabel(this.address, name)
    }

    /** What distinguishes it from other words in this thread. */
    get key () {
      return this.address
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

module.exports = { FREE, INDEX, SERIAL, createWords }
