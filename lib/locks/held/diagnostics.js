'use strict'

/**
 * Publishes on `diagnostics_channel`, where Node has it, which threads and promises have waited for a lock, and which holders died. It
 * looks for subscribers only where something really waits, or was left behind by a dead thread.
 */

const { agent } = require('../../agent/agent')
const { hrtime } = require('../../util/intrinsics')
const { described } = require('./request')

const { AsyncResource } = require('async_hooks')

const { nextTick } = process

/** Null where there are none. Opened at once: later, a changed `Array.prototype` would end the process in Node's loader (14 to 16). */
const channels = open()

function open () {
  try {
    const { channel } = require('diagnostics_channel')
    return { wait: channel('atomics-waitasync:wait'), ownerDied: channel('atomics-waitasync:owner-died') }
  } catch (_) {
    return { wait: null, ownerDied: null }
  }
}

/** A channel that has subscribers; otherwise null. */
function subscribed (key) {
  const channel = channels[key]
  return channel !== null && channel.hasSubscribers ? channel : null
}

/**
 * A wait is about to begin. Returns what `waited` wants: when it began, and its asynchronous context, in which subscribers are called;
 * undefined if there are no subscribers.
 */
exports.waits = function waits () {
  if (subscribed('wait') === null) return undefined
  return { began: hrtime(), context: new AsyncResource('atomics-waitasync:wait') }
}

/**
 * A wait for a hold is over. Never throws.
 * @param {'acquired' | 'timed-out' | 'aborted'} outcome
 */
exports.waited = function waited (since, { word, request }, outcome) {
  try {
    const channel = subscribed('wait')
    if (channel === null) return
    const past = hrtime(since.began)
    const { kind, mode } = described(request)
    const message = {
      kind, mode, name: word.name, id: word.id, milliseconds: past[0] * 1e3 + past[1] / 1e6, outcome
    }
    since.context.runInAsyncScope(() => channel.publish(message))
  } catch (_) {
    // No stack is left, or a subscriber has thrown. The lock must work all the same.
  }
}

/**
 * This thread has what a dead thread held. The message is published in a tick of its own, since its subscribers might release what is
 * just being taken. Never throws.
 */
exports.ownerDied = function ownerDied (word, request) {
  try {
    const channel = subscribed('ownerDied')
    if (channel === null) return
    const threadId = agent().native.binding.deadOwner(word.address)
    const message = {
      kind: described(request).kind, name: word.name, id: word.id, threadId: typeof threadId === 'number' ? threadId : null
    }
    nextTick(() => channel.publish(message))
  } catch (_) {
    // As above.
  }
}
