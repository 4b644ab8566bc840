'use strict'

/** `snapshot()`: what is held and awaited in this process by means of this package, and which threads wait for one another. */

const { agent } = require('../../agent/agent')
const { trunc } = require('../../util/intrinsics')
const { cyclesOf } = require('./cycles')
const { entryOf, parseList } = require('./request')

/** The entries, and when they were read, in microseconds. */
function look () {
  const { now, held, waiting } = parseList(agent().native.binding.snapshot(), 'snapshot')
  for (let n = 0; n < held.length; n++) held[n] = entryOf(held[n])
  for (let n = 0; n < waiting.length; n++) waiting[n] = entryOf(waiting[n])
  return { now, held, waiting }
}

/** A key that is the same in two looks if the entry was there from one to the other. */
function keyOf ({ kind, mode, id, threadId, blocked, milliseconds }, now) {
  // 0 milliseconds: it has just begun, or is on its way to a promise of a blocked thread.
  const since = milliseconds === 0 ? 'now' : now - trunc(1000 * milliseconds + 0.5)
  return kind + mode + ' ' + id + ' ' + threadId + blocked + since
}

/**
 * The cycles of one look that a second look has, too. Different locks are read one after the other. If all entries of a cycle were there
 * from one look to the other, there was a moment between the two at which they were a cycle.
 */
function confirmed (cycles, first) {
  const { now, held, waiting } = look()
  const seen = new Set()
  for (const entry of held) seen.add('held' + keyOf(entry, now))
  for (const entry of waiting) seen.add(keyOf(entry, now))
  const heldAt = (entry) => 'held' + keyOf(entry, first.now)
  const stands = ({ holds, waitsFor }) => seen.has(keyOf(waitsFor, first.now)) &&
    // A writer ahead in a line holds nothing there.
    (seen.has(heldAt(holds)) || seen.has(keyOf(holds, first.now)))
  return cycles.filter((links) => links.every(stands))
}

exports.snapshot = function snapshot () {
  const first = look()
  const { held, waiting } = first
  const cycles = cyclesOf(first)
  return { held, waiting, cycles: cycles.length === 0 ? cycles : confirmed(cycles, first) }
}
