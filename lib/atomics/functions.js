'use strict'

/**
 * `Atomics.wait`, `notify` and `waitAsync` on the package's own queue. They follow
 * https://tc39.es/ecma262/#sec-atomics.wait and the two sections after it step by step.
 *
 * Waits on a WebAssembly memory are the host's: `memory.atomic.notify` finds no others. But the package's locks on such
 * a memory are in the package's own queue, so `notify` has two queues to look at, as everywhere.
 */

const { agent } = require('../agent/find-agent')
const { CALL } = require('../agent/registers')
const { Int32Array, SharedArrayBuffer, max } = require('../util/intrinsics')
const { NARROW_ATOMICS, NO_WAIT_ASYNC } = require('../util/quirks')
const { mark } = require('../util/realm')
const { assertStackToLoad } = require('../util/stack')
const observer = require('../waiting/observer')
const { OWN_QUEUE, track } = require('./host-queue')
const { ToBigInt64, ToIntegerOrInfinity, ToTimeout, ValidateAtomicAccess, viewOf } = require('./views')

/** Returns the bytes of an element. */
const size = (view) => view.wide ? 8 : 4

/** Validates an index: ValidateAtomicAccess with a fast path. */
function validateIndex (view, index, realm) {
  // Read before the index is converted, which may run code that grows the buffer, and with it the view.
  const { length } = view
  // Only for an integer in range does `>>> 0` give the same number.
  if (typeof index === 'number' && index >>> 0 === index && index < length) return index
  return ValidateAtomicAccess(length, index, realm)
}

/** Whether the host lets this thread block: AgentCanSuspend(). */
function agentCanSuspend (wait) {
  try {
    // Does not block: the value differs.
    wait(new Int32Array(new SharedArrayBuffer(4)), 0, 1, 0)
    return true
  } catch (_) {
    return false
  }
}

/**
 * Makes the three functions for a realm.
 *
 * @param {object} realm the pristine intrinsics whose errors and promises they use: `{ Atomics, TypeError,
 *   RangeError, Promise, host }`, where `host` is `{ wait, notify, waitAsync }`, the realm's own functions,
 *   undefined where it has none
 * @returns {{ wait: Function, notify: Function, waitAsync: Function }} as they are installed
 */
function createAtomics (realm) {
  const { host } = realm
  const exported = mark(createWaitAsync(realm, true), 'addon', host)
  return {
    wait: mark(createWait(realm), 'addon', host),
    notify: mark(createNotify(realm), 'addon', host),
    waitAsync: mark(createWaitAsync(realm, false), 'addon', host, { exported })
  }
}

/**
 * Whether the host waits on this view, which is not plain. The host carries out all steps of the specification, also
 * those that were done here.
 */
function isHosts (view, { TypeError, host }) {
  if (!view.shared) throw new TypeError('typedArray must be on a SharedArrayBuffer, not on an ArrayBuffer')
  // WebAssembly does not know a polyfill.
  return !NO_WAIT_ASYNC && host.waitAsync !== undefined
}

/**
 * Whether the word is known to hold another value. For a "yes", one atomic read is as good as one in the critical
 * section, and makes no native call.
 */
function differs (view, load, typedArray, i, v) {
  return (!view.wide || !NARROW_ATOMICS) && load(typedArray, i) !== v
}

function createWait (realm) {
  const { Atomics: { load }, TypeError, host } = realm
  const queue = agent()
  const { native } = queue
  let canSuspend
  return {
    wait (typedArray, index, value, timeout) {
      const view = viewOf(typedArray, realm)
      if (!view.plain && isHosts(view, realm)) return host.wait(typedArray, index, value, timeout)
      const i = validateIndex(view, index, realm)
      const v = view.wide ? ToBigInt64(value) : value | 0
      const t = ToTimeout(timeout)
      if (canSuspend === undefined) canSuspend = agentCanSuspend(host.wait)
      if (!canSuspend) throw new TypeError('Atomics.wait cannot be called in this thread')
      if (differs(view, load, typedArray, i, v)) return 'not-equal'
      if (native.stallAfter !== 0) native.words[CALL] = observer.callHere()
      return queue.wait(view.address + i * size(view), view.wide, v, t)
    }
  }.wait
}

function createNotify (realm) {
  const hostNotify = realm.host.notify || realm.host.wake
  const queue = agent()
  const { mayBeWaiting } = queue
  return {
    notify (typedArray, index, count) {
      const view = viewOf(typedArray, realm)
      const i = validateIndex(view, index, realm)
      const c = count === undefined ? Infinity : max(ToIntegerOrInfinity(count), 0)
      if (!view.shared || c === 0) return 0
      const address = view.address + i * size(view)
      if (hostNotify === undefined || (view.wide && NARROW_ATOMICS)) return queue.notify(address, c)
      const word = view.word + (view.wide ? 2 * i : i) | 0
      const looks = !view.crosses && !mayBeWaiting(word)
      let woken = looks ? 0 : queue.notify(address, c)
      if (woken >= c) return woken
      // Threads that have not loaded this package, and WebAssembly, wait in the host's queue.
      try {
        // undefined stands for Infinity, and is faster: Infinity is no small integer.
        woken += hostNotify(typedArray, i, c === Infinity ? undefined : c - woken)
      } catch (error) {
        // The host throws at the end of the stack only. The woken waiters are counted nevertheless.
        if (woken === 0) throw error
        return woken
      }
      // The host's notify has passed a fence before it looked at its own queue, or it would lose wake-ups itself.
      return looks && woken < c && mayBeWaiting(word) ? woken + queue.notify(address, c - woken) : woken
    }
  }.notify
}

/** Makes `waitAsync`. The exported one takes a signal, and its waits on a WebAssembly memory hold the event loop. */
function createWaitAsync (realm, isExported) {
  const { Atomics: { load }, Promise, RangeError, host } = realm
  const hostWaitAsync = host.waitAsync
  const queue = agent()
  const { native } = queue
  // Made at its first use, since few programs need it.
  let signals
  // One executor for all promises, so that making one makes no closure.
  let resolve
  const executor = (resolveFunction) => { resolve = resolveFunction }

  return {
    // The default value keeps `options` out of the function's `length`.
    waitAsync (typedArray, index, value, timeout, options = undefined) {
      const view = viewOf(typedArray, realm)
      const hasOptions = isExported && options !== undefined
      if (hasOptions && signals === undefined) {
        assertStackToLoad()
        signals = require('./signals')
      }
      if (!view.plain && isHosts(view, realm)) {
        if (hasOptions) {
          const why = 'waits on a WebAssembly memory are: only on others do ' + OWN_QUEUE + ' take one'
          signals.refuseSignal(options, why)
        }
        const result = hostWaitAsync(typedArray, index, value, timeout)
        return result.async ? track(result, isExported) : result
      }
      const i = validateIndex(view, index, realm)
      const v = view.wide ? ToBigInt64(value) : value | 0
      const t = ToTimeout(timeout)
      // Options are read after all that the specification says of the other arguments.
      const signal = hasOptions ? signals.signalOf(options) : undefined
      if (differs(view, load, typedArray, i, v)) return { async: false, value: 'not-equal' }
      const address = view.address + i * size(view)
      if (signal !== undefined && t !== 0) return signals.waitWithSignal(typedArray, address, view.wide, v, t, signal)
      // Before the promise, since it may run code of the program's.
      const place = native.stallAfter !== 0 ? observer.callHere() : 0
      resolve = undefined
      const promise = new Promise(executor)
      // The constructor turns a stack overflow in its executor into a rejection.
      if (resolve === undefined) throw new RangeError('Maximum call stack size exceeded')
      // Made now: later this might fail at the end of the stack, and then the caller would have no promise.
      const pending = { async: true, value: promise }
      if (native.stallAfter !== 0) native.words[CALL] = place
      const result = queue.waitAsync(address, view.wide, v, t, typedArray, promise, resolve)
      resolve = undefined
      return result === undefined ? pending : { async: false, value: result }
    }
  }.waitAsync
}

/**
 * Makes `waiterCount`, which counts an element's waiters in the package's own queue. These are blocked threads and
 * pending promises of all threads. Waiters in the host's queue are not known.
 *
 * @throws {TypeError} typedArray is not an Int32Array or BigInt64Array
 * @throws {RangeError} index is out of range
 */
function createWaiterCount (realm) {
  return function waiterCount (typedArray, index) {
    const view = viewOf(typedArray, realm)
    const i = validateIndex(view, index, realm)
    return view.shared ? agent().waiterCount(view.address + i * size(view)) : 0
  }
}

module.exports = { createAtomics, createWaiterCount }
