'use strict'

/** `snapshot()`: what is held and awaited in this process by means of this package, and which threads wait for one another. */

const { agent } = require('../../agent/agent')
const { RangeError, createMap, parse, trunc } = require('../../util/intrinsics')
const { append, cyclesOf } = require('./cycles')

/** The entries, and when they were read, in microseconds. */
function look () {
  const json = agent().native.binding.snapshot()
  if (typeof json !== 'string') throw new RangeError('snapshot: what is held and awaited has too many entries, or names that are too long, for one string')
  const { now, held, waiting } = parse(json)
  for (let n = 0; n < waiting.length; n++) {
    // JSON has no NaN.
    if (waiting[n].milliseconds === null) waiting[n].milliseconds = NaN
  }
  return { now, held, waiting }
}

/** The same in two looks if the entry has stood from one to the other. */
function keyOf ({ kind, mode, id, threadId, blocked, milliseconds }, now) {
  // 0 is that of what has just begun, and of what is on its way to a blocked thread's promise.
  const since = milliseconds === 0 ? 'now' : now - trunc(1000 * milliseconds + 0.5)
  return kind + mode + ' ' + id + ' ' + threadId + blocked + since
}

/**
 * Those of the cycles of a look that stand in a second one. Different locks are read one after the other; so only if all its entries have
 * stood from one look to the other was there a moment, between the two, at which they made a cycle.
 */
function confirmed (cycles, first) {
  const { now, held, waiting } = look()
  const seen = createMap()
  for (let n = 0; n < held.length; n++) seen.set('held' + keyOf(held[n], now), true)
  for (let n = 0; n < waiting.length; n++) seen.set(keyOf(waiting[n], now), true)
  const heldAt = (entry) => 'held' + keyOf(entry, first.now)
  const stands = ({ holds, waitsFor }) => seen.has(keyOf(waitsFor, first.now)) &&
    // A writer ahead in a line holds nothing there.
    (seen.has(heldAt(holds)) || seen.has(keyOf(holds, first.now)))
  const standing = []
  for (let n = 0; n < cycles.length; n++) {
    let all = true
    for (let m = 0; m < cycles[n].length; m++) all = all && stands(cycles[n][m])
    if (all) append(standing, cycles[n])
  }
  return standing
}

exports.snapshot = function snapshot () {
  const first = look()
  const { held, waiting } = first
  const cycles = cyclesOf(first)
  return { held, waiting, cycles: cycles.length === 0 ? cycles : confirmed(cycles, first) }
}
