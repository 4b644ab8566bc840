'use strict'

/**
 * What a hold owes to the waiters of a Condition: a notification, which this thread was given.
 *
 * condition.js has the rules. The debt is in the hold's own entry of the robust list: the request is negative there, with the address of the
 * notification's word, in units of four bytes, in the place of the amount. So whatever moves, releases or passes on the entry does so with the
 * debt; a hold owes one notification at most, and nothing owes it any more once the entry has gone.
 */

const { RELAY } = require('../../agent/registers')
const { kindOf, requestOf } = require('./request')

/** The request of an entry, from the number in it. */
const requestIn = (number) => number >= 0 ? number : kindOf(-number)

/** Whether the hold of an entry owes a notification. */
const owes = (number) => number < 0

/** From here on the hold with the entry at `index` of a robust list, a lock's, owes the notification that this thread was given at `word`. */
function owe ({ entries, held, native: { floats } }, index, word) {
  const { address } = word
  const number = -requestOf(entries[2 * index + 1], address / 4)
  // Kept, since native code knows it by its address.
  held[index].creditor = word
  // From the register into the entry, with no call in between at which the thread could end.
  entries[2 * index + 1] = number
  if (floats[RELAY] === address) floats[RELAY] = 0
}

module.exports = { owe, owes, requestIn }
