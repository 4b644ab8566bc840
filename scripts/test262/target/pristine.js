'use strict'

// What the runner itself needs of the host, out of reach of the entry point: the runner must not be served by what it
// tests. An install in the main thread reaches workers before any code of theirs, so that being first is not enough; a
// new context has the host's own functions, always. Runs on every Node the package supports.

const vm = require('vm')
const { Worker, MessageChannel, parentPort, workerData } = require('worker_threads')

const Atomics = vm.runInNewContext('Atomics')
const wait = Atomics.wait
const notify = Atomics.notify || Atomics.wake

/** Blocks while `words[index] === value`, at most `timeout` milliseconds. */
function wait32 (words, index, value, timeout) {
  return wait.call(Atomics, words, index, value, timeout)
}

/** Wakes every thread that is blocked in `wait32` on this word. */
function wakeAll32 (words, index) {
  return notify.call(Atomics, words, index, Infinity)
}

const napping = new Int32Array(new SharedArrayBuffer(4))

/** Blocks this thread for `milliseconds`. */
function sleep (milliseconds) {
  wait32(napping, 0, 0, Number(milliseconds))
}

module.exports = { Worker, MessageChannel, parentPort, workerData, wait32, wakeAll32, sleep }
