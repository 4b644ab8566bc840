'use strict'

/** Node's `worker_threads`; `threads` is undefined on a Node 10 that was started without --experimental-worker: it has one thread. */
let threads
try {
  threads = require('worker_threads')
} catch (_) {
  threads = undefined
}

const { isMainThread, threadId } = threads || { isMainThread: true, threadId: 0 }

module.exports = { isMainThread, threadId, threads }
