'use strict'

/**
 * Keeps an install out of the conversation between Node's module loader and the thread that its hooks run in.
 *
 * Node 18.19 to 21 take `Atomics.wait` from the global object when hooks are first needed. If they then got ours, the
 * thread would block in our queue and wait for a thread that only knows the host's: for ever. So Node is made to take its
 * functions before an install: by asking for a hook, and stopping Node at the first thing that it does next, which is
 * to start that thread. Later versions have taken theirs long before.
 */

const { hostWorker } = require('./worker-threads')

const { getPrototypeOf, setPrototypeOf } = Reflect

const MAJOR = Number(process.versions.node.split('.')[0])
let done = MAJOR < 18 || MAJOR >= 22

/** To be called in each thread before its Atomics are replaced. */
module.exports = function takeHostFunctions () {
  if (done) return
  done = true
  const Module = require('module')
  const HostWorker = hostWorker()
  if (HostWorker === undefined || typeof Module.register !== 'function') return
  const stop = new Error('enough')
  const Parent = getPrototypeOf(HostWorker)
  setPrototypeOf(HostWorker, function () { throw stop })
  try {
    // If there are hooks already, then Node has its functions, and looks at what it shall register.
    Module.register({ toString () { throw stop } })
  } catch (error) {
    if (error !== stop) throw error
  } finally {
    setPrototypeOf(HostWorker, Parent)
  }
}
