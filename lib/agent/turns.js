'use strict'

/**
 * Promises that settle at once, at this thread's pace: src/agent/pace.rs says after how many the event loop turns.
 * Those that await a turn settle in the order in which they came; later ones come behind them, also those of the same
 * queue that had to wait.
 */

const { Promise } = require('../util/intrinsics')
const native = require('./registers-view')
const { ANSWER } = require('./registers')

const { operations, words } = native

/** The promises that await a turn, linked by `next`. */
let first
let last
let isSettling = false

function goesOn () {
  operations.settlesAtOnce()
  return words[ANSWER] !== 0
}

/** Whether a promise that could settle at once does. Otherwise it awaits `turn()`. */
const settlesAtOnce = () => first === undefined && !isSettling && goesOn()

/** @param {{ awaitingTurn: number }} queue counts those of its promises that this has not settled */
function turn (queue) {
  queue.awaitingTurn++
  const entry = { __proto__: null, queue, promise: undefined, resolve: undefined, next: undefined }
  entry.promise = new Promise((resolve) => { entry.resolve = resolve })
  if (first === undefined) first = entry
  else last.next = entry
  last = entry
  return entry.promise
}

/** Settles promises after a turn. The code behind each runs before the next one settles, and counts. */
native.onTurn = async function settleInOrder () {
  if (isSettling) return
  isSettling = true
  while (first !== undefined && goesOn()) {
    const { queue, promise, resolve } = first
    first = first.next
    resolve()
    // Not of undefined: before Node 12, to await a promise takes longer.
    await promise
    queue.awaitingTurn--
  }
  isSettling = false
}

module.exports = { settlesAtOnce, turn }
