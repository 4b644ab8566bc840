'use strict'

/**
 * The door: by it leaves all that a program can see of an operation on locks.
 *
 * A program's code may run wherever something is published: in a subscriber of a channel, but also within `nextTick`,
 * by a hook of async_hooks. That code may use the same locks. So an operation only notes what is to be published, while
 * it changes words, lists and registers. Each public call opens the door after its last change, and reads no register
 * after that.
 *
 * A call that an exception or a time limit of `vm` interrupts leaves its notes to the next call of the thread.
 */

const { bare, createArray } = require('../util/intrinsics')

class Door {
  constructor () {
    // Whether there is anything to publish: so a call that has nothing pays for one comparison.
    this.isDue = false
    this.notes = createArray(0)
    this.first = 0
  }

  /** Notes a function that publishes something to the program. None of the program's code runs. */
  note (publish) {
    this.notes[this.notes.length] = publish
    this.isDue = true
  }

  /** Publishes all that was noted. Never throws. */
  open () {
    if (this.isDue) this.publishAll()
  }

  /** Publishes in order. A call that the program's code makes meanwhile publishes those that are left. */
  publishAll () {
    while (this.first < this.notes.length) {
      const publish = this.notes[this.first]
      this.notes[this.first++] = undefined
      try {
        publish()
      } catch (_) {
        // No stack is left, or the program has replaced what the function calls. The locks must work all the same.
      }
    }
    this.isDue = false
    this.notes = createArray(0)
    this.first = 0
  }
}
bare(Door)

module.exports = new Door()
