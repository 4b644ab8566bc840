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
const {
  Int32Array, IsSharedArrayBuffer, SharedArrayBuffer, TypedArrayLength, apply, asIntN, bare, bufferOf, byteOffsetOf,
  createFinalizationRegistry, createWeakMap, isGrowable, isWebAssemblyMemory, max, nameOf, trunc, values
} = require('../util/intrinsics')
const { NARROW_ATOMICS, NO_WAIT_ASYNC } = require('../util/quirks')
const { mark } = require('../util/realm')
const { assertStackToLoad } = require('../util/stack')
const { describe, isObject } = require('../util/values')
const observer = require('../waiting/observer')
const { OWN_QUEUE, track } = require('./host-queue')

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
      const v = view.wide ? asIntN(64, value) : value | 0
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
      const v = view.wide ? asIntN(64, value) : value | 0
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
 * Counts an element's waiters in the package's own queue. These are blocked threads and pending promises of all
 * threads. Waiters in the host's queue are not known.
 *
 * @throws {TypeError} typedArray is not an Int32Array or BigInt64Array
 * @throws {RangeError} index is out of range
 */
function waiterCount (typedArray, index, realm) {
  const view = viewOf(typedArray, realm)
  const i = validateIndex(view, index, realm)
  return view.shared ? agent().waiterCount(view.address + i * size(view)) : 0
}

// ——— a cache of typed arrays: each is validated once, and asked for its address. Only those on a SharedArrayBuffer are
// cached: these cannot be detached, shrink or move. If the buffer is growable the length is read anew each time ———

const views = createWeakMap()

/**
 * A validated typed array.
 * - `array`: itself
 * - `shared`: whether it is on a SharedArrayBuffer
 * - `plain`: whether it is on one that is no WebAssembly memory
 * - `wide`: whether it is a BigInt64Array
 * - `address`: of its first element, if shared and not empty; `word`: the same in units of four
 *   bytes, its lower 32 bits
 * - `crosses`: whether several processes have the memory: then native code alone knows who waits
 * - `length`: its number of elements; if `grows`, when the view was last looked up
 */
class View {
  constructor (array, shared, plain, wide, address, length, grows, crosses = false) {
    this.array = array
    this.shared = shared
    this.plain = plain
    this.wide = wide
    this.address = address
    this.word = address / 4 | 0
    this.length = length
    this.grows = grows
    this.crosses = crosses
  }
}
bare(View)

/**
 * The view that was last found in the map. Comparing two arrays takes V8 a fraction of a look-up in a WeakMap.
 *
 * The view keeps its array, but not for long: `collections` watches an object that nothing refers to, and when that has
 * been collected as garbage the view is forgotten. The next collection then takes the array.
 */
let latest
const NO_VIEW = new View({}, false, false, false, 0, 0, false)
const forget = () => { latest = NO_VIEW }
const collections = createFinalizationRegistry && createFinalizationRegistry(forget)
forget()

function remember (view) {
  // The length of a view that grows has to be read each time. Without `collections` the array would be kept for ever.
  if (view.grows || collections === undefined) return
  if (latest === NO_VIEW) collections.register({}, undefined)
  latest = view
}

/**
 * Looks a typed array up or validates it.
 * @throws {TypeError} of `realm`, if it is not an Int32Array or BigInt64Array, or detached
 */
function viewOf (typedArray, realm) {
  if (latest.array === typedArray) return latest
  const known = views.get(typedArray)
  if (known === undefined) return examine(typedArray, realm)
  if (known.grows) known.length = TypedArrayLength(typedArray)
  remember(known)
  return known
}

function examine (typedArray, realm) {
  const { name, length } = ValidateIntegerTypedArray(typedArray, realm)
  const wide = name === 'BigInt64Array'
  const buffer = bufferOf(typedArray)
  if (!IsSharedArrayBuffer(buffer)) return new View(typedArray, false, false, wide, 0, length, false)
  // An empty array has no address, and no index is in its range.
  if (length === 0) return new View(typedArray, true, true, wide, 0, 0, false)
  // The address of a view of the first element, as an Int32Array: Node-API of old Node does not know a BigInt64Array,
  // and no typed array can be as long as the longest buffers.
  const address = agent().addressOf(new Int32Array(buffer, byteOffsetOf(typedArray), 1))
  const plain = !isWebAssemblyMemory(buffer)
  const crosses = plain && agent().native.binding.isShared(address)
  const view = new View(typedArray, true, plain, wide, address, length, isGrowable(buffer), crosses)
  views.set(typedArray, view)
  return view
}

// ——— ECMAScript's abstract operations, by their names. Those that throw take the realm whose errors they use ———

/** https://tc39.es/ecma262/#sec-tointegerorinfinity */
function ToIntegerOrInfinity (argument) {
  const number = +argument
  return number !== number ? 0 : trunc(number) // eslint-disable-line no-self-compare
}

/** https://tc39.es/ecma262/#sec-toindex, and the check of ValidateAtomicAccess against `length`. */
function ValidateAtomicAccess (length, requestIndex, realm) {
  const accessIndex = ToIntegerOrInfinity(requestIndex)
  if (!(accessIndex >= 0 && accessIndex < length)) {
    throw new realm.RangeError('index must be an integer from 0 to ' + (length - 1) + ', the last of the typed ' +
      'array, not ' + describe(requestIndex))
  }
  return accessIndex + 0 // -0 becomes 0
}

/**
 * https://tc39.es/ecma262/#sec-validateintegertypedarray with `waitable` true.
 * @returns {{ name: string, length: number }} the type's name, and the length before any argument is coerced
 */
function ValidateIntegerTypedArray (typedArray, realm) {
  const name = isObject(typedArray) ? nameOf(typedArray) : undefined
  if (name !== 'Int32Array' && name !== 'BigInt64Array') {
    const given = name || describe(typedArray)
    throw new realm.TypeError('typedArray must be an Int32Array or a BigInt64Array, not ' + given)
  }
  try {
    // Throws if the array's buffer is detached, or has become too short for the array.
    apply(values, typedArray, [])
  } catch (_) {
    throw new realm.TypeError('typedArray must not be detached or out of its buffer\'s bounds')
  }
  return { name, length: TypedArrayLength(typedArray) }
}

/** Converts a timeout argument to milliseconds, as DoWait does. Infinity: no timeout. */
function ToTimeout (timeout) {
  const q = +timeout
  return q !== q ? Infinity : q > 0 ? q : 0 // eslint-disable-line no-self-compare
}

module.exports = { createAtomics, viewOf, waiterCount }
