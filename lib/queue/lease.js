'use strict'

/** A message that this thread has taken, or uses. */

const { bare } = require('../util/intrinsics')
const format = require('./format')
const { ATTEMPT, DEATHS, LEASE } = require('./layout')

/** A message taken by this thread. `array` and `index`: the word that `removeEntry` of robust-list.js sets to 0. */
class Lease {
  constructor (memory, slot) {
    const at = memory.slotAt(slot)
    this.slot = slot
    this.attempt = memory.words[at + ATTEMPT] + 1
    this.deaths = memory.words[at + DEATHS]
    this.array = memory.words
    this.index = at + LEASE
    this.address = memory.first.address + 4 * this.index
    // Of the entry in the robust list; 0: there is none.
    this.serial = 0
    this.entry = 0
    // That which this thread entered before in the same step.
    this.next = undefined
    this.size = 0
    this.copy = undefined
    this.format = 0
  }

  get value () {
    return format.read(this.copy, this.format)
  }

  /** Its bytes and the name of its format, unread. */
  get unread () {
    return format.unread(this.copy, this.format)
  }
}
bare(Lease)

module.exports = Lease
