'use strict'

/** The sides of a queue: each has events, for which threads and promises wait, and a lock, with which its steps run. */

const { agent } = require('../agent/find-agent')
const { ACQUIRED, ACQUIRED_FROM_DEAD, DEADLOCK, operationError } = require('../agent/registers')
const { add, bare, load } = require('../util/intrinsics')
const { INNER } = require('../holding/request')
const theList = require('../holding/the-list')
const { UnlockToken, newHold } = require('../holding/hold')

/**
 * The lock of a side. It is held for the time of a copy, never while this thread waits or runs a program's code, and
 * nothing shows it. A thread that dies with it leaves a note for the next holder, as with every lock.
 */
class InnerLock {
  constructor (word) {
    this.word = word
    this.token = new UnlockToken()
    this.hold = newHold(word, INNER, this.token)
  }

  tryLock () {
    this.token.ownerDied = false
    return this.word.take(INNER, this.token)
  }

  /** Blocks until this thread has it, for `left()` milliseconds at most. False if that is over. */
  lock (left) {
    if (this.tryLock()) return true
    const timeout = left()
    if (timeout === 0) return false
    const list = theList()
    list.makeRoom()
    list.expect(this.word)
    const answer = agent().claim(this.word, INNER, 0, timeout)
    const ownerDied = answer === ACQUIRED_FROM_DEAD
    const isAcquired = ownerDied || answer === ACQUIRED
    if (isAcquired) list.adoptLast(this.hold, ownerDied)
    list.expected = undefined
    if (answer >= DEADLOCK) throw operationError(answer)
    return isAcquired
  }

  unlock () {
    const index = this.word.find()
    if (index >= 0) this.word.release(index, INNER)
  }

  /** Whether the last holder died, or may have. */
  get mayBeAbandoned () {
    return agent().native.counters.words[this.word.abandoned] !== 0
  }
}
bare(InnerLock)

class Side {
  /**
   * Promises wait at both words of its events, threads at `second`.
   * @param {number} at the index of `word`
   * @param {InnerLock} lock at the index `lockAt`
   */
  constructor (word, second, at, lock, lockAt) {
    this.address = word.address
    this.word = word
    this.second = second
    this.at = at
    this.lock = lock
    this.lockAt = lockAt
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
bare(Side)

module.exports = { InnerLock, Side }
