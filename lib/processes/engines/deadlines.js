'use strict'

/** Times that fall due equally late, by one timer. */

const { inRootContext } = require('../../agent/load-binding')
const { now } = require('../../util/intrinsics')
const { setTimeout } = require('../../util/timers')

/** Has one timer for all: most are over before. It keeps the process alive as long as there is any. */
class Deadlines {
  /** When each was added. The first is due first. */
  #items = new Map()
  #milliseconds
  #tell
  #timer

  /** @param {(item: object) => void} tell is told of each item that is due, which is there no more */
  constructor (milliseconds, tell) {
    this.#milliseconds = milliseconds
    this.#tell = tell
  }

  add (item) {
    this.#items.set(item, now())
    if (this.#timer === undefined) this.#wait(this.#milliseconds)
    else if (this.#items.size === 1) this.#timer.ref()
  }

  delete (item) {
    // There is none yet for a hook of async_hooks that sees it being made.
    if (this.#items.delete(item) && this.#items.size === 0 && this.#timer !== undefined) this.#timer.unref()
  }

  #wait (milliseconds) {
    // It outlives the first item.
    inRootContext(() => { this.#timer = setTimeout(() => this.#look(), Math.ceil(milliseconds)) })
  }

  #look () {
    this.#timer = undefined
    const due = []
    for (const [item, since] of this.#items) {
      const left = since + this.#milliseconds - now()
      if (left > 0) {
        this.#wait(left)
        break
      }
      due.push(item)
      this.#items.delete(item)
    }
    due.forEach(this.#tell)
  }
}

module.exports = { Deadlines }
