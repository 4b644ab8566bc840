'use strict'

/** Node's `worker_threads`; `threads` is undefined on a Node 10 that was started without --experimental-worker. */
let threads
try {
  threads = require('worker_threads')
} catch (_) {
  threads = undefined
}

exports.threads = threads
