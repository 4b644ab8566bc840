'use strict'

/**
 * A queue's memory as this thread sees it, and its steps. layout.js has its words, and the states of a slot.
 *
 * # Owed notifications
 * A thread that is about to change state that others wait for, or that was notified of a change and is about to use it,
 * owes the waiters of that event a notification until the step is over. It notes that in its robust list. If it dies,
 * native code raises the events and wakes a waiter of each, after it has released everything else that the thread held.
 * So each step below may end at any point:
 *
 * | step (the word that decides) | a death before it leaves | who goes on |
 * |---|---|---|
 * | put: TAIL | a free slot | the next putter, as it is owed |
 * | put: the steps after it | a message that is ready | a taker, as it is owed |
 * | take: HEAD | a message that is ready | a taker, as it is owed |
 * | take: the ring, FREED | a lost slot | whoever has the take lock next frees it |
 * | use: LEASE, MARK, HEAD | a message that is ready | a taker, as it is owed |
 * | use: the steps after it | a message that has come back | a taker: the lease owes the same |
 * | end of use: MARK | a message that has come back | a taker |
 * | end of use: LEASE, the ring, FREED | a lost slot | whoever has the take lock next |
 *
 * layout.js has those of messages that are put back behind all that wait.
 *
 * # What a taker finds
 * It looks in this order, and writes these words:
 *
 * | kind | the message is | to use it | to take it for good |
 * |---|---|---|---|
 * | RETURNED | the oldest that came back | LEASE | MARK 0; the ring, FREED |
 * | DEFERRED | the first deferred one, and due | LEASE; DEFERRED; DUE | DEFERRED; DUE; MARK 0; the ring, FREED |
 * | READY | at HEAD | LEASE; MARK; HEAD | MARK 0, if a thread died; HEAD; the ring, FREED |
 *
 * It finds NOTHING if its lease is that of a thread that is just ending, or if there is none; or the queue has ENDED.
 *
 * # Why no waiter sleeps while it could go on
 * Before a thread waits, it reads the event and looks once more for room or a message; it waits only while the event
 * has that value. A thread that has changed something raises the event after it, and then notifies one waiter. So the
 * waiter finds the change, or the event raised, or is notified. Threads and promises wait at words of their own, and
 * one of each is notified: the promise's event loop may be busy.
 *
 * Those who wait until the queue is idle say so by AWAITED, after they have read the event and before they look. A
 * thread that has given a slot back, or ceased to wait to put, looks whether they said so; if it finds the queue idle,
 * it takes that back and raises the event. If it dies before, the event is owed, and so raised, too.
 */

const {
  Int32Array, RangeError, TypeError, compareExchange, createArray, load, or, store
} = require('../util/intrinsics')
const { describe } = require('../util/values')
const { waitKinds } = require('../waiting/errors')
const { LEASE: LEASE_KIND, PUTTER, amountOf, kindOf, requestOf } = require('../holding/request')
const theList = require('../holding/the-list')
const { wordOf } = require('../holding/view-word')
const { wordAt } = require('../view')
const format = require('./format')
const {
  RETURNS, FILLED, IDLE_RETURNS, IDLED, CAPACITY, MESSAGE_SIZE, PUT_LOCK, TAIL, ROOM, PUTTERS, PUT_RETURNS, EMPTIED,
  TAKE_LOCK, HEAD, FREED, READY: TAIL_READ, LOOKED, DISCARD, AWAITED, DEFERRED: DEFERRED_BEGIN, DEFERRED_END, RING,
  LEASE, MARK, ATTEMPT, SIZE, DUE, DEATHS, BYTES, InnerLock, Lease, Positions, Side, bytesOf
} = require('./layout')

// The answers of a step that finds nothing to do: nothing now; another thread is inside such a step; the queue is
// closed, and for takers there is nothing left. Two copies of the package let each other's promises put.
const NOTHING = Symbol.for('atomics-waitasync.nothing')
const BUSY = Symbol.for('atomics-waitasync.busy')
const ENDED = Symbol.for('atomics-waitasync.ended')

// What a taker finds next, in the order in which it looks. The table is in the head.
const RETURNED = 'returned'
const DEFERRED = 'deferred'
const READY = 'ready'

const { PUT, TAKE, USE, IDLE } = waitKinds

const PUTTING = requestOf(PUTTER, PUTTERS)

class QueueMemory extends Positions {
  /** @throws {RangeError} another thread has made it with other numbers */
  constructor (first, memory) {
    super(memory)
    const { buffer, byteOffset, capacity, messageSize } = memory
    this.bytes = new format.Bytes(buffer, byteOffset, bytesOf(capacity, messageSize))
    this.agree(CAPACITY, capacity, 0, 'capacity')
    this.agree(MESSAGE_SIZE, messageSize, 1, 'messageSize')
    const word = (index) => wordAt(new Int32Array(buffer, byteOffset + 4 * index, 1))
    this.first = first
    this.putLock = new InnerLock(word(PUT_LOCK))
    this.takeLock = new InnerLock(word(TAKE_LOCK))
    this.filled = new Side(first, word(FILLED), RETURNS, this.takeLock, TAKE_LOCK)
    this.emptied = new Side(word(PUT_RETURNS), word(EMPTIED), PUT_RETURNS, this.putLock, PUT_LOCK)
    this.idled = new Side(word(IDLE_RETURNS), word(IDLED), IDLE_RETURNS, this.takeLock, TAKE_LOCK)
    // The word that `removePutter` of robust-list.js counts down.
    this.putting = { __proto__: null, array: this.words, index: PUTTERS, address: word(PUTTERS).address }
    // Whether the last step of this thread has left room for another message, or a message for another taker.
    this.hasMore = false
    // How many promises of this thread await a turn of the event loop: see agent/slots.js.
    this.awaitingTurn = 0
  }

  /** Keeps a number in the memory; throws if another thread gave another. */
  agree (index, value, more, name) {
    const found = compareExchange(this.words, index, 0, value + more)
    if (found !== 0 && found !== value + more) {
      throw new RangeError('Queue: ' + name + ' is ' + value + ', but this memory is that of a queue with ' +
        (found - more) + ': all threads give the same')
    }
  }

  /** This thread's leases of messages of this queue. If it has any, this looks through all that it holds. */
  get leases () {
    const { entries, leases, length } = theList()
    if (leases === 0) return 0
    const { address: first } = this.first
    const isOurs = (address, request) => kindOf(request) === LEASE_KIND && address - 4 * amountOf(request) === first
    let count = 0
    for (let n = 0; n < length; n++) if (isOurs(entries[2 * n], entries[2 * n + 1])) count++
    return count
  }

  /** Whether a wait would have no end: this thread has all messages in use, or any, if it waits until there is none. */
  isStuck (mode) {
    if (mode === IDLE) return this.leases > 0
    if (mode === PUT) return this.taken === this.capacity && this.leases === this.capacity
    // Read once: another thread may end a use meanwhile.
    const { taken } = this
    return this.isClosed && this.ready === 0 && taken > 0 && this.leases === taken
  }

  sideOf (mode) {
    return mode === PUT ? this.emptied : mode === IDLE ? this.idled : this.filled
  }

  /** Whether the queue is idle, and somebody waits for that. Then whoever asks notifies them. */
  tellsIdle () {
    const { words } = this
    if (load(words, AWAITED) === 0 || !this.isIdle) return false
    store(words, AWAITED, 0)
    return true
  }

  /** Closes the queue: no put that begins later succeeds. `discards`: what waits is gone, and nothing comes back. */
  close (discards) {
    // Before: so whoever finds it closed knows.
    if (discards) store(this.words, DISCARD, 1)
    or(this.words, TAIL, 1)
  }

  /** Puts a message, if there is room: true, NOTHING or ENDED. With the put lock. */
  putNow (written) {
    const { words } = this
    const tail = load(words, TAIL)
    if ((tail & 1) === 1) return ENDED
    const position = tail >>> 1
    if (!this.hasRoomAt(position)) return NOTHING
    const at = this.slotAt(this.slotOf(position))
    words[at + ATTEMPT] = 0
    words[at + DEATHS] = 0
    words[at + SIZE] = written.size * format.FORMATS_ROOM + written.format
    this.bytes.put(4 * (at + BYTES), written)
    const next = this.after(position, 1)
    // It is closed now.
    if (compareExchange(words, TAIL, tail, 2 * next) !== tail) return ENDED
    this.hasMore = this.hasRoomAt(next)
    return true
  }

  /** Whether there is a slot for a position. With the put lock. */
  hasRoomAt (position) {
    const { capacity, words } = this
    if (this.distance(words[ROOM], position) < capacity) return true
    words[ROOM] = load(words, FREED)
    return this.distance(words[ROOM], position) < capacity
  }

  // ——— Taking. All with the take lock ———

  /**
   * Takes a message, if there is one: a Lease, NOTHING or ENDED.
   * @param {number | null} [place] of the call that uses the message, which stays until the end of that; null: that
   *   is not published; undefined: it is taken for good
   * @param {boolean} copies whether the lease gets the bytes; otherwise it is one of a batch
   */
  takeNow (place, copies = true) {
    const { words } = this
    const toUse = place !== undefined
    if (words[DISCARD] !== 0 && this.isClosed) {
      this.clearNow()
      return this.isEnded ? ENDED : NOTHING
    }
    const head = words[HEAD]
    // Only a message whose slot is not given back may have come back, or be deferred.
    const mayReturn = head !== words[FREED]
    let slot = mayReturn ? this.returned() : NOTHING
    const kind = slot !== NOTHING ? RETURNED : mayReturn && this.isDeferredDue(head) ? DEFERRED : READY
    if (kind === DEFERRED) slot = this.firstDeferred
    if (kind === READY) {
      if (!this.hasMessageAt(head)) return this.isEnded ? ENDED : NOTHING
      slot = this.slotOf(head)
    }
    const at = this.slotAt(slot)
    // A thread that died in the middle of `use` still has the lease of a ready message, until its end has gone on:
    // then it raises the event.
    if (load(words, at + LEASE) !== 0) return NOTHING
    const lease = new Lease(this, slot)
    if (copies) this.copyOut(lease)
    if (toUse) this.addLease(lease, place)
    const next = this.pass(kind, slot, head, toUse)
    if (!toUse) this.free(slot)
    this.hasMore = this.hasMessageAt(next) || this.hasDeferred || (mayReturn && load(words, RETURNS) !== words[LOOKED])
    return lease
  }

  /** Removes the message in a slot from where it was found. Returns the position of the next one that is ready. */
  pass (kind, slot, head, toUse) {
    const { words } = this
    const mark = this.slotAt(slot) + MARK
    if (kind === READY && toUse) store(words, mark, head + 1)
    if (kind === DEFERRED) this.undeferFirst()
    if (!toUse && words[mark] !== 0) store(words, mark, 0)
    if (kind !== READY) return head
    const next = this.after(head, 1)
    store(words, HEAD, next)
    return next
  }

  /** Copies the bytes of a message that nobody else can change. */
  copyOut (lease) {
    lease.copy = this.bytes.take(4 * (this.slotAt(lease.slot) + BYTES), lease.size, lease.format)
  }

  /** Takes up to `max` messages, to read them: an array of leases without bytes, NOTHING or ENDED. */
  takeManyNow (max) {
    let lease = this.takeNow(null, false)
    if (lease === ENDED) return ENDED
    const leases = createArray(0)
    for (; lease !== NOTHING; lease = leases.length < max && this.hasMore ? this.takeNow(null, false) : NOTHING) {
      leases[leases.length] = lease
    }
    return leases.length === 0 ? NOTHING : leases
  }

  /** Removes all messages that wait, and have waited when it begins. Returns how many. */
  clearNow () {
    const { words } = this
    const returns = load(words, RETURNS)
    const tail = this.tail
    let head = words[HEAD]
    let count = 0
    // Before HEAD, behind which it must not be.
    words[TAIL_READ] = tail
    for (let slot = 0; returns !== words[LOOKED] && slot < this.capacity; slot++) {
      if (this.isReturned(slot, head) && this.drop(RETURNED, slot, head)) count++
    }
    words[LOOKED] = returns
    for (; this.hasDeferred && this.drop(DEFERRED, this.firstDeferred, head); count++);
    for (; head !== tail && this.drop(READY, this.slotOf(head), head); count++) head = words[HEAD]
    return count
  }

  /** Removes a message that waits. False if its lease is still that of a dead thread, as in `takeNow`. */
  drop (kind, slot, head) {
    if (load(this.words, this.slotAt(slot) + LEASE) !== 0) return false
    this.pass(kind, slot, head, false)
    this.free(slot)
    return true
  }

  hasMessageAt (position) {
    const { words } = this
    if (words[TAIL_READ] === position) words[TAIL_READ] = this.tail
    return words[TAIL_READ] !== position
  }

  addLease (lease, place) {
    const list = theList()
    const { begun } = list.queues
    lease.next = begun.lease
    begun.lease = lease
    list.leases++
    lease.entry = list.length
    lease.serial = list.addEntry(lease, requestOf(LEASE_KIND, lease.index), place)
  }

  free (slot) {
    const { words } = this
    const freed = words[FREED]
    const index = freed % this.capacity
    // Mostly it is there already, and putters keep their copy of the line.
    if (words[RING + index] !== (slot ^ index)) words[RING + index] = slot ^ index
    store(words, FREED, this.after(freed, 1))
  }

  /** Finds the oldest message that came back: its slot, or NOTHING. It may have to look through all slots. */
  returned () {
    const { words } = this
    const returns = load(words, RETURNS)
    if (returns === words[LOOKED]) return NOTHING
    const head = load(words, HEAD)
    let oldest = NOTHING
    let age = 0
    for (let slot = 0; slot < this.capacity; slot++) {
      if (!this.isReturned(slot, head)) continue
      const distance = this.distance(words[this.slotAt(slot) + MARK] - 1, head)
      if (distance <= age) continue
      age = distance
      oldest = slot
    }
    if (oldest === NOTHING) words[LOOKED] = returns
    return oldest
  }

  /** Frees the lost slots. Messages that are neither deferred nor in use, but have DUE, have come back. */
  repair () {
    const { capacity, words } = this
    const isDeferred = new Int32Array(capacity)
    const inRing = new Int32Array(capacity)
    const end = load(words, DEFERRED_END)
    for (let place = load(words, DEFERRED_BEGIN); place !== end; place = this.after(place, 1)) {
      isDeferred[words[this.deferredAt(place)]] = 1
    }
    let position = load(words, HEAD)
    let count = this.distance(position, this.after(load(words, FREED), capacity))
    for (; count > 0; count--, position = this.after(position, 1)) inRing[this.slotOf(position)] = 1
    for (let slot = 0; slot < capacity; slot++) {
      const at = this.slotAt(slot)
      if (isDeferred[slot] === 0 && words[at + DUE] !== 0) store(words, at + DUE, 0)
      if (inRing[slot] === 0 && words[at + MARK] === 0) this.free(slot)
    }
  }

  remove (lease) {
    store(this.words, this.slotAt(lease.slot) + MARK, 0)
    this.removeLease(lease)
    this.free(lease.slot)
  }

  /** Counts a delivery, whose callback begins. Until it ends in order it counts as one that a death has ended. */
  begin ({ attempt, deaths, slot }) {
    const at = this.slotAt(slot)
    this.words[at + ATTEMPT] = attempt
    this.words[at + DEATHS] = deaths + 1
  }

  endInOrder ({ deaths, slot }) {
    this.words[this.slotAt(slot) + DEATHS] = deaths
  }

  /** Releases a lease. With MARK set, its message has come back; an interrupt may count it twice, but not miss it. */
  removeLease (lease) {
    // An interrupted step is undone, however far it had come.
    if (lease.serial === 0) return
    const list = theList()
    list.removeEntry(lease.serial, lease.entry, lease)
    lease.serial = 0
    list.leases--
  }
}

/** @throws {TypeError} it is no queue */
function memoryOf (queue) {
  const memory = wordOf(queue).queue
  if (memory === undefined) throw new TypeError('this method must be called on a Queue, not on ' + describe(queue))
  return memory
}

module.exports = { BUSY, ENDED, IDLE, NOTHING, PUT, PUTTING, TAKE, USE, QueueMemory, memoryOf }
