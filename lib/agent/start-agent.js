'use strict'

/**
 * Starts this thread's agent in native code, before its modules are loaded.
 *
 * Its start makes asynchronous resources. A hook of async_hooks runs then, and may use the package: so no module is
 * half loaded at that moment, and whoever comes first, the hook or its caller, starts the agent.
 */

const { SHARES_END_SIGNAL } = require('../util/quirks')
const { ArrayBuffer } = require('../util/intrinsics')
const { threadId, threadName } = require('../util/worker-threads')
const { BATCH, WORDS } = require('./registers')

/** Bun has functions with libuv's names, but not its event loop. */
const HAS_LIBUV = process.versions.bun === undefined

/** What has been started; and the function that settles, once `registers-view.js` has put it here. */
const started = { binding: undefined, buffer: undefined, operations: undefined, deliver () {} }

/**
 * Runs between two slices of a blocking wait. The engine can interrupt the thread here, as wherever a function is
 * called. Before the first slice it calls the function that the wait was given.
 */
function tick (fn) {
  try {
    if (fn !== undefined) fn()
  } catch (_) {
    // No stack is left. The wait must not end for that.
  }
}

/** Starts the agent, unless this copy has. In vain, if a hook has started one meanwhile, by another copy. */
function start (binding) {
  if (started.operations !== undefined) return
  const buffer = new ArrayBuffer(4 * (WORDS + BATCH))
  const operations = binding.start(
    buffer, (count) => started.deliver(count), tick, threadId, threadName, HAS_LIBUV, !SHARES_END_SIGNAL)
  if (operations === null) return
  started.binding = binding
  started.buffer = buffer
  started.operations = operations
}

module.exports = { start, started }
