'use strict'

/**
 * The robust list of this thread: what it holds (locks, shares of read-write locks, permits), in memory that outlives it.
 *
 * Invariants:
 * - The first `words[HELD]` entries of the list are exactly what this thread holds. Native code reads them when the thread ends,
 *   in whatever way, and hands over what they name.
 * - Therefore the word and the list change together: first the word, then the list, by plain writes, with no call and no loop in
 *   between at which the engine could end the thread. (It may do so when a built-in Atomics function is called, but not between
 *   that function's effect and its return.)
 * - A thread that changes a word puts the word's address into the registers before, and removes it once the line has been served:
 *   if the thread ends in between, its clean-up serves the line.
 * - Before a thread tries to take a lock, it writes the entry behind the last one, with a serial number, and removes the number if
 *   the attempt fails. So a thread that finds the lock taken finds its holder in the list or behind it; `unlock()` in another
 *   thread does so (`free` in the native library). A thread that releases a lock puts the address into the registers before the
 *   entry goes.
 * - Entries move only between two increments of `words[MOVES]`, so that a thread that looks for one does not overlook it.
 * - Each entry has a serial number, which its token knows. A token is live while the list has an entry with its number: so an
 *   entry can be removed without finding its token. Behind the entries, all numbers are 0, but for a lock that is being taken.
 * - `held[index]` is the word of the entry at `index`: what is held keeps its memory.
 * - Code outside of the package reaches neither the list nor a word, which has an address (see util/intrinsics.js). What a token
 *   says is only compared with the list.
 */

const { agent } = require('../../agent/agent')
const { HELD, MOVES, PLACE } = require('../../agent/registers')
const {
  ArrayBuffer, Float64Array, Int32Array, createArray, createMap, max, sizeOf
} = require('../../util/intrinsics')
const { NAMED_SHARED, amountOf, kindOf } = require('./request')
const { INDEX, SERIAL, createWords } = require('./word')

/** The serial number of a token that is not live. */
const NOT_HELD = -1
/**
 * Serial numbers go from 1 to this, and then start again; 31 bits are what every engine keeps in a property without a box. So a
 * number comes again after a thousand million entries. A token that released its entry itself has forgotten its number; only one
 * whose lock was released by `lock.unlock()` could then be taken for the new holder's.
 */
const LAST_SERIAL = 0x3fffffff
/** How many entries an empty list keeps room for. */
const RETAINED = 4096

function createRobustList (native) {
  const { binding, operations, words } = native
  // From the serial numbers of entries that were moved to their indexes: their tokens know an earlier index. Some are of entries
  // that have gone.
  const moved = createMap()
  // From the numbers of the requests for named locks to their tokens, of which some are not live any more. Kept from a steal on until
  // nothing is held, since it makes each named lock dearer.
  let named
  const list = {
    native,
    // By index: an address and a request.
    entries: new Float64Array(0),
    // By index. Behind the entries, in the same memory.
    serials: new Int32Array(0),
    // The words, by index; undefined where there is no entry.
    held: createArray(0),
    // How many entries fit into the memory.
    capacity: 0,
    // How many entries there may be; the rest is for enqueued claims, of which each may be granted an entry.
    room: 0,
    // The latest serial number.
    serial: 0,
    // How many claims of this thread's promises are enqueued.
    claims: 0,
    // The Steps of a Condition's pending promise, by the token that it waits with.
    stepsOf: createMap(),
    adopt,
    adoptLast,
    assign,
    createWord: undefined,
    indexOf,
    indexOfRequest,
    inform,
    makeRoom,
    nextSerial,
    passOn,
    releaseInLine,
    tidy,
    toEnd,
    vacate
  }

  /** Makes sure that there is room for one more entry. */
  function makeRoom () {
    if (words[HELD] >= list.room) resize(max(16, 2 * list.capacity))
  }

  function resize (capacity) {
    const memory = new ArrayBuffer(20 * capacity)
    const entries = new Float64Array(memory, 0, 2 * capacity)
    const serials = new Int32Array(memory, 16 * capacity, capacity)
    const held = createArray(capacity)
    for (let index = 0; index < words[HELD]; index++) {
      entries[2 * index] = list.entries[2 * index]
      entries[2 * index + 1] = list.entries[2 * index + 1]
      serials[index] = list.serials[index]
      held[index] = list.held[index]
    }
    binding.setRobustList(memory)
    list.entries = entries
    list.serials = serials
    list.held = held
    list.capacity = capacity
    // An entry that is being taken or moved is written behind the last one.
    list.room = capacity - 1 - list.claims
  }

  function nextSerial () {
    list.serial = list.serial === LAST_SERIAL ? 1 : list.serial + 1
    return list.serial
  }

  /** The entry at `index`, which native code has added, becomes that of a hold. Returns its token. */
  function adopt (hold, index, ownerDied) {
    list.held[index] = hold.word
    list.serials[index] = nextSerial()
    const token = assign(hold, index, ownerDied)
    if (named !== undefined) noteNamed(index, token)
    return token
  }

  /** The same for the last entry, with `inform`. */
  function adoptLast (hold, ownerDied) {
    const token = adopt(hold, words[HELD] - 1, ownerDied)
    inform(hold, ownerDied)
    return token
  }

  /** The numbered entry at `index` becomes that of a hold. Returns its token. No code of the user's runs. */
  function assign (hold, index, ownerDied) {
    const { token } = hold
    if (hold.serial === NOT_HELD) {
      token[INDEX] = index
      token[SERIAL] = list.serials[index]
      token.ownerDied = ownerDied
      return token
    }
    keepSerial(hold, index)
    return token
  }

  /** Tells the token of a hold that was taken again. The user has it, so this may run code that changes the list. */
  function inform ({ serial, token }, ownerDied) {
    if (serial === NOT_HELD) return
    try {
      token.ownerDied = ownerDied
    } catch (_) {
      // It is frozen.
    }
  }

  /** The entry at `index` gets the number that the hold's token knows: the user has that token, so it may be frozen, or a proxy. */
  function keepSerial ({ serial }, index) {
    // Even if the entry is at its former index: the token may know an older one, and the map have lost the number meanwhile.
    tidyMoved()
    moved.set(serial, index)
    list.serials[index] = serial
  }

  /**
   * The index of the entry with this serial number, which was last known to be at `hint`; -1 if there is none any more.
   *
   * Both come from a token, and any code can write into one. So the hint is made an index here, and a number that no entry has
   * (as 0, behind the entries) finds none.
   */
  function indexOf (serial, hint) {
    const index = hint | 0
    if (!(serial > 0)) return -1
    if (list.serials[index] === serial) return index
    const now = moved.get(serial)
    return now === undefined || list.serials[now] !== serial ? -1 : now
  }

  function releaseInLine (index) {
    words[PLACE] = toEnd(index)
    operations.giveBack()
    vacate()
  }

  /** Releases, unused, what was a dead thread's before: the next holder is told of the death instead. */
  function passOn (index) {
    words[PLACE] = toEnd(index)
    operations.passOn()
    vacate()
  }

  /** The index of the entry of a request for a named lock, by the number of the request; -1 if there is none any more. */
  function indexOfRequest (number) {
    if (named === undefined) {
      named = createMap()
      for (let index = 0; index < words[HELD]; index++) if (list.held[index] !== undefined) noteNamed(index, list.held[index].token)
    }
    const token = named.get(number)
    if (token === undefined) return -1
    named.delete(number)
    return indexOf(token[SERIAL], token[INDEX])
  }

  function noteNamed (index, token) {
    const request = list.entries[2 * index + 1]
    if (kindOf(request) >= NAMED_SHARED) named.set(amountOf(request), token)
  }

  /** Gives back memory that many holds needed. Called before a name is acquired: after it nothing may fail. */
  function tidy () {
    if (words[HELD] === 0) {
      named = undefined
      if (list.capacity > RETAINED && list.claims === 0) shrink()
    } else if (named !== undefined && sizeOf(named) > 2 * words[HELD] + 32) {
      forgetEnded()
    }
  }

  function shrink () {
    moved.clear()
    resize(RETAINED)
  }

  function forgetEnded () {
    named.forEach((token, number) => { if (indexOf(token[SERIAL], token[INDEX]) < 0) named.delete(number) })
  }

  /** Moves an entry that is about to be released to the end of the list. Returns its index there. */
  function toEnd (index) {
    const last = words[HELD] - 1
    return index === last ? last : swap(index, last)
  }

  function swap (index, last) {
    const { entries, held, serials } = list
    const serial = serials[index]
    // First, since there may be no stack for it.
    tidyMoved()
    moved.set(serials[last], index)
    moved.set(serial, last)
    const address = entries[2 * index]
    const request = entries[2 * index + 1]
    const word = held[index]
    words[MOVES]++
    // A copy behind the last entry, for threads that look meanwhile.
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

  /** Removes from the map, if it has become large, what is not in the list any more. */
  function tidyMoved () {
    if (sizeOf(moved) <= 2 * words[HELD] + 32) return
    moved.forEach((index, serial) => { if (list.serials[index] !== serial) moved.delete(serial) })
  }

  /** The last entry has been removed. */
  function vacate () {
    const index = words[HELD]
    list.serials[index] = 0
    list.held[index] = undefined
  }

  list.createWord = createWords(list, native)
  return list
}

let current

/** The robust list of this thread, which all copies of the package share. */
function robustList () {
  if (current === undefined) {
    const owner = agent()
    if (owner.robustList === undefined) owner.robustList = createRobustList(owner.native)
    current = owner.robustList
  }
  return current
}

module.exports = { NOT_HELD, robustList }
