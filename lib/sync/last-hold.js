'use strict'

/**
 * Keeps a thread's share in memory until the thread's end has been seen to.
 *
 * Before Node 14, shared memory that has been sent to another thread belongs to all threads that have it, and each lets go of
 * it in a clean-up hook of its environment, which is added when the memory is first sent or received. Hooks run
 * last-in first-out: so a thread that ends may have given the memory back to the system before the native side passes on
 * the locks in it.
 *
 * The remedy is to have that hook added now, by sending the memory (to nobody), and then to have the native side's own hook
 * added again. Since Node 14 the memory belongs to its buffer, which goes after all hooks.
 */

const { createWeakMap } = require('../intrinsics')
const { threads } = require('../worker-threads')

module.exports = function createLastHold (binding) {
  if (threads === undefined || Number(process.versions.node.split('.')[0]) >= 14) return () => {}
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
