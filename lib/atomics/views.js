'use strict'

/**
 * A cache of typed arrays: each is validated once, and asked for its address.
 *
 * Only arrays on a SharedArrayBuffer are cached: those cannot be detached, shrink or move. If the buffer is growable
 * the array's length is read anew each time.
 */

const { agent } = require('../agent/find-agent')
const {
  Int32Array, IsSharedArrayBuffer, TypedArrayLength, bare, bufferOf, byteOffsetOf, createFinalizationRegistry,
  createWeakMap, isGrowable, isWebAssemblyMemory
} = require('../util/intrinsics')
const { ValidateIntegerTypedArray } = require('./abstract-operations')

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

module.exports = { viewOf }
