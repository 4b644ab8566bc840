'use strict'

/** Node's `worker_threads`; undefined on Node 10 without --experimental-worker. Then there is one thread. */
let threads
try {
  threads = require('worker_threads')
} catch (_) {
  threads = undefined
}

const { isMainThread, threadId } = threads || { isMainThread: true, threadId: 0 }

/** The name of this thread; undefined if none is known. Node tells it, or an install. */
const threadName = nameOf(threads)

function nameOf (threads) {
  const name = threads && threads.threadName
  // See install/workers/by-message/start.js.
  if (name === undefined) return require('events')[Symbol.for('atomics-waitasync.thread-name')]
  // The second is Node's name for a Worker without one.
  return name === '' || name === 'WorkerThread' ? undefined : name
}

module.exports = { isMainThread, threadId, threadName, threads }
