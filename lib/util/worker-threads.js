'use strict'

/**
 * Which thread this is. State that all copies of the package share there.
 *
 * Node's main thread is known without `worker_threads`, whose streams take 2 ms of a first lock: in Workers these
 * functions are disabled.
 */

const EventEmitter = require('events')

// In a Worker this file comes before util/intrinsics.js, whose code it helps to find.
// eslint-disable-next-line no-restricted-syntax -- as above
const { defineProperty, getOwnPropertyDescriptor } = Reflect
const { constructor } = module
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
function nameOf ({ threadName: name = EventEmitter[Symbol.for('atomics-waitasync.thread-name')] }) {
  // The second is Node's name for a Worker without one.
  return name === '' || name === 'WorkerThread' ? undefined : name
}

/**
 * Returns state that all copies of the package in this thread share. Copies in other realms share it, too. It is a
 * property of a class of Node's, since a test runner gives each realm a `process` and globals of its own.
 *
 * Such state lives as long as the thread, and so does all that it refers to. So it keeps the realm that has made it,
 * but no other one: later realms put in primitive values, weak references, or objects that Node itself keeps already.
 */
function shared (name, create) {
  const key = Symbol.for('atomics-waitasync.' + name)
  const property = getOwnPropertyDescriptor(EventEmitter, key)
  if (property !== undefined) return property.value
  const value = create()
  // If the class is frozen, each copy has its own.
  defineProperty(EventEmitter, key, { __proto__: null, value })
  return value
}

module.exports = {
  isMainThread,
  threadId,
  threadName: isMainThread ? undefined : nameOf(threads),
  shared,
  get threads () { return load() },
  /**
   * Node's class `Module`, which has the functions of the module `module`. In a Worker, `require('module')` takes
   * up to a millisecond, because Node looks at all of its properties for `import`. Test runners and other runtimes
   * have modules of their own.
   */
  get Module () {
    return typeof constructor.syncBuiltinESMExports === 'function' ? constructor : require('module')
  },
  /**
   * Leaves what this thread has compiled to the threads that start later. The linker of the published package
   * (scripts/lib/bundle.js) replaces this function; the repository's files are compiled in each thread.
   */
  keepCode () {}
}
