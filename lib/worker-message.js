'use strict'

/**
 * Reaches workers by the message in which a Worker's constructor tells its thread what to run.
 *
 * Node's class calls its parent's constructor first, looks the parent up at that moment, and later in the same constructor
 * posts the message by the public `MessagePort.prototype.postMessage`. So a parent in between knows when to look at what
 * is posted next. Every worker passes there, also those of a subclass, or of a reference to Worker, that is older than
 * the install, and flags, environment and all other options stay as they are. It is no documented way, though: if a Node
 * to come does it differently, then nothing is recognised and nothing changed.
 *
 * Invariant: `postMessage` is only replaced while `starting` is not empty, which ends within the constructor, or with the
 * current tick if the constructor throws.
 */

const { MARK } = require('./host')
const startingWorkers = require('./starting-workers')
const { threads } = require('./worker-threads')

const { nextTick } = process
const { apply, construct, defineProperty, get, getOwnPropertyDescriptor, getPrototypeOf, setPrototypeOf } = Reflect

/** The entry to be loaded, by Worker whose message is still to come. */
const starting = new Map()
/** The property as it was, while it is replaced. */
let postMessageBefore
let passed = false

/** The next worker is reached another way. */
exports.passNext = function passNext (pass) {
  passed = pass
}

/**
 * @param {Function} HostWorker Node's own class
 * @param {() => (string | undefined)} currentEntry gives the absolute path of the entry point that workers load
 * @returns {() => void} undoes it
 * @throws {TypeError} the class has been frozen
 */
exports.intercept = function intercept (HostWorker, currentEntry) {
  const before = getPrototypeOf(HostWorker)
  const Parent = before[MARK] || before
  const Between = new Proxy(Parent, {
    construct (target, args, newTarget) {
      const pass = passed
      passed = false
      const worker = construct(target, args, newTarget)
      const entry = pass ? undefined : currentEntry()
      if (entry !== undefined) expectMessage(worker, entry)
      return worker
    },
    // Not for the class that inherits from here.
    get: (target, key, receiver) => key === MARK && receiver === Between ? Parent : get(target, key, receiver)
  })
  if (!setPrototypeOf(HostWorker, Between)) {
    throw new TypeError('install: workers must be false, for worker_threads.Worker is not extensible')
  }
  return () => {
    if (getPrototypeOf(HostWorker) === Between) setPrototypeOf(HostWorker, before)
  }
}

function expectMessage (worker, entry) {
  starting.set(worker, entry)
  const { prototype } = threads.MessagePort
  const property = getOwnPropertyDescriptor(prototype, 'postMessage')
  if (postMessageBefore !== undefined || property === undefined || typeof property.value !== 'function') return
  const postMessage = property.value
  postMessageBefore = property
  defineProperty(prototype, 'postMessage', Object.assign({}, property, {
    value (message) {
      if (isLoadScript(message)) {
        const worker = workerOf(this)
        const entry = starting.get(worker)
        const reached = starting.delete(worker)
        if (reached) require('./worker-source')(message, entry)
        if (starting.size === 0) stopExpecting()
        apply(postMessage, this, arguments)
        // Its constructor has not come to its end yet.
        if (reached) nextTick(startingWorkers.add, worker)
        return
      }
      return apply(postMessage, this, arguments)
    }
  }))
  nextTick(stopExpecting)
}

function stopExpecting () {
  starting.clear()
  if (postMessageBefore === undefined) return
  defineProperty(threads.MessagePort.prototype, 'postMessage', postMessageBefore)
  postMessageBefore = undefined
}

/** The worker among those starting that a port belongs to: it has it as a property, by a symbol of Node's. */
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
