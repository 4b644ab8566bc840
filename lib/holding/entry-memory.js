'use strict'

/** The memory of the robust list, with room for more entries. robust-list.js explains entries. */

const { agent } = require('../agent/agent')
const { HELD } = require('../agent/registers')
const { ArrayBuffer, Float64Array, Int32Array, bare, createArray, max } = require('../util/intrinsics')

const { binding, words } = agent().native

/** How many entries an empty list keeps room for. */
const RETAINED = 4096

class EntryMemory {
  constructor () {
    // By index: an address and a request; the serial numbers, behind them in the same memory; and the words.
    this.entries = new Float64Array(0)
    this.serials = new Int32Array(0)
    this.held = createArray(0)
    // How many entries fit into the memory; of these, how many there may be, and how many are reserved for promises.
    this.capacity = 0
    this.room = 0
    this.reserved = 0
  }

  get length () {
    return words[HELD]
  }

  makeRoom () {
    if (words[HELD] >= this.room) this.resize()
  }

  resize (capacity = max(16, 2 * this.capacity)) {
    const memory = new ArrayBuffer(20 * capacity)
    const entries = new Float64Array(memory, 0, 2 * capacity)
    const serials = new Int32Array(memory, 16 * capacity, capacity)
    const held = createArray(capacity)
    for (let index = 0; index < words[HELD]; index++) {
      entries[2 * index] = this.entries[2 * index]
      entries[2 * index + 1] = this.entries[2 * index + 1]
      serials[index] = this.serials[index]
      held[index] = this.held[index]
    }
    binding.setRobustList(memory)
    this.entries = entries
    this.serials = serials
    this.held = held
    this.capacity = capacity
    // An entry that is being taken or moved is written behind the last one.
    this.room = capacity - 1 - this.reserved
  }

  /** Reserves an entry for a promise's claim, before it is enqueued. */
  reserve () {
    this.makeRoom()
    this.reserved++
    this.room--
  }

  unreserve () {
    this.reserved--
    this.room++
  }

  /** Gives back memory that many holds needed. Called before a name is acquired: after it nothing may fail. */
  tidy () {
    if (this.capacity > RETAINED && words[HELD] === 0 && this.reserved === 0) this.resize(RETAINED)
  }
}
bare(EntryMemory)

module.exports = EntryMemory
