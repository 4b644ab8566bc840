'use strict'

/**
 * The memory of a queue: words, positions, slots, leases and sides. All offsets are in words of four bytes.
 *
 * | words | |
 * |---|---|
 * | RETURNS, FILLED | the events that takers wait for: a message has come back; something has changed for takers |
 * | IDLE_RETURNS, IDLED | the events of those who wait until it is idle: a thread of the queue has died; it is idle |
 * | CAPACITY, MESSAGE_SIZE | how many messages fit, and 1 + the bytes of the longest: set by the first thread |
 * | PUT_LOCK, TAIL | 2 * the position of the next message to be put, + 1 once the queue is closed |
 * | ROOM | FREED, when a putter read it last |
 * | PUTTERS | how many wait to put: threads that block, and threads whose promises do |
 * | PUT_RETURNS, EMPTIED | the events that putters wait for; the first counts deaths of threads that owed the second |
 * | TAKE_LOCK, HEAD, FREED | the position of the next message to be taken; how many slots have been given back |
 * | READY, LOOKED | the position of TAIL, when a taker read it last; RETURNS, when it found no message that came back |
 * | DISCARD | not 0: once the queue is closed, what waits is removed, and what comes back |
 * | AWAITED | not 0: somebody may wait until it is idle |
 * | DEFERRED, DEFERRED_END | the place of the next deferred message to be taken; that of the next to be deferred |
 * | ring | by position: a slot, XOR its index here |
 * | deferred ring | by place: a slot |
 * | slots | LEASE, MARK, ATTEMPT, SIZE, DUE, DEATHS, and the bytes of a message |
 *
 * A new, zero-filled buffer is an empty queue.
 *
 * Putters write the words up to ROOM, takers those from PUT_RETURNS on: 128 bytes apart, since a processor may fetch
 * two lines of 64 at once. One side reads a word of the other's only if, by the value that it read last, there is no
 * room, or no message. So a stream of messages moves few lines from processor to processor. ROOM is at most the
 * capacity behind TAIL, and READY before HEAD: both are written with the side's lock.
 *
 * # The state of a slot
 * Position p lies in the ring at p modulo the capacity. TAIL, HEAD and FREED count modulo the largest multiple of
 * the capacity up to 2^29.
 *
 * | a slot is | if |
 * |---|---|
 * | ready | it is in the ring at a position from HEAD to TAIL |
 * | free | it is in the ring at a position from TAIL to FREED + the capacity |
 * | in use | it is neither, its MARK is 1 + its position, and its LEASE is held |
 * | returned | the same, and its LEASE is free: it is delivered again, before all others |
 * | deferred | the same, and it is in the deferred ring: it is delivered again, behind the position DUE - 1 |
 * | lost | it is neither, and its MARK is 0: only after a death; the next holder of the take lock frees it |
 *
 * At most `capacity` positions lie between HEAD and FREED + the capacity, since a slot is given back only after it was
 * taken. So a slot that is given back overwrites no position that is ready.
 *
 * A message is deferred if it is put back behind all that wait. A taker looks at the first one only, since they are
 * deferred in the order in which they are due. DUE is not 0 from before a slot gets into the deferred ring until after
 * it has left it. A message gets the last position before HEAD as its own: so positions do not catch up with one that
 * is deferred for ever. All of that is done with the take lock:
 *
 * | step (the word that decides) | a death before it leaves |
 * |---|---|
 * | defer: DEFERRED_END | a message in use; if it has DUE, whoever has the take lock next makes that 0 |
 * | defer: LEASE | a deferred message: its lease ends with the thread |
 * | take: DEFERRED | a deferred message |
 * | take: DUE | a message in use, whose DUE becomes 0 as above: then it has come back |
 */

const { agent } = require('../agent/find-agent')
const { ACQUIRED, ACQUIRED_FROM_DEAD, DEADLOCK, operationError } = require('../agent/registers')
const { Int32Array, add, bare, load, store } = require('../util/intrinsics')
const { INNER } = require('../holding/request')
const theList = require('../holding/the-list')
const { UnlockToken, newHold } = require('../holding/hold')
const format = require('./format')

const { ceil, floor } = Math

const WORDS = {
  __proto__: null,
  RETURNS: 0, FILLED: 1, IDLE_RETURNS: 2, IDLED: 3, CAPACITY: 4, MESSAGE_SIZE: 5, PUT_LOCK: 6, TAIL: 7, ROOM: 8,
  PUTTERS: 9, PUT_RETURNS: 32, EMPTIED: 33, TAKE_LOCK: 34, HEAD: 35, FREED: 36, READY: 37, LOOKED: 38, DISCARD: 39,
  AWAITED: 40, DEFERRED: 41, DEFERRED_END: 42,
  /** Where the ring begins. */
  RING: 64,
  // Of a slot; BYTES: where those of a message begin.
  LEASE: 0, MARK: 1, ATTEMPT: 2, SIZE: 3, DUE: 4, DEATHS: 5, BYTES: 6
}
const {
  RETURNS, TAIL, PUTTERS, HEAD, FREED, LOOKED, DISCARD, DEFERRED, DEFERRED_END, RING, LEASE, MARK, ATTEMPT, SIZE, DUE,
  DEATHS, BYTES
} = WORDS

/** The limit of positions: twice a position and the closed bit fit into a word. */
const MOST_POSITIONS = 2 ** 29

/** Words of a slot: a multiple of 2, so that the bytes begin at a multiple of 8. */
const slotWords = (messageSize) => BYTES + 2 * ceil(messageSize / 8)
/** Where the slots begin, behind both rings: a multiple of 2. */
const slotsBegin = (capacity) => RING + 2 * capacity
const bytesOf = (capacity, messageSize) => 4 * (slotsBegin(capacity) + capacity * slotWords(messageSize))

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
    const { tail, words } = this
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
    const size = memory.words[at + SIZE]
    this.format = size % format.FORMATS_ROOM
    this.size = (size - this.format) / format.FORMATS_ROOM
    this.copy = undefined
  }

  get value () {
    return format.read(this.copy, this.format)
  }

  get unread () {
    return format.unread(this.copy, this.format)
  }
}
bare(Lease)

/**
 * The lock of a side. It is held for the time of a copy, never while this thread waits or runs a program's code, and
 * nothing shows it. A thread that dies with it leaves a note for the next holder, as with every lock.
 */
class InnerLock {
  constructor (word) {
    this.word = word
    this.token = new UnlockToken()
    this.hold = newHold(word, INNER, this.token)
  }

  tryLock () {
    this.token.ownerDied = false
    return this.word.take(INNER, this.token)
  }

  /** Blocks until this thread has it, for `left()` milliseconds at most. False if that is over. */
  lock (left) {
    if (this.tryLock()) return true
    const timeout = left()
    if (timeout === 0) return false
    const list = theList()
    list.makeRoom()
    list.expect(this.word)
    const answer = agent().claim(this.word, INNER, 0, timeout)
    const ownerDied = answer === ACQUIRED_FROM_DEAD
    const isAcquired = ownerDied || answer === ACQUIRED
    if (isAcquired) list.adoptLast(this.hold, ownerDied)
    list.expected = undefined
    if (answer >= DEADLOCK) throw operationError(answer)
    return isAcquired
  }

  unlock () {
    const index = this.word.find()
    if (index >= 0) this.word.release(index, INNER)
  }

  /** Whether the last holder died, or may have. */
  get mayBeAbandoned () {
    return agent().native.counters.words[this.word.abandoned] !== 0
  }
}
bare(InnerLock)

/** A side of a queue: events, for which threads and promises wait, and the lock with which its steps run. */
class Side {
  /**
   * Promises wait at both words of its events, threads at `second`.
   * @param {number} at the index of `word`
   * @param {InnerLock} lock at the index `lockAt`
   */
  constructor (word, second, at, lock, lockAt) {
    this.address = word.address
    this.word = word
    this.second = second
    this.at = at
    this.lock = lock
    this.lockAt = lockAt
  }

  /** The value that a thread reads before it looks. */
  get count () {
    return load(this.second.array, 0)
  }

  /** The value that a promise reads besides. */
  get returns () {
    return load(this.word.array, 0)
  }

  /** Raises the event, and wakes `count` threads and promises at most. */
  raise (count) {
    add(this.second.array, 0, 1)
    this.wake(count)
  }

  /** Wakes up to `count` threads and promises, since more is left. */
  wake (count) {
    const { notifyWaiting } = agent()
    notifyWaiting(this.second.address, count)
    notifyWaiting(this.address, count)
  }

  get waiters () {
    return agent().waiterCount(this.second.address) + agent().waiterCount(this.address)
  }
}
bare(Side)

module.exports = {
  ...WORDS,
  MOST_POSITIONS,
  /** The largest capacity: a queue that is full can be told from an empty one. */
  MOST_CAPACITY: MOST_POSITIONS / 2,
  /** The longest message: its size and its format fit into a word. */
  MOST_BYTES: 2 ** 28,
  InnerLock,
  Lease,
  Positions,
  Side,
  bytesOf,
  slotWords,
  slotsBegin
}
