'use strict'

/** What native code tells of what is held and awaited, as users read it: entries of snapshots, and rings. */

const { RangeError, createMap, parse } = require('../../util/intrinsics')
const { amountOf, described } = require('../hold/request')

/** What native code tells of all that is held and awaited; null if a string cannot hold that. */
function parseList (json, caller) {
  if (json === null) throw new RangeError(caller + ': what is held and awaited has too many entries, or names that are too long, for one string')
  return parse(json)
}

/** Gives the texts of stacks, by the numbers by which native code knows them; each once. */
function stackTexts (binding) {
  const texts = createMap()
  return (number) => {
    if (!texts.has(number)) texts.set(number, binding.stackText(number))
    return texts.get(number)
  }
}

/**
 * An entry of a snapshot, from what native code writes of it: see `Named::write` in src/observe/snapshot.rs.
 * @param {'taken' | 'called'} place what the stack is called that the entry has, if stalls are reported
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
    ...written.length > 8 ? { collected: true } : null
  }
}

/** A ring, of what each thread has and what it waits for. It is certain if all are blocked: then none of them can do anything else. */
function ringOf (links) {
  let certain = true
  for (let n = 0; n < links.length; n++) certain = certain && links[n].waitsFor.blocked
  for (let n = 0; n < links.length; n++) {
    const { holds, waitsFor } = links[n]
    links[n] = { threadId: waitsFor.threadId, holds, waitsFor, blocked: waitsFor.blocked, certain }
  }
  return links
}

/** A cycle of threads, from what native code writes of it. */
function cycleOf (binding) {
  const links = parse(binding.cycle())
  const stackText = stackTexts(binding)
  for (let n = 0; n < links.length; n++) {
    const waitsFor = entryOf(links[n][1], 'called', stackText)
    // A thread may only be ahead in the line: then this is the same wait.
    const holds = entryOf(links[n][0], links[n][0][2] === waitsFor.id ? 'called' : 'taken', stackText)
    links[n] = { threadId: holds.threadId, holds, waitsFor }
  }
  return links
}

module.exports = { cycleOf, entryOf, parseList, ringOf, stackTexts }
