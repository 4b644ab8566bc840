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
  TypeError, apply, bare, getOwnPropertyDescriptor, nameOf, parse, setPrototypeOf, stringify
} = require('../../util/intrinsics')
const { TypedArrayLength } = require('../../util/typed-arrays')
const { describe, isObject } = require('../../util/values')

const CLONE = 0
const TEXT = 1
const RAW = 2
const FORMATS = { __proto__: null, clone: CLONE, json: TEXT }

const { byteLength } = Buffer
const { deserialize, serialize } = v8
const { toString: decodeText, write: encodeText } = Buffer.prototype
const { Uint8Array } = require('../../util/global')
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
    if (this.format === RAW) this.bytes = copyOf(this.bytes, this.size)
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
    return new Written(RAW, TypedArrayLength(value), value, undefined)
  }
  refuseShared(value, caller)
  if (format === CLONE) {
    const bytes = serialize(value)
    return new Written(CLONE, TypedArrayLength(bytes), bytes, undefined)
  }
  const text = stringify(value)
  if (text === undefined) throw new TypeError(caller + ': value must be one that JSON has, not ' + describe(value))
  return new Written(TEXT, byteLength(text), undefined, text)
}

function copyOf (bytes, size) {
  const copy = new Uint8Array(size)
  apply(set, copy, [bytes])
  return copy
}

/** The bytes of a queue. */
class Bytes {
  constructor (buffer, byteOffset, length) {
    this.buffer = buffer
    this.byteOffset = byteOffset
    this.bytes = new Uint8Array(buffer, byteOffset, length)
    // Not by `Buffer.from`, which reads properties that may have been patched.
    setPrototypeOf(this.bytes, Buffer.prototype)
  }

  /** Copies a written value to them, from `at` on. */
  put (at, written) {
    if (written.format === TEXT) apply(encodeText, this.bytes, [written.text, at, written.size, 'utf8'])
    else if (written.size > 0) apply(set, this.bytes, [written.bytes, at])
  }

  /** Copies a message out of them: its text, or its bytes in new memory. */
  take (at, size, format) {
    if (format === TEXT) return apply(decodeText, this.bytes, ['utf8', at, at + size])
    return copyOf(new Uint8Array(this.buffer, this.byteOffset + at, size), size)
  }
}
bare(Bytes)

function read (copy, format) {
  return format === RAW ? copy : format === TEXT ? parse(copy) : deserialize(copy)
}

module.exports = { Bytes, CLONE, FORMATS, read, write }
