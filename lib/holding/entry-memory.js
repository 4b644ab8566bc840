'use strict'

/** The memory of the robust list, and the numbers of its entries. robust-list.js explains entries. */

const { agent } = require('../agent/agent')
const { HELD } = require('../agent/registers')
const {
  ArrayBuffer, Float64Array, Int32Array, bare, createArray, createMap, max, trunc
} = require('../util/intrinsics')
const createTasks = require('./tasks')

const { native } = agent()
const { binding, words } = native

/** How many entries an empty list keeps room for. */
const RETAINED = 4096
/**
 * The last serial number, after which they start again. Every engine keeps 31 bits in a property without a box. So a
 * number comes again after a billion entries, unless it is in use. A token that released its entry itself has forgotten
 * its number; only one whose lock was released by `lock.unlock()` could then be taken for the new holder's.
 */
const LAST_SERIAL = 0x3fffffff

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
    // The latest serial number, and the last one of those that follow it and are not in use.
    this.serial = 0
    this.lastFree = LAST_SERIAL
    // Undefined if no stall is reported, and no view of this thread detects re-entry (reentry.js).
    this.tasks = createTasks(native)
    // The Steps of a Condition's pending promise, by the serial number of the token that it waits with.
    this.stepsOf = createMap()
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

  nextSerial () {
    if (this.serial === this.lastFree) this.freeSerials()
    return ++this.serial
  }

  /** Finds serial numbers that are not in use: of one block more than there are in use, one is free. */
  freeSerials () {
    const used = createArray(0)
    const note = (_, serial) => { used[used.length] = serial }
    for (let index = 0; index < words[HELD]; index++) note(undefined, this.serials[index])
    this.stepsOf.forEach(note)
    if (this.tasks !== undefined) this.tasks.scopes.forEach(note)
    const blocks = used.length + 1
    const length = trunc(LAST_SERIAL / blocks)
    const blockOf = (serial) => trunc((serial - 1) / length)
    const isUsed = createArray(blocks)
    for (let n = 0; n < used.length; n++) isUsed[blockOf(used[n])] = true
    let block = blockOf(this.serial)
    do block = block + 1 < blocks ? block + 1 : 0
    while (isUsed[block])
    this.serial = length * block
    this.lastFree = this.serial + length
  }

  /** Gives back memory that many holds needed. Called before a name is acquired: after it nothing may fail. */
  tidy () {
    if (this.capacity > RETAINED && words[HELD] === 0 && this.reserved === 0) this.resize(RETAINED)
  }
}
bare(EntryMemory)

module.exports = EntryMemory
