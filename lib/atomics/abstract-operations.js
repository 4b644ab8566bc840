'use strict'

/**
 * ECMAScript's abstract operations behind `Atomics.wait`, `notify` and `waitAsync`, by their names. Those that throw
 * take the realm whose error constructors they use.
 */

const { TypedArrayLength, apply, asIntN, nameOf, trunc, values } = require('../util/intrinsics')
const { describe, isObject } = require('../util/values')

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

module.exports = { ToBigInt64, ToIntegerOrInfinity, ToTimeout, ValidateAtomicAccess, ValidateIntegerTypedArray }
