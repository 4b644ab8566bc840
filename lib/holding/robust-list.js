'use strict'

/**
 * The robust list: this thread's holds, in memory that outlives it.
 *
 * Invariants:
 * - The first `words[HELD]` entries of the list are exactly this thread's holds. Native code reads them when the thread
 *   ends, in whatever way, and hands over their locks.
 * - Therefore the word and the list change together: first the word, then the list, by plain writes, with no call and
 *   no loop in between at which the engine could end the thread. (It may do so when a built-in Atomics function is
 *   called, but not between that function's effect and its return.)
 * - A thread that changes a word puts the word's address into the registers before, and removes it once the line has
 *   been served: if the thread ends in between, its clean-up serves the line.
 * - Before the compare-exchange on a free lock, the entry is staged past the end of the list, with a serial number; a
 *   failed exchange clears the number. So a thread that finds the lock taken finds its holder in the list or behind it;
 *   `unlock()` in another thread does so (`free` in the native library). A thread that releases a lock puts the address
 *   into the registers before the entry goes.
 * - Entries move only between two increments of `words[MOVES]`, so that no thread that looks for one misses it.
 * - Each entry has a serial number, which its token knows. A token is live while the list has its number: so an entry
 *   can be removed without finding its token. Past the end, all numbers are 0, but for a staged entry.
 * - `held[index]` is the word of the entry at `index`: a hold keeps its memory. Native code adds an entry before
 *   JavaScript can say so, and the engine may interrupt JavaScript in between: `expected` is the word until then.
 * - Only this file and entries.js write `words[HELD]`.
 * - Code outside of the package reaches neither the list nor a word, which has an address (see util/intrinsics.js). The
 *   fields of a token are only compared with the list.
 */

const { agent } = require('../agent/find-agent')
const {
  ACQUIRED, ACQUIRED_FROM_DEAD, ADDRESS, AMOUNT, ANSWER, ENTRY, HELD, MOVES, RELEASING
} = require('../agent/registers')
const { add, compareExchange, createMap, load, store, sub } = require('../util/intrinsics')
const { Entries, channel, holds } = require('./entries')
const register = require('./tracked-buffers')
const {
  INDEX, INNER, LEASE, LOCKED, NOT_HELD, PUTTER, SERIAL, SHARED, UNAVAILABLE, UNLOCKED, after, amountOf, comingBack,
  isExclusive, kindOf, owe
} = require('./request')

// Captured for the reason given in entries.js.
const { door, native } = agent()
const { floats, operations, words } = native

/** In the stead of a place: the hold is not reported. */
const UNREPORTED = -1

class RobustList extends Entries {
  constructor () {
    super()
    this.native = native
    this.holds = holds
    // How many messages of all queues this thread has in use. After a time limit of `vm` it may be too high.
    this.leases = 0
    // This thread's use of queues, which all copies of the package share: the step that it is in; and the lines of
    // promises that put, by queue address, and how many.
    this.queues = { begun: newStep(), lines: createMap(), lineCount: 0 }
    // The word of a claim that native code may grant; undefined if there is none.
    this.expected = undefined
    this.register = register
  }

  // ——— Claims ———

  expect (word) {
    if (this.expected !== undefined) this.recover()
    this.expected = word
  }

  /** Recovers from an interrupt after a grant: the entry is a hold without a token; permits go to a waiter. */
  recover () {
    const { address } = this.expected
    for (let index = 0; index < words[HELD]; index++) {
      if (this.entries[2 * index] === address) this.held[index] = this.expected
    }
    // Each operation passes permits on first.
    floats[ADDRESS] = address
    operations.waiterCount()
    this.expected = undefined
  }

  // ——— Taking ———

  /**
   * Takes a request, if the word can grant it at once. `token`, a new one, becomes that of the entry; it is null for
   * a request without a holder.
   */
  take (word, request, token) {
    let place = UNREPORTED
    // First: it may run a program's code.
    if (channel.hasSubscribers && token !== null && (place = holds.placeOf(word, request)) === UNAVAILABLE) return false
    const index = words[HELD]
    if (index >= this.room || this.shortRoom === 0) this.makeRoom()
    const { entries, held, serials } = this
    const serial = this.nextSerial()
    if (place !== UNREPORTED) holds.begin(serial, request, token, place)
    entries[2 * index] = word.address
    entries[2 * index + 1] = request
    let current = load(word.array, 0)
    for (;;) {
      const next = after(request, current, word.limit)
      if (next === UNAVAILABLE) {
        serials[index] = 0
        this.serial--
        if (holds.count !== 0) holds.forget(serial)
        return false
      }
      if (token !== null) serials[index] = serial
      const found = compareExchange(word.array, 0, current, next)
      if (found === current) break
      current = found
    }
    if (token === null) return true
    words[HELD] = index + 1
    held[index] = word
    token[INDEX] = index
    token[SERIAL] = serial
    return true
  }

  /** Takes a request where there may be waiters: none is overtaken. Native code adds the entry. */
  takeInLine (word, request, token) {
    const place = channel.hasSubscribers && token !== null ? holds.placeOf(word, request, true) : UNREPORTED
    this.makeRoom()
    const serial = this.nextSerial()
    if (place !== UNREPORTED) holds.begin(serial, request, token, place)
    native.writeRequest(word, kindOf(request), amountOf(request), 0)
    const { lineName } = word
    if (lineName === undefined) operations.take()
    else if (word.steals) operations.stealName(lineName)
    else operations.takeName(lineName)
    word.address = floats[ADDRESS]
    const answer = words[ANSWER]
    // How many had it.
    if (word.steals) word.tookOver = words[AMOUNT] !== 0
    if (answer < ACQUIRED) {
      if (holds.count !== 0) holds.forget(serial)
      return false
    }
    if (token === null) return true
    const index = words[HELD] - 1
    this.held[index] = word
    this.serials[index] = serial
    token[INDEX] = index
    token[SERIAL] = serial
    token.ownerDied = answer === ACQUIRED_FROM_DEAD
    return true
  }

  /** Adopts an entry that native code has added, for a hold. */
  adopt (hold, index, ownerDied) {
    this.held[index] = hold.word
    const serial = this.serials[index] = this.nextSerial()
    if (channel.hasSubscribers) holds.begin(serial, hold.request, hold.token, hold.place)
    this.assign(hold, index, ownerDied)
  }

  /** Adopts the last entry for a hold, and informs its token. */
  adoptLast (hold, ownerDied) {
    this.adopt(hold, words[HELD] - 1, ownerDied)
    this.markDelivered(hold, ownerDied)
  }

  /** Assigns a numbered entry to a hold. No code of the user's runs. */
  assign ({ serial, token, notifiedAt, place }, index, ownerDied) {
    if (serial === NOT_HELD) {
      token[INDEX] = index
      token[SERIAL] = this.serials[index]
      token.ownerDied = ownerDied
    } else {
      // The user has that token, so it may be frozen, or a proxy: the entry gets the number that it knows.
      if (holds.count !== 0) holds.rename(this.serials[index], serial, token, place)
      this.serials[index] = serial
      if (notifiedAt !== undefined) owe(this, index, notifiedAt)
    }
  }

  /** Informs the token of a hold that was taken again. This may run the user's code, which may change the list. */
  markDelivered ({ serial, token }, ownerDied) {
    if (serial === NOT_HELD) return
    try {
      token.ownerDied = ownerDied
    } catch (_) {
      // It is frozen.
    }
  }

  // ——— Releasing ———

  /**
   * Releases an entry's request. The caller then serves the line and clears the register.
   * @param {number} request that of the entry
   */
  release (word, index, request) {
    const frees = isExclusive(request) || request === INNER
    const last = this.toEnd(index)
    if (holds.count !== 0) holds.end(this, last)
    floats[RELEASING] = word.address
    if (frees) store(word.array, 0, UNLOCKED)
    else if (request === SHARED) sub(word.array, 0, 1)
    else add(word.array, 0, comingBack(request))
    words[HELD] = last
    // Of shares and permits the thread may have more. Before the number goes: until then that tells that one has left.
    floats[RELEASING] = -word.address
    this.serials[last] = 0
    this.held[last] = undefined
  }

  /**
   * Releases an entry where there may be waiters, in native code.
   * @param {boolean} reportsOwnerDied whether the next exclusive holder sees a death, after a failure
   * @param {boolean} inJob whether a job is about to end with this: then promises of this thread may have new
   *   entries when it returns
   * @param {boolean} failed whether the notification that the hold owes goes to another waiter
   * @returns {boolean} false for a name that was stolen before
   */
  releaseInLine (index, reportsOwnerDied = false, inJob = false, failed = false) {
    const operation = reportsOwnerDied ? operations.releaseOwnerDied : failed ? operations.releaseAndForwardNotify
      : inJob ? operations.releaseInJob : operations.release
    const last = words[ENTRY] = this.toEnd(index)
    if (holds.count !== 0) holds.end(this, last)
    operation()
    const wasHeld = words[ANSWER] !== 0
    const wakes = operation === operations.release && words[AMOUNT] !== 0
    if (words[HELD] <= last) {
      this.serials[last] = 0
      this.held[last] = undefined
    }
    if (wakes) door.note(servePromises)
    return wasHeld
  }

  /** Clears the last entry, which native code has removed. */
  vacate (index) {
    this.serials[index] = 0
    this.held[index] = undefined
  }

  /** Turns a writer's entry into that of the reader `shared`. The caller does as after `release`. */
  downgrade (index, ownerDied, { word, token, place }) {
    if (holds.count !== 0) holds.end(this, index)
    token[INDEX] = index
    const serial = token[SERIAL] = this.nextSerial()
    if (this.tasks !== undefined) this.tasks.rename(this.serials[index], serial)
    if (channel.hasSubscribers) holds.begin(serial, SHARED, token, place)
    token.ownerDied = ownerDied
    floats[RELEASING] = word.address
    if (word.isShared) word.becomeReaders()
    else store(word.array, 0, 1)
    this.entries[2 * index + 1] = SHARED
    // It stays in the list.
    floats[RELEASING] = -word.address
    this.serials[index] = serial
  }

  // ——— Owed notifications, leases and putters ———

  /**
   * Adds the entry of an owed notification, a lease or a putter; returns its serial number. No other thread sets the
   * word of a lease.
   * @param {number | null} [place] of the call that makes the lease; null: its duration is not published
   */
  addEntry (thing, request, place) {
    const index = words[HELD]
    this.makeRoom()
    const serial = this.nextSerial()
    if (channel.hasSubscribers && place !== null) holds.begin(serial, request, undefined, place)
    this.entries[2 * index] = thing.address
    this.entries[2 * index + 1] = request
    this.held[index] = thing
    this.serials[index] = serial
    const kind = kindOf(request)
    if (kind === LEASE) {
      store(thing.array, thing.index, LOCKED)
    } else if (kind === PUTTER) {
      // Not by `add`: the engine may end the thread between its effect and the change of HELD.
      let current
      do current = load(thing.array, thing.index)
      while (compareExchange(thing.array, thing.index, current, current + 1) !== current)
    }
    words[HELD] = index + 1
    return serial
  }

  /**
   * Removes the entry of an owed notification, a lease or a putter. It was last known at `hint`. The word of a lease is
   * set to 0, that of the `putter` counts one less.
   */
  removeEntry (serial, hint, lease, putter) {
    const index = this.indexOf(serial, hint)
    if (index < 0) return
    const last = this.toEnd(index)
    if (holds.count !== 0) holds.end(this, last)
    if (lease !== undefined) {
      store(lease.array, lease.index, UNLOCKED)
    } else if (putter !== undefined) {
      // See `addEntry`.
      let current
      do current = load(putter.array, putter.index)
      while (compareExchange(putter.array, putter.index, current, current - 1) !== current)
    }
    words[HELD] = last
    this.serials[last] = 0
    this.held[last] = undefined
  }

  removePutter (serial, hint, thing) {
    this.removeEntry(serial, hint, undefined, thing)
  }

  /** Says that a putter goes on that blocked. */
  resumePutter (serial, hint, request) {
    const index = this.indexOf(serial, hint)
    if (index >= 0) this.entries[2 * index + 1] = request
  }

  /** Says that the hold of an entry is about to end. */
  ends (index) {
    if (holds.count !== 0) holds.end(this, index)
  }

  // ——— Moving ———

  /** Moves an entry to the end, before it is released. Returns its index there. */
  toEnd (index) {
    const last = words[HELD] - 1
    // Uncounts the last entry, which is about to go. Or the entry goes that is about to take its place.
    if (last < this.counted) {
      this.counted = last
      this.count(this.entries[2 * last], -1)
    }
    return index === last ? last : this.swap(index, last)
  }

  swap (index, last) {
    this.hole = index
    const { entries, held, serials } = this
    const serial = serials[index]
    const address = entries[2 * index]
    const request = entries[2 * index + 1]
    const word = held[index]
    if (index < this.counted) {
      this.count(entries[2 * last], 1)
      this.count(address, -1)
    }
    words[MOVES]++
    // A copy past the end, for threads that look meanwhile.
    entries[2 * last + 2] = address
    serials[last + 1] = serial
    entries[2 * index] = entries[2 * last]
    entries[2 * index + 1] = entries[2 * last + 1]
    held[index] = held[last]
    serials[index] = serials[last]
    entries[2 * last] = address
    entries[2 * last + 1] = request
    held[last] = word
    serials[last] = serial
    serials[last + 1] = 0
    words[MOVES]++
    return last
  }
}

/** Makes the record of a queue's step: see queue/steps.js. */
function newStep () {
  const step = { __proto__: null, memory: undefined, lease: undefined }
  // The serial number of the notification that it owes; that of its entry as a putter, and the index of that.
  step.owed = step.putter = step.entry = 0
  return step
}

/** Lets promises of this thread try that a release has woken: in the next microtask, not in the midst of its code. */
async function servePromises () {
  try {
    await undefined
    operations.servePromises()
  } catch (_) {
    // Then the event loop does it, which native code has rung.
  }
}

module.exports = () => new RobustList()
