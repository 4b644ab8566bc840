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
const { syncBuiltinESMExports = () => {} } = require('../util/node-module')
const shared = require('../util/shared')

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

/** What each of this copy's installs does to a new context. That gets the last one. */
const installs = []
let warned = false

/** The copies of the package in this thread that have installs: they reach contexts by one replacement. */
const copies = shared('contexts', createCopies)
/** This copy. */
const copy = { reach }

/**
 * @param {(global: object) => void} enter installs on the global object of a new context
 * @returns {() => void} undoes it. The contexts that have been made stay as they are: to remember them would keep them
 */
exports.follow = function follow (enter) {
  if (installs.length === 0) copies.add(copy)
  installs.push(enter)
  return () => {
    installs.splice(installs.indexOf(enter), 1)
    if (installs.length === 0) copies.remove(copy)
  }
}

/**
 * Makes the list of copies; replaces functions while it has any. Invariant: `refs` has the copies in the order
 * in which they came. The reference to the first one keeps it; the others are weak, since a copy keeps its realm.
 */
function createCopies () {
  const strong = (each) => ({ deref: () => each })
  const weak = createWeakRef || strong
  let refs = []
  let restore
  const living = () => refs.map((ref) => ref.deref()).filter((each) => each !== undefined)
  const keep = (all) => { refs = all.map((each, n) => n === 0 ? strong(each) : weak(each)) }

  return {
    add (one) {
      if (refs.length === 0) restore = replaceAll()
      keep(living().concat(one))
    },
    remove (one) {
      keep(living().filter((each) => each !== one))
      if (refs.length === 0) restore()
    },
    /** Lets each copy install on a new context. */
    reach (context) {
      living().forEach((each) => each.reach(context))
    }
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
  copies.reach(context)
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
  copies.reach(context)
  return apply(this.runInContext, this, arguments)
}

/** Installs on a context. It never throws: the caller has made a context that works. */
function reach (context) {
  if (installs.length === 0) return
  try {
    installs[installs.length - 1](globalOf(context))
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
