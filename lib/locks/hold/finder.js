'use strict'

/**
 * Finds the entries of the robust list that a word has.
 *
 * The entries before `counted` are counted by their addresses, when a word is looked for among many. So a search costs the same however much
 * is held; and a thread that only takes and releases locks pays for none of this.
 *
 * Invariants:
 * - `counted` is at most the length of the list: the list says so before its last entry goes (`lastGoes`).
 * - `counts` says how many of the entries before `counted` an address has, or more: an overflow of the stack may come between two changes. So
 *   an address that is not there has none.
 */

const { HELD } = require('../../agent/registers')
const { bare, createMap, max, min } = require('../../util/intrinsics')
const { NAMED_EXCLUSIVE, NAMED_SHARED, requestOf } = require('./request')

/** So many of the latest entries are never counted: they come and go. */
const LATEST = 64
/** A search that finds nothing counts one of so many entries: all at once would take tens of milliseconds for 300 000. */
const SHARE = 16

class Finder {
  constructor (words) {
    this.words = words
    this.counts = createMap()
    this.counted = 0
  }

  /** The index of an entry for the word at an address; -1 if there is none. */
  find (list, address) {
    const index = this.findLate(list, address)
    return index < 0 && this.counts.has(address) ? list.search(list.entries, 2, address) : index
  }

  /** Whether there is an entry for the word at an address; once the stack has overflowed at a bad moment, perhaps there is none. */
  mayHold (list, address) {
    return this.findLate(list, address) >= 0 || this.counts.has(address)
  }

  /** `find`, among the latest entries and those that are not counted. If it finds none it counts some, so that the next search is shorter. */
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

  /** The index of the entry of a request for a named lock, by the number of the request; -1 if there is none any more. */
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

  /** The last entry of the list, a counted one, or the one that is to take its place is about to go. */
  lastGoes ({ entries }) {
    this.counted = this.words[HELD] - 1
    this.count(entries[2 * this.counted], -1)
  }

  /** The last entry is about to take the place of a counted one. */
  lastMoves ({ entries }, index) {
    this.count(entries[2 * (this.words[HELD] - 1)], 1)
    this.count(entries[2 * index], -1)
  }
}
bare(Finder)

module.exports = Finder
