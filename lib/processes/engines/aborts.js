'use strict'

/** Waits that end by a signal. Node 16 lacks what newer ones have for that. */

const { clearTimeout, setTimeout } = require('../../util/timers')
const { readReason, throwIfAborted } = require('../../waiting/errors')

/** Calls back at the abort. Returns a function that ends this. */
function onAbort (signal, callback) {
  signal.addEventListener('abort', callback)
  return () => signal.removeEventListener('abort', callback)
}

/** Waits, or rejects with the signal's reason. The timer keeps the process alive. */
function sleep (milliseconds, signal) {
  return new Promise((resolve, reject) => {
    throwIfAborted(signal)
    // A hook of async_hooks may abort while it is made.
    let timer = null
    const ignore = onAbort(signal, () => {
      clearTimeout(timer)
      reject(readReason(signal))
    })
    timer = setTimeout(() => {
      ignore()
      resolve()
    }, milliseconds)
  })
}

/** Settles as the promise does, or rejects after some milliseconds. */
function within (milliseconds, promise, createError) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(createError()), milliseconds)
    const settle = end => value => {
      clearTimeout(timer)
      end(value)
    }
    promise.then(settle(resolve), settle(reject))
  })
}

module.exports = { onAbort, sleep, within }
