'use strict'

/**
 * Makes an install reach new `vm` contexts before any code there runs. Otherwise a plain `Atomics.notify` in a
 * context would silently wake no waiter of ours: test runners evaluate each file in a context of its own.
 *
 * `vm.createContext` is replaced, and `runInNewContext` of scripts, which makes a context and then calls
 * `this.runInContext`; `vm.runInNewContext` calls these, too. If a future Node does it differently, such contexts are
 * not reached, and nothing breaks.
 *
 * A replaced function may outlive the module registry of a test file, and with it that file's `require`. So
 * nothing is required in a call.
 */

const vm = require('vm')
const { createWeakRef, defineProperty } = require('../util/intrinsics')
const { Module: { syncBuiltinESMExports = () => {} }, shared } = require('../util/worker-threads')

const { apply, deleteProperty, getOwnPropertyDescriptor, getPrototypeOf } = Reflect
const { isPrototypeOf } = Object.prototype
const { emitWarning } = process

/** The prototype that has the method. Other code may have replaced `vm.Script` by a subclass, or may do so later. */
const scripts = holderOf(vm.Script && vm.Script.prototype, 'runInNewContext')
/** The replaced functions: each with its object and the `apply` of the proxy in its place. */
const REPLACED = [[vm, 'createContext', createContextBy], [scripts, 'runInNewContext', runInNewContextBy]]

/**
 * A script that returns the global object of its context. That is not the sandbox, which stands for it. The
 * script is made at its first use.
 */
const script = { global: undefined }

/** What each of this copy's installs does to a new context. */
const own = new Set()
let warned = false

const strong = (each) => ({ deref: () => each })
/**
 * State of all copies in this thread: they reach contexts by one replacement.
 * - `installs`: references to what the installs do, the latest last; a context gets that one. They are weak, since an
 *   install keeps its realm
 * - `refer`: makes such a reference, which belongs to the first copy's realm
 * - `restore`: undoes the replacement, while there is one
 */
const state = shared('contexts', () => ({ installs: [], refer: createWeakRef || strong, restore: undefined }))

/** Returns what the installs do that are still there, but this reference's. */
const others = (ref) => state.installs.filter((each) => each !== ref && each.deref() !== undefined)

/**
 * @param {(global: object) => void} enter installs on the global object of a new context
 * @returns {() => void} undoes it. The contexts that have been made stay as they are: to remember them would keep them
 */
exports.follow = function follow (enter) {
  const ref = state.refer(enter)
  own.add(enter)
  if (state.restore === undefined) state.restore = replaceAll()
  state.installs = others().concat(ref)
  return () => {
    own.delete(enter)
    state.installs = others(ref)
    if (state.installs.length > 0) return
    state.restore()
    state.restore = undefined
  }
}

function replaceAll () {
  const undo = []
  for (const [holder, name, apply] of REPLACED) {
    const before = holder && getOwnPropertyDescriptor(holder, name)
    const isFunction = before !== undefined && typeof before.value === 'function'
    const value = isFunction ? new Proxy(before.value, { __proto__: null, apply }) : undefined
    if (!isFunction || !defineProperty(holder, name, Object.assign({ __proto__: null }, before, { value }))) {
      warn(new Error(name + ' of vm cannot be replaced'))
      continue
    }
    undo.push(() => {
      if (holder[name] === value) defineProperty(holder, name, before)
    })
  }
  // Updates `import { createContext } from 'vm'`.
  syncBuiltinESMExports()
  return () => {
    undo.forEach((step) => step())
    syncBuiltinESMExports()
  }
}

/** Finds the object of a prototype chain that has this property. */
function holderOf (object, name) {
  let each = object
  while (each && getOwnPropertyDescriptor(each, name) === undefined) each = getPrototypeOf(each)
  return each || undefined
}

function createContextBy (target, self, args) {
  const context = apply(target, self, args)
  reach(context)
  return context
}

function runInNewContextBy (target, script, args) {
  if (!apply(isPrototypeOf, scripts, [script])) return apply(target, script, args)
  const own = getOwnPropertyDescriptor(script, 'runInContext') === undefined &&
    defineProperty(script, 'runInContext', { value: runInContext, configurable: true })
  if (!own) warn(new Error('the script is frozen, or has a runInContext of its own'))
  try {
    return apply(target, script, args)
  } finally {
    // Only left if the call failed before it made a context.
    if (own) deleteProperty(script, 'runInContext')
  }
}

/** Stands in for a script's method while its context is made. */
function runInContext (context) {
  deleteProperty(this, 'runInContext')
  reach(context)
  return apply(this.runInContext, this, arguments)
}

/** Installs on a context. It never throws: the caller has made a context that works. */
function reach (context) {
  const installs = others()
  if (installs.length === 0) return
  try {
    installs[installs.length - 1].deref()(globalOf(context))
  } catch (error) {
    warn(error)
  }
}

function globalOf (context) {
  if (script.global === undefined) script.global = new vm.Script('this')
  return script.global.runInContext(context)
}

/** Warns once that the context and this thread use different queues. */
function warn (error) {
  if (warned) return
  warned = true
  try {
    emitWarning('Atomics of a vm context could not be replaced, so code in it waits and notifies in the host\'s ' +
      'queue: ' + error.message, { code: 'ATOMICS_WAITASYNC_CONTEXT' })
  } catch (_) {
    // No stack is left.
  }
}
