'use strict'

/** Finds the agent of this thread, or makes it. All copies of the package in the thread share it. */

const { define, getOwnPropertyDescriptor } = require('../util/intrinsics')
const { assertStackToLoad } = require('../util/stack')
const beforeUse = require('./before-use')
const { inRootContext, load } = require('./load-binding')
const { start } = require('./start-agent')
const startingWorkers = require('./starting-workers')

let current

// Not an inherited property.
const isMade = (binding) => getOwnPropertyDescriptor(binding, 'agent') !== undefined

/** Makes this thread's agent. A hook of async_hooks, which its start may call, may do so first. */
function make (binding) {
  start(binding)
  if (!isMade(binding)) define(binding, 'agent', require('./agent'))
}

/**
 * Returns this thread's agent, and makes it first if necessary. It is a property of the native library's exports, so
 * that all copies of the package find it.
 */
function agent () {
  if (current === undefined) {
    assertStackToLoad()
    const binding = load()
    if (!isMade(binding)) inRootContext(() => make(binding))
    beforeUse.call(binding.agent)
    current = binding.agent
    startingWorkers.report(binding)
  }
  return current
}

exports.agent = agent
/**
 * Throws a stack overflow before an operation begins without enough stack. Each operation calls it before it changes
 * anything, unless it makes all its changes by one built-in or native call and calls nothing of the package afterwards:
 * without enough stack, any call may throw.
 */
exports.assertStack = () => agent().assertStack()
/** Lets a promise keep the event loop alive, or not. False if it is no pending wait of this thread. */
exports.setRefed = (promise, refed) => current !== undefined && current.setRefed(promise, refed)
