'use strict'

/** What the native library answers, and the locks that it has granted. */

const { agent } = require('../../agent/find-agent')
const { Float64Array, now } = require('../../util/intrinsics')
const { LocalGrant } = require('../local-engine')
const { onAbort } = require('./aborts')
const { native, systemError } = require('./native')

/** How many milliseconds a blocking thread stays in native code. Between, the engine may end it. */
const SLICE = 20
/** Where native code writes a grant: its number, its token, whether the last holder died, and its permit. */
const GRANT = new Float64Array(4)
/** Stands for a request that has no thread. */
const NONE = 0

/** Returns the functions that await answers, by the numbers of their requests: of all copies of the package. */
function waits () {
  const { native } = agent()
  if (native.files === undefined) native.files = new Deliveries(native.binding)
  return native.files.waits
}

/** Reads an answer, before another grant is written. A number: that request has been granted. */
const outcomeOf = (answer) => (
  typeof answer === 'number' ? { granted: [GRANT[0], GRANT[1], GRANT[2], GRANT[3]] } : answer)

class Deliveries {
  constructor (binding) {
    this.binding = binding
    this.waits = new Map()
  }

  deliver () {
    const { binding, waits } = this
    for (let answer = binding.filesNext(GRANT); answer !== null; answer = binding.filesNext(GRANT)) {
      const request = typeof answer === 'number' ? answer : answer.request
      const outcome = outcomeOf(answer)
      const settle = waits.get(request)
      waits.delete(request)
      if (settle !== undefined) settle(outcome)
    }
  }
}

/** A lock. It is lost only if somebody interferes with its file. */
class NativeGrant extends LocalGrant {
  constructor (granted, isSlow) {
    super()
    const { 0: number, 1: token, 2: ownerDied, 3: permit } = granted
    this.number = number
    this.isSlow = isSlow
    this.token = token
    this.ownerDied = ownerDied !== 0
    this.permit = permit >= 0 ? permit : undefined
  }

  remaining () { return native('filesLeft', this.number) }
  heldNow () { return native('filesHeld', this.number) }

  releaseNow (died, blocks) {
    const later = this.isSlow && !blocks ? native('filesReleaseLater', this.number, died) : null
    return later === null ? native('filesRelease', this.number, died) : wasHeld(later)
  }
}

const grantOf = (granted, isSlow) => new NativeGrant(granted, isSlow)

/** Makes the lock of an answer; undefined if an attempt was in vain. */
function grantIn ({ granted, failure }, isSlow = false) {
  if (failure !== undefined) throw systemError(failure)
  return granted === undefined ? undefined : grantOf(granted, isSlow)
}

const wasHeld = (number) => answer(number, undefined, ({ released, failure }) => {
  if (failure !== undefined) throw systemError(failure)
  return released
})

/** Awaits the lock of an answer; undefined if an attempt was in vain. */
const grantFor = (number, signal, isSlow) => answer(number, signal, (answer) => grantIn(answer, isSlow))

/** Awaits what an answer is read as; gives up at the signal's abort. */
function answer (number, signal, read) {
  return new Promise((resolve, reject) => {
    const wait = waits()
    wait.set(number, (answer) => {
      ignore()
      try {
        resolve(read(answer))
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
function block (milliseconds, enqueue, look, isSlow = false, take = undefined) {
  const until = now() + milliseconds
  let number = enqueue()
  try {
    for (let left = milliseconds; left > 0; left = until - now()) {
      // The engine may end this thread where a function is called.
      const answer = native('filesWait', number, Math.ceil(Math.min(left, SLICE)), GRANT)
      if (answer !== null) return grantIn(outcomeOf(answer), isSlow)
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

module.exports = { GRANT, NONE, block, grantFor, grantOf }
