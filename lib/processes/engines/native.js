'use strict'

/** Calls of the native library for engines on this machine, and the system's errors. */

const { getSystemErrorName } = require('util')
const { agent } = require('../../agent/find-agent')

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

module.exports = { native, systemError }
