'use strict'

/**
 * The arguments of `Atomics.wait`, `notify` and `waitAsync`. A cache of typed arrays: each is validated once, and asked
 * for its address.
 *
 * Only arrays on a SharedArrayBuffer are cached: those cannot be detached, shrink or move. If the buffer is growable
 * the array's length is read anew each time.
 */

const { agent } = require('../agent/find-agent')
const {
  Int32Array, IsSharedArrayBuffer, TypedArrayLength, apply, asIntN, bare, bufferOf, byteOffsetOf,
  createFinalizationRegistry, createWeakMap, isGrowable, isWebAssemblyMemory, nameOf, trunc, values
} = require('../util/intrinsics')
const { describe, isObject } = require('../util/values')

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

/** https://tc39.es/ecma262/#sec-tobigint64, as a BigInt. */
function ToBigInt64 (argument) {
  return asIntN(64, argument)
}

/** Converts a timeout argument to milliseconds, as DoWait does. Infinity: no timeout. */
function ToTimeout (timeout) {
  const q = +timeout
  return q !== q ? Infinity : q > 0 ? q : 0 // eslint-disable-line no-self-compare
}

module.exports = { ToBigInt64, ToIntegerOrInfinity, ToTimeout, ValidateAtomicAccess, viewOf }
