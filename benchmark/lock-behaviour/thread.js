'use strict'

// A worker of a situation: does what `workerData.task` says with the lock `workerData.lock`.

const { parentPort, workerData } = require('worker_threads')
const { countFor } = require('./count')
const { open } = require('../bench/locks')

/** Whether a pending request keeps its thread alive is asked in one situation only. */
function stayAlive () {
  const alive = setInterval(() => {}, 1000)
  return () => clearInterval(alive)
}

const tasks = {
  /** Has the lock until it is told to release it. */
  async hold (lock) {
    const held = await lock.acquire()
    parentPort.once('message', () => { held.release() })
    parentPort.postMessage('held')
  },

  /** Has the lock for a while. */
  async holdFor (lock) {
    const held = await lock.acquire()
    parentPort.postMessage('held')
    setTimeout(() => held.release(), workerData.milliseconds)
    stayAlive()
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

open(workerData.lock, { sab: workerData.shared }).then(tasks[workerData.task])
