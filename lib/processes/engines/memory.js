'use strict'

/**
 * Mapped memory of the processes of one machine: locks in it, and SharedArrayBuffers.
 *
 * A free lock needs no call of the system. Who waits is woken by the thread that watches the table
 * (src/mapped_names/).
 */

const path = require('path')
const { threadId } = require('../../util/worker-threads')
const { agent } = require('../../agent/find-agent')
const { ADDRESS, AMOUNT, ANSWER, COUNT } = require('../../agent/registers')
const { RangeError, TypeError, isInteger } = require('../../util/intrinsics')
const { assertOptions, describe, flag } = require('../../util/values')
const { assertNoFiles, assertPath, permitsError, tableIn } = require('../arguments')
const { LocalEngine } = require('../built-in-engine')
const { HOST, keyOf, shorten } = require('./holder')
const { NativeGrant, answerTo, block, mapped, native, systemError } = require('./native')

/** What requests for a name have in common; in native code, those with a label. */
class Place {
  constructor (name, mode, { maxHold = 0, permits = 0 } = {}) {
    this.name = name
    this.key = keyOf(name)
    this.isShared = mode === 'shared'
    this.maxHold = maxHold
    this.permits = permits
    this.label = undefined
    this.native = this.address = undefined
  }
}

class Memory extends LocalEngine {
  #path
  #table
  #last

  constructor (folder) {
    super({ maxHold: true, permits: true })
    this.#path = path.resolve(folder)
    this.id = 'memory ' + this.#path
    this.modes = ['exclusive', 'shared']
  }

  placeOf (name, mode, asker) { return new Place(name, mode, asker) }

  takeNow (place, label, isAttempt) {
    try {
      this.#nativeOf(place, label)
      const { floats, operations, words } = agent().native
      floats[ADDRESS] = place.address
      words[AMOUNT] = isAttempt ? 1 : 0
      operations.takeMemory()
      return words[ANSWER] === 0 ? undefined : new NativeGrant()
    } catch (error) {
      throw refusalOf(systemError(error.message, error), place)
    }
  }

  /** The last one is kept. */
  permitPlace (name, permits) {
    const last = this.#last
    if (last !== undefined && last.name === name && last.permits === permits) return last
    return (this.#last = new Place(name, 'exclusive', { permits }))
  }

  async wait (place, label, signal) {
    try {
      return await answerTo(native('memoryRequest', this.#nativeOf(place, label)), signal)
    } catch (error) {
      throw refusalOf(error, place)
    }
  }

  block (place, label, milliseconds, look) {
    const grant = this.takeNow(place, label, milliseconds === 0)
    if (grant !== undefined || milliseconds === 0) return grant
    try {
      return block(milliseconds, () => native('memoryRequest', this.#nativeOf(place, label)), look)
    } catch (error) {
      throw refusalOf(error, place)
    }
  }

  async query (name) { return this.querySync(name) }

  querySync (name) {
    const infos = native('memoryLook', this.#open(), name === undefined ? undefined : keyOf(name))
    const of = (isWaiting) => infos.filter(({ waits }) => waits === isWaiting).map((info) => infoOf(info, name))
    return { held: of(false), pending: of(true) }
  }

  async close () {}

  /** Opens the table at its first use. Makes the folder and the table if they are not there. */
  #open () {
    if (this.#table === undefined) {
      assertNoFiles(this.#path)
      this.#table = mapped('memoryOpen', tableIn(this.#path))
    }
    return this.#table
  }

  #nativeOf (place, label) {
    if (place.native === undefined || place.label !== label) {
      const { binding, floats } = agent().native
      const { key, isShared, maxHold, name, permits } = place
      const text = label === undefined ? '' : shorten(label)
      const table = this.#open()
      place.native = binding.memoryPlace(table, key, shorten(name), isShared, threadId, text, maxHold, permits)
      place.address = floats[COUNT]
      place.label = label
    }
    return place.native
  }
}

/** Returns the error for a program: that of a name which others use with another number of permits is its own. */
function refusalOf (error, { name, permits }) {
  const [, others] = /^ERR_PERMITS (\d+)$/.exec(error.message) || []
  return others === undefined ? error : permitsError(name, permits, Number(others))
}

/** Makes an entry of `query`. A name that is asked for is known; of others, the table has the beginning. */
function infoOf ({ name: known, shared, ours, pid, thread, label, since }, name = known) {
  const info = { name, mode: shared ? 'shared' : 'exclusive', pid, isOurs: ours }
  return thread === undefined ? info : { ...info, host: HOST, threadId: thread, label, since }
}

function memory (folder, options) {
  assertPath(folder, 'memory', 'folder')
  assertOptions(options, ['durable'], 'memory')
  if (flag(options, 'durable', 'memory')) {
    throw new TypeError('memory: durable must be false, since memory ends with the machine: use files')
  }
  return new Memory(folder)
}

/**
 * Returns the memory in a file; makes it full of zeros if need be.
 * @param {string} file on a drive of this machine: tmpfs, ext4, xfs or btrfs
 * @param {number} byteLength
 * @throws {TypeError | RangeError} with code ERR_SHARED_MEMORY_LENGTH if the file's memory has another length
 * @throws {Error} with code ERR_SHARED_MEMORY_UNAVAILABLE if the system or this Node cannot share memory, or with
 *   ERR_SHARED_MEMORY_INVALID if the file is not of this package, a link, or another user's
 */
function sharedMemory (file, byteLength) {
  assertPath(file, 'sharedMemory', 'file')
  if (typeof byteLength !== 'number') {
    throw new TypeError('sharedMemory: byteLength must be a number, not ' + describe(byteLength))
  }
  if (!isInteger(byteLength) || byteLength < 1 || byteLength > Number.MAX_SAFE_INTEGER) {
    throw new RangeError('sharedMemory: byteLength must be an integer from 1 to 2^53 - 1, not ' + describe(byteLength))
  }
  return mapped('sharedMemory', path.resolve(file), byteLength)
}

module.exports = { memory, sharedMemory }
