'use strict'

// The transmit queue of `$262.agent.report` and `getReport`: short strings, from any thread to any thread, synchronously,
// in the order in which they were sent. A ring of UTF-16 code units in shared memory under a small lock, because
// receiveMessageOnPort does not exist on Node 10.
//
// Invariants: HEAD and TAIL are only written under the lock; they count units and only grow (modulo 2^32);
// the units from HEAD to TAIL are whole messages, each one its length followed by its text.

const { wait32, wakeAll32, sleep } = require('./pristine')

const LOCK = 0
const HEAD = 1
const TAIL = 2
const CONTROL_WORDS = 3

const CAPACITY = 1 << 16
const LONGEST = CAPACITY - 2

function createReportQueue () {
  return attachReportQueue(new SharedArrayBuffer(CONTROL_WORDS * 4 + CAPACITY * 2))
}

/** @param {SharedArrayBuffer} buffer the `buffer` of a queue that another thread created */
function attachReportQueue (buffer) {
  const control = new Int32Array(buffer, 0, CONTROL_WORDS)
  const ring = new Uint16Array(buffer, CONTROL_WORDS * 4, CAPACITY)

  function locked (action) {
    while (Atomics.compareExchange(control, LOCK, 0, 1) !== 0) wait32(control, LOCK, 1, 10)
    try {
      return action(Atomics.load(control, HEAD), Atomics.load(control, TAIL))
    } finally {
      Atomics.store(control, LOCK, 0)
      wakeAll32(control, LOCK)
    }
  }

  /** @returns {boolean} false if there is no room now */
  function trySend (text) {
    return locked((head, tail) => {
      const used = (tail - head) >>> 0
      if (CAPACITY - used < text.length + 1) return false
      put(tail, text.length)
      for (let i = 0; i < text.length; i++) put(tail + 1 + i, text.charCodeAt(i))
      Atomics.store(control, TAIL, (tail + 1 + text.length) | 0)
      return true
    })
  }

  function put (position, unit) {
    Atomics.store(ring, (position >>> 0) % CAPACITY, unit)
  }

  function get (position) {
    return Atomics.load(ring, (position >>> 0) % CAPACITY)
  }

  /** Blocks while the queue is full. */
  function send (text) {
    if (text.length > LONGEST) throw new RangeError(`a report of ${text.length} code units: at most ${LONGEST} fit`)
    while (!trySend(text)) sleep(1)
  }

  /** @returns {string | null} null if there is none */
  function receive () {
    return locked((head, tail) => {
      if (head === tail) return null
      const length = get(head)
      let text = ''
      for (let i = 0; i < length; i++) text += String.fromCharCode(get(head + 1 + i))
      Atomics.store(control, HEAD, (head + 1 + length) | 0)
      return text
    })
  }

  return { buffer, send, receive }
}

module.exports = { createReportQueue, attachReportQueue }
