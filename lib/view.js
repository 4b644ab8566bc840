'use strict'

/** Views: instances that show a word in a SharedArrayBuffer. They are those of the classes of locks and queues. */

const { agent } = require('./agent/find-agent')
const {
  Int32Array, IsSharedArrayBuffer, RangeError, SharedArrayBuffer, TypeError, createArray, define, defineProperty,
  getOwnPropertyDescriptor, isInteger, load, sharedByteLengthOf, shield
} = require('./util/intrinsics')
const { showState } = require('./util/instances')
const { WRAPS_OFFSETS } = require('./util/quirks')
const { assertStackToLoad } = require('./util/stack')
const { assertOptions, describe, flag, includes, isObject, option, ownValue, quote } = require('./util/values')
const { assertFunction } = require('./waiting/wait-options')
const { detectReentry } = require('./holding/reentry')
const { REPAIR } = require('./holding/run')
const { show, wordOf } = require('./holding/view-word')

const BYTES = 4
/** Characters. */
const LONGEST_NAME = 256
/** The offset at which Atomics begin to access another word. */
const WRAPS = WRAPS_OFFSETS ? 2 ** 32 : Infinity

/** Makes the shape of a class whose state is one word: see `initView`. `check` throws if the settings are wrong. */
function oneWord (settings, options, check = () => {}) {
  const sizeOf = (values, detects) => {
    check(values, detects)
    return BYTES
  }
  return { __proto__: null, settings, options, sizeOf, alignment: BYTES }
}
const ONE_WORD = oneWord([], ['byteOffset', 'name'])
/** Of locks. Their callback forms have the option `repair`; their clones have none of these options. */
const LOCK_SHAPE = oneWord([], ['repair', 'detectReentry', 'byteOffset', 'name'])

const newMemory = (bytes = BYTES) => new SharedArrayBuffer(bytes)

/**
 * Makes an instance a view of a word; its constructor calls this.
 *
 * @param {SharedArrayBuffer | object} given a buffer; or the structured clone of an instance
 * @param {{ byteOffset?: number, name?: string } | undefined} options may repeat the settings of a clone, but not
 *   contradict them; `name`, for people, becomes that of the word
 * @param {string} owner the class, for messages
 * @param {object} [shape] `settings`: the names of the options that are properties of the instances, and so of clones;
 *   `options`: those of all, the settings first; `sizeOf(settings, detectsReentry)`: the bytes that are needed, a
 *   multiple of `alignment`; it throws if the settings are wrong
 * @returns {{ settings: unknown[], word: object }} the values of the settings, and the word
 */
function initView (instance, given, options, owner, { settings, options: known, sizeOf, alignment } = ONE_WORD) {
  const clone = IsSharedArrayBuffer(given) || !isObject(given) ? undefined : given
  const kind = clone === undefined ? undefined : ownValue(clone, 'kind')
  if (kind !== undefined && kind !== owner) {
    throw new TypeError(owner + ': kind must be the string "' + owner + '", not ' + describe(kind) +
      ': this is an instance of another class')
  }
  const buffer = clone === undefined ? given : ownValue(clone, 'buffer')
  if (!IsSharedArrayBuffer(buffer)) {
    throw new TypeError(owner + ': buffer must be a SharedArrayBuffer, or the clone of an instance, not ' +
      describe(given) + ': ' + creation(owner, settings, known, given, options) + ' makes one in memory of its own')
  }
  assertOptions(options, known, owner)
  const byteOffset = setting(clone, options, 'byteOffset', owner, 0)
  const name = option(options, 'name')
  if (name !== undefined) assertName(name, owner)
  // A class without these options reads none: they might be inherited.
  const repair = includes(known, 'repair') ? option(options, 'repair') : undefined
  if (repair !== undefined) assertFunction(repair, owner, 'repair')
  const detects = includes(known, 'detectReentry') && flag(options, 'detectReentry', owner)
  const values = createArray(settings.length)
  for (let n = 0; n < settings.length; n++) values[n] = setting(clone, options, settings[n], owner)
  assertPlace(byteOffset, sizeOf(values, detects), alignment, sharedByteLengthOf(buffer), owner)
  const word = wordAt(new Int32Array(buffer, byteOffset, 1))
  // A semaphore needs its limit.
  if (word.isShared) word.admit(owner, isAbleToShare(owner) && (owner !== 'Semaphore' || values[0] !== undefined))
  if (name !== undefined) word.name = name
  if (detects) detectReentry(word)
  show(instance, word)
  expose(instance, 'kind', owner)
  expose(instance, 'buffer', buffer)
  // It may have been -0.
  expose(instance, 'byteOffset', byteOffset + 0)
  for (let n = 0; n < settings.length; n++) if (values[n] !== undefined) expose(instance, settings[n], values[n])
  if (repair !== undefined) define(instance, REPAIR, repair)
  return { settings: values, word }
}

/** Whether the class works on memory that several processes share. */
const isAbleToShare = (owner) => (
  owner === 'AsyncLock' || owner === 'RwLock' || owner === 'Semaphore' || owner === 'Latch')

/** Gives an instance a property that its class shields. To define it would take twenty times as long. */
function expose (instance, key, value) {
  try {
    instance[key] = value
  } catch (_) {
    // The prototype is frozen.
    define(instance, key, value, true, true)
  }
}

/** Reads a setting from the clone, if any, or from the options. With a clone, the option may only repeat its value. */
function setting (clone, options, name, owner, otherwise) {
  if (clone === undefined) return option(options, name, otherwise)
  const value = ownValue(clone, name)
  const wanted = option(options, name)
  if (wanted !== undefined && wanted !== value) {
    throw new TypeError(owner + ': ' + name + ' is ' + describe(wanted) + ', but the clone has ' + describe(value) +
      ': leave the option out')
  }
  return value
}

/** Returns the call of `create` that was probably meant: with the options that were given, and the settings. */
function creation (owner, settings, known, given, options) {
  let text = ''
  for (let n = 0; n < known.length; n++) {
    const value = probableValue(known[n], given, options, settings[0])
    const isLiteral = typeof value === 'number' || typeof value === 'string'
    if (known[n] === 'byteOffset' || (n >= settings.length && !isLiteral)) continue
    text += (text === '' ? '{ ' : ', ') + known[n]
    if (isLiteral) text += ': ' + (typeof value === 'string' ? quote(value) : value)
  }
  return owner + '.create(' + (text === '' ? '' : text + ' }') + ')'
}

/** Finds the value that was probably meant for an option. A number is for the `first` setting. */
function probableValue (name, given, options, first) {
  if (typeof given === 'number' && name === first) return given
  const value = isObject(given) ? ownValue(given, name) : undefined
  return value === undefined && isObject(options) ? ownValue(options, name) : value
}

/** @throws {TypeError | RangeError} the value is no integer from `least` to `most`; `reason` says why it is `most` */
function assertWithin (value, what, least, most, reason = '') {
  if (!isInteger(value)) throw new TypeError(what + ' must be an integer, not ' + describe(value))
  if (value < least || value > most) {
    throw new RangeError(what + ' must be from ' + least + ' to ' + most + reason + ', not ' + describe(value))
  }
}

function assertName (name, owner) {
  if (typeof name !== 'string') throw new TypeError(owner + ': name must be a string, not ' + describe(name))
  if (name.length < 1 || name.length > LONGEST_NAME) {
    throw new RangeError(owner + ': name must have from 1 to ' + LONGEST_NAME + ' characters, not ' + name.length)
  }
}

/** @throws {TypeError | RangeError} the bytes do not fit into the buffer, of `length`, at the offset */
function assertPlace (byteOffset, bytes, alignment, length, owner) {
  if (!isInteger(byteOffset)) {
    throw new TypeError(owner + ': byteOffset must be an integer, not ' + describe(byteOffset))
  }
  if (length < bytes) throw new RangeError(owner + ': buffer is too small: ' + length + ' bytes, ' + bytes + ' needed')
  const last = length - bytes
  if (byteOffset < 0 || byteOffset > last || byteOffset % alignment !== 0) {
    throw new RangeError(owner + ': byteOffset must be a multiple of ' + alignment + ' from 0 to ' + last +
      ', so that ' + bytes + ' bytes fit into the buffer, not ' + describe(byteOffset))
  }
  // Words are BYTES long.
  const end = WRAPS - bytes + BYTES
  if (byteOffset >= end) {
    throw new RangeError(owner + ': byteOffset must be less than ' + end + ' on Node 10, whose Atomics would access ' +
      'another word, not ' + describe(byteOffset))
  }
}

let createWord

/** Makes the word of an Int32Array of length 1 on shared memory. The first one makes this thread's robust list. */
function wordAt (array) {
  if (createWord === undefined) {
    assertStackToLoad()
    // Before: a hook that its start calls may make a lock.
    agent()
    createWord = require('./holding/word')
  }
  return createWord(array)
}

/** The method of a queue that is writing a value as text; undefined if none is. */
let writing

/**
 * Calls `stringify(value)`, in which an instance within the value throws: text would not share it.
 * @throws {TypeError}
 */
function withoutViews (stringify, value, caller) {
  const outer = writing
  writing = caller
  try {
    return stringify(value)
  } finally {
    writing = outer
  }
}

function toJSON () {
  if (writing === undefined) return this
  throw new TypeError(writing + ': value must not have a lock in it: a message is a copy. Share the lock by ' +
    'postMessage or workerData')
}

/** The getters of every class of views. */
const common = {
  get id () {
    return wordOf(this).id
  },
  get name () {
    const { name } = wordOf(this)
    return name === undefined ? '' : name
  },
  get waiters () {
    return agent().waiterCount(wordOf(this).address)
  }
}

/**
 * Completes a class of views.
 * @param {string[]} keys the properties that its constructor exposes, besides those of all
 * @param {(instance: object, word: object) => object} stateOf for `util.inspect`
 * @param {number | Function} byteLength
 * @param {(options: object) => SharedArrayBuffer} memoryFor makes the memory of `create(options)`
 */
function defineView (Class, keys, stateOf, byteLength = BYTES, memoryFor = () => newMemory()) {
  define(Class, 'byteLength', byteLength, true)
  define(Class, 'create', function create (options) {
    if (typeof this !== 'function') {
      throw new TypeError('create: this must be the class, as in ' + Class.name + '.create()')
    }
    return new this(memoryFor(options), options)
  }, false, true)
  shield(Class, ['kind', 'buffer', 'byteOffset'])
  shield(Class, keys)
  define(Class.prototype, 'toJSON', toJSON, false, true)
  for (const key of ['id', 'name', 'waiters']) {
    if (getOwnPropertyDescriptor(Class.prototype, key) !== undefined) continue
    const { get } = getOwnPropertyDescriptor(common, key)
    defineProperty(Class.prototype, key, { get, configurable: true })
  }
  showState(Class, (instance) => {
    const word = wordOf(instance)
    const { name } = word
    const state = stateOf(instance, word)
    return name === undefined ? state : { name, ...state }
  })
}

/** Gives a class the getters that tell who has a word alone: while it has this value. */
function defineOwner (Class, value) {
  for (const key of ['holder', 'owner']) {
    const { get } = getOwnPropertyDescriptor({
      get [key] () {
        const word = wordOf(this)
        const isHeld = () => load(word.array, 0) === value
        const owner = isHeld() ? word[key]() : null
        // A writer may have become a reader meanwhile.
        return isHeld() ? owner : null
      }
    }, key)
    defineProperty(Class.prototype, key, { get, configurable: true })
  }
}

module.exports = {
  LOCK_SHAPE, assertWithin, initView, defineOwner, defineView, expose, newMemory, oneWord, withoutViews, wordAt
}
