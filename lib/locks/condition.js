'use strict'

/**
 * `Condition`: waiting, while holding a lock, until another holder of the lock has changed something.
 *
 * Its word is never written: it is only a location for waiters. Releasing the lock and starting to wait are one step
 * with respect to `notify`: the thread is enqueued before the lock is free.
 *
 * # A notification is owed
 * A thread that notifies one waiter relies on it to look at the state. So a notified waiter owes the notification to
 * the others until the hold that it gets back ends in order: by `unlock()`, by a callback that succeeds, by
 * `downgrade()`, or by the next wait. If it ends otherwise, the notification goes to another waiter. It is noted in
 * exactly one place at every moment, and passes from one to the next with no call in between:
 *
 * | the thread | the notification is noted in | it goes to another waiter |
 * |---|---|---|
 * | is notified, unknown to it | the wait: `relayed` in blocking.rs, `relay` in notes.rs | if the thread ends |
 * | goes on, to take the lock | the register RELAY | if that fails, or the thread ends |
 * | waits for the lock: a promise | the claim: `relay` in notes.rs | if the claim is cancelled, or the thread ends |
 * | waits for the lock: blocked | the register RELAY | if the wait is interrupted, or the thread ends |
 * | holds the lock | the hold's entry in the robust list | after `abandon()`, a failed callback, or the thread's end |
 *
 * The entry goes with the hold, so nothing is owed once it is over, and a wait that was not notified begins a hold that
 * owes nothing. A thread that a time limit of `vm` interrupts before it has the lock passes the notification on
 * when it waits next, or ends.
 */

const { agent, assertStack } = require('../agent/find-agent')
const { CALL } = require('../agent/registers')
const { Promise, TypeError, isInteger, load } = require('../util/intrinsics')
const { describe } = require('../util/values')
const { deadlock, notLocked, throwIfAborted, waitKinds: { CONDITION } } = require('../waiting/errors')
const { countdown, notify, waitAsync } = require('../waiting/notice')
const observer = require('../waiting/observer')
const {
  assertFunction, assertNoPromise, assertSynchronous, assertWorker, waitOptions
} = require('../waiting/wait-options')
const { Steps } = require('../waiting/waiter')
const { acquire, isAwaited, reacquire } = require('../holding/acquire')
const { described, isExclusive } = require('../holding/request')
const { holdOf, indexOfHold, isToken, release, sawOwnerDied } = require('../holding/hold')
const theList = require('../holding/the-list')
const { wordOf } = require('../holding/view-word')
const { initView, defineView, newMemory } = require('../view')

class Condition {
  constructor (buffer, options) {
    initView(this, arguments.length === 0 ? newMemory() : buffer, options, 'Condition')
  }

  wait (token, options) {
    assertWorker('wait', 'waitAsync()')
    const held = assertHeld(token, 'wait')
    return block(wordOf(this), held, waitOptions(options, 'wait', false).timeout, 'wait')
  }

  waitFor (token, predicate, options) {
    assertWorker('waitFor', 'waitForAsync()')
    assertHeld(token, 'waitFor')
    assertSynchronous(predicate, 'waitFor', 'waitForAsync()', 'predicate')
    const word = wordOf(this)
    const left = countdown(waitOptions(options, 'waitFor', false).timeout)
    let isOver = isMet(predicate)
    for (let isLate = false; !isOver && !isLate; isOver = isMet(predicate)) {
      isLate = !block(word, assertHeld(token, 'waitFor'), left(), 'waitFor')
    }
    // The predicate may have unlocked it.
    assertHeld(token, 'waitFor')
    return !!isOver
  }

  waitAsync (token, options) {
    const steps = new Steps()
    return steps.of(awaitOnce(this, token, options, steps))
  }

  waitForAsync (token, predicate, options) {
    const steps = new Steps()
    return steps.of(awaitUntil(this, token, predicate, options, steps))
  }

  notify (count = Infinity) {
    if (!(isInteger(count) || count === Infinity) || count < 0) {
      throw new TypeError('notify: count must be a non-negative integer or Infinity, not ' + describe(count))
    }
    return notify(wordOf(this), count)
  }
}

function isMet (predicate) {
  const answer = predicate()
  assertNoPromise(answer, 'waitFor: predicate', 'waitForAsync()')
  return answer
}

/**
 * Waits, blocking. The lock is held again, however this ends.
 * @throws {Error} with code ERR_DEADLOCK if a promise of this thread would get the lock first: it could not release it
 */
function block (word, held, timeout, caller) {
  const place = observer.callHere()
  const sample = observer.sample()
  // A getter of the token's may unlock it.
  const ownerDied = sawOwnerDied(held.token)
  if (!isHeld(held)) throw notHeld(caller)
  if (timeout === 0) return false
  const { native, waitGivingBack } = agent()
  if (isAwaited(held.word)) throw deadlock(caller, held.word, described(held.request), 'awaits')
  assertStack()
  // Its wait repairs nothing: other holders see `ownerDied` meanwhile.
  if (ownerDied) held.word.noteDeath()
  const index = theList().toEnd(indexOfHold(held))
  theList().ends(index)
  const recorded = observer.recordBegins(sample, { address: word.address, waitKind: CONDITION })
  let isNotified = false
  try {
    native.words[CALL] = place
    isNotified = waitGivingBack(word.address, timeout, index, () => {
      theList().vacate(index)
      held.word.notifyHost()
    }) === 'ok'
    return isNotified
  } finally {
    if (isNotified) held.notifiedAt = word
    if (recorded !== undefined) observer.recordEnds(recorded)
    try {
      if (!isHeld(held)) acquire(held, Infinity, caller)
    } finally {
      agent().forwardNotification()
      theList().door.open()
    }
  }
}

async function awaitOnce (condition, token, options, steps) {
  assertStack()
  try {
    const held = assertHeld(token, 'waitAsync')
    return await awaitNotice(wordOf(condition), held, waitOptions(options, 'waitAsync'), steps, 'waitAsync')
  } finally {
    steps.end()
  }
}

async function awaitUntil (condition, token, predicate, options, steps) {
  assertStack()
  try {
    assertHeld(token, 'waitForAsync')
    assertFunction(predicate, 'waitForAsync', 'predicate')
    const { timeout, signal } = waitOptions(options, 'waitForAsync')
    const word = wordOf(condition)
    const left = countdown(timeout)
    // Before its first step, too: the predicate comes first.
    steps.isPending = true
    observer.sampleOf(steps)
    let isOver = await predicate()
    for (let isLate = false; !isOver && !isLate; isOver = await predicate()) {
      const held = assertHeld(token, 'waitForAsync')
      isLate = !await awaitNotice(word, held, { timeout: left(), signal }, steps, 'waitForAsync')
    }
    // It may have been unlocked meanwhile, as `executeLocked` does at the end of its callback.
    assertHeld(token, 'waitForAsync')
    return !!isOver
  } finally {
    steps.end()
  }
}

/**
 * Waits, by a promise. The lock is held again, however this ends, unless the token is unlocked meanwhile, as
 * `executeLocked` does at the end of its callback: then nothing would release the lock, so it is not taken again.
 *
 * @throws {Error} with code ERR_NOT_LOCKED in that case
 */
async function awaitNotice (word, held, wait, steps, caller) {
  throwIfAborted(wait.signal)
  if (!isHeld(held)) throw notHeld(caller)
  const value = load(word.array, 0)
  const { stepsOf } = theList()
  stepsOf.set(held.serial, steps)
  // A getter of the token's, and code of the signal's, may unlock it.
  let ownerDied
  let isReleased = false
  try {
    let result
    try {
      result = await waitAsync(word, value, wait, steps, CONDITION, {
        onEnqueuing: () => {
          ownerDied = sawOwnerDied(held.token)
          if (!isHeld(held)) throw notHeld(caller)
        },
        // Its wait repairs nothing.
        onEnqueued: () => {
          isReleased = true
          if (ownerDied) held.word.noteDeath()
          release(indexOfHold(held), false)
          theList().door.open()
        },
        // At once, and not in a later microtask: if the thread ended in between, the notification would be lost.
        onNotified: (resolve, reject) => lockNotified(word, held, steps, resolve, reject)
      })
    } catch (reason) {
      if (isReleased) await lockAgain(held, steps)
      throw reason
    }
    if (result !== 'ok') await lockAgain(held, steps)
    return result === 'ok'
  } finally {
    if (stepsOf.get(held.serial) === steps) stepsOf.delete(held.serial)
  }
}

function lockNotified (word, held, steps, resolve, reject) {
  try {
    if (steps.reason !== undefined) throw steps.reason
    held.notifiedAt = word
    reacquire(held, () => resolve('ok'), reject, steps)
  } catch (reason) {
    held.notifiedAt = undefined
    agent().forwardNotification()
    reject(reason)
  }
}

async function lockAgain (held, steps) {
  if (steps.reason !== undefined) throw steps.reason
  if (!isHeld(held)) await new Promise((resolve, reject) => reacquire(held, resolve, reject, steps))
}

function assertHeld (token, caller) {
  if (!isToken(token)) throw noLock(caller, describe(token))
  const held = holdOf(token)
  if (held === undefined) throw notHeld(caller)
  if (!isExclusive(held.request)) throw noLock(caller, 'of a share, of permits or of a name')
  return held
}

const noLock = (caller, given) =>
  new TypeError(caller + ': token must be the UnlockToken of a lock that is held exclusively, not ' + given)
const notHeld = (caller) => notLocked(caller + ': the token\'s lock is not held')

const isHeld = (held) => indexOfHold(held) >= 0

defineView(Condition, [], ({ waiters }) => ({ waiters }))

module.exports = Condition
