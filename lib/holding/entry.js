'use strict'

/**
 * Entries of the robust list: the fields of their tokens, and the notification that a hold owes.
 *
 * condition.js has the rules of notifications. It is in the hold's own entry: the request is negative there, with
 * the address of the notification's word, in units of four bytes, in the place of the amount. So whatever moves,
 * releases or passes on the entry does so with that; a hold owes one notification at most, and nothing owes it any
 * more once the entry has gone.
 */

const { RELAY } = require('../agent/registers')
const { kindOf, requestOf } = require('./request')

// Two copies of the package share the symbols, since they share this thread's list.
const INDEX = Symbol.for('atomics-waitasync.index')
const SERIAL = Symbol.for('atomics-waitasync.serial')
/** The serial number of a token that is not live. */
const NOT_HELD = -1

/** Returns the request of an entry, from the number in it. */
const requestIn = (number) => number >= 0 ? number : kindOf(-number)

/** Whether the hold of an entry owes a notification. */
const owes = (number) => number < 0

/** Makes a hold owe the notification of a word. This thread was given it. */
function owe ({ entries, held, native: { floats } }, index, word) {
  const { address } = word
  const number = -requestOf(entries[2 * index + 1], address / 4)
  // Kept, since native code knows it by its address.
  held[index].notifier = word
  // From the register into the entry, with no call in between at which the thread could end.
  entries[2 * index + 1] = number
  if (floats[RELAY] === address) floats[RELAY] = 0
}

module.exports = { INDEX, NOT_HELD, SERIAL, owe, owes, requestIn }
