'use strict'

/**
 * Reaches workers by a flag: `Worker` is replaced by a proxy whose constructor adds `-r <entry>` to `execArgv`.
 *
 * A worker that is given an `execArgv` inherits no flags, so this thread's have to be listed in it. From Node 23 on that is
 * equivalent: workers inherit the flags of the thread that starts them (before: the process's flags, or none if there is an
 * `env`). The list cannot be complete, since a Worker refuses flags of the whole process, such as V8's. They apply to the worker
 * anyway, but its `process.execArgv` would lack them. So the original list is sent along as environment data, and the worker
 * restores it (by this module, when the entry's install loads it there) before any other code sees it.
 */

const startingWorkers = require('../agent/starting-workers')
const { MARK } = require('../host')
const NODE_VERSION = require('../util/node-version')
const { threads } = require('../util/worker-threads')
const { skipping } = require('./by-message/intercept')
const { NODE_OPTIONS, accepted, flags } = require('./flags')

const { construct, get, has } = Reflect

const KEY = 'atomics-waitasync'

exports.supported = threads !== undefined && NODE_VERSION >= 23

/** Whether workers inherit flags from a NODE_OPTIONS that is no longer in the environment. */
let forgotten = false

if (exports.supported && !threads.isMainThread) receive()

/** Applies what this thread's parent has sent along. */
function receive () {
  const sent = threads.getEnvironmentData(KEY)
  if (sent === undefined) return
  threads.setEnvironmentData(KEY, undefined)
  forgotten = sent.forgotten
  if (forgotten) return
  for (const list of [process.execArgv, flags]) {
    if (sent.flags !== undefined) list.splice(0, list.length, ...sent.flags)
    else if (list[0] === '-r' && list[1] === sent.entry) list.splice(0, 2)
  }
}

/** To be called before any worker is started: notices that NODE_OPTIONS has changed, and tells the worker. */
exports.checkEnvironment = function checkEnvironment () {
  if (!exports.supported) return
  forgotten = forgotten || process.env.NODE_OPTIONS !== NODE_OPTIONS
  if (forgotten) threads.setEnvironmentData(KEY, { forgotten })
}

/** To be called when workers are no longer reached: stops what `checkEnvironment` began to send. */
exports.leaveEnvironment = function leaveEnvironment () {
  if (forgotten) threads.setEnvironmentData(KEY, undefined)
}

/**
 * A Worker class whose instances load an entry first.
 *
 * @param {Function} Worker the class to wrap
 * @param {Function} HostWorker Node's own class behind it
 * @param {() => (string | undefined)} currentEntry gives the entry's absolute path
 */
exports.wrap = function wrap (Worker, HostWorker, currentEntry) {
  const Wrapped = new Proxy(Worker, {
    construct (target, [script, options, ...rest], newTarget) {
      const entry = currentEntry()
      const inherited = entry === undefined || forgotten ? undefined : skipping(() => accepted(HostWorker))
      // If that is unknown, the worker is reached by message. Node itself refuses options that are null.
      if (inherited === undefined || options === null) return construct(target, [script, options, ...rest], newTarget)

      const sent = { forgotten, entry, flags }
      const before = threads.getEnvironmentData(KEY)
      threads.setEnvironmentData(KEY, sent)
      try {
        const worker = skipping(() => construct(target, [script, withEntry(Object(options), inherited, sent), ...rest], newTarget))
        startingWorkers.add(worker)
        return worker
      } finally {
        threads.setEnvironmentData(KEY, before)
      }
    },
    // A subclass, which inherits from here, has no mark.
    get: (target, key, receiver) => key === MARK && receiver === Wrapped ? Worker : get(target, key, receiver)
  })
  return Wrapped
}

/**
 * A view of the user's options with the entry's flag in `execArgv`. As a view it runs getters as often as without us, on the
 * object that they belong to. It is a proxy of an empty object: one of frozen options could not show another `execArgv`.
 */
function withEntry (options, inherited, sent) {
  return new Proxy({}, {
    get (_, key) {
      const value = get(options, key)
      if (key !== 'execArgv') return value
      if (Array.isArray(value)) {
        sent.flags = undefined
        // In front: Node stops reading at the first argument that is no flag.
        return ['-r', sent.entry].concat(value)
      }
      // At the end: the other preloads change Atomics before the entry, as in this thread.
      return value ? value : inherited.concat('-r', sent.entry)
    },
    has: (_, key) => has(options, key)
  })
}
