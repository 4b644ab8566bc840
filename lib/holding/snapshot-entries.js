'use strict'

/** Entries of snapshots, and cycles, made from the reports of native code. */

const { RangeError, createMap, parse } = require('../util/intrinsics')
const { amountOf, described } = require('./request')

/** @param {string | null} json of native code; null if a string cannot hold it */
function parseList (json, caller) {
  if (json === null) {
    throw new RangeError(caller + ': what is held and awaited has too many entries, or names that are too long, for ' +
      'one string')
  }
  return parse(json)
}

/** Makes a function that returns stacks' texts by native code's numbers. Native code is asked for each once. */
function stackTexts (binding) {
  const texts = createMap()
  return (number) => {
    if (!texts.has(number)) texts.set(number, binding.stackText(number))
    return texts.get(number)
  }
}

/**
 * Makes an entry of a snapshot from native code's. See `Named::write` in core/src/observe/snapshot.rs.
 * @param {'taken' | 'called'} place the name of the entry's stack, which it has if stalls are reported
 */
function entryOf (written, place, stackText) {
  const request = written[0]
  const name = written[1]
  const microseconds = written[5]
  const { kind, mode } = described(request)
  return {
    kind,
    ...mode === undefined ? null : { mode },
    ...name === null ? null : { name },
    ...kind === 'Semaphore' ? { amount: amountOf(request) } : null,
    id: written[2],
    threadId: written[3],
    ...typeof written[6] === 'string' ? { threadName: written[6] } : null,
    blocked: written[4],
    // It is not known of a promise of `Atomics.waitAsync` itself.
    milliseconds: microseconds === null ? NaN : microseconds / 1000,
    ...written.length > 7 && written[7] !== 0 ? { [place]: stackText(written[7]) } : null,
    ...written.length > 8 && written[8] === 1 ? { collected: true } : null,
    ...written.length > 9 && written[9] !== null ? { awaits: written[9] } : null,
    ...written.length > 10 ? { ended: endedOf(written[10]) } : null
  }
}

/** Makes the threads that have ended. See `write_ended` in core/src/observe/ended.rs. It changes the array. */
function endedOf (threads) {
  for (let n = 0; n < threads.length; n++) {
    const thread = threads[n]
    threads[n] = {
      threadId: thread[0],
      ...thread[2] === null ? null : { threadName: thread[2] },
      ...thread[3] === null ? null : { how: thread[3] },
      milliseconds: thread[1] / 1000
    }
  }
  return threads
}

/**
 * Completes a cycle's links, each with a hold and a wait. It is certain if all are blocked: then none of
 * them can do anything else.
 */
function completeCycle (links) {
  let certain = true
  for (let n = 0; n < links.length; n++) certain = certain && links[n].waitsFor.blocked
  for (let n = 0; n < links.length; n++) {
    const { holds, waitsFor } = links[n]
    links[n] = { threadId: waitsFor.threadId, holds, waitsFor, blocked: waitsFor.blocked, certain }
  }
  return links
}

/** Makes a link of a cycle: a thread's hold and its wait. See `write_link` in core/src/observe/snapshot.rs. */
function linkOf (written, stackText) {
  const isAhead = written[2]
  return {
    holds: entryOf(written[0], isAhead ? 'called' : 'taken', stackText),
    waitsFor: entryOf(written[1], 'called', stackText)
  }
}

/** Reads the cycle that refused this thread's last claim, and its text. */
function cycleOf (binding) {
  const { text, links: cycle } = parse(binding.cycle())
  const stackText = stackTexts(binding)
  for (let n = 0; n < cycle.length; n++) {
    const { holds, waitsFor } = linkOf(cycle[n], stackText)
    cycle[n] = { threadId: holds.threadId, holds, waitsFor }
  }
  return { text, cycle }
}

module.exports = { cycleOf, entryOf, linkOf, parseList, completeCycle, stackTexts }
