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

const { agent } = require('../agent/agent')
const { Promise, createMap } = require('../util/intrinsics')
const { LATE, throwIfAborted } = require('../waiting/errors')
const { NOTIFIED, WAIT_KINDS, nounOf } = require('../waiting/kinds')
const Waiter = require('../waiting/waiter')
const { countdown } = require('../waiting/wait-until')
const { OWED, LOCKED } = require('../holding/request')
const theList = require('../holding/the-list')
const { BUSY, NOTHING, PUT, PUTTING } = require('./memory')
const { idled, outcomeOf, owingQuietly } = require('./steps')
const ReportedWait = require('./reported-wait')

/** A promise that waits for one side of a queue: for its events, or for the lock of its steps. */
class QueueWaiter extends Waiter {
  constructor (memory, { mode, step, argument, timeout, signal }, steps, resolve, reject) {
    const side = memory.sideOf(mode)
    super(side.events.word, signal, steps)
    this.resolve = resolve
    this.reject = reject
    this.memory = memory
    this.side = side
    this.mode = mode
    this.step = step
    this.argument = argument
    this.left = countdown(timeout)
    // The values of the two event words before the last attempt; undefined: it has tried once at most.
    this.first = undefined
    this.second = undefined
    this.waitsForLock = false
    // Whether it has been notified, and has not looked since.
    this.isNotified = false
    // While this waits for the lock: the serial number of the notification that this thread owes, and the index of its
    // entry; 0: it owes none.
    this.owed = 0
    this.entry = 0
    this.isLate = timeout === 0
    this.isOver = false
    // The result of a wait that did not begin.
    this.answer = undefined
    // A ReportedWait, once it has had to wait. The end of a use, which waits for a step of another thread, has none.
    this.reported = undefined
  }

  /** True: an unused notification goes to another waiter. */
  get onNotified () {
    return true
  }

  get waitKind () {
    const { side } = this
    return this.mode + WAIT_KINDS * (this.waitsForLock ? side.lockAt : side.eventsAt)
  }

  get waitsFor () {
    return nounOf({ ...NOTIFIED[this.mode], name: this.memory.first.name })
  }

  attempt () {
    agent().assertStack()
    return owingQuietly(this.memory, this.step, this.argument)
  }

  /** Tries until it succeeds or has to wait. */
  go () {
    const { reject } = this
    try {
      while (this.tryOnce()) this.isLate = this.answer === 'timed-out'
    } catch (error) {
      this.giveWay()
      reject(error)
      this.note('aborted')
    }
    agent().door.open()
  }

  /** Tries, and otherwise waits. Returns whether it is to try again. */
  tryOnce () {
    throwIfAborted(this.signal)
    // If the signal's code, or a hook within the attempt, has put, that has let the whole line put.
    const found = this.isOver ? NOTHING : this.attempt()
    if (this.isOver) return false
    if (found !== BUSY) this.isNotified = false
    if (found !== NOTHING && found !== BUSY) {
      this.leave()
      this.resolve(found)
      this.note(outcomeOf(found))
      return false
    }
    if (this.isLate) {
      this.giveWay()
      this.resolve(LATE)
      this.note(outcomeOf(LATE))
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

  waitFor (lock) {
    const { events, lock: { word } } = this.side
    this.waitsForLock = lock
    this.word = lock ? word : events.word
    if (!lock) {
      this.oweNothing()
    } else if (this.owed === 0) {
      const list = theList()
      this.entry = list.length
      this.owed = list.addEntry(events, OWED)
    }
  }

  oweNothing () {
    if (this.owed === 0) return
    theList().removeEntry(this.owed, this.entry)
    this.owed = 0
  }

  leave () {
    this.isOver = true
    this.oweNothing()
    if (this.steps !== undefined) this.steps.end()
  }

  /** Ends its waiting without success. A notification that it has not used, or in vain, goes to another waiter. */
  giveWay () {
    if (this.isOver) return
    this.leave()
    if (this.isNotified || this.waitsForLock) this.forwardNotify()
  }

  forwardNotify () {
    const { events, lock: { word } } = this.side
    if (this.waitsForLock) agent().notifyWaiting(word.address, 1)
    events.wake(1)
  }

  /** Notes its outcome. */
  note (outcome) {
    if (this.reported !== undefined) this.reported.ends(outcome)
  }

  prepare () {
    const { memory, mode, steps } = this
    if (this.reported === undefined && steps !== undefined) this.reported = new ReportedWait(memory.first, mode, steps)
  }

  enqueue () {
    const { address } = this.word
    if (this.waitsForLock) return agent().waitClaim(address, false, LOCKED, this.left(), this)
    return agent().waitPair(address, this.first, this.second, this.left(), this)
  }

  finish (answer) {
    this.answer = answer
  }

  settle (result) {
    this.end()
    this.isNotified = result === 'ok'
    if (this.isOver) {
      if (this.isNotified) this.forwardNotify()
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
    this.note('aborted')
    agent().door.open()
  }
}

/**
 * The lines of this thread's putting promises: `{ first, last, serial, entry }`, by queue address. The address is that
 * of the queue's first word. Empty lines are not kept. `serial` and `entry`: of the robust list's entry by which the
 * queue counts this thread among those that wait to put.
 */
const lines = createMap()

/** A promise that puts a message. */
class Putter extends QueueWaiter {
  constructor (memory, wait, steps, resolve, reject) {
    super(memory, wait, steps, resolve, reject)
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
      const { first: { address }, putting } = this.memory
      const list = theList()
      const entry = list.length
      // If the map fails, it counts for as long as this thread lives.
      lines.set(address, { __proto__: null, first: this, last: this, serial: list.addEntry(putting, PUTTING), entry })
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
    if (line.first === undefined) this.endLine(line)
  }

  /** Ends the line, of which this was the last. That may have kept the queue from being idle. */
  endLine ({ serial, entry }) {
    const { first: { address }, idled: events, putting } = this.memory
    const list = theList()
    lines.delete(address)
    const owedEntry = list.length
    const owed = list.addEntry(events, OWED)
    list.removePutter(serial, entry, putting)
    idled(this.memory)
    list.removeEntry(owed, owedEntry)
  }

  /** Lets the promises of the line put, from its first to this. */
  attempt () {
    const { line, memory } = this
    let found = NOTHING
    while (!this.isOver) {
      const { first } = line
      agent().assertStack()
      found = owingQuietly(memory, first.step, first.argument)
      if (first === this || found === NOTHING || found === BUSY) break
      first.leave()
      // If it is too late, it has been notified, and passes that on.
      first.dequeue()
      first.resolve(found)
      first.note(outcomeOf(found))
    }
    return found
  }
}

/** Whether promises of this thread put into the queue. */
const isPutting = (memory) => lines.has(memory.first.address)

/** Carries out a step by a promise. Resolves with its answer, or LATE. `wait`: see queue.js. */
const later = (memory, wait, steps) => new Promise((resolve, reject) => {
  const Kind = wait.mode === PUT ? Putter : QueueWaiter
  new Kind(memory, wait, steps, resolve, reject).go()
})

module.exports = { isPutting, later }
