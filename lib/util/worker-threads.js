'use strict'

/** Node's `worker_threads`; `threads` is undefined on a Node 10 that was started without --experimental-worker: it has one thread. */
let threads
try {
  threads = require('worker_threads')
} catch (_) {
  threads = undefined
}

const { isMainThread, threadId } = threads || { isMainThread: true, threadId: 0 }

/** The name that a program has given this thread; undefined if there is none, or neither Node nor an install tells. */
const threadName = nameOf(threads)

function nameOf (threads) {
  const name = threads && threads.threadName
  // See install/workers/by-message/start.js.
  if (name === undefined) return require('events')[Symbol.for('atomics-waitasync.thread-name')]
  // The second is what Node calls a Worker without a name.
  return name === '' || name === 'WorkerThread' ? undefined : name
}

module.exports = { isMainThread, threadId, threadName, threads }
