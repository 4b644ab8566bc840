'use strict'

/**
 * Makes an install reach new Workers before their own code runs. Otherwise a plain `Atomics.notify` in a worker
 * would silently wake no waiter of ours.
 *
 * Workers are reached by the message that starts them: the one way that reaches all of them, on every Node, and leaves
 * their flags, environment and options alone. docs/environments.md has the situations.
 *
 * Node's class calls its parent's constructor, which it looks up at that moment, and later in the same constructor
 * posts the message by the public `MessagePort.prototype.postMessage`. So a parent in between knows when to look at the
 * next message. This reaches every worker, also of a subclass or of a reference to Worker that is older than the
 * install. But it is undocumented: if a future Node does it differently, nothing is recognised and nothing changed, and
 * a warning says so.
 *
 * Invariant: `postMessage` is replaced only while `starting` is not empty. That ends within the constructor, or with
 * the current tick if the constructor throws. If other code has wrapped our function by then, its function stays, and
 * ours passes messages on.
 */

const path = require('path')
const startingWorkers = require('../../agent/starting-workers')
const { define, defineProperty, nextTick } = require('../../util/intrinsics')
const { NO_TRACKED_FDS } = require('../../util/quirks')
const { isObject, ownValue } = require('../../util/values')
const { isEnabled } = require('../../util/variables')
const { keepCode, shared, threads } = require('../../util/worker-threads')
const { hostWorker, interpose, isInterposed } = require('./host-worker')
// Not in the call: an install in a test file outlives that file's `require`.
const letStart = require('./by-message/source')

const { apply, construct, deleteProperty, getOwnPropertyDescriptor } = Reflect

const ROOT = path.join(__dirname, '..', '..', '..')

/** The entry that workers load first, by the kind of install: an engine of Atomics, or the locks of navigator. */
const ENTRY_OF = {
  addon: path.join(ROOT, 'force', 'index.js'),
  host: path.join(ROOT, 'keep-alive', 'index.js'),
  locks: path.join(ROOT, 'web-locks', 'index.js')
}

/**
 * State of all copies in this thread: they share one replacement.
 * - `Atomics`, `navigator`: the installs that have not been undone, from the number of each to the entry that
 *   Workers load; the latest last
 * - `latest`: the number of the latest install
 * - `leave`: undoes the replacement
 */
const state = shared('reach', () => {
  return { Atomics: new Map(), navigator: new Map(), latest: 0, leave: undefined }
})

/** Lists the entries for a starting worker: Atomics' latest, and navigator's. Undefined if there is none. */
function currentEntries () {
  const entries = lastOf(state.Atomics).concat(lastOf(state.navigator))
  return entries.length === 0 ? undefined : entries
}

const lastOf = (entries) => Array.from(entries.values()).slice(-1)

/**
 * @param {'addon' | 'host' | 'locks'} engine the queue that workers will use; 'locks': they get `navigator.locks`
 * @param {boolean} isAtLoad whether an entry asks, which is being loaded: then there is a warning instead of an error
 * @returns {() => void} undoes it, unless other code has replaced the same things since
 * @throws {TypeError} Node's class has been frozen
 */
exports.reach = function reach (engine, isAtLoad) {
  const HostWorker = hostWorker()
  const isOther = process.versions.bun || process.versions.deno
  if (HostWorker === undefined && !isOther) {
    if (threads !== undefined) {
      warn('other code has replaced worker_threads.Worker, and Node\'s class is not found behind it')
    }
    return () => {}
  }
  const leave = isOther ? require('./by-wrapping')(currentEntries) : reachByMessage(HostWorker)
  if (leave === undefined) {
    const problem = 'worker_threads.Worker is not extensible'
    if (!isAtLoad) throw new TypeError('install: workers must be false, because ' + problem)
    warn(problem)
    return () => {}
  }
  const entries = engine === 'locks' ? state.navigator : state.Atomics
  const number = ++state.latest
  entries.set(number, ENTRY_OF[engine])
  return () => {
    entries.delete(number)
    leave()
  }
}

/**
 * Replaces the parent of Node's class, unless an install has done so. Returns a function that undoes that once all
 * installs have been undone.
 */
function reachByMessage (HostWorker) {
  if (!isInterposed(HostWorker)) state.leave = interpose(HostWorker, intercept)
  return state.leave && (() => {
    if (currentEntries() === undefined) state.leave()
  })
}

/** How a program reaches those that an install does not. */
const REMEDY = 'Give them execArgv: [\'-r\', \'atomics-waitasync/force\']'

const warn = (why) => startingWorkers.warn('An install does not reach Workers: ' + why + '. ' + REMEDY)

// ——— the message of a Worker that starts ———

/** The entries of each Worker whose message is still to come. */
const starting = new Map()
/** The property `postMessage` before and after, while it is replaced. */
let replaced

/** The constructor of the parent's part of a Worker. */
function intercept (target, args, newTarget) {
  const worker = construct(target, args, newTarget)
  const entries = currentEntries()
  if (entries !== undefined) {
    keepCode()
    expectName()
    expectMessage(worker, entries)
  }
  return worker
}

function expectMessage (worker, entries) {
  if (starting.size === 0) nextTick(stopExpecting)
  starting.set(worker, entries)
  const { prototype } = threads.MessagePort
  const before = getOwnPropertyDescriptor(prototype, 'postMessage')
  if (replaced !== undefined || before === undefined || typeof before.value !== 'function') return
  const postMessage = before.value
  const after = Object.assign({ __proto__: null }, before, {
    value (message) {
      const worker = isLoadScript(message) ? workerOf(this) : undefined
      if (worker === undefined) return apply(postMessage, this, arguments)
      const entries = starting.get(worker)
      starting.delete(worker)
      letStart(message, entries, name)
      forgetName()
      if (starting.size === 0) stopExpecting()
      apply(postMessage, this, arguments)
      // The Worker's constructor has not returned yet.
      nextTick(startingWorkers.add, worker)
    }
  })
  replaced = { before, after }
  defineProperty(prototype, 'postMessage', after)
}

function stopExpecting () {
  starting.forEach((_, worker) => { if (hasThread(worker)) warnOf(worker) })
  starting.clear()
  forgetName()
  if (replaced === undefined) return
  const { prototype } = threads.MessagePort
  if (prototype.postMessage === replaced.after.value) defineProperty(prototype, 'postMessage', replaced.before)
  replaced = undefined
}

function warnOf ({ threadId }) {
  startingWorkers.warn('An install did not reach the worker with the threadId ' + threadId + ': this Node starts ' +
    'workers in an unknown way. ' + REMEDY)
}

/** Whether a worker has a thread: not if its constructor threw. */
function hasThread (worker) {
  try {
    return worker.threadId > 0
  } catch (_) {
    return false
  }
}

/** Finds the starting worker that has a port. It is a property with one of Node's symbols. */
function workerOf (port) {
  for (const worker of starting.keys()) {
    if (Object.getOwnPropertySymbols(worker).some((symbol) => worker[symbol] === port)) return worker
  }
  return undefined
}

function isLoadScript (message) {
  return typeof message === 'object' && message !== null && message.type === 'loadScript' &&
    typeof message.filename === 'string' && message.doEval !== undefined && message.publicPort !== undefined
}

/** An option that the constructor reads before it posts its message. */
const OPTION = NO_TRACKED_FDS ? 'stdin' : 'trackUnmanagedFds'
const ObjectPrototype = Object.prototype

let getter
/** The name of the latest Worker, until its message. */
let name

/**
 * Prepares to find out the name of a new Worker. Reports and dumps show it, where Node's threads do not know theirs.
 *
 * Node's constructor keeps its options to itself. But it reads an option from them that hardly any program gives: so
 * until it does, `Object.prototype` has a getter, which is called on the options. That is only where the environment
 * asks for reports or dumps, and no code of the program's runs meanwhile but getters of the options.
 */
function expectName () {
  forgetName()
  if (threads.threadName !== undefined || !isEnabled()) return
  if (getOwnPropertyDescriptor(ObjectPrototype, OPTION) !== undefined) return
  getter = function () {
    forgetName()
    // Not by a getter, which was called once already.
    const value = isObject(this) ? ownValue(this, 'name') : undefined
    name = typeof value === 'string' && value !== '' ? value : undefined
  }
  // Assigned to an object, the property is defined on it, as without the getter.
  const set = function (value) { define(this, OPTION, value, true, true) }
  defineProperty(ObjectPrototype, OPTION, { get: getter, set, configurable: true })
}

/** Removes the getter, unless it was replaced, and forgets the name. */
function forgetName () {
  name = undefined
  const property = getter && getOwnPropertyDescriptor(ObjectPrototype, OPTION)
  if (property !== undefined && property.get === getter) deleteProperty(ObjectPrototype, OPTION)
  getter = undefined
}
