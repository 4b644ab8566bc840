'use strict'

/** Iterators over the messages of a queue. */

const { shield } = require('../util/intrinsics')

const resultOf = (value) => ({ done: value === undefined, value })

class Messages {
  constructor (next) {
    this.next = next
  }

  [Symbol.iterator] () {
    return this
  }
}

class MessagesAsync {
  constructor (next) {
    this.next = next
  }

  [Symbol.asyncIterator] () {
    return this
  }
}

for (const Class of [Messages, MessagesAsync]) shield(Class, ['next'])

module.exports = { Messages, MessagesAsync, resultOf }
