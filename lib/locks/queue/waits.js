'use strict'

/**
 * Promises that wait for a queue: to put, to take, or to end a use.
 *
 * A promise tries when it is made, and whenever it is notified, in the turn of the notification: so a thread that
 * ends before has not used the notification, and it goes to another waiter. If another thread is inside such a
 * step, the promise waits for that step's lock to be free; as it has used a notification then, this thread owes one
 * to the others meanwhile.
 *
 * The promises of a thread that put stand in one line, so that they keep their order. Each waits for itself; whichever
 * is notified lets the first of the line try.
 */

const { agent } = require('../../agent/agent')
const { Promise, createMap } = require('../../util/intrinsics')
const { throwIfAborted } = require('../../waiting/errors')
const { PURPOSES, nounOf } = require('../../waiting/kinds')
const { countdown } = require('../../waiting/notice')
const Waiter = require('../../waiting/waiter')
const { DEBT, LOCKED } = require('../hold/request')
const { theList } = require('../hold/hold')
const { BUSY, LATE, NOTHING, PUT, TAKE, USE } = require('./memory')
const { finish, outcomeOf, owing, put, take } = require('./steps')
const ToldWait = require('./told-wait')

const UNLIMITED = { __proto__: null, timeout: Infinity, signal: undefined }

/**
 * A promise that waits for a queue's events, or its step lock. The events are those of one side of the queue, the lock
 * that of the side's steps.
 */
class QueueWaiter extends Waiter {
  constructor (memory, side, mode, { timeout, signal }, steps, resolve, reject) {
    super(side.events.word, signal, steps)
    this.resolve = resolve
    this.reject = reject
    this.memory = memory
    this.side = side
    this.mode = mode
    this.left = countdown(timeout)
    // The values of the two event words before the last attempt; undefined: it has tried once at most.
    this.first = undefined
    this.second = undefined
    this.waitsForLock = false
    // While this waits for the lock: the serial number of this thread's debt, and the index of its entry; 0: no debt.
    this.debt = 0
    this.entry = 0
    this.isLate = timeout === 0
    this.isOver = false
    // The result of a wait that did not begin.
    this.answer = undefined
    // A ToldWait, once it has had to wait.
    this.told = undefined
  }

  /** True: an unused notification goes to another waiter. */
  get onNotified () {
    return true
  }

  get purpose () {
    const { side } = this
    return this.mode + PURPOSES * (this.waitsForLock ? side.lockAt : side.eventsAt)
  }

  get waitsFor () {
    return nounOf({ kind: 'Queue', mode: this.mode === PUT ? 'put' : 'take', name: this.memory.first.name })
  }

  /** Tries until it succeeds or has to wait. */
  go () {
    const { reject } = this
    try {
      while (this.tryOnce()) this.isLate = this.answer === 'timed-out'
    } catch (error) {
      this.giveWay()
      reject(error)
      this.tell('aborted')
    }
  }

  /** Tries, and otherwise waits. Returns whether it is to try again. */
  tryOnce () {
    throwIfAborted(this.signal)
    const found = this.attempt()
    if (found !== NOTHING && found !== BUSY) {
      this.leave()
      this.resolve(found)
      this.tell(outcomeOf(found))
      return false
    }
    if (this.isLate) {
      this.giveWay()
      this.resolve(LATE)
      this.tell(outcomeOf(LATE))
      return false
    }
    this.answer = undefined
    if (found === NOTHING && this.hasNews()) return true
    this.waitFor(found === BUSY)
    this.begin()
    return this.answer !== undefined
  }

  /** Whether the events have gone on since this looked last. */
  hasNews () {
    const { first, second, side: { events } } = this
    this.first = events.returns
    this.second = events.count
    return this.first !== first || this.second !== second
  }

  /** Prepares to wait for the lock, or for the events. */
  waitFor (lock) {
    const { events, lock: { word } } = this.side
    this.waitsForLock = lock
    this.word = lock ? word : events.word
    if (!lock) {
      this.settleDebt()
    } else if (this.debt === 0) {
      const list = theList()
      this.entry = list.length
      this.debt = list.enter(events, DEBT)
    }
  }

  settleDebt () {
    if (this.debt === 0) return
    theList().strike(this.debt, this.entry)
    this.debt = 0
  }

  /** Ends its waiting. */
  leave () {
    this.isOver = true
    this.settleDebt()
  }

  /** Ends its waiting without success. A notification that it has used in vain goes to another waiter. */
  giveWay () {
    if (this.isOver) return
    this.leave()
    if (this.waitsForLock) this.side.events.wake(1)
  }

  /** Notes that it has to wait, for diagnostics and reports. */
  announce () {
    if (this.told === undefined) this.told = new ToldWait(this.memory.first, this.mode, this.steps)
  }

  /** Publishes its outcome. Subscribers may use the queue: so the promise has been settled before. */
  tell (outcome) {
    if (this.told !== undefined) this.told.ends(outcome)
  }

  enqueue () {
    this.announce()
    const { address } = this.word
    if (this.waitsForLock) return agent().waitClaim(address, false, LOCKED, this.left(), this)
    return agent().waitPair(address, this.first, this.second, this.left(), this)
  }

  finish (answer) {
    this.answer = answer
  }

  settle (result) {
    this.end()
    if (this.isOver) {
      if (result === 'ok') this.side.events.wake(1)
      return
    }
    this.isLate = result === 'timed-out'
    this.go()
  }

  giveUp (reason) {
    // If it is too late, it has been notified, and ends by that.
    if (this.slot >= 0 && !this.dequeue()) return
    this.giveWay()
    this.reject(reason)
    this.tell('aborted')
  }
}

/** A promise that takes a message. */
class Taker extends QueueWaiter {
  constructor (memory, toUse, wait, steps, resolve, reject) {
    super(memory, memory.takers, toUse ? USE : TAKE, wait, steps, resolve, reject)
    this.toUse = toUse
    // If stalls are reported.
    this.usedAt = theList().usedAt
  }

  attempt () {
    if (this.usedAt !== undefined) theList().usedAt = this.usedAt
    return owing(this.memory, take, this.toUse, false)
  }
}

/** A promise that ends the use of a message. Its wait, which lasts for a step of another thread, is not published. */
class Finisher extends QueueWaiter {
  constructor (memory, lease, resolve, reject) {
    super(memory, memory.takers, USE, UNLIMITED, undefined, resolve, reject)
    this.lease = lease
  }

  announce () {}

  attempt () {
    return owing(this.memory, finish, this.lease, false)
  }
}

/**
 * The lines of this thread's putting promises: `{ first, last }`, by queue address. The address is that of the queue's
 * first word. Empty lines are not kept.
 */
const lines = createMap()

/** A promise that puts a message. */
class Putter extends QueueWaiter {
  constructor (memory, written, wait, steps, resolve, reject) {
    super(memory, memory.putters, PUT, wait, steps, resolve, reject)
    this.written = written
    // Its neighbours in the line.
    this.before = undefined
    this.behind = undefined
    this.join()
  }

  get line () {
    return lines.get(this.memory.first.address)
  }

  join () {
    const { line } = this
    if (line === undefined) {
      lines.set(this.memory.first.address, { __proto__: null, first: this, last: this })
      return
    }
    this.before = line.last
    line.last.behind = this
    line.last = this
  }

  leave () {
    const { before, behind, line } = this
    super.leave()
    if (before === undefined) line.first = behind
    else before.behind = behind
    if (behind === undefined) line.last = before
    else behind.before = before
    if (line.first === undefined) lines.delete(this.memory.first.address)
  }

  /** Lets the promises of the line put, from its first to this. */
  attempt () {
    const { line, memory } = this
    for (;;) {
      const { first } = line
      const found = owing(memory, put, first.written, false)
      if (first === this || found === NOTHING || found === BUSY) return found
      first.leave()
      // If it is too late, it has been notified, and passes that on.
      first.dequeue()
      first.resolve(found)
      first.tell(outcomeOf(found))
    }
  }
}

/** Whether promises of this thread put into the queue. */
const isPutting = (memory) => lines.has(memory.first.address)

/** Puts a message by a promise: the step's answer, or LATE. */
const putLater = (memory, written, wait, steps) => new Promise((resolve, reject) => {
  new Putter(memory, written, wait, steps, resolve, reject).go()
})

/** Takes a message by a promise: a Lease, ENDED or LATE. */
const takeLater = (memory, toUse, wait, steps) => new Promise((resolve, reject) => {
  new Taker(memory, toUse, wait, steps, resolve, reject).go()
})

/** Ends a use by a promise. */
const finishLater = (memory, lease) => new Promise((resolve, reject) => {
  new Finisher(memory, lease, resolve, reject).go()
})

module.exports = { finishLater, isPutting, putLater, takeLater }
