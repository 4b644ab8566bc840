'use strict'

// What the engine under test has, found out by trying it: `node features.js ENTRY`, ENTRY being JSON, null or
// { name, file }. Prints one JSON object: the probes' answers, and which queue the entry point uses.

const { wait32, wakeAll32 } = require('./pristine')
const { loadEntry } = require('./entry')
const { describe } = require('./outcome')
const vm = require('vm')

// One expression per name that test262 gives a feature. A feature without a probe counts as present: the test runs.
const PROBES = {
  'ArrayBuffer': 'typeof ArrayBuffer === "function"',
  'Atomics': 'typeof Atomics === "object"',
  // checkout.js adds this one to what test262 lists.
  'Atomics.load, store, add and the like on a BigInt64Array': 'Atomics.add(new BigInt64Array(new SharedArrayBuffer(8)), 0, BigInt(1)) === BigInt(0)',
  'Atomics.waitAsync': 'typeof Atomics.waitAsync === "function"',
  'BigInt': 'typeof BigInt === "function" && typeof BigInt64Array === "function" && 1n === BigInt(1)',
  'DataView': 'typeof DataView === "function"',
  'Float16Array': 'typeof Float16Array === "function"',
  'Reflect.construct': 'typeof Reflect.construct === "function"',
  'SharedArrayBuffer': 'typeof SharedArrayBuffer === "function"',
  'Symbol.toPrimitive': 'typeof Symbol.toPrimitive === "symbol"',
  'TypedArray': 'typeof Object.getPrototypeOf(Int8Array) === "function"',
  'arrow-function': '(() => true)()',
  'async-functions': 'typeof (async function () {}) === "function"',
  'computed-property-names': '({ ["a"]: true }).a',
  'destructuring-binding': '(([a]) => a)([true])',
  'immutable-arraybuffer': 'typeof ArrayBuffer.prototype.transferToImmutable === "function"',
  'resizable-arraybuffer': 'typeof ArrayBuffer.prototype.resize === "function" && typeof SharedArrayBuffer.prototype.grow === "function"'
}

function holds (expression) {
  try {
    return vm.runInThisContext(expression) === true
  } catch (error) {
    return false
  }
}

function mainThreadCanBlock () {
  try {
    wait32(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 0)
    return true
  } catch (error) {
    return false
  }
}

// Whether the global functions have a queue of their own: a waiter there is not woken by the host's notify.
// Found out here as well, for what the entry point says of itself is its own word.
function hasOwnQueue () {
  const words = new Int32Array(new SharedArrayBuffer(4))
  Atomics.waitAsync(words, 0, 0)
  return wakeAll32(words, 0) === 0 && Atomics.notify(words, 0) === 1
}

const entry = JSON.parse(process.argv[2])
const answer = { version: process.version, engine: 'host', features: {}, canBlock: mainThreadCanBlock(), error: null }
try {
  const api = loadEntry(entry)
  if (api !== null) {
    answer.engine = api.engine
    if (hasOwnQueue() !== (api.engine === 'addon')) throw new Error(`it says that its engine is '${api.engine}', and behaves otherwise`)
  }
} catch (error) {
  answer.error = describe(error)
}
Object.keys(PROBES).forEach(name => { answer.features[name] = holds(PROBES[name]) })
console.log(JSON.stringify(answer))
