'use strict'

/**
 * The memory of a queue: which word is where. All offsets are in words of four bytes, from the queue's first word.
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
 * Messages are deferred in the order in which they are due, so a taker looks at the first one only. DUE is not 0 from
 * before a slot gets into the deferred ring until after it has left it; of a slot that has died in between, whoever has
 * the take lock next makes it 0, and the message is returned. A message that is deferred gets the last position before
 * HEAD as its own: so positions do not catch up with one that is deferred for ever.
 */

const { ceil } = Math

/** Where the ring begins. */
const RING = 64
/** Where the bytes of a message begin in its slot. */
const BYTES = 6
/** The limit of positions: twice a position and the closed bit fit into a word. */
const MOST_POSITIONS = 2 ** 29

/** Words of a slot: a multiple of 2, so that the bytes begin at a multiple of 8. */
const slotWords = (messageSize) => BYTES + 2 * ceil(messageSize / 8)
/** Where the slots begin, behind both rings: a multiple of 2. */
const slotsBegin = (capacity) => RING + 2 * capacity

module.exports = {
  RETURNS: 0, FILLED: 1, IDLE_RETURNS: 2, IDLED: 3, CAPACITY: 4, MESSAGE_SIZE: 5, PUT_LOCK: 6, TAIL: 7, ROOM: 8,
  PUTTERS: 9, PUT_RETURNS: 32, EMPTIED: 33, TAKE_LOCK: 34, HEAD: 35, FREED: 36, READY: 37, LOOKED: 38, DISCARD: 39,
  AWAITED: 40, DEFERRED: 41, DEFERRED_END: 42, RING,
  // Of a slot.
  LEASE: 0, MARK: 1, ATTEMPT: 2, SIZE: 3, DUE: 4, DEATHS: 5, BYTES,
  MOST_POSITIONS,
  /** The largest capacity: a queue that is full can be told from an empty one. */
  MOST_CAPACITY: MOST_POSITIONS / 2,
  /** The longest message: its size and its format fit into a word. */
  MOST_BYTES: 2 ** 28,
  slotWords,
  slotsBegin,
  bytesOf: (capacity, messageSize) => 4 * (slotsBegin(capacity) + capacity * slotWords(messageSize))
}
