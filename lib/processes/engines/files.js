'use strict'

/**
 * Locks of the processes of one machine, by files. The native library takes them
 * (src/file_locks/), and has threads that wait.
 *
 * A request asks for the lock on its own thread first, and waits by a thread only if the lock is taken. Where states
 * are flushed to the disk, another thread does all of it, unless the caller blocks anyway.
 */

const path = require('path')
const { threadId } = require('../../util/worker-threads')
const { agent } = require('../../agent/find-agent')
const { target } = require('../../agent/target')
const { assertOptions, flag } = require('../../util/values')
const { assertNoTable, assertPath, permitsError } = require('../arguments')
const { LocalEngine, sleep } = require('../built-in-engine')
const { HOST, ascii, birth, keyOf, parsed, shorten } = require('./holder')
const { NONE, NativeGrant, PASSING, answerTo, at, block, native } = require('./native')

/** Milliseconds between two attempts without a thread, at first and at last. */
const POLL = 20
const LONGEST_POLL = 100
/** The part of a name's permits that says how many there are. */
const USERS = [1, 0]

/** What requests for a name have in common; in native code, those with a label. */
class Place {
  /** @param {number[]} [part] which lock it is of those that make the permits of a name */
  constructor (name, mode, { maxHold, part, permits } = {}) {
    this.name = name
    this.key = keyOf(name, part).toString('hex')
    this.isShared = mode === 'shared'
    this.maxHold = maxHold
    this.permits = part && permits
    this.label = undefined
    this.native = undefined
  }

  /** Describes a holder, but not since when, which the state has. Of those that share a lock it has the name only. */
  describe (label) {
    const { isShared, name, permits } = this
    const who = { pid: process.pid, host: HOST, threadId, label: label && shorten(label), birth: birth() }
    return ascii({ name: shorten(name), ...!isShared && who, permits })
  }
}

class Files extends LocalEngine {
  #path
  #options
  #folder

  constructor (folder, options) {
    super({ maxHold: true, permits: true })
    this.#path = path.resolve(folder)
    this.#options = options
    this.id = 'files ' + this.#path
    this.modes = ['exclusive', 'shared']
  }

  get isSlow () { return this.#options.durable }

  placeOf (name, mode, asker) { return new Place(name, mode, asker) }

  takeNow (place, label, isAttempt) {
    if (this.isSlow) return undefined
    return isAttempt ? this.ask(place, label, true) : this.#take(place, label, false)
  }

  wait (place, label, signal) {
    const number = this.#enqueue(place, label, false)
    return number === NONE ? this.#poll(place, label, signal) : answerTo(number, signal)
  }

  /** Waits without a thread, as long as the system gives none. */
  async #poll (place, label, signal) {
    for (let pause = POLL; ; pause = Math.min(2 * pause, LONGEST_POLL)) {
      await sleep(pause, signal)
      const grant = this.#take(place, label, true)
      if (grant !== undefined) return grant
      const number = this.#enqueue(place, label, true)
      if (number !== NONE) return answerTo(number, signal)
    }
  }

  async attemptSlowly (place, label, signal) {
    const grant = await answerTo(native('filesRequest', this.#nativeOf(place, label), true), signal) || undefined
    if (grant === undefined) this.#assertPlain(place)
    return grant
  }

  block (place, label, milliseconds, look) {
    if (milliseconds === 0) return this.ask(place, label, true)
    const taken = this.#take(place, label, false)
    if (taken !== undefined) return taken
    let tries = 0
    const take = () => this.#take(place, label, true)
    return block(milliseconds, () => this.#enqueue(place, label, tries++ > 0), look, take)
  }

  query (name) { return require('./files-query').query(this.#path, name, look) }
  querySync (name) { return require('./files-query').querySync(this.#path, name, look) }

  async close () {}

  /** Opens the folder at its first use. Makes it if it is not there. */
  #open () {
    if (this.#folder === undefined) {
      agent()
      warnIfUntested()
      assertNoTable(this.#path)
      const { durable, anyDrive } = this.#options
      try {
        this.#folder = native('filesOpen', this.#path, durable, anyDrive)
      } catch (error) {
        throw at(this.#path, error)
      }
    }
    return this.#folder
  }

  #nativeOf (place, label) {
    if (place.native === undefined || place.label !== label) {
      place.native = native('filesPlace', this.#open(), place.key, place.isShared, place.describe(label), place.maxHold)
      place.label = label
    }
    return place.native
  }

  async takePermit (name, asker, signal, isAttempt) {
    for (let pause = POLL; ; pause = Math.min(2 * pause, LONGEST_POLL)) {
      try {
        // To load it takes a descriptor, too.
        return await require('./files-permits').takePermit(this, name, asker, signal, isAttempt)
      } catch (error) {
        // As for a lock: one that waits does so for descriptors, too.
        if (isAttempt || !PASSING.includes(Object(error).code)) throw error
      }
      await sleep(pause, signal)
    }
  }

  /** Returns with how many permits a name is held or awaited. The caller may know that it is. */
  permitsOf (name, isUsed = false) {
    const found = look(path.join(this.#path, keyOf(name, USERS).toString('hex') + '.lock'))
    const hasUsers = found !== undefined && (isUsed || found.mode === 'shared')
    return hasUsers ? Object(parsed(found.description || '')).permits : undefined
  }

  /** Returns with how many permits others keep out a request without. */
  #othersOf ({ isShared, name, permits }) {
    if (isShared || permits !== undefined) return undefined
    try {
      return this.permitsOf(name)
    } catch (error) {
      // It waits, as for its own descriptors.
      if (!PASSING.includes(error.code)) throw error
    }
  }

  /** @throws {RangeError} the lock is taken because the name is used with permits */
  #assertPlain (place) {
    const others = this.#othersOf(place)
    if (others !== undefined) throw permitsError(place.name, undefined, others)
  }

  /** Puts a request into the line. Returns its number; `NONE` if it is to try again: the system gives no thread. */
  #enqueue (place, label, isAgain) {
    if (isAgain) this.#assertPlain(place)
    // A process that ends may have permits for a moment.
    else if (this.#othersOf(place) !== undefined) return NONE
    try {
      return native('filesRequest', this.#nativeOf(place, label), false)
    } catch (error) {
      if (NO_THREAD.includes(error.code)) return NONE
      throw error
    }
  }

  /** Makes one attempt: one on the way into the line passes nobody, others pass a line that stands still. */
  ask (place, label, passesLine) {
    if (native('filesTake', this.#nativeOf(place, label), passesLine)) return new NativeGrant()
    if (passesLine) this.#assertPlain(place)
    return undefined
  }

  /** Takes a free lock, on the way into the line. */
  #take (place, label, passesLine) {
    try {
      return this.ask(place, label, passesLine)
    } catch (error) {
      // Descriptors or memory may be there again in a moment: the thread waits for that.
      if (PASSING.includes(error.code)) return undefined
      throw error
    }
  }
}

/** The codes of a system that cannot start a thread. */
const NO_THREAD = ['EAGAIN', 'ENOMEM']

/** Looks at the file of a lock. Undefined if there is none. */
const look = (file) => native('filesLook', file) || undefined

/** The targets on which the checks of this engine have run. */
const TESTED = ['linux-x64-gnu', 'linux-x64-musl', 'linux-arm64-gnu', 'linux-arm-gnueabihf', 'win32-x64-msvc']

let hasWarned = false

/** Warns once in a thread, on a platform without checks. */
function warnIfUntested () {
  // With either C library. To tell them apart takes 2 ms.
  if (hasWarned || process.platform + process.arch === 'linuxx64') return
  hasWarned = true
  const name = target()
  if (TESTED.includes(name)) return
  const message = 'atomics-waitasync/processes: the locks of files have not been tested on ' + name + ' yet, only on ' +
    TESTED.join(', ')
  process.emitWarning(message, { code: 'ATOMICS_WAITASYNC_PROCESSES' })
}

function files (folder, options) {
  assertPath(folder, 'files', 'folder')
  assertOptions(options, ['durable', 'anyDrive'], 'files')
  const read = (name) => flag(options, name, 'files')
  return new Files(folder, { durable: read('durable'), anyDrive: read('anyDrive') })
}

module.exports = files
