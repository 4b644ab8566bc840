'use strict'

/**
 * Promises that wait for a queue: to put, to take, or to end a use.
 *
 * A promise tries when it is made, and whenever it is notified, in the turn of the notification: so a thread that
 * ends before has not used the notification, and it goes to another waiter. If another thread is inside such a
 * step, the promise waits for that step's lock to be free; as it has used a notification then, this thread owes one
 * to the others meanwhile.
 *
 * # States
 * | state | the promise | next | if it gives up, others get |
 * |---|---|---|---|
 * | TRIES | carries out its step | AT_EVENTS, AT_LOCK, OVER | nothing |
 * | AT_EVENTS | is enqueued at its events | NOTIFIED, OVER; TRIES, without a notification | nothing |
 * | NOTIFIED | carries out its step | TRIES, if it finds nothing; AT_LOCK, OVER | its notification |
 * | AT_LOCK | is enqueued at its step's lock | HAD_LOCK, OVER | one of the lock, and the owed one |
 * | HAD_LOCK | carries out its step | as NOTIFIED | the same |
 * | OVER | is settled | – | a notification that comes yet |
 *
 * A program's code may run when it joins or leaves its signal, and when it settles: afterwards its state is looked at.
 *
 * # Lines
 * The promises of a thread that put stand in one line, so that they keep their order, whichever copies of the package
 * made them. Each waits for itself; whichever is notified lets the first of the line try.
 */

const { agent } = require('../agent/find-agent')
const { Promise } = require('../util/intrinsics')
const { LATE, NOTIFIED: WORDINGS, WAIT_KINDS, hideFrames, nounOf, throwIfAborted } = require('../waiting/errors')
const observer = require('../waiting/observer')
const { waitOptions } = require('../waiting/wait-options')
const { Steps, Waiter } = require('../waiting/waiter')
const { countdown } = require('../waiting/notice')
const { OWED, LOCKED } = require('../holding/request')
const theList = require('../holding/the-list')
const { BUSY, ENDED, NOTHING, PUT, PUTTING, memoryOf } = require('./memory')
const { idled, isInVain, lateError, owing, owingQuietly, publishWait } = require('./steps')

const TRIES = 'tries'
const AT_EVENTS = 'at events'
const NOTIFIED = 'notified'
const AT_LOCK = 'at lock'
const HAD_LOCK = 'had lock'
const OVER = 'over'

const isTrying = (state) => state === TRIES || state === NOTIFIED || state === HAD_LOCK

/** A promise that waits for one side of a queue: for its events, or for the lock of its steps. */
class QueueWaiter extends Waiter {
  constructor (memory, { mode, step, argument, timeout, signal }, steps, resolve, reject) {
    const side = memory.sideOf(mode)
    super(side.word, signal, steps)
    this.resolve = resolve
    this.reject = reject
    this.memory = memory
    this.side = side
    this.mode = mode
    this.step = step
    this.argument = argument
    this.left = countdown(timeout)
    this.state = TRIES
    // The values of the two event words before the last attempt.
    this.first = 0
    this.second = 0
    // The serial number of the notification that this thread owes, and the index of its entry; 0: it owes none.
    this.owed = 0
    this.entry = 0
    // As of the observer's `waits` and `goesOn`, once it has had to wait. The end of a use, which waits for a step of
    // another thread, is not reported.
    this.isReported = false
    this.since = undefined
    this.began = undefined
  }

  become (state) {
    this.state = state
  }

  /** True: an unused notification goes to another waiter. */
  get onNotified () {
    return true
  }

  get isForLock () {
    return this.word === this.side.lock.word
  }

  get waitKind () {
    const { side } = this
    return this.mode + WAIT_KINDS * (this.isForLock ? side.lockAt : side.at)
  }

  get waitsFor () {
    return nounOf({ ...WORDINGS[this.mode], name: this.memory.first.name })
  }

  /** Carries out its step. None of the program's code runs. */
  carryOut () {
    agent().assertStack()
    return owingQuietly(this.memory, this.step, this.argument)
  }

  attempt () {
    return this.carryOut()
  }

  /** Tries until it succeeds or has to wait. */
  go () {
    const { reject } = this
    try {
      while (isTrying(this.state)) this.tryOnce()
    } catch (error) {
      this.giveWay('aborted')
      reject(error)
    }
    agent().door.open()
  }

  tryOnce () {
    throwIfAborted(this.signal)
    if (this.state === OVER) return
    // It waits for events that come after the look that follows.
    const { side } = this
    this.first = side.returns
    this.second = side.count
    const found = this.attempt()
    if (this.state === OVER) return
    if (!isInVain(found)) {
      this.succeed(found)
      return
    }
    if (found === NOTHING) {
      this.oweNothing()
      this.become(TRIES)
    }
    if (this.left() === 0) {
      this.giveWay('timed-out')
      this.resolve(LATE)
    } else this.wait(found === BUSY)
  }

  wait (isForLock) {
    const { side } = this
    this.word = isForLock ? side.lock.word : side.word
    if (isForLock && this.owed === 0) {
      const list = theList()
      this.entry = list.length
      this.owed = list.addEntry(side, OWED)
    }
    this.become(isForLock ? AT_LOCK : AT_EVENTS)
    this.begin()
  }

  oweNothing () {
    if (this.owed === 0) return
    theList().removeEntry(this.owed, this.entry)
    this.owed = 0
  }

  leave () {
    this.become(OVER)
    this.oweNothing()
    if (this.steps !== undefined) this.steps.end()
  }

  /** Settles with its step's answer. If another one of its line has carried that out, it may be enqueued. */
  succeed (found) {
    this.leave()
    this.dequeue()
    this.resolve(found)
    publishWait(this, found === ENDED ? 'ended' : 'acquired')
  }

  /** Ends its waiting without success. A notification that it has not used goes to another waiter. */
  giveWay (outcome) {
    const { state } = this
    if (state === OVER) return
    this.leave()
    if (state !== TRIES && state !== AT_EVENTS) this.forwardNotify()
    publishWait(this, outcome)
  }

  forwardNotify () {
    const { side } = this
    if (this.isForLock) agent().notifyWaiting(side.lock.word.address, 1)
    side.wake(1)
  }

  prepare () {
    const { steps } = this
    if (this.isReported || steps === undefined) return
    this.isReported = true
    this.since = observer.waits(steps.context)
  }

  enqueue () {
    const { address } = this.word
    if (this.state === OVER) return 'over'
    this.began = observer.goesOn(this.began)
    if (this.isForLock) return agent().waitClaim(address, false, LOCKED, this.left(), this)
    return agent().waitClaim(address, false, this.first, this.left(), this, this.second)
  }

  finish (result) {
    if (this.state === OVER) return
    this.become(this.state === AT_LOCK ? HAD_LOCK : result === 'ok' ? NOTIFIED : TRIES)
  }

  settle (result) {
    this.end()
    if (this.state === OVER && result === 'ok') this.forwardNotify()
    this.finish(result)
    this.go()
  }

  giveUp (reason) {
    // If it is too late, it has been notified, and ends by that.
    if (this.slot >= 0 && !this.dequeue()) return
    this.giveWay('aborted')
    this.reject(reason)
    agent().door.open()
  }

  /** Ends it: its promise resolves as at the end of the queue. */
  withdraw () {
    this.dequeue()
    this.giveWay('aborted')
    this.resolve(ENDED)
  }
}

/**
 * The line of this thread's putting promises, if there is any: `{ first, last, serial, entry }`. `serial` and `entry`:
 * of the robust list's entry by which the queue counts this thread among those that wait to put.
 */
const lineOf = ({ first: { address } }) => theList().queues.lines.get(address)

class Putter extends QueueWaiter {
  constructor (memory, wait, steps, resolve, reject) {
    super(memory, wait, steps, resolve, reject)
    // The value is written at the call.
    this.argument.keep()
    // Its neighbours in the line.
    this.before = undefined
    this.behind = undefined
    this.join()
  }

  join () {
    const line = lineOf(this.memory)
    if (line === undefined) {
      const { first: { address }, putting } = this.memory
      const list = theList()
      const entry = list.length
      // If the map fails, it counts for as long as this thread lives.
      const serial = list.addEntry(putting, PUTTING)
      list.queues.lineCount++
      list.queues.lines.set(address, { __proto__: null, first: this, last: this, serial, entry })
      return
    }
    this.before = line.last
    line.last.behind = this
    line.last = this
  }

  leave () {
    const { before, behind } = this
    const line = lineOf(this.memory)
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
    if (list.queues.lines.delete(address)) list.queues.lineCount--
    const owedEntry = list.length
    const owed = list.addEntry(events, OWED)
    list.removePutter(serial, entry, putting)
    idled(this.memory)
    list.removeEntry(owed, owedEntry)
  }

  /** Lets the promises of the line put, from its first to this. */
  attempt () {
    for (;;) {
      const { first } = lineOf(this.memory)
      const found = first.carryOut()
      if (first === this || isInVain(found)) return found
      first.succeed(found)
      // If a hook within that has put, it has let the whole line put.
      if (this.state === OVER) return NOTHING
    }
  }
}

/** Whether promises of this thread put into the queue. */
const isPutting = (memory) => theList().queues.lineCount !== 0 && lineOf(memory) !== undefined

/** Carries out a step by a promise. Resolves with its answer, or LATE. `wait`: see `calling` of steps.js. */
const later = (memory, wait, steps) => new Promise((resolve, reject) => {
  const Kind = wait.mode === PUT ? Putter : QueueWaiter
  new Kind(memory, wait, steps, resolve, reject).go()
})

/**
 * Carries out a step at once, or when it is its turn. Returns a promise that `ref` and `unref` know.
 * @param {object} form what the method does. What these throw, the promise rejects with:
 *   - `describe(memory, argument, limits, caller, steps)` describes the step, by `calling` of steps.js
 *   - `optionsOf(options, caller)` validates the options
 *   - `finish(found, memory, argument, wait)` makes the method's result of the step's answer
 *   - `isAsync`: whether that is mostly a promise, which is awaited: to return it would call a patched `then`
 */
const promised = (caller, form, queue, argument, options, steps = new Steps()) => (
  steps.of(carriedOut(caller, form, queue, argument, options, steps)))

async function carriedOut (caller, form, queue, argument, options, steps) {
  const { describe, finish, isAsync, optionsOf = waitOptions } = form
  const memory = memoryOf(queue)
  const wait = describe(memory, argument, optionsOf(options, caller), caller, steps)
  throwIfAborted(wait.signal)
  // Another thread, or an earlier promise of this one, may come first.
  let found = wait.mode === PUT && isPutting(memory) ? BUSY : owing(memory, wait.step, wait.argument)
  const isAtOnce = !isInVain(found)
  if (!isAtOnce) found = await later(memory, wait, steps)
  if (found === LATE) throw hideFrames(lateError(memory, wait), carriedOut)
  // It overtakes no promise of the queue that awaits a turn.
  if (isAtOnce ? !agent().settlesAtOnce() : memory.awaitingTurn !== 0) await agent().turn(memory)
  return isAsync ? await finish(found, memory, argument, wait) : finish(found, memory, argument, wait)
}

module.exports = { QueueWaiter, isPutting, later, promised }
