'use strict'

/**
 * Installs `wait`, `notify` and `waitAsync` on an object, and uninstalls them.
 *
 * Invariants:
 * - The functions are replaced as one unit: all of a target's properties change, or none does. A mixture would be two
 *   queues that do not hear each other.
 * - The properties that an install replaced are kept, and restored as they were, unless other code has replaced our
 *   functions since: then nothing is changed.
 * - A target that has our own queue, of whichever copy of the package, is not installed on twice.
 */

const { contextTarget, mark, markOf, resolveTarget } = require('../util/realm')
const { defineProperty } = require('../util/intrinsics')
const { assertStackToLoad } = require('../util/stack')
const { assertOptions, describe, option } = require('../util/values')

const { deleteProperty, getOwnPropertyDescriptor } = Reflect

const OPTIONS = ['target', 'force', 'workers', 'contexts']
/** The options that are booleans, with their defaults. */
const FLAGS = [['force', false], ['workers', true], ['contexts', true]]

/**
 * The installs on an object, the latest last.
 * @type {WeakMap<object, Install[]>}
 *
 * @typedef {object} Install
 * @property {Map<string, Function>} ours the functions that were installed, by name
 * @property {Map<string, PropertyDescriptor | undefined>} before the properties that they replaced;
 *   undefined if there was none
 * @property {Function[]} undo steps that undo the reach to Workers and contexts
 */
const installs = new WeakMap()

function perRealm (create) {
  const made = new WeakMap()
  return (realm) => {
    if (!made.has(realm)) made.set(realm, create(realm))
    return made.get(realm)
  }
}

/**
 * Makes the functions on the package's own queue. Loads the native library, which then counts this thread
 * among those that may notify.
 */
const ownTrio = perRealm((realm) => {
  assertStackToLoad()
  require('../agent/find-agent').agent()
  return require('../atomics/functions').createAtomics(realm)
})

/**
 * Makes a `notify` for both queues, beside the host's `wait` and `waitAsync`. Other threads may wait in the package's
 * own queue. Its first call loads the native library; if there is none, no thread waits there.
 */
const bothNotify = perRealm((realm) => {
  let both
  return mark({
    notify (typedArray, index, count) {
      if (both === undefined) both = loadNotify(realm)
      return both(typedArray, index, count)
    }
  }.notify, 'addon', realm.host)
})

function loadNotify (realm) {
  try {
    return ownTrio(realm).notify
  } catch (error) {
    if (error.code === 'ERR_ATOMICS_WAITASYNC_NO_LIBRARY') return realm.host.notify
    throw error
  }
}

/** Gives a trio a `notify` for both queues, for export. */
function exportedTrio ({ wait, notify, waitAsync }, realm) {
  return { wait, notify: isOurs(notify) ? notify : bothNotify(realm), waitAsync }
}

const hostTrio = ({ host: { wait, notify, waitAsync } }) => waitAsync && { wait, notify, waitAsync }

const keepAliveTrio = perRealm((realm) => (
  realm.host.waitAsync && require('../atomics/host-queue').createKeepAlive(realm)))

/** Chooses the functions that an entry installs on a target. Undefined if there is nothing to do. */
function chooseTrio (entry, { holder, realm, plain }, force) {
  if (force) return [holder.wait, holder.notify, holder.waitAsync].every(isOurs) ? undefined : ownTrio(realm)
  const holding = entry === 'keep-alive' ? keepAliveTrio(realm) : undefined
  if (holder.waitAsync === undefined) {
    // An Atomics object without it needs a queue for promises; a plain object only needs the functions.
    const trio = plain ? holding || hostTrio(realm) : undefined
    return trio === undefined ? ownTrio(realm) : exportedTrio(trio, realm)
  }
  return plain || markOf(holder.waitAsync) !== undefined ? undefined : holding
}

/** Makes `wake`, for a host that still has it. It calls the trio's `notify`, and has the host's `length`. */
function wakeOf (notify, host) {
  const { wake } = { wake (typedArray, index, count) { return notify(typedArray, index, count) } }
  if (typeof host.wake === 'function') defineProperty(wake, 'length', { value: host.wake.length })
  const known = markOf(notify)
  return known === undefined ? wake : mark(wake, known.engine, known.host)
}

/** Whether a function is on the package's own queue. */
function isOurs (fn) {
  const known = markOf(fn)
  return known !== undefined && known.engine === 'addon'
}

/**
 * Installs the functions that an entry point stands for.
 *
 * @param {{ target?: object, force?: boolean, workers?: boolean, contexts?: boolean }} [options]
 * @param {boolean} [isAtLoad] whether the entry is being loaded: Workers that cannot be reached are a
 *   warning then, not an error
 * @returns {boolean} whether the target was changed
 * @throws {TypeError} an option is wrong, or the target does not let its properties be defined; nothing is changed
 */
function install (entry, options, isAtLoad = false) {
  const { target, force, workers, contexts } = readOptions(options)
  assertStackToLoad()
  const resolved = resolveTarget(target, 'install')
  const trio = chooseTrio(entry, resolved, force)
  if (trio === undefined) return false
  const undo = []
  try {
    // Before the functions are replaced, since it may throw.
    if (resolved.holder === Atomics) {
      reachWorkers(markOf(trio.waitAsync).engine, workers, isAtLoad, undo)
      if (contexts) reachContexts(entry, force, undo)
    }
    put(resolved, trio, undo)
  } catch (error) {
    undo.forEach((step) => step())
    throw error
  }
  return true
}

/** Makes an install reach later Workers. The function that undoes it is added to `undo`. */
function reachWorkers (engine, workers, isAtLoad, undo) {
  require('./workers/host-worker').takeHostFunctions()
  if (workers) undo.push(require('./workers/reach').reach(engine, isAtLoad))
  else if (engine === 'addon') undo.push(besideHost())
}

function reachContexts (entry, force, undo) {
  undo.push(require('./contexts').follow((global) => {
    const resolved = contextTarget(global)
    const trio = resolved && chooseTrio(entry, resolved, force)
    if (trio !== undefined) put(resolved, trio, [])
  }))
}

/**
 * Lets this thread's locks notify the host's queue, too. Code in its Workers that waits on a lock's word waits there.
 */
function besideHost () {
  const { native } = require('../agent/find-agent').agent()
  native.besideHost = true
  return () => { native.besideHost = false }
}

function put ({ holder, realm }, trio, undo) {
  const ours = new Map(Object.entries(trio))
  if (getOwnPropertyDescriptor(holder, 'wake') !== undefined) ours.set('wake', wakeOf(trio.notify, realm.host))
  const before = propertiesOf(holder, ours.keys())
  const after = new Map()
  for (const [name, value] of ours) after.set(name, { value, writable: true, enumerable: false, configurable: true })
  if (!replaceAll(holder, before, after)) {
    throw new TypeError('install: target must let ' + Array.from(ours.keys()).join(', ') + ' be defined on it (on ' +
      'its Atomics object, if it is a global object); it is frozen, not extensible, or has them as properties that ' +
      'are not configurable')
  }
  if (!installs.has(holder)) installs.set(holder, [])
  installs.get(holder).push({ ours, before, undo })
}

/**
 * Restores the functions that the latest install on the target replaced.
 *
 * @returns {boolean} whether the target was changed: not if there was no install, if other code has replaced the
 *   functions since, or if the target has been frozen
 * @throws {TypeError} target is not an object
 */
function uninstall (target) {
  assertStackToLoad()
  const { holder } = resolveTarget(target, 'uninstall')
  const [latest] = (installs.get(holder) || []).slice(-1)
  if (latest === undefined) return false
  const { ours, before, undo } = latest
  const now = propertiesOf(holder, ours.keys())
  for (const [name, fn] of ours) {
    const property = now.get(name)
    if (property === undefined || property.value !== fn) return false
  }
  if (!replaceAll(holder, now, before)) return false
  installs.get(holder).pop()
  undo.forEach((step) => step())
  return true
}

function propertiesOf (holder, names) {
  const properties = new Map()
  for (const name of names) properties.set(name, getOwnPropertyDescriptor(holder, name))
  return properties
}

/**
 * Changes all properties to those in `to`, or none. Undefined in `to` deletes a property; `from` has the present ones.
 */
function replaceAll (holder, from, to) {
  const done = []
  for (const [name, property] of to) {
    if (!replaceOne(holder, name, property)) {
      for (const name of done) replaceOne(holder, name, from.get(name))
      return false
    }
    done.push(name)
  }
  return true
}

function replaceOne (holder, name, property) {
  try {
    return property === undefined ? deleteProperty(holder, name) : defineProperty(holder, name, property)
  } catch (_) {
    // A proxy's trap.
    return false
  }
}

function readOptions (options) {
  assertOptions(options, OPTIONS, 'install')
  const values = { target: option(options, 'target') }
  for (const [name, otherwise] of FLAGS) {
    values[name] = option(options, name, otherwise)
    if (typeof values[name] !== 'boolean') {
      throw new TypeError('install: options.' + name + ' must be a boolean, not ' + describe(values[name]))
    }
  }
  return values
}

module.exports = { exportedTrio, hostTrio, install, keepAliveTrio, ownTrio, uninstall }
