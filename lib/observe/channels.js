'use strict'

/**
 * Publishes waits, holds, stalls and deaths on `diagnostics_channel`, where Node has it. It looks for subscribers only
 * where a thread or promise really waits, or a dead thread has abandoned a lock. All messages leave by the door.
 */

const { AsyncResource } = require('async_hooks')
const { agent } = require('../agent/find-agent')
const { bare, createMap, nextTick, now } = require('../util/intrinsics')
const { LEASE, amountOf, described, isNamed, isVisible, kindOf, requestIn } = require('../holding/request')

// Opened at once: later, a changed `Array.prototype` would end the process in Node's loader (14 to 16).
const waitChannel = open('atomics-waitasync:wait')
const deathChannel = open('atomics-waitasync:owner-died')
const stallChannel = open('atomics-waitasync:stall')
const holdChannel = exports.holdChannel = open('atomics-waitasync:hold')

const WORD = 4

function open (name) {
  try {
    return require('diagnostics_channel').channel(name)
  } catch (_) {
    return { hasSubscribers: false }
  }
}

/** Returns the asynchronous context for subscribers; undefined if there are none. */
const contextOfWait = exports.contextOfWait = () => {
  const hasAny = waitChannel.hasSubscribers || deathChannel.hasSubscribers || stallChannel.hasSubscribers
  // eslint-disable-next-line own/one-door -- before anything has begun
  return hasAny ? new AsyncResource('atomics-waitasync:wait') : undefined
}

/**
 * Notes that a wait is about to begin. Returns the argument of `waited`: its beginning and its context; undefined if
 * there are no subscribers.
 * @param {object} [context] the context of the wait of which this is a step, if it had subscribers
 */
exports.waits = function waits (context = contextOfWait()) {
  return context && { began: now(), context }
}

/** Notes a wait for a hold that is over. Never throws. `since`: of `waits`. */
exports.waited = function waited (since, { word, request }, outcome) {
  try {
    if (!waitChannel.hasSubscribers) return
    const { kind, mode } = described(request)
    const message = { kind, mode, name: word.name, id: word.id, milliseconds: now() - since.began, outcome }
    agent().door.note(() => since.context.runInAsyncScope(() => waitChannel.publish(message)))
  } catch (_) {
    // No stack is left. The lock must work all the same.
  }
}

/**
 * Notes that this thread has taken a dead thread's lock. The message is published in a tick of its own, since its
 * subscribers might release the lock that is just being taken. Never throws.
 * @param {object} [since] of `waits`, if it has waited
 */
exports.ownerDied = function ownerDied (word, request, since) {
  try {
    if (!deathChannel.hasSubscribers) return
    const threadId = agent().native.binding.deadOwner(word.address)
    const message = {
      kind: described(request).kind,
      name: word.name,
      id: word.id,
      threadId: typeof threadId === 'number' ? threadId : null
    }
    agent().door.note(() => {
      const publish = () => deathChannel.publish(message)
      if (since === undefined) nextTick(publish)
      else since.context.runInAsyncScope(nextTick, undefined, publish)
    })
  } catch (_) {
    // As above.
  }
}

/**
 * Notes a wait that lasts too long. Never throws.
 * @param {object} report as `write_report` in core/src/observe/reports.rs writes it
 * @param {object} [since] of `waits`, of a wait of this thread
 */
exports.stalled = function stalled ({ entry, more, holders, cycle }, since) {
  try {
    // Another report of the same waits has them. Native code also leaves out entries that no string can hold.
    if (!stallChannel.hasSubscribers || entry === undefined) return
    const { threadId } = entry
    const message = { entry, more, holders, ...cycle !== undefined && { cycle }, threadId }
    agent().door.note(() => {
      const publish = () => stallChannel.publish(message)
      if (since === undefined) publish()
      else since.context.runInAsyncScope(publish)
    })
  } catch (_) {
    // As above.
  }
}

/** Publishes the message of a stall. In a turn of its own. */
exports.publishStall = function publishStall (message) {
  if (!stallChannel.hasSubscribers) return
  agent().door.note(() => stallChannel.publish(message))
  agent().door.open()
}

/**
 * Publishes how long the holds of this thread last. It does so for those that begin while there are subscribers.
 *
 * The robust list calls `begin` and `end` where an entry comes and goes, with its serial number, which stays the
 * same while entries move. An entry goes in the midst of a release, so the message leaves by the door.
 */
exports.Holds = class Holds {
  constructor (binding) {
    this.binding = binding
    // By serial number, when it began; and how many there are. Without any, the end of a hold costs one comparison.
    this.began = createMap()
    this.count = 0
  }

  /**
   * Returns the place of a hold that is about to be taken. May run a program's code. UNAVAILABLE: it cannot be, and
   * nothing was noted. `isInLine`: where there may be waiters.
   */
  placeOf (word, request, isInLine) {
    return 0
  }

  /**
   * Notes the beginning of a hold. Called before it is taken, since there may be no stack for this. No code of the
   * program's runs.
   */
  begin (serial, request, token, place) {
    if (!holdChannel.hasSubscribers || !isVisible(request)) return
    this.began.set(serial, now())
    this.count++
  }

  forget (serial) {
    if (this.began.delete(serial)) this.count--
  }

  rename (from, to, token, place) {
    const began = this.began.get(from)
    if (began === undefined) return
    this.began.delete(from)
    this.began.set(to, began)
  }

  /** Notes the end of a hold. Called before its entry is released, as `begin`. */
  end ({ entries, held, serials }, index) {
    const serial = serials[index]
    const began = this.began.get(serial)
    if (began === undefined) return
    const message = this.message(held[index], requestIn(entries[2 * index + 1]), now() - began)
    this.forget(serial)
    agent().door.note(() => holdChannel.publish(message))
  }

  message (word, request, milliseconds) {
    const { kind, mode } = described(request)
    // A message of a queue that is in use has a word of its own.
    const address = kindOf(request) === LEASE ? word.address - WORD * amountOf(request) : word.address
    const name = isNamed(request) ? word.name : this.binding.labelOf(address)
    return { kind, mode, name: name === null ? undefined : name, id: this.binding.wordId(address), milliseconds }
  }
}
bare(exports.Holds)
