'use strict'

/** The longest time that a timer of Node has, in milliseconds: 24 days. A longer one fires at once. */
exports.LONGEST_TIMER = 2 ** 31 - 1
