'use strict'

// The needs of each thread of a process under test: how it speaks to the runner, a sleep, and the entry point. Runs on
// every Node that the package supports.

const fs = require('fs')
const path = require('path')
const vm = require('vm')

/** A line with a result begins with this; all others explain a failure, should there be one. */
const PREFIX = '#test262# '

// The host's own functions: loaded in the main thread before the entry point, this is not served by what is tested.
const own = vm.runInNewContext('Atomics')
const { wait, notify = own.wake } = own
const napping = new Int32Array(new SharedArrayBuffer(4))

/** Blocks this thread for `milliseconds`. */
function sleep (milliseconds) {
  wait.call(own, napping, 0, 0, Number(milliseconds))
}

/**
 * Writes a line synchronously: from every thread, also while the main thread is blocked or spins.
 */
function print (text) {
  const line = Buffer.from(`\n${text}\n`)
  for (let sent = 0; sent < line.length;) {
    try {
      sent += fs.writeSync(1, line, sent)
    } catch (error) {
      if (error.code !== 'EAGAIN') throw error
    }
  }
}

/** Ends the test: 'passed', 'failed' or 'skipped'. */
function conclude (status, message) {
  print(PREFIX + JSON.stringify({ status, message }))
}

/** Returns a thrown value in words: Test262Error has no `name` of its own. */
function describe (thrown) {
  if (typeof thrown !== 'object' || thrown === null) return 'thrown value ' + String(thrown)
  return `${typeof thrown.constructor === 'function' ? thrown.constructor.name : ''}: ${thrown.message}`
}

/** Loads an entry point, and gives its exports; null for `host`, which is none. */
function loadEntry (name) {
  if (name === 'host') return null
  const api = require(path.join(__dirname, '..', '..', '..', name))
  if (name === 'pure') api.install({ force: true })
  return api
}

/** Whether a pending waitAsync keeps this thread's event loop alive. The host's own does not. */
const holdsEventLoop = (name, api) => api !== null && (name === 'keep-alive' || api.engine === 'addon')

/**
 * Makes sure that an entry point has done what it stands for: a test that passes because the host's functions were
 * still in place says nothing. In the main thread only: in others an install that reaches them comes before this file.
 */
function checkEntry (name, { engine }) {
  const words = new Int32Array(new SharedArrayBuffer(4))
  Atomics.waitAsync(words, 0, 0)
  // A waiter in another queue is not woken by the host.
  const isOurs = notify.call(own, words, 0) === 0 && Atomics.notify(words, 0) === 1
  const isForced = name === 'force' || name === 'pure'
  if (isOurs !== (engine === 'addon') || (isForced && !isOurs))
    throw new Error(`${name} says that its engine is '${engine}', and its queue is ${isOurs ? '' : 'not '}its own`)
}

function define (name, value) {
  Object.defineProperty(global, name, { value, writable: true, enumerable: false, configurable: true })
}

/** @returns {number} milliseconds of a clock that all threads share */
function monotonicNow () {
  const [seconds, nanoseconds] = process.hrtime()
  return seconds * 1e3 + nanoseconds / 1e6
}

/** Evaluates a script in this thread's realm. */
function evaluate (source, filename) {
  new vm.Script(source, { filename, displayErrors: false }).runInThisContext({ displayErrors: false })
}

/**
 * Words of the memory that an agent shares with the main thread: its state, and how many broadcasts its script has got.
 */
const STATE = 0
const RETRIEVED = 1
const RUNS = 1
const HAS_LEFT = 2

module.exports = {
  HAS_LEFT, PREFIX, RETRIEVED, RUNS, STATE, checkEntry, conclude, define, describe, evaluate, holdsEventLoop, loadEntry,
  monotonicNow, print, sleep
}
