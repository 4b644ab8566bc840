'use strict'

// A worker of a situation, which uses a lock on request; and the acts that main has, too.

const { open } = require('../bench/locks')

/** Words of the memory that threads count in. */
const COUNTER = 0
const INSIDE = 1
const TOGETHER = 2
/** From here on: how often each thread has counted. */
const OWN = 3

/**
 * Counts in two tasks for so long. Each step is under the lock, on a counter that the lock alone protects. A task that
 * is inside notes whether another one is; if there never was, the counts of the threads add up to the counter.
 *
 * @param {number} thread from 0
 */
function countFor (milliseconds, lock, words, thread) {
  const end = Date.now() + milliseconds
  const task = async () => {
    while (Date.now() < end) {
      const { release } = await lock.acquire()
      if (Atomics.add(words, INSIDE, 1) !== 0) Atomics.add(words, TOGETHER, 1)
      const count = words[COUNTER]
      // Between reading and writing, as in a task that does something: some work, and an await.
      for (let n = 0; n < 1000; n++) Math.sqrt(n)
      await undefined
      words[COUNTER] = count + 1
      words[OWN + thread]++
      Atomics.sub(words, INSIDE, 1)
      await release()
    }
  }
  return Promise.all([task(), task()])
}

const threads = {
  /** Answers requests `{ act }` with their outcome. */
  async user ({ name, sab }, stopListening) {
    const lock = await open(name, { sab })
    let held
    const acts = {
      begin () {},
      async acquire ({ milliseconds, alone }) {
        // Whether a pending request keeps its thread alive is asked in one situation only.
        if (alone) stopListening()
        held = await lock.acquire()
        if (milliseconds) setTimeout(acts.release, milliseconds)
      },
      async release () { await held.release() },
      block: () => lock.block(),
      count: ({ words, thread, milliseconds }) => countFor(milliseconds, lock, words, thread),
      blockAgain () {
        try {
          lock.block()
          return 'has it twice'
        } catch (error) {
          return `\`${error.code || error.message}\``
        }
      }
    }
    return async ({ act, ...data }) => await acts[act](data) || act
  }
}

module.exports = { COUNTER, OWN, TOGETHER, countFor, threads }
