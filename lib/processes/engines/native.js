'use strict'

/** Calls of the native library by engines, and their errors. */

const { getSystemErrorName } = require('util')
const { agent } = require('../../agent/find-agent')
const { Error, RangeError, define } = require('../../util/intrinsics')
const { show } = require('../errors')

/** Calls a function of the library; its errors have codes. */
function native (name, first, second, third, fourth, fifth) {
  try {
    return agent().native.binding[name](first, second, third, fourth, fifth)
  } catch (error) {
    throw systemError(error.message, error)
  }
}

const REMEDIES = {
  EACCES: 'The folder and its files have to be writable for all users whose processes share them',
  EPERM: 'The folder and its files have to be writable for all users whose processes share them',
  ELOOP: 'There is a symbolic link in the place of a lock'
}

/** Makes the error of libuv's number, without its sign, and its words. */
function systemError (text, otherwise) {
  const found = /^(\d+) ([^]*)$/.exec(text)
  if (found === null) return otherwise || new Error(text)
  const [, number, words] = found
  const code = number === '0' ? undefined : getSystemErrorName(-Number(number))
  const remedy = REMEDIES[code]
  const message = words.replace(/ \(os error \d+\)$/, '') + (remedy === undefined ? '' : '. ' + remedy)
  return Object.assign(new Error(code === undefined ? message : code + ': ' + message), { code })
}

/** The codes of a moment without descriptors or memory. */
const PASSING = ['EMFILE', 'ENFILE', 'ENOMEM', 'ENOLCK']

const NAMES = {
  ERR_SHARED_MEMORY_UNAVAILABLE: 'There is no shared memory',
  ERR_SHARED_MEMORY_INVALID: 'The file is no shared memory of this package'
}

/** Says in an error which path it is about. */
function at (path, error) {
  error.message += ': ' + path
  return error
}

/** Maps a file by a function that only Linux has. */
function mapped (name, file, byteLength) {
  const { [name]: open } = agent().native.binding
  try {
    if (open === undefined) throw new Error('ERR_SHARED_MEMORY_UNAVAILABLE It needs Linux on a 64-bit processor')
    return open(file, byteLength)
  } catch (error) {
    throw openingError(error, file, byteLength)
  }
}

/** Makes the error of mapped memory that cannot be opened. */
function openingError (error, file, byteLength) {
  const found = systemError(error.message, error)
  const [, code, what] = /^(ERR_SHARED_MEMORY_[A-Z]+) ([^]*)$/.exec(found.message) || []
  if (code === undefined) return at(file, found)
  const made = code === 'ERR_SHARED_MEMORY_LENGTH'
    ? new RangeError(show(file) + ' has ' + what + ' bytes of shared memory, not ' + byteLength)
    : new Error(NAMES[code] + ' at ' + show(file) + ': ' + what)
  define(made, 'code', code, true, true)
  return made
}

module.exports = { PASSING, at, mapped, native, systemError }
