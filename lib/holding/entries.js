'use strict'

/**
 * Entries of the robust list, and the short way of locks. robust-list.js has the invariants of both.
 *
 * # Finding
 * The entries before `counted` are counted by their addresses, when a word is looked for among many. So a search costs
 * the same for any number of holds; and a thread that only takes and releases locks pays for none of this.
 *
 * - `counted` is at most the length of the list: the list says so before its last entry goes (`toEnd`).
 * - `counts` says how many of the entries before `counted` an address has, or more: an overflow of the stack may come
 *   between two changes. So an address that is not there has none.
 *
 * # The short way
 * It does what `take` and `release` of the robust list do where there is nothing else to do, in their order of writes.
 *
 * | it is open | otherwise |
 * |---|---|
 * | for a lock that is free; and again while it is this thread's latest hold | `take`, `swap` |
 * | while few are held: the list is in its first memory, whose arrays are constants | the arrays are fields |
 * | while nobody observes holds, and nothing is to be published | holds are noted |
 * | to release: if nobody waits, on processors where that is seen by a plain read | native code; atomic reads |
 *
 * V8 inlines no more than 920 bytes of bytecode. `lock()` and `unlock()` have 800 with all that they call here, so both
 * become part of a loop around them: an additional condition has to be worth that (__test__/locks/short-way.test.js).
 */

const { agent } = require('../agent/find-agent')
const { ADDRESS, FENCED, HELD, RELEASING } = require('../agent/registers')
const {
  ArrayBuffer, Float64Array, Int32Array, apply, bare, compareExchange, createArray, createMap, fill, max, min, sort,
  store
} = require('../util/intrinsics')
const { own: { Atomics, host } } = require('../util/realm')
const { assertKilobytes } = require('../util/stack')
const observer = require('../waiting/observer')
const { INDEX, LOCK, LOCKED, NAMED_EXCLUSIVE, NAMED_SHARED, SERIAL, UNLOCKED, requestOf } = require('./request')
const { createTasks } = require('./tasks')

// Captured, as in each module below `theList` that needs them: V8 makes constants of them, and as properties they would
// make a free lock a sixth dearer.
const { door, native } = agent()
const { binding, counters: { words: counts }, floats, operations, words } = native
const { holds, channel } = observer.holdsOf(native)

/** The present `Atomics.notify`, if that is the host's and passes a fence. Otherwise something else. */
const notify = FENCED && host.notify !== undefined ? host.notify : native

/** How many entries the first memory has. While the list is there, the short way is open. */
const FEW = 64
/** After how many holds an empty list moves back. To move takes as long as some holds. */
const PATIENCE = 4096
/**
 * The last serial number, after which they start again. Every engine keeps 31 bits in a property without a box. So a
 * number comes again after a billion entries, unless it is in use. A token that released its entry itself has forgotten
 * its number; only one whose lock was released by `lock.unlock()` could then be taken for the new holder's.
 */
const LAST_SERIAL = 0x3fffffff
/** How many of the latest entries are never counted: they come and go. */
const LATEST = 64
/** An unsuccessful search counts one of so many uncounted entries: 300 000 at once would take tens of milliseconds. */
const SHARE = 16

/**
 * Makes memory for a list. By index: an address and a request; the serial numbers, behind them in the same buffer; and
 * the words.
 */
function newMemory (capacity) {
  const buffer = new ArrayBuffer(20 * capacity)
  return {
    __proto__: null,
    buffer,
    entries: new Float64Array(buffer, 0, 2 * capacity),
    serials: new Int32Array(buffer, 16 * capacity, capacity),
    held: createArray(capacity)
  }
}

/** The memory of few entries. It is made once: so V8 has its arrays as constants. */
const first = newMemory(FEW)
const { entries, held, serials } = first

/** Whether a release needs more than the short way does. */
function mayBeShared (word) {
  return !FENCED || word.onWebAssembly || native.besideHost
}

class Entries {
  constructor () {
    this.door = door
    // By which other copies of the package know that it is not theirs.
    this.first = first
    this.entries = first.entries
    this.serials = first.serials
    this.held = first.held
    // How many entries fit into the memory; of these, how many there may be, and how many are reserved for promises.
    this.capacity = 0
    this.room = 0
    this.reserved = 0
    // The room if the memory is the first one; otherwise 0: the short way is closed.
    this.shortRoom = 0
    // The latest serial number, and the last one of those that follow it and are not in use.
    this.serial = 0
    this.lastFree = LAST_SERIAL
    // The latest serial number when the list grew.
    this.grewAt = 0
    // Undefined if no stall is reported, and no view of this thread detects re-entry (reentry.js).
    this.tasks = createTasks(native)
    // The Steps of a Condition's pending promise, by the serial number of the token that it waits with.
    this.stepsOf = createMap()
    this.counts = createMap()
    this.counted = 0
    // Where the last entry that has moved went.
    this.hole = 0
  }

  get length () {
    return words[HELD]
  }

  /** Makes room for an entry. An empty list gives back memory that many holds needed. */
  makeRoom () {
    const isIdle = words[HELD] === 0 && this.reserved === 0
    if (words[HELD] >= this.room) this.resize(max(FEW, 2 * this.capacity))
    else if (isIdle && this.capacity > FEW && this.serial - this.grewAt > PATIENCE) this.resize(FEW)
  }

  resize (capacity) {
    // Node 12 throws near the end of the stack also in built-ins.
    if (capacity !== FEW) assertKilobytes(16)
    const { buffer, entries, serials, held } = capacity === FEW ? first : newMemory(capacity)
    for (let index = 0; index < words[HELD]; index++) {
      entries[2 * index] = this.entries[2 * index]
      entries[2 * index + 1] = this.entries[2 * index + 1]
      serials[index] = this.serials[index]
      held[index] = this.held[index]
    }
    binding.setRobustList(buffer)
    this.entries = entries
    this.serials = serials
    this.held = held
    this.capacity = capacity
    // An entry that is being taken or moved is written behind the last one.
    this.room = capacity - 1 - this.reserved
    this.shortRoom = capacity === FEW ? this.room : 0
    this.grewAt = this.serial
    if (capacity === FEW) return
    // By built-ins, which no time limit of `vm` interrupts: the short way finds nothing there, and no token its number.
    apply(fill, first.entries, [0])
    apply(fill, first.serials, [0])
    // So words can be collected.
    for (let index = 0; index < FEW; index++) first.held[index] = undefined
  }

  /** Reserves an entry for a promise's claim, before it is enqueued. */
  reserve () {
    this.makeRoom()
    this.reserved++
    this.room--
    if (this.capacity === FEW) this.shortRoom--
  }

  unreserve () {
    this.reserved--
    this.room++
    if (this.capacity === FEW) this.shortRoom++
  }

  nextSerial () {
    if (this.serial === this.lastFree) this.freeSerials()
    return ++this.serial
  }

  /** Finds serial numbers that are not in use: the most that follow each other. */
  freeSerials () {
    const used = createArray(0)
    const note = (_, serial) => { used[used.length] = serial }
    note(undefined, 0)
    note(undefined, LAST_SERIAL + 1)
    for (let index = 0; index < words[HELD]; index++) note(undefined, this.serials[index])
    this.stepsOf.forEach(note)
    if (this.tasks !== undefined) this.tasks.scopes.forEach(note)
    apply(sort, used, [(one, other) => one - other])
    let end = 1
    for (let n = 2; n < used.length; n++) if (used[n] - used[n - 1] > used[end] - used[end - 1]) end = n
    this.serial = used[end - 1]
    this.lastFree = used[end] - 1
  }

  // ——— Finding ———

  /** Finds the index of an entry for an address; -1: none. */
  find (address) {
    const last = words[HELD] - 1
    if (last >= 0 && this.entries[2 * last] === address) return last
    const index = this.findLate(address)
    return index < 0 && this.counts.has(address) ? this.search(this.entries, 2, address) : index
  }

  /** Whether there may be an entry for an address. A yes is wrong only where `counts` says more: see above. */
  mayHold (address) {
    return this.findLate(address) >= 0 || this.counts.has(address)
  }

  /** Finds an entry among the latest and the uncounted ones. Otherwise it counts some, for the next search. */
  findLate (address) {
    const { entries } = this
    const length = words[HELD]
    const first = max(0, min(this.counted, length - LATEST))
    let index = length - 1
    while (index >= first && entries[2 * index] !== address) index--
    if (index >= first) return index
    for (let share = (length - LATEST - this.counted) / SHARE; share > 0; share--) {
      this.count(entries[2 * this.counted], 1)
      this.counted++
    }
    return -1
  }

  /** Finds the index of a named lock's entry by its request's number; -1: none. */
  findNamed (number) {
    const { entries } = this
    const shared = requestOf(NAMED_SHARED, number)
    const exclusive = requestOf(NAMED_EXCLUSIVE, number)
    let index = words[HELD] - 1
    while (index >= 0 && entries[2 * index + 1] !== shared && entries[2 * index + 1] !== exclusive) index--
    return index
  }

  /**
   * Finds the entry with a serial number, last known at `hint`. Returns the index; -1 if there is none any more.
   *
   * Both numbers come from a token, and any code can write into one. So the hint is made an index here, and a number
   * that no entry has (as 0, past the end) finds none.
   */
  indexOf (serial, hint) {
    const index = hint | 0
    if (!(serial > 0)) return -1
    return this.serials[index] === serial ? index : this.search(this.serials, 1, serial)
  }

  /** Finds the index of an entry. It has a value at `step * index` of `values`; -1: none. */
  search (values, step, value) {
    // An entry that has moved is where the last entry that moved went, if the latest locks are released first; and
    // next to that, if the oldest are: so the search begins there.
    const length = words[HELD]
    let above = this.hole < length ? this.hole : length - 1
    for (let below = above - 1; above < length || below >= 0; above++, below--) {
      if (above < length && values[step * above] === value) return above
      if (below >= 0 && values[step * below] === value) return below
    }
    return -1
  }

  count (address, change) {
    const entries = (this.counts.get(address) || 0) + change
    if (entries > 0) this.counts.set(address, entries)
    else this.counts.delete(address)
  }

  // ——— The short way ———

  /** Takes a lock as `take`. False if it is not free, or the short way is not open. */
  takeFree (word, token) {
    const { array } = word
    // First: a program may have replaced that getter.
    if (channel.hasSubscribers) return false
    const index = words[HELD]
    const serial = this.serial + 1
    if (array[0] !== UNLOCKED || index >= this.shortRoom || serial > this.lastFree) return false
    this.serial = serial
    entries[2 * index] = word.address
    entries[2 * index + 1] = LOCK
    serials[index] = serial
    if (compareExchange(array, 0, UNLOCKED, LOCKED) !== UNLOCKED) {
      serials[index] = 0
      return false
    }
    words[HELD] = index + 1
    held[index] = word
    token[INDEX] = index
    token[SERIAL] = serial
    try {
      if (counts[word.abandoned] !== 0) word.takeNoteOfDeath(LOCK, token)
    } catch (_) {
      // No stack is left: see `take` of word.js.
    }
    return true
  }

  /**
   * Releases a lock, and serves its line. False if the short way is not open.
   *
   * Where the host's `notify` passes a fence before the line is looked at, a plain write frees the lock.
   */
  releaseLast (word) {
    // First: a program may have replaced it by a getter.
    const isShared = Atomics.notify === notify
    if (!isShared && mayBeShared(word)) return false
    const { address, array, counter } = word
    const last = words[HELD] - 1
    if (entries[2 * last] !== address || counts[counter] !== 0 || holds.count !== 0 || door.isDue) return false
    floats[RELEASING] = address
    if (isShared) array[0] = UNLOCKED
    else store(array, 0, UNLOCKED)
    words[HELD] = last
    serials[last] = 0
    held[last] = undefined
    try {
      if (isShared) notify(array, 0, 1)
    } finally {
      if (counts[counter] !== 0) {
        floats[ADDRESS] = address
        operations.released()
      }
      floats[RELEASING] = 0
    }
    return true
  }

  /** Releases the lock of a token as `releaseLast`. */
  releaseToken (token) {
    const serial = token[SERIAL]
    const last = words[HELD] - 1
    // It may be that of a share or of permits.
    return serial > 0 && last >= 0 && serials[last] === serial && entries[2 * last + 1] === LOCK &&
      this.releaseLast(held[last])
  }
}
bare(Entries)

module.exports = { Entries, channel, first, holds }
