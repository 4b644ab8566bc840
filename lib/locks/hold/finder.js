'use strict'

/**
 * Finds a word's entries in the robust list.
 *
 * The entries before `counted` are counted by their addresses, when a word is looked for among many. So a search costs
 * the same for any number of holds; and a thread that only takes and releases locks pays for none of this.
 *
 * Invariants:
 * - `counted` is at most the length of the list: the list says so before its last entry goes (`lastGoes`).
 * - `counts` says how many of the entries before `counted` an address has, or more: an overflow of the stack may come
 *   between two changes. So an address that is not there has none.
 */

const { HELD } = require('../../agent/registers')
const { bare, createMap, max, min } = require('../../util/intrinsics')
const { NAMED_EXCLUSIVE, NAMED_SHARED, requestOf } = require('./request')

/** How many of the latest entries are never counted: they come and go. */
const LATEST = 64
/**
 * An unsuccessful search counts one of so many uncounted entries. Counting 300 000 at once would
 * take tens of milliseconds.
 */
const SHARE = 16

class Finder {
  constructor (words) {
    this.words = words
    this.counts = createMap()
    this.counted = 0
  }

  /** Finds the index of an entry for an address; -1: none. */
  find (list, address) {
    const index = this.findLate(list, address)
    return index < 0 && this.counts.has(address) ? list.search(list.entries, 2, address) : index
  }

  /**
   * Whether there is, or may be, an entry for an address. It is uncertain after a stack overflow between
   * two changes of `counts`.
   */
  mayHold (list, address) {
    return this.findLate(list, address) >= 0 || this.counts.has(address)
  }

  /**
   * Finds an entry among the latest and the uncounted ones. If it finds none it counts some, so that
   * the next search is shorter.
   */
  findLate ({ entries }, address) {
    const length = this.words[HELD]
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

  /** Finds a named lock's entry by its request's number. Returns the index; -1 if there is none any more. */
  findNamed ({ entries }, number) {
    const shared = requestOf(NAMED_SHARED, number)
    const exclusive = requestOf(NAMED_EXCLUSIVE, number)
    let index = this.words[HELD] - 1
    while (index >= 0 && entries[2 * index + 1] !== shared && entries[2 * index + 1] !== exclusive) index--
    return index
  }

  count (address, change) {
    const entries = (this.counts.get(address) || 0) + change
    if (entries > 0) this.counts.set(address, entries)
    else this.counts.delete(address)
  }

  /** Uncounts the last entry, which is about to go. Or the entry goes that is about to take its place. */
  lastGoes ({ entries }) {
    this.counted = this.words[HELD] - 1
    this.count(entries[2 * this.counted], -1)
  }

  /** Counts the last entry, which takes a counted one's place. */
  lastMoves ({ entries }, index) {
    this.count(entries[2 * (this.words[HELD] - 1)], 1)
    this.count(entries[2 * index], -1)
  }
}
bare(Finder)

module.exports = Finder
