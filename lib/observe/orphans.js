'use strict'

/**
 * Reports this thread's locks whose tokens were collected during a wait. The wait is longer than
 * `ATOMICS_WAITASYNC_STALL` milliseconds: when it was reported, the collection was not known. Of shorter
 * waits, the report has it.
 */

const { agent } = require('../agent/agent')
const { STALL } = require('../util/variables')
const { threadId: own } = require('../util/worker-threads')
const { snapshot } = require('./snapshot')

/** How many locks are reported one by one. */
const MOST = 5

/** Selects the waits beyond the limit, by the awaited id. */
function longWaits (waiting, limit) {
  const waits = new Map()
  for (const wait of waiting) {
    if (!(wait.milliseconds > limit)) continue
    if (waits.has(wait.id)) waits.get(wait.id).more++
    else waits.set(wait.id, { wait, more: 0 })
  }
  return waits
}

/** @param {object[]} words the words of the locks */
module.exports = function reportOrphans (words) {
  const { door, native: { counters, stallAfter } } = agent()
  const ids = new Set()
  for (let n = 0; n < words.length; n++) if (counters.peek(words[n].counter) !== 0) ids.add(words[n].id)
  if (ids.size === 0) return
  const { held, waiting } = snapshot()
  const waits = longWaits(waiting, stallAfter)
  const orphans = held.filter(({ collected, id, threadId }) => (
    collected && threadId === own && ids.has(id) && waits.has(id)))
  for (const orphan of orphans.slice(0, MOST)) warn(orphan, waits.get(orphan.id))
  const more = orphans.length - MOST
  if (more > 0) noteWarning(more + ' more locks are awaited, and the tokens that they are held by have been collected.')
  door.open()
}

function noteWarning (text, detail) {
  agent().door.note(() => process.emitWarning(text, { code: STALL, detail }))
}

function warn (orphan, { wait, more }) {
  noteWarning(agent().native.binding.reportOrphan({ orphan, wait, more }), orphan.taken)
}
