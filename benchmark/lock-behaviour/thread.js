'use strict'

// A worker of a situation: does what `workerData.task` says with the lock `workerData.lock`. And what main does as workers do, too.

const { isMainThread, parentPort, workerData } = require('worker_threads')
const { open } = require('../bench/locks')

/** Words of the memory that threads count in. */
const COUNTER = 0
const INSIDE = 1
const TOGETHER = 2
/** From here on: how often each thread has counted. */
const OWN = 3

/**
 * Two tasks that count for so long, each step under the lock, on a counter that the lock alone protects. A task that is inside
 * notes whether another one is; if there never was, the counts of the threads add up to the counter.
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

/** Whether a pending request keeps its thread alive is asked in one situation only. */
function stayAlive () {
  const alive = setInterval(() => {}, 1000)
  return () => clearInterval(alive)
}

const tasks = {
  /** Has the lock for a while, or until it is told to release it. */
  async hold (lock) {
    const held = await lock.acquire()
    parentPort.once('message', () => { held.release() })
    parentPort.postMessage('held')
    if (workerData.milliseconds) setTimeout(() => held.release(), workerData.milliseconds)
  },

  async awaitIt (lock) {
    const leave = workerData.alone ? () => {} : stayAlive()
    parentPort.postMessage('begins')
    const { release } = await lock.acquire()
    parentPort.postMessage('had it')
    release()
    leave()
  },

  async block (lock) {
    parentPort.postMessage('begins')
    lock.block()
    parentPort.postMessage('had it')
    lock.release()
  },

  async blockTwice (lock) {
    lock.block()
    parentPort.postMessage('begins')
    try {
      lock.block()
      parentPort.postMessage('has it twice')
    } catch (error) {
      parentPort.postMessage(`\`${error.code || error.message}\``)
    }
  },

  /** Counts together with others, as soon as it is told to. */
  async count (lock) {
    const { counter, thread, milliseconds } = workerData
    const leave = stayAlive()
    const told = new Promise(resolve => parentPort.once('message', resolve))
    parentPort.postMessage('ready')
    await told
    await countFor(milliseconds, lock, new Int32Array(counter), thread)
    parentPort.postMessage('counted')
    leave()
  }
}

module.exports = { COUNTER, OWN, TOGETHER, countFor }

if (!isMainThread) open(workerData.lock, { sab: workerData.shared }).then(tasks[workerData.task])
