'use strict'

/**
 * Locks of the processes of one machine, by files. The native library takes them
 * (src/processes/), and has threads that wait.
 *
 * A request asks for the lock on its own thread first, and waits by a thread only if the lock is taken. Where states
 * are flushed to the disk, another thread does all of it, unless the caller blocks anyway.
 */

const { mkdirSync } = require('fs')
const path = require('path')
const { getSystemErrorName } = require('util')
const { agent } = require('../../agent/agent')
const { TypeError, now } = require('../../util/intrinsics')
const { assertOptions, flag } = require('../../util/options')
const { LONGEST_TIMER, clearInterval, setInterval } = require('../../util/timers')
const { describe } = require('../../util/values')
const { throwIfAborted } = require('../../waiting/errors')
const { sleep } = require('./aborts')
const { assertTested } = require('./files-platform')
const { describeHolder, describeName, keyOf } = require('./holder')

/** How many milliseconds a blocking thread stays in native code. Between, the engine may end it. */
const SLICE = 20
/** Milliseconds between two attempts without a thread, at first and at last. */
const POLL = 20
const LONGEST_POLL = 100
/** Stands for a request that has no thread. */
const NONE = 0

/** Keeps the event loop alive as long as something is pending. */
const pending = { count: 0, timer: undefined }

function begin () {
  if (pending.count++ === 0) pending.timer = setInterval(() => {}, LONGEST_TIMER)
}

function end () {
  if (--pending.count === 0) clearInterval(pending.timer)
}

/** Returns the functions that await answers, by the numbers of their requests: of all copies of the package. */
function waits () {
  const { native } = agent()
  if (native.fileWaits === undefined) {
    const { binding } = native
    native.fileWaits = new Map()
    native.onFiles = () => {
      for (let text = binding.filesNext(); text !== null; text = binding.filesNext()) {
        const [number, ...words] = text.split(' ')
        const settle = native.fileWaits.get(Number(number))
        native.fileWaits.delete(Number(number))
        if (settle !== undefined) settle(words)
      }
    }
  }
  return native.fileWaits
}

class Files {
  #path
  #options
  #folder

  constructor (folder, options) {
    this.#path = path.resolve(folder)
    this.#options = options
    this.id = 'files ' + this.#path
    this.modes = ['exclusive', 'shared']
  }

  async acquire (name, mode, signal, asker) {
    throwIfAborted(signal)
    const wanted = this.#wanted(name, mode, asker)
    const taken = this.#options.durable ? undefined : this.#take(wanted, false)
    if (taken !== undefined) return taken
    let number = this.#enqueue(wanted)
    for (let pause = POLL; number === NONE; pause = Math.min(2 * pause, LONGEST_POLL)) {
      await sleep(pause, signal)
      const grant = this.#take(wanted, true)
      if (grant !== undefined) return grant
      number = this.#enqueue(wanted)
    }
    return this.#grantOf(await answer(number, signal))
  }

  async attempt (name, mode, signal, asker) {
    throwIfAborted(signal)
    const wanted = this.#wanted(name, mode, asker)
    if (!this.#options.durable) return this.#ask(wanted, true)
    return this.#grantOf(await answer(native('filesRequest', ...wanted, true), signal))
  }

  /** Blocks for so many milliseconds at most, and calls `look` meanwhile. Undefined if the time is over. */
  acquireSync (name, mode, milliseconds, asker, look) {
    const wanted = this.#wanted(name, mode, asker)
    if (milliseconds === 0) return this.#ask(wanted, true)
    const taken = this.#take(wanted, false)
    if (taken !== undefined) return taken
    const until = now() + milliseconds
    let number = this.#enqueue(wanted)
    try {
      for (let left = milliseconds; left > 0; left = until - now()) {
        // The engine may end this thread where a function is called.
        const text = native('filesWait', number, Math.ceil(Math.min(left, SLICE)))
        if (text !== null) return this.#grantOf(text.split(' '))
        if (number === NONE) {
          const grant = this.#take(wanted, true)
          if (grant !== undefined) return grant
          number = this.#enqueue(wanted)
        }
        look()
      }
      return undefined
    } finally {
      native('filesAbort', number)
    }
  }

  query (name) { return require('./files-query').query(this.#path, name, look) }
  querySync (name) { return require('./files-query').querySync(this.#path, name, look) }

  async close () {}

  /** Opens the folder at its first use. Makes it if it is not there. */
  #open () {
    if (this.#folder === undefined) {
      agent()
      assertTested()
      mkdirSync(this.#path, { recursive: true })
      const { durable, anyDrive } = this.#options
      this.#folder = native('filesOpen', this.#path, durable, anyDrive)
    }
    return this.#folder
  }

  /** Returns the operands of a request: folder, key, whether it is shared, and a description. */
  #wanted (name, mode, who) {
    const isShared = mode === 'shared'
    // The state does not have those that share a lock.
    const description = isShared ? describeName(name) : describeHolder(name, who)
    return [this.#open(), keyOf(name).toString('hex'), isShared, description]
  }

  /** Puts a request into the line. Returns its number; `NONE` if the system gives no thread. */
  #enqueue (wanted) {
    try {
      return native('filesRequest', ...wanted, false)
    } catch (error) {
      if (NO_THREAD.includes(error.code)) return NONE
      throw error
    }
  }

  /** Makes one attempt: one on the way into the line passes nobody, others pass a line that stands still. */
  #ask (wanted, passesLine) {
    const granted = native('filesTake', ...wanted, passesLine)
    return granted === null ? undefined : new Grant(...granted)
  }

  /** Takes a free lock, on the way into the line. */
  #take (wanted, passesLine) {
    try {
      return this.#ask(wanted, passesLine)
    } catch (error) {
      // Descriptors or memory may be there again in a moment: the thread waits for that.
      if (PASSING.includes(error.code)) return undefined
      throw error
    }
  }

  #grantOf ([kind, ...words]) {
    switch (kind) {
      case 'granted': return new Grant(...words.map(Number))
      case 'taken': return undefined
      default: throw systemError(words.join(' '))
    }
  }
}

/** The codes of a system that cannot start a thread. */
const NO_THREAD = ['EAGAIN', 'ENOMEM']
/** Those of one that has no descriptor or memory at the moment. */
const PASSING = ['EMFILE', 'ENFILE', 'ENOMEM', 'ENOLCK']

/** A lock. It is lost only if somebody removes or replaces its file. */
class Grant {
  #number
  #lost

  constructor (number, token, ownerDied) {
    this.#number = number
    this.token = token
    this.ownerDied = Boolean(ownerDied)
    /** Its signal never aborts. */
    this.isSilent = true
  }

  get lost () {
    if (this.#lost === undefined) this.#lost = new AbortController().signal
    return this.#lost
  }

  remaining () { return Infinity }
  heldSync () { return native('filesHeld', this.#number) }
  releaseSync (died) { return native('filesRelease', this.#number, died) }
  async held () { return this.heldSync() }

  async release (died) {
    const number = native('filesReleaseLater', this.#number, died)
    if (number === null || number === undefined) return this.releaseSync(died)
    const [kind, ...words] = await answer(number)
    if (kind === 'released') return words[0] === '1'
    throw systemError(words.join(' '))
  }
}

/** Awaits the words of an answer. */
function answer (number, signal) {
  return new Promise((resolve, reject) => {
    const wait = waits()
    const settle = (words) => {
      end()
      if (signal !== undefined) signal.removeEventListener('abort', abort)
      resolve(words)
    }
    const abort = () => {
      if (!wait.delete(number)) return
      end()
      native('filesAbort', number)
      reject(new Error('The wait was given up'))
    }
    begin()
    wait.set(number, settle)
    if (signal !== undefined) signal.addEventListener('abort', abort, { once: true })
  })
}

/** Calls a function of the library; its errors have codes. */
function native (name, ...operands) {
  try {
    return agent().native.binding[name](...operands)
  } catch (error) {
    throw systemError(error.message, error)
  }
}

const REMEDIES = {
  EACCES: 'The folder and its files have to be writable for all users whose processes share them',
  EPERM: 'The folder and its files have to be writable for all users whose processes share them',
  ELOOP: 'There is a symbolic link in the place of a lock'
}

/** Makes the error of the system's number and words. */
function systemError (text, otherwise) {
  const found = /^(\d+) ([^]*)$/.exec(text)
  if (found === null) return otherwise || new Error(text)
  const [, number, words] = found
  const code = number === '0' || process.platform === 'win32' ? undefined : getSystemErrorName(-Number(number))
  const remedy = REMEDIES[code]
  const message = words.replace(/ \(os error \d+\)$/, '') + (remedy === undefined ? '' : '. ' + remedy)
  return Object.assign(new Error(code === undefined ? message : code + ': ' + message), { code })
}

/** Looks at the file of a lock. Undefined if there is none. */
const look = (file) => native('filesLook', file) || undefined

/** Makes the engine of a folder. */
function files (folder, options) {
  if (typeof folder !== 'string' || folder === '') {
    throw new TypeError('files: folder must be a path, not ' + describe(folder))
  }
  assertOptions(options, ['durable', 'anyDrive'], 'files')
  const read = (name) => flag(options, name, 'files')
  return new Files(folder, { durable: read('durable'), anyDrive: read('anyDrive') })
}

module.exports = files
