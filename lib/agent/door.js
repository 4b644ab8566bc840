'use strict'

/**
 * The door: by it leaves all that a program can see of an operation on locks.
 *
 * A program's code may run wherever it is told something: in a subscriber of a channel, but also within `nextTick`, by
 * a hook of async_hooks. That code may use the same locks. So an operation only notes what is to be told, while it
 * changes words, lists and registers. Each public call opens the door after its last change, and reads no register
 * after that.
 *
 * A call that an exception or a time limit of `vm` interrupts leaves its notes to the next call of the thread.
 */

const { bare, createArray } = require('../util/intrinsics')

class Door {
  constructor () {
    // Whether there is anything to tell: so a call that has nothing pays for one comparison.
    this.isDue = false
    this.notes = createArray(0)
    this.first = 0
  }

  /** Notes a function that tells the program something. None of the program's code runs. */
  note (tell) {
    this.notes[this.notes.length] = tell
    this.isDue = true
  }

  /** Tells the program all that was noted. Never throws. */
  open () {
    if (this.isDue) this.tellAll()
  }

  /** Tells in the order of the notes. A call that the program's code makes meanwhile tells those that are left. */
  tellAll () {
    while (this.first < this.notes.length) {
      const tell = this.notes[this.first]
      this.notes[this.first++] = undefined
      try {
        tell()
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
