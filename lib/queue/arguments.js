'use strict'

/** The arguments of a queue's methods: each is read once, and validated. */

const { RangeError, TypeError } = require('../util/intrinsics')
const { assertOptions, option } = require('../util/options')
const { describe } = require('../util/values')
const { waitLimits } = require('../waiting/wait-options')
const { wordOf } = require('../holding/view-word')
const { assertWithin } = require('../view')
const { FORMATS, write } = require('./format')

const { MAX_SAFE_INTEGER } = Number
const OF_USES = ['timeout', 'retry', 'signal']

/** @throws {TypeError} it is no queue */
function memoryOf (queue) {
  const memory = wordOf(queue).queue
  if (memory === undefined) throw new TypeError('this method must be called on a Queue, not on ' + describe(queue))
  return memory
}

/** Validates the options of `use`: as `waitOptions`, and whether a message whose callback fails is put back last. */
function useOptions (options, caller, signals = true) {
  assertOptions(options, OF_USES, caller, signals ? 3 : 2)
  const retry = option(options, 'retry', 'first')
  if (retry !== 'first' && retry !== 'last') {
    throw new TypeError(caller + ': retry must be "first" or "last", not ' + describe(retry))
  }
  const { timeout, signal } = waitLimits(options, caller, signals)
  return { timeout, signal, retriesLast: retry === 'last' }
}

const assertMax = (max, caller) => assertWithin(max, caller + ': max', 1, MAX_SAFE_INTEGER)

function messageOf (memory, value, caller) {
  const written = write(value, memory.format, caller)
  if (written.size > memory.messageSize) {
    throw new RangeError(caller + ': value has ' + written.size + ' bytes as a message, but messageSize is ' +
      memory.messageSize)
  }
  return written
}

function formatOf (name, caller) {
  const format = typeof name === 'string' ? FORMATS[name] : undefined
  if (format === undefined) throw new TypeError(caller + ': format must be "clone" or "json", not ' + describe(name))
  return format
}

module.exports = { assertMax, formatOf, memoryOf, messageOf, useOptions }
