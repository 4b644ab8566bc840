'use strict'

/**
 * Positions, slots, leases of them, and deferred messages of a queue. layout.js has the words.
 *
 * A message is deferred if it is put back behind all that wait. All of that is done with the take lock:
 *
 * | step (the word that decides) | a death before it leaves |
 * |---|---|
 * | defer: DEFERRED_END | a message in use; if it has DUE, it is repaired |
 * | defer: LEASE | a deferred message: its lease ends with the thread |
 * | take: DEFERRED | a deferred message |
 * | take: DUE | a message in use, to be repaired: then it has come back |
 */

const { Int32Array, bare, load, store } = require('../util/intrinsics')
const format = require('./format')
const {
  TAIL, HEAD, FREED, RETURNS, LOOKED, DISCARD, PUTTERS, DEFERRED, DEFERRED_END, RING, LEASE, MARK, ATTEMPT, DUE, DEATHS,
  MOST_POSITIONS, bytesOf, slotWords, slotsBegin
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

  // ——— Deferred messages ———

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

  deferredAt (place) {
    return RING + this.capacity + place % this.capacity
  }
}
bare(Positions)

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

module.exports = { Lease, Positions }
