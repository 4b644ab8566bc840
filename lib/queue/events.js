'use strict'

/** Events: what the threads and promises of one side of a queue wait for. */

const { agent } = require('../agent/agent')
const { add, bare, load } = require('../util/intrinsics')

/** The events that one side of a queue waits for. */
class Events {
  /** Promises wait at both words together, threads at `second` only. */
  constructor (word, second) {
    this.address = word.address
    this.word = word
    this.second = second
  }

  /** The value that a thread reads before it looks. */
  get count () {
    return load(this.second.array, 0)
  }

  /** The value that a promise reads besides. */
  get returns () {
    return load(this.word.array, 0)
  }

  /** Raises the event, and wakes `count` threads and promises at most. */
  raise (count) {
    add(this.second.array, 0, 1)
    this.wake(count)
  }

  /** Wakes up to `count` threads and promises, since more is left. */
  wake (count) {
    const { notifyWaiting } = agent()
    notifyWaiting(this.second.address, count)
    notifyWaiting(this.address, count)
  }

  get waiters () {
    return agent().waiterCount(this.second.address) + agent().waiterCount(this.address)
  }
}
bare(Events)

module.exports = Events
