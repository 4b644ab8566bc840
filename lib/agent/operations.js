'use strict'

/** Native operations on a Node that may leave an exception behind (`LEAVES_EXCEPTIONS`). */

const { define, keys } = require('../util/intrinsics')
const { ANSWER, INTERRUPTED } = require('./registers')

/** A number that is no operation's answer. */
const UNANSWERED = -1

/** Wraps the operations so that they throw only if they failed. */
module.exports = function shielded (operations, words) {
  const shields = {}
  const names = keys(operations)
  for (let n = 0; n < names.length; n++) {
    const operation = operations[names[n]]
    define(shields, names[n], (first, second) => {
      words[ANSWER] = UNANSWERED
      try {
        operation(first, second)
      } catch (error) {
        if (words[ANSWER] === UNANSWERED || words[ANSWER] === INTERRUPTED) throw error
      }
    })
  }
  return shields
}
