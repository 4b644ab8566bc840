'use strict'

/**
 * Reaches workers by a flag: `Worker` is replaced by a proxy whose constructor adds `-r <entry>` to `execArgv`.
 *
 * A worker that is given an `execArgv` inherits no flags, so that those of this thread have to be spelled out. That says
 * the same from Node 23 on, where workers inherit the flags of the thread that starts them (before, it was the process's
 * flags, or none if there was an `env`). It cannot say all of them: a Worker refuses flags that are for the whole process,
 * such as V8's. Those hold in the worker anyway; only `process.execArgv` would not show them. So the list that the worker
 * would have without us travels as environment data, and the worker puts it back (this module, when the entry's install
 * loads it there) before any other code sees it.
 */

const { MARK } = require('./host')
const { flags, NODE_OPTIONS } = require('./inherited-flags')
const startingWorkers = require('./starting-workers')
const { passNext } = require('./worker-message')
const { threads } = require('./worker-threads')

const { construct, get, has } = Reflect

const KEY = 'atomics-waitasync'

exports.supported = threads !== undefined && Number(process.versions.node.split('.')[0]) >= 23

/** Whether workers inherit flags from a NODE_OPTIONS that is no longer in the environment. */
let forgotten = false

if (exports.supported && !threads.isMainThread) receive()

/** What this thread's parent has sent along. */
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

/** To be called before a worker is started, whichever way: notices a NODE_OPTIONS that has changed, and tells the worker. */
exports.checkEnvironment = function checkEnvironment () {
  if (!exports.supported) return
  forgotten = forgotten || process.env.NODE_OPTIONS !== NODE_OPTIONS
  if (forgotten) threads.setEnvironmentData(KEY, { forgotten })
}

/** To be called when workers are no longer reached: takes back what `checkEnvironment` sends along. */
exports.leaveEnvironment = function leaveEnvironment () {
  if (forgotten) threads.setEnvironmentData(KEY, undefined)
}

/**
 * A Worker whose instances load an entry first.
 *
 * @param {Function} Worker what is wrapped
 * @param {Function} HostWorker Node's own class behind it
 * @param {() => (string | undefined)} currentEntry gives the entry's absolute path
 */
exports.wrap = function wrap (Worker, HostWorker, currentEntry) {
  const Wrapped = new Proxy(Worker, {
    construct (target, [script, options, ...rest], newTarget) {
      const entry = currentEntry()
      const inherited = entry === undefined || forgotten ? undefined : require('./accepted-flags')(HostWorker)
      // Without those, `worker-message.js` reaches the worker; and what is no options object is Node's to refuse.
      if (inherited === undefined || options === null) return construct(target, [script, options, ...rest], newTarget)

      const sent = { forgotten, entry, flags }
      const before = threads.getEnvironmentData(KEY)
      threads.setEnvironmentData(KEY, sent)
      passNext(true)
      try {
        const worker = construct(target, [script, withEntry(Object(options), inherited, sent), ...rest], newTarget)
        startingWorkers.add(worker)
        return worker
      } finally {
        passNext(false)
        threads.setEnvironmentData(KEY, before)
      }
    },
    // Not for a subclass, which inherits from here.
    get: (target, key, receiver) => key === MARK && receiver === Wrapped ? Worker : get(target, key, receiver)
  })
  return Wrapped
}

/**
 * The user's options with the entry's flag in `execArgv`. A view, so that getters run as often as without us, on the
 * object they belong to. Of nothing, since a proxy of the options themselves could not show another value of a frozen
 * object's property.
 */
function withEntry (options, inherited, sent) {
  return new Proxy({}, {
    get (_, key) {
      const value = get(options, key)
      if (key !== 'execArgv') return value
      if (Array.isArray(value)) {
        sent.flags = undefined
        // In front, for Node stops reading at the first that is no flag.
        return ['-r', sent.entry].concat(value)
      }
      // Behind, so that what the other preloads change of Atomics has been changed by then, as in this thread.
      return value ? value : inherited.concat('-r', sent.entry)
    },
    has: (_, key) => has(options, key)
  })
}
