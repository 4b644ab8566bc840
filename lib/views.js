'use strict'

/**
 * What is known of a typed array, so that it is validated, and its address asked for, once and not at every call.
 *
 * Only arrays on a SharedArrayBuffer are remembered: those cannot be detached, shrink or move. Their length may grow
 * if the buffer is growable; then it is read anew each time.
 */

const {
  IsSharedArrayBuffer, TypedArrayLength, ValidateIntegerTypedArray, byteOffset, isGrowable, viewedArrayBuffer
} = require('./abstract-operations')
const { Int32Array, bare, createFinalizationRegistry, createWeakMap } = require('./intrinsics')
const { agent } = require('./settle')

const views = createWeakMap()

/**
 * A validated typed array.
 * - `array`: itself
 * - `shared`: whether it is on a SharedArrayBuffer
 * - `wide`: whether it is a BigInt64Array
 * - `address`: of its first element, if shared and not empty
 * - `length`: its number of elements; if `grows`, at the time it was looked at
 */
class View {
  constructor (array, shared, wide, address, length, grows) {
    this.array = array
    this.shared = shared
    this.wide = wide
    this.address = address
    this.length = length
    this.grows = grows
  }
}
bare(View)

/**
 * The view that was found in the map last. To compare an array with another takes V8 a fraction of what a WeakMap takes.
 *
 * That keeps the array, but not for long: whenever there is one, `collections` knows of an object that nothing refers to, and
 * once that has been collected as garbage the view is forgotten. The next collection then takes the array.
 */
let latest
const NONE = new View({}, false, false, 0, 0, false)
const forget = () => { latest = NONE }
const collections = parseInt(process.versions.node) >= 18 ? createFinalizationRegistry(forget) : undefined
forget()

function remember (view) {
  // A view that may have grown is to be looked at each time. Before Node 14.6 nobody would say when to forget, and up to Node 16 a
  // process hangs when a worker ends that has a FinalizationRegistry.
  if (view.grows || collections === undefined) return
  if (latest === NONE) collections.register({}, undefined)
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
  const buffer = viewedArrayBuffer(typedArray)
  if (!IsSharedArrayBuffer(buffer)) return new View(typedArray, false, wide, 0, length, false)
  // An empty array has no address to ask for, nor an index that is in range.
  if (length === 0) return new View(typedArray, true, wide, 0, 0, false)
  // A view of the first element, as an Int32Array: Node-API at the level of old Node does not know a BigInt64Array, and no
  // typed array can be as long as the longest buffers.
  const address = agent().addressOf(new Int32Array(buffer, byteOffset(typedArray), 1))
  const view = new View(typedArray, true, wide, address, length, isGrowable(buffer))
  views.set(typedArray, view)
  return view
}

module.exports = { viewOf }
