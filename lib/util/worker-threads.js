'use strict'

/**
 * Which thread this is. Node's main thread is known without `worker_threads`, whose streams take 2 ms of a first lock:
 * in Workers these functions are disabled.
 */

const { abort, chdir, setuid, versions } = process

const isDisabled = (fn) => typeof fn !== 'function' || fn.disabled === true
// Windows has no `setuid`. A program may have replaced some of them.
const isNodesMain = !versions.bun && !versions.deno && !isDisabled(abort) && !isDisabled(chdir) &&
  (setuid === undefined || !isDisabled(setuid))

/** Node's `worker_threads`; undefined on Node 10 without --experimental-worker. Then there is one thread. */
let threads
let isLoaded = false

function load () {
  if (!isLoaded) {
    isLoaded = true
    try {
      threads = require('worker_threads')
    } catch (_) {
      threads = undefined
    }
  }
  return threads
}

const { isMainThread, threadId } = (!isNodesMain && load()) || { isMainThread: true, threadId: 0 }

/** Returns the name that Node or an install (install/workers/by-message/start.js) tells; undefined if none is known. */
function nameOf ({ threadName: name = require('events')[Symbol.for('atomics-waitasync.thread-name')] }) {
  // The second is Node's name for a Worker without one.
  return name === '' || name === 'WorkerThread' ? undefined : name
}

module.exports = {
  isMainThread,
  threadId,
  threadName: isMainThread ? undefined : nameOf(threads),
  get threads () { return load() },
  /**
   * Leaves what this thread has compiled to the threads that start later. The linker of the published package
   * (scripts/lib/bundle.js) replaces this function; the repository's files are compiled in each thread.
   */
  keepCode () {}
}
