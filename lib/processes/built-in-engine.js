'use strict'

/**
 * Engines of this package, and their abilities besides the public interface. Those of a program have none of them.
 *
 * | ability | what the engine heeds of its asker |
 * |---|---|
 * | `maxHold` | `maxHold`: after so many milliseconds the grant is lost, and the next holder sees a death |
 * | `permits` | `permits`: the grant is one of so many, and has its number as `permit` |
 *
 * Also through a proxy, which hands on what is asked for. One that is not wrapped is asked by `enter`, with a signal of
 * this package alone; its grants tell of a loss by `whenLost`. Both do without an AbortController.
 */

const { define } = require('../util/intrinsics')
const { clearTimeout, setTimeout } = require('../util/timers')
const { readReason, throwIfAborted } = require('../waiting/errors')

const ABILITIES = Symbol.for('atomics-waitasync.abilities')
const NOTHING = {}

const abilitiesOf = (engine) => engine[ABILITIES] || NOTHING

/** Not those that a program has wrapped. */
const genuine = new WeakSet()

/** Whether an engine is one of this package, unchanged by the program. */
const isBuiltIn = (engine) => genuine.has(engine) && engine.acquire === BuiltInEngine.prototype.acquire &&
  engine.attempt === BuiltInEngine.prototype.attempt

/** A subclass has `enter(name, mode, signal, asker, isAttempt)`: a promise of a grant, or of undefined. */
class BuiltInEngine {
  constructor (abilities) {
    define(this, ABILITIES, abilities)
    genuine.add(this)
  }

  async acquire (name, mode, signal, asker = {}) {
    throwIfAborted(signal)
    return this.enter(name, mode, signal, asker, false)
  }

  async attempt (name, mode, signal, asker = {}) {
    throwIfAborted(signal)
    return this.enter(name, mode, signal, asker, true)
  }
}

/**
 * An engine whose locks are on this machine. A free lock is taken, and given back, without a promise; and a thread can
 * block for one. What such an engine knows of a name, its place, is made once.
 *
 * A subclass has
 * - `placeOf(name, mode, asker)`,
 * - `takeNow(place, label, isAttempt)`: a LocalGrant; undefined if it is taken, or if `isSlow`,
 * - `wait(place, label, signal)`: a promise of a LocalGrant,
 * - `attemptSlowly(place, label, signal)`: as `takeNow`, of an engine that is slow,
 * - `block(place, label, milliseconds, look)`: a LocalGrant; undefined once the time is over,
 * - `takePermit(name, asker, signal, isAttempt)`; or, if a permit is taken as a lock is, `permitPlace(name, permits)`,
 * - `querySync(name)`.
 */
class LocalEngine extends BuiltInEngine {
  /** Whether each lock waits for a disk. Then another thread takes it and gives it back. */
  get isSlow () { return false }

  permitPlace () { return undefined }

  async enter (name, mode, signal, asker, isAttempt) {
    const { label, permits } = asker
    if (permits !== undefined && this.takePermit !== undefined) return this.takePermit(name, asker, signal, isAttempt)
    const place = this.placeOf(name, mode, asker)
    const lease = leaseFor(asker)
    if (isAttempt && this.isSlow) return limited(await this.attemptSlowly(place, label, signal), lease)
    const taken = this.takeNow(place, label, isAttempt)
    return limited(taken === undefined && !isAttempt ? await this.wait(place, label, signal) : taken, lease)
  }
}

/** Loads what tells of a limit, before a lock is taken: it takes a descriptor. Undefined without a limit. */
const leaseFor = ({ maxHold }) => maxHold === undefined ? undefined : require('./engines/server-lease')

/** Makes the grant of a lock whose hold is limited. Native code ends it; this tells of it. */
function limited (grant, lease) {
  if (lease === undefined || grant === undefined) return grant
  const { ownerDied, token } = grant
  // Before it says how long it lasts: this thread may stand still between.
  const from = lease.now()
  return new lease.Lease(Infinity, from, grant).begin({ token, ownerDied, maxHold: grant.remaining(), from })
}

/** A lock of such an engine. A subclass has `heldNow()`, and `releaseNow(died)`, which may give a promise. */
class LocalGrant {
  /** Never aborts: the lock is lost only if somebody interferes, which nobody is told of. */
  get lost () {
    const { signal } = new AbortController()
    define(this, 'lost', signal)
    return signal
  }

  whenLost () {}
  remaining () { return Infinity }
  async held () { return this.heldNow() }
  async release (died) { return this.releaseNow(died) }
}

/** The engine of a server: made of its `id`, `modes`, `enter`, `query` and `close`. */
class ServerEngine extends BuiltInEngine {
  constructor (parts) {
    super({ maxHold: true })
    Object.assign(this, parts)
  }
}

/**
 * An AbortController and its signal for this package alone.
 *
 * There is one listener at a time. To remove one from a signal of Node took a quarter of the way from a grant to its
 * callback.
 */
class Question {
  constructor () {
    this.aborted = false
    this.reason = this.listener = undefined
  }

  get signal () { return this }
  addEventListener (type, listener) { this.listener = listener }
  removeEventListener () { this.listener = undefined }

  abort () {
    if (this.aborted) return
    this.aborted = true
    if (this.listener !== undefined) this.listener()
  }
}

// ——— Waits that end by a signal. Node 16 lacks what newer ones have for that ———

/** Calls back at the abort. Returns a function that ends this. */
function onAbort (signal, callback) {
  signal.addEventListener('abort', callback)
  return () => signal.removeEventListener('abort', callback)
}

/** Waits, or rejects with the signal's reason. The timer keeps the process alive. */
function sleep (milliseconds, signal) {
  return new Promise((resolve, reject) => {
    throwIfAborted(signal)
    // A hook of async_hooks may abort while it is made.
    let timer = null
    const ignore = onAbort(signal, () => {
      clearTimeout(timer)
      reject(readReason(signal))
    })
    timer = setTimeout(() => {
      ignore()
      resolve()
    }, milliseconds)
  })
}

/** Settles as the promise does, or rejects after some milliseconds. */
function within (milliseconds, promise, createError) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(createError()), milliseconds)
    const settle = end => value => {
      clearTimeout(timer)
      end(value)
    }
    promise.then(settle(resolve), settle(reject))
  })
}

module.exports = {
  LocalEngine, LocalGrant, Question, ServerEngine, abilitiesOf, isBuiltIn, onAbort, sleep, within
}
