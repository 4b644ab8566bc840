'use strict'

/**
 * Finds entries in the robust list: by a word, or by a token's serial number.
 *
 * The entries before `counted` are counted by their addresses, when a word is looked for among many. So a search costs
 * the same for any number of holds; and a thread that only takes and releases locks pays for none of this.
 *
 * Invariants:
 * - `counted` is at most the length of the list: the list says so before its last entry goes (`beforeLastRemoved`).
 * - `counts` says how many of the entries before `counted` an address has, or more: an overflow of the stack may come
 *   between two changes. So an address that is not there has none.
 */

const { agent } = require('../agent/find-agent')
const { HELD } = require('../agent/registers')
const { createMap, max, min } = require('../util/intrinsics')
const { NAMED_EXCLUSIVE, NAMED_SHARED, requestOf } = require('./request')
const { EntryMemory } = require('./entry-memory')

const { words } = agent().native

/** How many of the latest entries are never counted: they come and go. */
const LATEST = 64
/** An unsuccessful search counts one of so many uncounted entries: 300 000 at once would take tens of milliseconds. */
const SHARE = 16

class EntryIndex extends EntryMemory {
  constructor () {
    super()
    this.counts = createMap()
    this.counted = 0
    // Where the last entry that has moved went.
    this.hole = 0
  }

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

  /** Uncounts the last entry, which is about to go. Or the entry goes that is about to take its place. */
  beforeLastRemoved () {
    this.counted = words[HELD] - 1
    this.count(this.entries[2 * this.counted], -1)
  }

  /** Counts the last entry, which takes a counted one's place. */
  beforeLastMoved (index) {
    this.count(this.entries[2 * (words[HELD] - 1)], 1)
    this.count(this.entries[2 * index], -1)
  }
}

module.exports = EntryIndex
