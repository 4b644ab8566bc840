'use strict'

// The transmit queue of `$262.agent.report` and `getReport`: short strings, from any thread to the one that made it, synchronously, in the
// order in which they were sent. In shared memory, under a small lock, because receiveMessageOnPort does not exist on Node 10.
//
// Invariants: TAIL is only written under the lock; the units before it are whole messages, each one its length followed by its text.

const { wait32, wakeAll32 } = require('./pristine')

const LOCK = 0
const TAIL = 1
const CONTROL_BYTES = 8
/** UTF-16 code units, of all that a test reports. */
const CAPACITY = 1 << 20

function createReportQueue () {
  const buffer = new SharedArrayBuffer(CONTROL_BYTES + CAPACITY * 2)
  const { control, units } = attach(buffer)
  let head = 0
  return {
    buffer,
    /** @returns {string | null} null if there is none */
    receive () {
      if (head === Atomics.load(control, TAIL)) return null
      const start = head + 1
      head = start + units[head]
      return String.fromCharCode(...units.slice(start, head))
    }
  }
}

/** @param {SharedArrayBuffer} buffer the `buffer` of a queue that another thread created */
function attachReportQueue (buffer) {
  const { control, units } = attach(buffer)
  return {
    send (text) {
      while (Atomics.compareExchange(control, LOCK, 0, 1) !== 0) wait32(control, LOCK, 1, 10)
      const tail = Atomics.load(control, TAIL)
      // Throws if there is no room.
      units.set([text.length, ...text.split('').map(unit => unit.charCodeAt(0))], tail)
      Atomics.store(control, TAIL, tail + 1 + text.length)
      Atomics.store(control, LOCK, 0)
      wakeAll32(control, LOCK)
    }
  }
}

const attach = buffer => ({ control: new Int32Array(buffer, 0, 2), units: new Uint16Array(buffer, CONTROL_BYTES) })

module.exports = { createReportQueue, attachReportQueue }
