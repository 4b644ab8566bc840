'use strict'

/** Calls a callback so that what waits within it is known. */

const { SERIAL } = require('./entry')
const theList = require('./the-list')

/**
 * Calls a callback of the user's that has a hold: in a task of its own, if stalls are reported or re-entry is detected.
 * @param {Word} [word] of the hold; a name has none
 */
function callWithin (token, callback, given, word) {
  const { tasks } = theList()
  return tasks === undefined ? callback(given) : tasks.call(token[SERIAL], callback, given, word)
}

module.exports = callWithin
