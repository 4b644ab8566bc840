'use strict'

/**
 * The memory of a queue: which word is where. All offsets are in words of four bytes, from the queue's first word.
 *
 * | words | |
 * |---|---|
 * | RETURNS, FILLED | the events that takers wait for: a message has come back; something has changed for takers |
 * | CAPACITY, MESSAGE_SIZE | how many messages fit, and 1 + the bytes of the longest: set by the first thread, the same for all |
 * | PUT_RETURNS, EMPTIED | the events that putters wait for; the first one counts deaths of threads that owed the second |
 * | PUT_LOCK, TAIL | 2 * the position of the next message to be put, + 1 once the queue is closed |
 * | TAKE_LOCK, HEAD, FREED, LOOKED | the position of the next message to be taken; how many slots have been given back; RETURNS, when no message was found to have come back |
 * | ring | by position: a slot, XOR its index here |
 * | slots | LEASE, MARK, ATTEMPT, SIZE, and the bytes of a message |
 *
 * Zero-filled memory is an empty queue. Words that different threads write are 64 bytes apart.
 *
 * # The state of a slot
 * Position p lies in the ring at p modulo the capacity. TAIL, HEAD and FREED count modulo the largest multiple of the capacity up to 2^29.
 *
 * | a slot is | if |
 * |---|---|
 * | ready | it is in the ring at a position from HEAD to TAIL |
 * | free | it is in the ring at a position from TAIL to FREED + the capacity |
 * | in use | it is neither, its MARK is 1 + its position, and its LEASE is held |
 * | returned | the same, and its LEASE is free: it is delivered again, before all others |
 * | lost | it is neither, and its MARK is 0: only after a death; the next holder of the take lock frees it |
 *
 * At most `capacity` positions lie between HEAD and FREED + the capacity, since a slot is given back only after it was taken. So a slot that is
 * given back overwrites no position that is ready.
 */

const RETURNS = 0
const FILLED = 1
const CAPACITY = 2
const MESSAGE_SIZE = 3
const PUT_RETURNS = 16
const EMPTIED = 17
const PUT_LOCK = 32
const TAIL = 33
const TAKE_LOCK = 48
const HEAD = 49
const FREED = 50
const LOOKED = 51
const RING = 64

const { ceil } = Math

// Of a slot.
const LEASE = 0
const MARK = 1
const ATTEMPT = 2
const SIZE = 3
const BYTES = 4

/** The limit of positions: twice a position and the closed bit fit into a word. */
const MOST_POSITIONS = 2 ** 29
/** The largest capacity: a queue that is full can be told from an empty one. */
const MOST_CAPACITY = MOST_POSITIONS / 2
/** The longest message: its size and its format fit into a word. */
const MOST_BYTES = 2 ** 28

/** Words of a slot: a multiple of 2, so that the bytes begin at a multiple of 8. */
const slotWords = (messageSize) => BYTES + 2 * ceil(messageSize / 8)
/** Where the slots begin: a multiple of 2. */
const slotsBegin = (capacity) => RING + capacity + capacity % 2
const bytesOf = (capacity, messageSize) => 4 * (slotsBegin(capacity) + capacity * slotWords(messageSize))

module.exports = {
  RETURNS, FILLED, CAPACITY, MESSAGE_SIZE, PUT_RETURNS, EMPTIED, PUT_LOCK, TAIL, TAKE_LOCK, HEAD, FREED, LOOKED, RING,
  LEASE, MARK, ATTEMPT, SIZE, BYTES, MOST_POSITIONS, MOST_CAPACITY, MOST_BYTES,
  bytesOf, slotWords, slotsBegin
}
