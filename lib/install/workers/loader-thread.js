'use strict'

/**
 * Lets Node's module loader use the host's Atomics after an install. The thread in which its hooks run does so, too.
 *
 * Node 18.19 to 21 take `Atomics.wait` from the global object when hooks are first needed. If they took the package's,
 * the thread would block in its queue for ever: the hooks' thread notifies the host's queue. So Node is made to take
 * its functions before an install: by registering a hook, and stopping Node at its next step, which is to start that
 * thread. Later versions have taken their functions long before.
 */

const { LATE_HOOKS } = require('../../util/quirks')
const shared = require('../../util/shared')
const { hostWorker } = require('./host-worker')

const { getPrototypeOf, setPrototypeOf } = Reflect

/** Whether any copy of the package in this thread has done it. */
const state = shared('loader-thread', () => ({ done: !LATE_HOOKS }))

/** Makes Node take its functions, before this thread's Atomics are replaced. */
module.exports = function takeHostFunctions () {
  if (state.done) return
  state.done = true
  const Module = require('module')
  const HostWorker = hostWorker()
  if (HostWorker === undefined || typeof Module.register !== 'function') return
  const stop = new Error('enough')
  const Parent = getPrototypeOf(HostWorker)
  setPrototypeOf(HostWorker, function () { throw stop })
  try {
    // If there are hooks already, Node has taken its functions, and converts this argument next.
    Module.register({ toString () { throw stop } })
  } catch (_) {
    // `stop`; or `register` has refused. A test runner's sandbox has a `register` of its own that always does. The
    // Atomics to be replaced are then those of the sandbox's realm, and Node's loader takes those of the main realm. If
    // it is Node's own that refuses, no hooks can be registered in this thread later either.
  } finally {
    setPrototypeOf(HostWorker, Parent)
  }
}
