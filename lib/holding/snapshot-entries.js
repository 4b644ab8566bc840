'use strict'

/** Entries of snapshots, and cycles, as native code tells of them. */

const { RangeError, createMap, parse } = require('../util/intrinsics')

/**
 * Parses the JSON that a function of native code returns.
 * @throws {RangeError} no string can hold it
 */
function parseList (list, caller) {
  let json
  try {
    json = list()
  } catch (error) {
    if (error.code !== 'GenericFailure') throw error
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
 * Completes an entry of native code: that has the number of its stack, if stalls are reported. See `Row::write_fields`
 * in core/src/observe/rows.rs. Returns the entry.
 */
function completeEntry (entry, stackText) {
  if (entry.taken !== undefined) entry.taken = stackText(entry.taken)
  if (entry.called !== undefined) entry.called = stackText(entry.called)
  // It is not known of a promise of `Atomics.waitAsync` itself.
  if (entry.milliseconds === null) entry.milliseconds = NaN
  return entry
}

/** Completes a cycle's links. Returns them. */
function completeCycle (links, stackText) {
  for (let n = 0; n < links.length; n++) {
    completeEntry(links[n].holds, stackText)
    completeEntry(links[n].waitsFor, stackText)
  }
  return links
}

/** Reads the cycle that refused this thread's last claim, and its text. */
function cycleOf (binding) {
  const { text, links: cycle } = parse(binding.cycle())
  return { text, cycle: completeCycle(cycle, stackTexts(binding)) }
}

module.exports = { completeCycle, completeEntry, cycleOf, parseList, stackTexts }
