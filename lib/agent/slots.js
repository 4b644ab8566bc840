'use strict'

/**
 * This thread's pending promises, by slot. A slot is the number by which native code knows a wait; its fields say how
 * to settle it.
 *
 * Invariants:
 * - A slot is in use from the native operation that answered "pending" to the settlement of its promise.
 * - While it is in use, the table keeps the typed array, and so the memory waited on (invariant 8 in core/src/lib.rs).
 * - No function is called between the native operation that enqueues a wait and the last step of remembering it: near
 *   the end of the stack any call may throw, and then a waiter would be enqueued whose promise nobody has.
 */

const { Promise, createArray, createMap, nextTick } = require('../util/intrinsics')
const native = require('./registers-view')
const {
  ACQUIRED, ACQUIRED_FROM_DEAD, ADDRESS, AMOUNT, ANSWER, CALL, ENTRY, EXPECTED, NO_TIMER, PENDING, RELAY, RESULTS,
  SETTLED, SLOT, WIDE, WORDS, operationError
} = require('./registers')

const { floats, operations, words, writeRequest, writeWait } = native

/** The base-2 logarithm of a chunk's number of slots. */
const CHUNK_BITS = 8
const CHUNK = 1 << CHUNK_BITS
/** The most chunks to keep when nothing is pending. */
const RETAINED = 4

// The fields of a slot.
/** The promise's resolve function; WAITER if a waiter settles it. */
const RESOLVE = 0
/** The typed array that the promise waits on, or the waiter. */
const KEPT = 1
/** The promise; undefined if its Steps are found by it. */
const PROMISE = 2
/** If the slot is vacant, the next vacant slot. */
const NEXT = 3
const FIELDS = 4

const WAITER = () => {}

// In chunks: an array that grows is copied time and again.
let chunks = createArray(0)
// The first vacant slot, which may be in a chunk that is still to be added; and the next one, as `fill` found it.
let vacant = 0
let nextVacant
let pending = 0
// From promise to slot. Kept only once `ref` or `unref` has been called, since it costs as much as the rest of a wait.
let slots = null

/** Enqueues a promise. Returns its result if there is one at once, otherwise undefined. */
function waitAsync (address, wide, value, timeout, typedArray, promise, resolve) {
  const slot = fill(resolve, typedArray, promise)
  writeWait(address, timeout, wide, value)
  return RESULTS[enqueue(operations.waitAsync, slot)]
}

/**
 * Enqueues a waiter for a notification at an address. Its `waitKind` is the number of a class of locks/, or 0. Its
 * `settle` is called with `'ok'` after a notification, otherwise with `'timed-out'`. If it has an `onNotified`, the
 * notification goes to another waiter if this thread ends before it is settled.
 * @param {number} [second] the value of the adjacent word, if it waits at both; then the address is a multiple of 8
 * @returns {string | undefined} the result if there is one at once
 */
function waitClaim (address, wide, value, timeout, waiter, second) {
  const slot = fill(WAITER, waiter)
  writeWait(address, timeout, wide, value)
  if (second !== undefined) {
    words[WIDE] = 1
    words[EXPECTED + 1] = second
  }
  words[AMOUNT] = waiter.waitKind
  if (native.stallAfter !== 0) words[CALL] = waiter.call
  const relay = waiter.onNotified !== undefined ? address : 0
  // If it is the same, this waiter has looked since it was notified: passed on, it would go round for ever.
  if (floats[RELAY] !== relay) setRelay(relay)
  return RESULTS[enqueue(operations.waitAsyncFor, slot, waiter)]
}

/**
 * Takes a request from a word, or enqueues `claim`.
 *
 * @param {object} claim first `adopt(index, ownerDied)` is called, for all claims of a batch, with its index in the
 *   robust list (-1 if `owned` is false); then `settle(undefined)`, or `settle('timed-out')`. It is kept until then
 *   and has to keep the memory. Its `slot` is set while it is enqueued
 * @param {number} relay the address at which another waiter is notified if this thread ends before the
 *   claim is granted; or 0
 * @returns {boolean | undefined} undefined: enqueued. Otherwise this thread has it, as the last entry of its robust
 *   list; true: the former holder died
 */
function claimAsync (word, kind, amount, timeout, claim, relay) {
  const { lineName } = word
  const slot = fill(WAITER, claim)
  writeRequest(word, kind, amount, timeout)
  if (floats[RELAY] !== relay) setRelay(relay)
  const operation = lineName === undefined ? operations.claimAsync : operations.claimNameAsync
  const answer = enqueue(operation, slot, claim, lineName)
  return answer === PENDING ? undefined : answer === ACQUIRED_FROM_DEAD
}

/**
 * Sets the register RELAY. An unused notification in it, left by JavaScript that the engine interrupted, goes to
 * another waiter.
 */
function setRelay (address) {
  forwardNotification()
  floats[RELAY] = address
}

/** Passes an unused notification in the register RELAY to another waiter. */
function forwardNotification () {
  if (floats[RELAY] !== 0) operations.relay()
}

/** Carries out the operation that enqueues a filled slot. Returns its answer. */
function enqueue (operation, slot, waiter, name) {
  words[SLOT] = slot
  if (name === undefined) {
    operation()
  } else {
    operation(name)
    waiter.word.address = floats[ADDRESS]
  }
  const answer = words[ANSWER]
  if (answer === PENDING) {
    vacant = nextVacant
    pending++
    if (waiter !== undefined) waiter.slot = slot
  } else {
    empty(slot)
    if (answer >= NO_TIMER) throw operationError(answer)
  }
  return answer
}

/** Dequeues a waiter. False if it is settled already: then its `settle` will be called. */
function cancel (waiter) {
  words[SLOT] = waiter.slot
  operations.cancel()
  if (words[ANSWER] === 0) return false
  vacate(waiter.slot)
  return true
}

const chunkOf = (slot) => chunks[slot >>> CHUNK_BITS]
const offsetOf = (slot) => (slot & CHUNK - 1) * FIELDS
const fieldOf = (slot, field) => chunkOf(slot)[offsetOf(slot) + field]

function addChunk () {
  // At its full length, since an array that grows gets more than it needs.
  const chunk = createArray(CHUNK * FIELDS)
  const first = chunks.length * CHUNK
  for (let n = 0; n < CHUNK; n++) chunk[n * FIELDS + NEXT] = first + n + 1
  chunks[chunks.length] = chunk
}

/** Fills the first vacant slot. It stays vacant until `enqueue`. */
function fill (resolve, kept, promise) {
  const slot = vacant
  if (slot === chunks.length * CHUNK) addChunk()
  const chunk = chunkOf(slot)
  const offset = offsetOf(slot)
  chunk[offset + RESOLVE] = resolve
  chunk[offset + KEPT] = kept
  chunk[offset + PROMISE] = promise
  nextVacant = chunk[offset + NEXT]
  if (slots !== null && promise !== undefined) slots.set(promise, slot)
  return slot
}

function empty (slot) {
  const chunk = chunkOf(slot)
  const offset = offsetOf(slot)
  if (slots !== null) slots.delete(chunk[offset + PROMISE])
  chunk[offset + RESOLVE] = chunk[offset + KEPT] = chunk[offset + PROMISE] = undefined
}

function vacate (slot) {
  empty(slot)
  chunkOf(slot)[offsetOf(slot) + NEXT] = vacant
  vacant = slot
  pending--
}

/**
 * Settles a batch. Native code calls this with the number of settlements that it has put behind the registers. If
 * this fails as a whole and the thread lives on, it is called again with the settlements that are left, and does not
 * adopt twice.
 */
function settle (count) {
  if (words[SETTLED] < 0) {
    adoptAcquired(count)
    words[SETTLED] = 0
  }
  for (let n = 0; n < count; n++) {
    try {
      settleOne(n)
    } catch (error) {
      // The error must not keep the other promises from being settled: it is reported as an uncaught error.
      nextTick(() => { throw error })
    }
  }
  if (pending === 0) {
    slots = null
    if (chunks.length > RETAINED) {
      chunks = createArray(0)
      vacant = 0
    }
  }
}

function settleOne (n) {
  const settlement = words[WORDS + n]
  const slot = settlement >>> 3
  const answer = settlement & 7
  const resolve = fieldOf(slot, RESOLVE)
  const waiter = fieldOf(slot, KEPT)
  vacate(slot)
  if (resolve !== WAITER) {
    words[SETTLED] = n + 1
    resolve(RESULTS[answer])
    return
  }
  // A notification goes to another waiter if the thread ends before this one has made use of it: by its settlement
  // first, then by the register. Both may hold for a moment, never neither.
  const relayed = RESULTS[answer] === 'ok' && waiter.onNotified !== undefined
  if (relayed) setRelay(waiter.word.address)
  words[SETTLED] = n + 1
  waiter.settle(RESULTS[answer])
  if (relayed) floats[RELAY] = 0
}

/**
 * Makes the tokens for the holds of this batch. This comes first: settling may run JavaScript (hooks on promises do)
 * that releases other things, which moves entries of the robust list.
 */
function adoptAcquired (count) {
  let index = words[ENTRY]
  for (let n = 0; n < count; n++) {
    const answer = words[WORDS + n] & 7
    if (answer < ACQUIRED) continue
    const claim = fieldOf(words[WORDS + n] >>> 3, KEPT)
    claim.adopt(claim.owned ? index++ : -1, answer === ACQUIRED_FROM_DEAD)
  }
}

function slotOf (promise) {
  if (slots === null) {
    slots = createMap()
    for (let slot = 0; slot < chunks.length * CHUNK; slot++) {
      const promise = fieldOf(slot, PROMISE)
      if (promise !== undefined) slots.set(promise, slot)
    }
  }
  return slots.get(promise)
}

/** Lets `ref` and `unref` find an enqueued waiter by its promise. */
function remember (promise, { slot }) {
  chunkOf(slot)[offsetOf(slot) + PROMISE] = promise
  if (slots !== null) slots.set(promise, slot)
}

/** Sets whether a promise's wait holds the event loop. False if the promise has no slot. */
function setPromiseRefed (promise, refed) {
  const slot = slotOf(promise)
  if (slot === undefined) return false
  if (fieldOf(slot, RESOLVE) === WAITER) fieldOf(slot, KEPT).setRefed(refed)
  else setSlotRefed(slot, refed)
  return true
}

function setSlotRefed (slot, refed) {
  words[SLOT] = slot
  if (refed) operations.ref()
  else operations.unref()
}

function someWaiter (test) {
  for (let slot = 0; pending > 0 && slot < chunks.length * CHUNK; slot++) {
    if (fieldOf(slot, RESOLVE) === WAITER && test(fieldOf(slot, KEPT))) return true
  }
  return false
}

// Promises that settle at once do so at this thread's pace: src/agent/pending.rs says after how many the event loop
// turns. Those that await a turn settle in the order in which they came; later ones come behind them, also those of the
// same queue that had to wait.

/** The promises that await a turn, linked by `next`. */
let first
let last
let isSettling = false

function goesOn () {
  operations.settlesAtOnce()
  return words[ANSWER] !== 0
}

/** Whether a promise that could settle at once does. Otherwise it awaits `turn()`. */
const settlesAtOnce = () => first === undefined && !isSettling && goesOn()

/** @param {{ awaitingTurn: number }} queue counts those of its promises that this has not settled */
function turn (queue) {
  queue.awaitingTurn++
  const entry = { __proto__: null, queue, promise: undefined, resolve: undefined, next: undefined }
  entry.promise = new Promise((resolve) => { entry.resolve = resolve })
  if (first === undefined) first = entry
  else last.next = entry
  last = entry
  return entry.promise
}

/** Settles promises after a turn. The code behind each runs before the next one settles, and counts. */
native.onTurn = async function settleInOrder () {
  if (isSettling) return
  isSettling = true
  while (first !== undefined && goesOn()) {
    const { queue, promise, resolve } = first
    first = first.next
    resolve()
    // Not of undefined: before Node 12, to await a promise takes longer.
    await promise
    queue.awaitingTurn--
  }
  isSettling = false
}

native.settle = settle

module.exports = {
  cancel, claimAsync, forwardNotification, remember, setPromiseRefed, setSlotRefed, settlesAtOnce, someWaiter, turn,
  waitAsync, waitClaim
}
