'use strict'

/** The native library for engines: calls, errors, answers, and locks that it has granted. */

const { getSystemErrorName } = require('util')
const { agent } = require('../../agent/find-agent')
const { ACQUIRED_FROM_DEAD, ADDRESS, AMOUNT, ANSWER, COUNT, TIMEOUT } = require('../../agent/registers')
const { Error, RangeError, assign, define, now } = require('../../util/intrinsics')
const { show } = require('../arguments')
const { LocalGrant, onAbort } = require('../built-in-engine')

/** How many milliseconds a blocking thread stays in native code. Between, the engine may end it. */
const SLICE = 20
/** Stands for a request that has no thread. */
const NONE = 0
/** How a lock is given back; and that another thread does it. */
const DIED = 1
const BLOCKS = 2
const LATER = 2

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

// ——— Answers, and locks ———

/** Returns the functions that await answers, by the numbers of their requests: of all copies of the package. */
function waits () {
  const { native } = agent()
  if (native.files === undefined) native.files = { waits: new Map(), deliver }
  return native.files.waits
}

function deliver () {
  const { binding, files: { waits }, floats } = agent().native
  for (let answer = binding.filesNext(); answer !== null; answer = binding.filesNext()) {
    const outcome = outcomeOf(answer)
    const request = floats[COUNT]
    const settle = waits.get(request)
    waits.delete(request)
    if (settle !== undefined) settle(outcome)
  }
}

/** A lock. It is lost only if somebody interferes with its file. */
class NativeGrant extends LocalGrant {
  /** @param {object} [granted] by default, the one that native code has just written */
  constructor (granted) {
    super()
    if (granted === undefined) written(agent().native, this)
    else assign(this, granted)
  }

  remaining () { return native('filesLeft', this.number) }
  heldNow () { return native('filesHeld', this.number) }

  releaseNow (died, blocks = false) {
    const { floats, operations, words } = agent().native
    floats[ADDRESS] = this.number
    words[AMOUNT] = (died ? DIED : 0) + (blocks ? BLOCKS : 0)
    let answer
    try {
      operations.releaseLock()
      answer = words[ANSWER]
    } catch (error) {
      throw systemError(error.message, error)
    }
    return answer === LATER ? answerTo(floats[COUNT]) : answer !== 0
  }
}

/** Reads the grant that native code has just written into the registers: into the lock, since objects take memory. */
function written ({ floats, words }, into) {
  const permit = words[AMOUNT]
  into.number = floats[ADDRESS]
  into.token = floats[TIMEOUT]
  into.ownerDied = words[ANSWER] === ACQUIRED_FROM_DEAD
  into.permit = permit >= 0 ? permit : undefined
  return into
}

/** Reads an answer, before another grant is written. It is plain, since another copy of the package may await it. */
const outcomeOf = (answer) => typeof answer === 'number' ? written(agent().native, {}) : answer

/** Makes a lock of an outcome; or returns whether one was held until it was given back, false of an attempt in vain. */
function read (outcome) {
  if (typeof outcome === 'string') throw systemError(outcome)
  return typeof outcome === 'object' ? new NativeGrant(outcome) : outcome
}

/** Awaits the answer to a request; gives up at the signal's abort. */
function answerTo (number, signal) {
  return new Promise((resolve, reject) => {
    const wait = waits()
    wait.set(number, (outcome) => {
      ignore()
      try {
        resolve(read(outcome))
      } catch (error) {
        reject(error)
      }
    })
    const giveUp = () => {
      ignore()
      if (!wait.delete(number)) return
      native('filesAbort', number)
      reject(new Error('The wait was given up'))
    }
    const ignore = signal === undefined ? () => {} : onAbort(signal, giveUp)
    // Before it listened: by a job in between, or by a hook of async_hooks.
    if (signal !== undefined && signal.aborted) giveUp()
  })
}

/**
 * Blocks until a request is answered. Returns its lock; undefined once the time is over.
 * @param {() => number} enqueue begins the request: its number, or `NONE`
 * @param {() => void} look is called between slices
 * @param {() => LocalGrant | undefined} [take] makes an attempt without a thread
 */
function block (milliseconds, enqueue, look, take) {
  const until = now() + milliseconds
  let number = enqueue()
  try {
    for (let left = milliseconds; left > 0; left = until - now()) {
      // The engine may end this thread where a function is called.
      const answer = native('filesWait', number, Math.ceil(Math.min(left, SLICE)))
      if (answer !== null) return read(outcomeOf(answer))
      if (number === NONE) {
        const grant = take()
        if (grant !== undefined) return grant
        number = enqueue()
      }
      look()
    }
    return undefined
  } finally {
    native('filesAbort', number)
  }
}

module.exports = { NONE, NativeGrant, PASSING, answerTo, at, block, mapped, native, systemError }
