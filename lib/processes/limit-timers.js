'use strict'

/**
 * The timers that tell of a hold's limit. A hold keeps no process alive, but a promise that is pending does, as long as
 * the end of a limit may settle it.
 */

const timers = new Set()
let pending = 0

const update = (timer) => timer[pending > 0 ? 'ref' : 'unref']()

/** Counts promises that wait for a lock, or have a limited one. */
function count (more) {
  const before = pending
  pending += more
  if (before === 0 || pending === 0) timers.forEach(update)
}

/** Keeps the process alive as long as promises are pending. */
function add (timer) {
  timers.add(timer)
  update(timer)
}

/** Counts the promise of a claim until that is settled. */
function countUntilSettled (claim) {
  let isCounted = true
  const counting = (settle) => (value) => {
    if (isCounted) count(-1)
    isCounted = false
    settle(value)
  }
  count(1)
  claim.resolve = counting(claim.resolve)
  claim.reject = counting(claim.reject)
}

module.exports = { add, count, countUntilSettled, remove: (timer) => timers.delete(timer) }
