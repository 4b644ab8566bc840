'use strict'

/**
 * The deferred messages of a queue: put back behind all that wait. All of it with the take lock.
 *
 * | step (the word that decides) | a death before it leaves |
 * |---|---|
 * | defer: DEFERRED_END | a message in use; if it has DUE, it is repaired |
 * | defer: LEASE | a deferred message: its lease ends with the thread |
 * | take: DEFERRED | a deferred message |
 * | take: DUE | a message in use, to be repaired: then it has come back |
 */

const { Int32Array, load, store } = require('../util/intrinsics')
const { HEAD, DEFERRED, DEFERRED_END, RING, MARK, DUE } = require('./layout')
const Positions = require('./positions')

class Deferred extends Positions {
  // An implied constructor would call the iterator of Array.prototype on older Nodes.
  constructor (memory) {
    super(memory)
  }

  /** Defers the message in a slot, which is in use. Then the caller ends its lease. */
  deferNow (slot) {
    const { words, wrap } = this
    const at = this.slotAt(slot)
    const end = words[DEFERRED_END]
    const head = words[HEAD]
    words[this.deferredAt(end)] = slot
    store(words, at + MARK, head === 0 ? wrap : head)
    store(words, at + DUE, this.tail + 1)
    store(words, DEFERRED_END, this.after(end, 1))
  }

  get hasDeferred () {
    return this.words[DEFERRED] !== this.words[DEFERRED_END]
  }

  /** Whether the first deferred message comes before the position `head`. */
  isDeferredDue (head) {
    const { words } = this
    if (!this.hasDeferred) return false
    const before = this.distance(head, words[this.slotAt(this.firstDeferred) + DUE] - 1)
    // Positions do not pass it; if they had, it would be due all the same.
    return before === 0 || before > this.capacity
  }

  /** The slot of the first deferred message. */
  get firstDeferred () {
    return this.words[this.deferredAt(this.words[DEFERRED])]
  }

  /** Ends the deferral of the first deferred message. */
  undeferFirst () {
    const { firstDeferred, words } = this
    store(words, DEFERRED, this.after(words[DEFERRED], 1))
    store(words, this.slotAt(firstDeferred) + DUE, 0)
  }

  /** Makes messages returned that are neither deferred nor in use: a thread died in between. */
  repairDeferred () {
    const { capacity, words } = this
    const isDeferred = new Int32Array(capacity)
    const end = load(words, DEFERRED_END)
    for (let place = load(words, DEFERRED); place !== end; place = this.after(place, 1)) {
      isDeferred[words[this.deferredAt(place)]] = 1
    }
    for (let slot = 0; slot < capacity; slot++) {
      const due = this.slotAt(slot) + DUE
      if (isDeferred[slot] === 0 && words[due] !== 0) store(words, due, 0)
    }
  }

  deferredAt (place) {
    return RING + this.capacity + place % this.capacity
  }
}

module.exports = Deferred
