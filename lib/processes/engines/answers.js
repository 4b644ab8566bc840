'use strict'

/** What the native library answers, and the locks that it has granted. */

const { agent } = require('../../agent/find-agent')
const { LocalGrant } = require('../local-engine')
const { onAbort } = require('./aborts')
const { native, systemError } = require('./native')

/** How many milliseconds a blocking thread stays in native code. Between, the engine may end it. */
const SLICE = 20

/** Returns the functions that await answers, by the numbers of their requests: of all copies of the package. */
function waits () {
  const { native } = agent()
  if (native.files === undefined) native.files = new Deliveries(native.binding)
  return native.files.waits
}

class Deliveries {
  constructor (binding) {
    this.binding = binding
    this.waits = new Map()
  }

  deliver () {
    for (let answer = this.binding.filesNext(); answer !== null; answer = this.binding.filesNext()) {
      const settle = this.waits.get(answer.request)
      this.waits.delete(answer.request)
      if (settle !== undefined) settle(answer)
    }
  }
}

/** A lock. It is lost only if somebody interferes with its file. */
class NativeGrant extends LocalGrant {
  #number
  #isSlow

  constructor ([number, token, ownerDied, permit], isSlow) {
    super()
    this.#number = number
    this.#isSlow = isSlow
    this.token = token
    this.ownerDied = ownerDied !== 0
    this.permit = permit
  }

  remaining () { return native('filesLeft', this.#number) }
  heldNow () { return native('filesHeld', this.#number) }

  releaseNow (died, blocks) {
    const later = this.#isSlow && !blocks ? native('filesReleaseLater', this.#number, died) : null
    return later === null ? native('filesRelease', this.#number, died) : wasHeld(later)
  }
}

const grantOf = (granted, isSlow) => new NativeGrant(granted, isSlow)

/** Makes the lock of an answer; undefined if an attempt was in vain. */
function grantIn ({ granted, failure }, isSlow = false) {
  if (failure !== undefined) throw systemError(failure)
  return granted === undefined ? undefined : grantOf(granted, isSlow)
}

async function wasHeld (number) {
  const { released, failure } = await answer(number)
  if (failure !== undefined) throw systemError(failure)
  return released
}

/** Awaits an answer; gives up at the signal's abort. */
function answer (number, signal) {
  return new Promise((resolve, reject) => {
    const wait = waits()
    wait.set(number, (answer) => {
      ignore()
      resolve(answer)
    })
    const ignore = signal === undefined ? () => {} : onAbort(signal, () => {
      ignore()
      if (!wait.delete(number)) return
      native('filesAbort', number)
      reject(new Error('The wait was given up'))
    })
  })
}

module.exports = { SLICE, answer, grantIn, grantOf }
