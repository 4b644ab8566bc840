'use strict'

/** Runs a callback with a hold that this thread blocks for, and gives the hold back, however the callback ends. */

const { Int32Array, SharedArrayBuffer } = require('../../util/intrinsics')
const requireStack = require('../../util/require-stack')
const { requireFunction, requireNoPromise } = require('../../waiting/options')
const { acquireOrThrow } = require('./acquire')
const { LOCK, SHARED } = require('./request')
const { giveBack, giveBackAfter, newHold, newToken, takeToken, theList } = require('./token')
const { createWord } = require('./word')

/**
 * Runs `callback(token)`.
 *
 * @param {string} twin the asynchronous form, for messages
 * @throws {TypeError} the callback returned a promise, which a blocked thread cannot await; the hold has been given back
 */
module.exports = function runHoldingSync (hold, callback, options, caller, twin) {
  requireFunction(callback, caller)
  requireRelease()
  const token = acquireOrThrow(hold, options, caller)
  let result
  let failed = true
  try {
    result = callback(token)
    failed = false
  } finally {
    giveBackAfter(token, failed)
  }
  requireNoPromise(result, caller + ': callback', twin)
  return result
}

const rehearsal = { isOver: false }

/** Throws if there is not enough stack to take a hold and to give it back. */
function requireRelease () {
  requireStack(rehearsal.isOver)
  if (!rehearsal.isOver) rehearse()
  rehearsal.isOver = true
}

/** Takes and gives back in all ways, so that they are compiled: for that there may be no stack later. */
function rehearse () {
  const memory = new SharedArrayBuffer(8)
  const lock = wordAt(memory, 0)
  const token = takeToken(lock, LOCK)
  const last = takeToken(wordAt(memory, 4), SHARED)
  giveBackAfter(token, true)
  giveBack(last, true)
  giveBackAfter(last, false)
  // As where there are waiters.
  theList().takeInLine(lock, LOCK, newToken(LOCK))
  theList().adoptLast(newHold(lock, LOCK), false)
  theList().releaseInLine(lock.find())
}

// To hand memory to other threads takes a MessageChannel on Node 10, which crashes if the thread is terminated while it makes one.
const wordAt = (memory, byteOffset) => createWord(new Int32Array(memory, byteOffset, 1), true)
