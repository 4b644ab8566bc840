'use strict'

/**
 * Reaches workers by the message that starts a Worker's thread.
 *
 * Node's class calls its parent's constructor, which it looks up at that moment, and later in the same constructor
 * posts the message by the public `MessagePort.prototype.postMessage`. So a parent in between knows when to look at the
 * next message. This reaches every worker, also of a subclass or of a reference to Worker that is older than the
 * install, and leaves flags, environment and all other options as they are. But it is undocumented: if a future Node
 * does it differently, nothing is recognised and nothing changed, and a warning says so.
 *
 * Invariant: `postMessage` is replaced only while `starting` is not empty. That ends within the constructor, or with
 * the current tick if the constructor throws. If other code has wrapped our function by then, its function stays, and
 * ours passes messages on.
 */

const startingWorkers = require('../../../agent/starting-workers')
const { defineProperty, nextTick } = require('../../../util/intrinsics')
const { threads } = require('../../../util/worker-threads')
const name = require('./name')
const keepCode = require('../../../util/keep-code')
// Not in the call: an install in a test file outlives that file's `require`.
const letStart = require('./source')

const { apply, construct, getOwnPropertyDescriptor } = Reflect

/** The entries of each Worker whose message is still to come. */
const starting = new Map()
/** The property `postMessage` before and after, while it is replaced. */
let replaced

/**
 * Makes the constructor of the parent's part of a Worker.
 *
 * @param {() => (string[] | undefined)} currentEntries gives the absolute paths of the entry points that workers load
 */
exports.intercept = (currentEntries) => function (target, args, newTarget) {
  const worker = construct(target, args, newTarget)
  const entries = currentEntries()
  if (entries !== undefined) {
    keepCode()
    name.expect()
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
      if (isLoadScript(message)) {
        const worker = workerOf(this)
        const entries = starting.get(worker)
        const reached = starting.delete(worker)
        if (reached) letStart(message, entries, name.take())
        if (starting.size === 0) stopExpecting()
        apply(postMessage, this, arguments)
        // The Worker's constructor has not returned yet.
        if (reached) nextTick(startingWorkers.add, worker)
        return
      }
      return apply(postMessage, this, arguments)
    }
  })
  replaced = { before, after }
  defineProperty(prototype, 'postMessage', after)
}

function stopExpecting () {
  starting.forEach((_, worker) => { if (hasThread(worker)) warn(worker) })
  starting.clear()
  name.forget()
  if (replaced === undefined) return
  const { prototype } = threads.MessagePort
  if (prototype.postMessage === replaced.after.value) defineProperty(prototype, 'postMessage', replaced.before)
  replaced = undefined
}

/** Whether a worker has a thread: not if its constructor threw. */
function hasThread (worker) {
  try {
    return worker.threadId > 0
  } catch (_) {
    return false
  }
}

function warn ({ threadId }) {
  startingWorkers.warn('An install did not reach the worker with the threadId ' + threadId + ': this Node starts ' +
    'workers in an unknown way. Give them execArgv: [\'-r\', \'atomics-waitasync/force\']')
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
