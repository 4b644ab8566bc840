'use strict'

/**
 * Reports locks of this thread whose tokens have been collected, if somebody has waited for one for longer than `ATOMICS_WAITASYNC_STALL`
 * milliseconds: when that wait was reported it was not known. What is awaited for a shorter time is reported with the wait.
 */

const { agent } = require('../../agent/agent')
const { threadId: own } = require('../../util/worker-threads')
const { snapshot } = require('./snapshot')

const CODE = 'ATOMICS_WAITASYNC_STALL'
/** How many are reported one by one. */
const MOST = 5

/** The waits that last longer than the limit, by the id of what they wait for. */
function longWaits (waiting, limit) {
  const waits = new Map()
  for (const wait of waiting) {
    if (!(wait.milliseconds > limit)) continue
    if (waits.has(wait.id)) waits.get(wait.id).more++
    else waits.set(wait.id, { wait, more: 0 })
  }
  return waits
}

/** @param {object[]} words those of the locks */
module.exports = function tellOrphans (words) {
  const { counters, stallAfter } = agent().native
  const ids = new Set()
  for (let n = 0; n < words.length; n++) if (counters.peek(words[n].counter) !== 0) ids.add(words[n].id)
  if (ids.size === 0) return
  const { held, waiting } = snapshot()
  const waits = longWaits(waiting, stallAfter)
  const orphans = held.filter(({ collected, id, threadId }) => collected && threadId === own && ids.has(id) && waits.has(id))
  for (const orphan of orphans.slice(0, MOST)) warn(orphan, waits.get(orphan.id))
  const more = orphans.length - MOST
  if (more > 0) process.emitWarning(more + ' more locks are awaited, and the tokens that they are held by have been collected.', { code: CODE })
}

function warn (orphan, { wait, more }) {
  process.emitWarning(agent().native.binding.reportOrphan({ orphan, wait, more }), { code: CODE, detail: orphan.taken })
}
