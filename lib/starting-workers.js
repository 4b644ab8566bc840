'use strict'

/**
 * The Workers of this thread that an install reaches, from their construction to their end: any of them may come to notify, so what
 * waits to be notified keeps the event loop alive although they have not loaded the native library yet.
 *
 * A worker's end is known by what Node itself has called then, and not by an 'exit' listener: users count listeners, and remove all.
 */

const { apply } = Reflect
const { getOwnPropertySymbols } = Object

/** By `threadId`, until they end. */
const started = new Set()
/** Undefined as long as this thread has not asked for the native library. */
let binding

/** `worker` has been made, and is going to load an entry. */
exports.add = function add (worker) {
  const { threadId } = worker
  // It has ended already, or was never started.
  if (!(threadId > 0)) return
  started.add(threadId)
  if (binding !== undefined) binding.workerStarts(threadId)
  whenEnded(worker, () => {
    started.delete(threadId)
    if (binding !== undefined) binding.workerEnded(threadId)
  })
}

/** From now on native code is told, first of those that there are. */
exports.tell = function tell (nativeLibrary) {
  binding = nativeLibrary
  started.forEach((threadId) => binding.workerStarts(threadId))
}

function whenEnded (worker, callback) {
  const handle = getOwnPropertySymbols(worker).map((symbol) => worker[symbol]).find(isHandle)
  if (handle === undefined) {
    worker.once('exit', callback)
    return
  }
  const { onexit } = handle
  handle.onexit = function () {
    callback()
    return apply(onexit, this, arguments)
  }
}

/** Node's native half of a Worker. */
const isHandle = (value) => typeof value === 'object' && value !== null && typeof value.onexit === 'function'
