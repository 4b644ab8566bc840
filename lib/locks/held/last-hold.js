'use strict'

/**
 * Keeps a thread's shared memory until the native clean-up hook has run. Only needed before Node 14.
 *
 * In these versions, shared memory that has been sent to another thread belongs to all threads that have it. Each thread releases it in a
 * clean-up hook of its environment, which is added when the memory is first sent or received, and hooks run last-in first-out. So
 * a thread that ends might release the memory before the native hook hands over the locks in it.
 *
 * The remedy: the memory is sent (to no receiver), which adds its hook now, and then the native hook is added again. Since Node 14
 * the memory belongs to its buffer, which lives longer than all hooks.
 */

const { createWeakMap } = require('../../util/intrinsics')
const NODE_VERSION = require('../../util/node-version')
const { threads } = require('../../util/worker-threads')

module.exports = function createLastHold (binding) {
  if (threads === undefined || NODE_VERSION >= 14) return () => {}
  const { MessageChannel } = threads
  const buffers = createWeakMap()

  return function keep (buffer) {
    if (buffers.has(buffer)) return
    const { port1 } = new MessageChannel()
    port1.postMessage(buffer)
    port1.close()
    binding.endFirst()
    buffers.set(buffer, true)
  }
}
