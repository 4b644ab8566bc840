'use strict'

/** Positions and slots of a queue, as a thread reads them. layout.js has the words. */

const { Int32Array, bare, load } = require('../util/intrinsics')
const {
  TAIL, HEAD, FREED, RETURNS, LOOKED, DISCARD, PUTTERS, DEFERRED, DEFERRED_END, RING, LEASE, MARK, DUE, MOST_POSITIONS,
  bytesOf, slotWords, slotsBegin
} = require('./layout')

const { floor } = Math

class Positions {
  constructor ({ buffer, byteOffset, capacity, messageSize }) {
    this.capacity = capacity
    this.messageSize = messageSize
    this.words = new Int32Array(buffer, byteOffset, bytesOf(capacity, messageSize) / 4)
    this.slots = slotsBegin(capacity)
    this.stride = slotWords(messageSize)
    this.wrap = floor(MOST_POSITIONS / capacity) * capacity
  }

  /** Returns the position that is `by` behind another one. */
  after (position, by) {
    const next = position + by
    return next < this.wrap ? next : next - this.wrap
  }

  /** Returns how many positions `later` is behind `earlier`. */
  distance (earlier, later) {
    const between = later - earlier
    return between >= 0 ? between : between + this.wrap
  }

  get isClosed () {
    return (load(this.words, TAIL) & 1) === 1
  }

  /** Whether it was closed so that nothing is left. */
  get discards () {
    return load(this.words, DISCARD) !== 0 && this.isClosed
  }

  get tail () {
    return load(this.words, TAIL) >>> 1
  }

  /** Messages that nobody has taken yet. */
  get ready () {
    return this.distance(load(this.words, HEAD), this.tail)
  }

  /** Messages in use, or that have come back or are deferred. */
  get taken () {
    return this.distance(load(this.words, FREED), load(this.words, HEAD))
  }

  /** Whether nothing waits, nothing is in use, and nobody waits to put: at one moment between the two looks at TAIL. */
  get isIdle () {
    const { words } = this
    const { tail } = this
    return load(words, FREED) === tail && load(words, PUTTERS) <= 0 && this.tail === tail
  }

  get isEnded () {
    const { words } = this
    // In this order: a message goes from ready to taken, never the other way round, also if it comes back.
    return this.isClosed && load(words, HEAD) === this.tail && load(words, FREED) === load(words, HEAD)
  }

  /**
   * How many messages wait and are in use, at one moment. While takers move HEAD, FREED or the deferred ring it looks
   * again. If messages may have come back, it looks through all slots; but takers take those first, and then none has.
   */
  get counts () {
    const { words } = this
    for (;;) {
      const freed = load(words, FREED)
      const head = load(words, HEAD)
      const first = load(words, DEFERRED)
      const end = load(words, DEFERRED_END)
      const back = this.returnedCount(head) + this.distance(first, end)
      const ready = this.distance(head, this.tail)
      if (load(words, HEAD) !== head || load(words, FREED) !== freed) continue
      if (load(words, DEFERRED) !== first || load(words, DEFERRED_END) !== end) continue
      return { __proto__: null, length: ready + back, inUse: this.distance(freed, head) - back }
    }
  }

  /** Messages that have come back, while HEAD is `head`. It looks through all slots only if some may have. */
  returnedCount (head) {
    const { words } = this
    if (load(words, RETURNS) === load(words, LOOKED)) return 0
    let count = 0
    for (let slot = 0; slot < this.capacity; slot++) if (this.isReturned(slot, head)) count++
    return count
  }

  /**
   * Whether a slot's message has come back. Then it is in no position, has a mark, and is neither in use nor deferred.
   * If it is ready and has a mark, a thread died between MARK and HEAD.
   */
  isReturned (slot, head) {
    const { words } = this
    const at = this.slotAt(slot)
    const mark = words[at + MARK]
    if (mark === 0 || load(words, at + LEASE) !== 0 || load(words, at + DUE) !== 0) return false
    return this.distance(head, mark - 1) >= this.distance(head, this.tail)
  }

  slotAt (slot) {
    return this.slots + slot * this.stride
  }

  slotOf (position) {
    const index = position % this.capacity
    return this.words[RING + index] ^ index
  }
}
bare(Positions)

module.exports = Positions
