'use strict'

/**
 * `AsyncLock`: a mutex in four bytes of shared memory, for any mix of threads.
 *
 * The word holds UNLOCKED or LOCKED and nothing else, so that code which locks it by means of Atomics.compareExchange, wait
 * and notify can share it. Taking a free lock, and giving up one that nobody waits for, happen here; who waits, who holds
 * and who died is known to the native side (src/line.rs has the rules, held-locks.js the table of what this thread holds).
 */

const { isMainThread } = require('worker_threads')
const util = require('util')
const describe = require('../describe')
const { own } = require('../realm')
const { agent } = require('../settle')
const { LOCKED, UNLOCKED } = require('./held-locks')
const { abortReason, timeoutError, toTimeout, waitOptions } = require('./wait-options')
const sharedWord = require('./shared-word')

const INDEX = 0
const WORD = Symbol('word')

/** That a lock is held. Made by the lock; whoever has it may unlock. */
class UnlockToken {
  /** @private */
  constructor (word) {
    this[WORD] = word
    // Its place in the table of held locks; -1 when it is not there.
    this.place = -1
    this.ownerDied = false
  }

  /** Whether the lock is still held by this token. */
  get locked () {
    return this.place >= 0
  }

  /** Gives the lock up. True the first time, false if that had been done already. */
  unlock () {
    if (this.place < 0) return false
    agent().held.give(this[WORD], this)
    notifyHost(this[WORD])
    return true
  }
}

if (typeof Symbol.dispose === 'symbol') {
  Object.defineProperty(UnlockToken.prototype, Symbol.dispose, {
    value: function dispose () { this.unlock() }, writable: true, configurable: true
  })
}

/** Where the host's queue is in use, plain waiters on the word may stand in that. */
function notifyHost (word) {
  const { notify } = own.host
  if (notify !== undefined && own.Atomics.notify === notify) notify(word.array, 0, 1)
}

class AsyncLock {
  constructor (sab, options) {
    const array = sharedWord(sab, options, 'AsyncLock')
    this.sab = sab
    this.i32a = array
    const address = agent().addressOf(new Uint8Array(sab)) + array.byteOffset
    Object.defineProperty(this, WORD, { value: { array, address, counter: agent().held.counterOf(address) } })
  }

  get locked () {
    return Atomics.load(this[WORD].array, INDEX) === LOCKED
  }

  lock () {
    requireWorker('lock', 'lockAsync() or executeLocked()')
    return block(this[WORD], Infinity, 'lock')
  }

  lockIfAvailable (timeout) {
    const t = timeout === undefined ? 0 : toTimeout(timeout)
    if (t > 0) requireWorker('lockIfAvailable with a timeout other than 0', 'lockAsync({ timeout })')
    return t > 0 ? block(this[WORD], t, 'lockIfAvailable') : this.tryLock()
  }

  tryLock () {
    const token = new UnlockToken(this[WORD])
    return agent().held.take(this[WORD], token) ? token : null
  }

  lockAsync (options) {
    return new Promise((resolve, reject) => {
      claim(this[WORD], waitOptions(options, 'lockAsync'), resolve, reject)
    })
  }

  async executeLocked (callback, options) {
    if (typeof callback !== 'function') {
      throw new TypeError('executeLocked: callback must be a function, not ' + describe(callback))
    }
    const wait = waitOptions(options, 'executeLocked')
    if (wait.signal !== undefined && wait.signal.aborted) throw abortReason(wait.signal)
    const token = this.tryLock() ||
      await new Promise((resolve, reject) => claim(this[WORD], wait, resolve, reject))
    try {
      return await callback(token)
    } finally {
      token.unlock()
    }
  }

  unlock () {
    const word = this[WORD]
    const { held } = agent()
    const token = held.tokenOf(word)
    if (token !== undefined) {
      token.unlock()
      return
    }
    if (Atomics.load(word.array, INDEX) === UNLOCKED) throw notHeld('the lock is not held')
    const holder = held.holder(word)
    if (holder !== null) throw notHeld('the lock is held by thread ' + holder + ', not by this one')
    // Locked by code that uses the bare word: it cannot be told whose it is.
    held.free(word)
    notifyHost(word)
  }

  [util.inspect.custom] (depth, options) {
    const word = this[WORD]
    const { locked } = this
    const state = { locked }
    if (locked) {
      const holder = agent().held.holder(word)
      state.holder = holder === null ? 'unknown' : 'thread ' + holder
    }
    state.waiters = agent().waiterCount(word.address)
    return this.constructor.name + ' ' + util.inspect(state, options)
  }
}

Object.defineProperties(AsyncLock, {
  INDEX: { value: INDEX, enumerable: true },
  UNLOCKED: { value: UNLOCKED, enumerable: true },
  LOCKED: { value: LOCKED, enumerable: true },
  byteLength: { value: Int32Array.BYTES_PER_ELEMENT, enumerable: true }
})

/** Takes the lock or blocks for it. The token; null if the time is over. */
function block (word, timeout, caller) {
  const { held, lock } = agent()
  const token = new UnlockToken(word)
  if (held.take(word, token)) return token
  if (held.tokenOf(word) !== undefined) throw deadlock(caller)
  held.makeRoom()
  const ownerDied = lock(word, timeout)
  return ownerDied === undefined ? null : held.adoptLast(token, ownerDied)
}

/** Takes the lock or lines up for it. */
function claim (word, { timeout, signal }, resolve, reject) {
  if (signal !== undefined && signal.aborted) {
    reject(abortReason(signal))
    return
  }
  const { held } = agent()
  const token = new UnlockToken(word)
  if (held.take(word, token)) {
    resolve(token)
  } else if (timeout === 0) {
    reject(timeoutError('The lock was not to be had', timeout))
  } else {
    new LockClaim(token, timeout, signal, resolve, reject).begin()
  }
}

/** One who awaits the lock. */
class LockClaim {
  constructor (token, timeout, signal, resolve, reject) {
    this.token = token
    this.timeout = timeout
    this.signal = signal
    this.resolve = resolve
    this.reject = reject
    this.aborted = false
    this.onAbort = () => this.abort()
    // Both are the table's of pending promises, see lib/settle.js.
    this.slot = -1
    this.adopted = undefined
  }

  begin () {
    const { held, lockAsync } = agent()
    held.makeRoom()
    const ownerDied = lockAsync(this.token[WORD].address, this.timeout, this)
    if (ownerDied !== undefined) {
      this.resolve(held.adoptLast(this.token, ownerDied))
      return
    }
    held.claimBegins()
    if (this.signal !== undefined) this.signal.addEventListener('abort', this.onAbort, { once: true })
  }

  abort () {
    if (this.aborted) return
    this.aborted = true
    // If it is too late, the lock is on its way here and is passed on when it comes.
    if (agent().cancel(this)) this.end()
    this.reject(abortReason(this.signal))
  }

  adopt (place, ownerDied) {
    return agent().held.adopt(this.token, place, ownerDied)
  }

  settle (value) {
    this.end()
    if (value === 'timed-out') this.reject(timeoutError('The lock was not to be had', this.timeout))
    else if (this.aborted) value.unlock()
    else this.resolve(value)
  }

  end () {
    agent().held.claimEnds()
    if (this.signal !== undefined && typeof this.signal.removeEventListener === 'function') {
      this.signal.removeEventListener('abort', this.onAbort)
    }
  }
}

function requireWorker (what, instead) {
  if (isMainThread) throw new TypeError(what + ' would block the main thread: use ' + instead)
}

function deadlock (caller) {
  const error = new Error(caller + ': this thread holds the lock already and would wait for itself')
  error.code = 'ERR_DEADLOCK'
  return error
}

function notHeld (message) {
  const error = new Error('unlock: ' + message)
  error.code = 'ERR_NOT_LOCKED'
  return error
}

module.exports = { AsyncLock, UnlockToken }
