'use strict'

/**
 * Publishes on `diagnostics_channel`, where Node has it, which threads and promises have waited for a lock, which wait too long, and which
 * holders died. It looks for subscribers only where something really waits, or was left behind by a dead thread. (How long something was
 * held: holds.js.)
 */

const { agent } = require('../../agent/agent')
const { now } = require('../../util/intrinsics')
const { described } = require('../hold/request')
const { entryOf, linkOf, ringOf, stackTexts } = require('./entries')

const { AsyncResource } = require('async_hooks')

const { nextTick } = process

// Opened at once: later, a changed `Array.prototype` would end the process in Node's loader (14 to 16).
const waitChannel = open('atomics-waitasync:wait')
const deathChannel = open('atomics-waitasync:owner-died')
const stallChannel = open('atomics-waitasync:stall')
/** See holds.js. */
exports.holdChannel = open('atomics-waitasync:hold')

function open (name) {
  try {
    return require('diagnostics_channel').channel(name)
  } catch (_) {
    return { hasSubscribers: false }
  }
}

/** The asynchronous context in which subscribers are called; undefined if there are none. */
const contextOfWait = () => waitChannel.hasSubscribers || deathChannel.hasSubscribers || stallChannel.hasSubscribers ? new AsyncResource('atomics-waitasync:wait') : undefined
exports.contextOfWait = contextOfWait

/**
 * A wait is about to begin. Returns what `waited` wants: when it began, and its context; undefined if there are no subscribers.
 * @param {object} [context] that of the wait of which this is a step, if it had subscribers
 */
exports.waits = function waits (context = contextOfWait()) {
  return context && { began: now(), context }
}

/**
 * A wait for a hold is over. Never throws.
 * @param {'acquired' | 'timed-out' | 'aborted'} outcome
 */
exports.waited = function waited (since, { word, request }, outcome) {
  try {
    if (!waitChannel.hasSubscribers) return
    const { kind, mode } = described(request)
    const message = { kind, mode, name: word.name, id: word.id, milliseconds: now() - since.began, outcome }
    since.context.runInAsyncScope(() => waitChannel.publish(message))
  } catch (_) {
    // No stack is left, or a subscriber has thrown. The lock must work all the same.
  }
}

/**
 * This thread has what a dead thread held. The message is published in a tick of its own, since its subscribers might release what is
 * just being taken. Never throws.
 * @param {object} [since] of `waits`, if it has waited
 */
exports.ownerDied = function ownerDied (word, request, since) {
  try {
    if (!deathChannel.hasSubscribers) return
    const threadId = agent().native.binding.deadOwner(word.address)
    const message = {
      kind: described(request).kind, name: word.name, id: word.id, threadId: typeof threadId === 'number' ? threadId : null
    }
    const publish = () => deathChannel.publish(message)
    if (since === undefined) nextTick(publish)
    else since.context.runInAsyncScope(nextTick, undefined, publish)
  } catch (_) {
    // As above.
  }
}

/**
 * A wait lasts too long. Never throws.
 * @param {object} report what `write_report` in src/observe/reports.rs writes of it
 * @param {object} [since] of `waits`, of a wait of this thread
 */
exports.stalled = function stalled ({ entry, holders, cycle }, since) {
  try {
    // Native code leaves out entries that no string can hold.
    if (!stallChannel.hasSubscribers || entry === undefined) return
    const message = messageOf(entry, holders, cycle)
    const publish = () => stallChannel.publish(message)
    if (since === undefined) publish()
    else since.context.runInAsyncScope(publish)
  } catch (_) {
    // As above.
  }
}

/** Of entries as native code writes them. Their arrays are of no one else. */
function messageOf (written, holders, cycle) {
  const stackText = stackTexts(agent().native.binding)
  const entry = entryOf(written, 'called', stackText)
  for (let n = 0; n < holders.length; n++) holders[n] = entryOf(holders[n], 'taken', stackText)
  if (cycle === undefined) return { entry, holders, threadId: entry.threadId }
  for (let n = 0; n < cycle.length; n++) cycle[n] = linkOf(cycle[n], stackText)
  return { entry, holders, cycle: ringOf(cycle), threadId: entry.threadId }
}
