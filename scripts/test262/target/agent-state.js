'use strict'

// What the main thread has to know of an agent while its own event loop is blocked: two words of shared memory.
// The agent writes, the main thread waits.

const { wait32, wakeAll32 } = require('./pristine')

const PHASE = 0
const RETRIEVED = 1
const WORDS = 2

const STARTING = 0
const RUNNING = 1
const LEFT = 2

// Waits are cut into slices so that a change of the other word is seen too.
const SLICE = 50

function createAgentState () {
  return attachAgentState(new SharedArrayBuffer(WORDS * 4))
}

function attachAgentState (buffer) {
  const words = new Int32Array(buffer)

  function set (index, value) {
    Atomics.store(words, index, value)
    wakeAll32(words, index)
  }

  return {
    buffer,
    /** Agent: the script is about to run. */
    running () { set(PHASE, RUNNING) },
    /** Agent: it has said that it is leaving, or its thread has ended. */
    leave () { set(PHASE, LEFT) },
    hasLeft () { return Atomics.load(words, PHASE) === LEFT },
    /** Agent: one more broadcast has been handed to the agent's script. */
    retrieved () { set(RETRIEVED, Atomics.load(words, RETRIEVED) + 1) },
    /** Main: blocks until the agent runs; false after `timeout` milliseconds. */
    waitUntilRunning (timeout) {
      for (let left = timeout; left > 0; left -= SLICE) {
        if (Atomics.load(words, PHASE) !== STARTING) return true
        wait32(words, PHASE, STARTING, SLICE)
      }
      return Atomics.load(words, PHASE) !== STARTING
    },
    /** Main: blocks until the agent has retrieved `count` broadcasts in all, or has left. */
    waitUntilRetrieved (count) {
      for (;;) {
        const retrieved = Atomics.load(words, RETRIEVED)
        if (retrieved >= count || Atomics.load(words, PHASE) === LEFT) return
        wait32(words, RETRIEVED, retrieved, SLICE)
      }
    }
  }
}

module.exports = { createAgentState, attachAgentState }
