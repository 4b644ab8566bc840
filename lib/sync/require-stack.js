'use strict'

/**
 * Throws the RangeError of a stack overflow before something begins that must not be broken off in its midst: one that there
 * would be if less of the stack was left than that takes, with the compiling of what has not been called yet.
 */

const { apply } = Reflect

/** 16 KB of arguments. */
const ARGUMENTS = new Array(2048).fill(0)

function tick () {}

module.exports = function requireStack () {
  apply(tick, undefined, ARGUMENTS)
}
