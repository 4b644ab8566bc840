'use strict'

/**
 * Messages as bytes: the formats in which values are written.
 *
 * | format | for | |
 * |---|---|---|
 * | CLONE | values that `v8.serialize` takes | the default |
 * | TEXT | values that `JSON.stringify` takes | small objects several times as fast |
 * | RAW | a Uint8Array | its own bytes, whatever format the queue has |
 */

const { Buffer } = require('buffer')
const { types: { isSharedArrayBuffer } } = require('util')
const v8 = require('v8')
const {
  TypeError, TypedArrayLength, apply, bare, bufferOf, byteOffsetOf, define, getOwnPropertyDescriptor, nameOf, parse,
  setPrototypeOf, stringify, values
} = require('../util/intrinsics')
const { describe, isObject } = require('../util/values')
const { withoutViews } = require('../view')

const CLONE = 0
const TEXT = 1
const RAW = 2
/** How many formats there is room for beside a message's size. */
const FORMATS_ROOM = 4
const FORMATS = { __proto__: null, clone: CLONE, json: TEXT }
/** The names of the formats that reading may fail in. */
const NAMES = ['clone', 'json']

/** The last place that Buffer's methods take. */
const MOST_PLACES = 2 ** 31 - 1

const { byteLength } = Buffer
const { DefaultSerializer = class {}, deserialize, serialize: serializeSimply } = v8
const { releaseBuffer, writeHeader, writeValue } = DefaultSerializer.prototype
/** Bun has no serializers. */
const HAS_SERIALIZERS = writeValue !== undefined
// `toString` and `write` would call these of Buffer's prototype, which a program may have replaced: within a step.
const { utf8Slice: decodeText, utf8Write: encodeText } = Buffer.prototype
const { globalObject: { Uint8Array } } = require('../util/quirks')
const { set } = Uint8Array.prototype

/** A value, written: its format, how many bytes it has, and where they are. */
class Written {
  constructor (format, size, bytes, text) {
    this.format = format
    this.size = size
    // Of RAW and CLONE; of TEXT.
    this.bytes = bytes
    this.text = text
  }

  /** Keeps its bytes, whatever becomes of the value from now on. */
  keep () {
    if (this.format !== RAW) return
    const copy = new Uint8Array(this.size)
    this.copyTo(copy)
    this.bytes = copy
  }

  /** Copies its bytes to an array of its size. An array that a program has given may have another length by now. */
  copyTo (target) {
    const { bytes, size } = this
    if (TypedArrayLength(bytes) < size) throw new TypeError('value was shrunk or detached while it was being put')
    try {
      apply(set, target, [bytes])
    } catch (_) {
      // It has grown, perhaps just now in another thread.
      apply(set, target, [new Uint8Array(bufferOf(bytes), byteOffsetOf(bytes), size)])
    }
  }
}
bare(Written)

const isUint8Array = (value) => isObject(value) && nameOf(value) === 'Uint8Array'

/** @throws {TypeError} a lock or a SharedArrayBuffer: a message is a copy, and they are not copied */
function refuseShared (value, caller) {
  if (!isObject(value)) return
  const buffer = getOwnPropertyDescriptor(value, 'buffer')
  if (isSharedArrayBuffer(value) || (buffer !== undefined && isSharedArrayBuffer(buffer.value))) {
    throw new TypeError(caller + ': value must not be a lock or a SharedArrayBuffer: a message is a copy. Share it ' +
      'by postMessage or workerData')
  }
}

/**
 * Writes a value.
 * @param {number} format CLONE or TEXT
 * @throws {TypeError} the value is undefined, or cannot be written in the format
 */
function write (value, format, caller) {
  if (value === undefined) {
    throw new TypeError(caller + ': value must not be undefined, which says that a queue has ended')
  }
  if (isUint8Array(value)) {
    const size = TypedArrayLength(value)
    if (size === 0) assertAttached(value, caller)
    return new Written(RAW, size, value, undefined)
  }
  refuseShared(value, caller)
  if (format === CLONE) {
    const bytes = serialize(value, caller)
    return new Written(CLONE, TypedArrayLength(bytes), bytes, undefined)
  }
  const text = withoutViews(stringify, value, caller)
  if (text === undefined) throw new TypeError(caller + ': value must be one that JSON has, not ' + describe(value))
  return new Written(TEXT, byteLength(text), undefined, text)
}

/** @throws {TypeError} an array's buffer is detached, or has become too short for it: its length is 0 then */
function assertAttached (array, caller) {
  try {
    apply(values, array, [])
  } catch (_) {
    throw new TypeError(caller + ': value must not be an array whose buffer is detached or has become too short')
  }
}

/** The method that is serializing a value. */
let serializing

/** Makes the error for what cannot be serialized. Node calls it, or constructs by it. */
function errorOf (message) {
  return new TypeError(serializing + ': value must be one that v8.serialize takes: ' + message)
}

/** A serializer whose errors name the method: own methods would double its time. */
class Serializer extends DefaultSerializer {}
define(Serializer.prototype, '_getDataCloneError', errorOf)
define(Serializer.prototype, '_getSharedArrayBufferId', () => { throw errorOf('a SharedArrayBuffer cannot be copied') })

/** Serializes as `v8.serialize`, but throws a TypeError that names the method. */
function serialize (value, caller) {
  if (!HAS_SERIALIZERS) return serializeSimply(value)
  const outer = serializing
  serializing = caller
  try {
    const serializer = new Serializer()
    apply(writeHeader, serializer, [])
    apply(writeValue, serializer, [value])
    return apply(releaseBuffer, serializer, [])
  } finally {
    serializing = outer
  }
}

/** Makes an array a Buffer. Not by `Buffer.from`, which reads properties that may have been patched. */
const asBuffer = (array) => setPrototypeOf(array, Buffer.prototype) && array

function encode (text, array) {
  apply(encodeText, asBuffer(array), [text, 0, TypedArrayLength(array)])
}

class Bytes {
  constructor (buffer, byteOffset, length) {
    this.buffer = buffer
    this.byteOffset = byteOffset
    this.bytes = asBuffer(new Uint8Array(buffer, byteOffset, length))
  }

  /** Copies a written value to them, from `at` on. */
  put (at, written) {
    const { format, size, text } = written
    if (format !== TEXT) written.copyTo(this.part(at, size))
    else if (at + size <= MOST_PLACES) apply(encodeText, this.bytes, [text, at, size])
    else encode(text, this.part(at, size))
  }

  /** Copies a message out of them: its text, or its bytes in new memory. */
  take (at, size, format) {
    if (format === TEXT && at + size <= MOST_PLACES) return apply(decodeText, this.bytes, [at, at + size])
    const part = this.part(at, size)
    if (format === TEXT) return apply(decodeText, asBuffer(part), [0, size])
    const copy = new Uint8Array(size)
    apply(set, copy, [part])
    return copy
  }

  part (at, size) {
    return new Uint8Array(this.buffer, this.byteOffset + at, size)
  }
}
bare(Bytes)

/** @throws {TypeError} this code does not know the format: another version, or a program, has written it */
function read (copy, format) {
  if (format === TEXT) return parse(copy)
  if (format === CLONE) return deserialize(copy)
  if (format === RAW) return copy
  throw new TypeError('its format has the number ' + format + ', which is unknown')
}

/** Returns a message's bytes and the name of its format, unread. */
function unread (copy, format) {
  if (format !== TEXT) return { bytes: copy, format: NAMES[format] || 'unknown' }
  const bytes = new Uint8Array(byteLength(copy))
  encode(copy, bytes)
  return { bytes: setPrototypeOf(bytes, Uint8Array.prototype) && bytes, format: NAMES[format] }
}

module.exports = { Bytes, CLONE, FORMATS, FORMATS_ROOM, read, unread, write }
