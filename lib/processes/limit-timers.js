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

/** Counts a promise until that is settled. */
async function counted (promise) {
  count(1)
  try {
    return await promise
  } finally {
    count(-1)
  }
}

module.exports = { add, count, counted, remove: (timer) => timers.delete(timer) }
