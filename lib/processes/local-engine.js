'use strict'

/**
 * Engines of this package whose locks are on this machine. A free lock is taken, and given back, without a promise; and
 * a thread can block for one. Other engines are known by the public interface alone.
 *
 * What such an engine knows of a name, its place, is made once.
 */

const { define } = require('../util/intrinsics')
const { throwIfAborted } = require('../waiting/errors')

/** Not those that a program has wrapped. */
const genuine = new WeakSet()

/** Whether an engine is a local one, unchanged by the program: its locks are taken at once. */
const isLocal = (engine) => genuine.has(engine) && engine.acquire === LocalEngine.prototype.acquire &&
  engine.attempt === LocalEngine.prototype.attempt

/**
 * A subclass has
 * - `placeOf(name, mode, asker)`,
 * - `takeNow(place, label, isAttempt)`: a LocalGrant; undefined if it is taken, or if `isSlow`,
 * - `wait(place, label, signal)`: a promise of a LocalGrant,
 * - `attemptSlowly(place, label, signal)`: as `takeNow`, of an engine that is slow,
 * - `block(place, label, milliseconds, look)`: a LocalGrant; undefined once the time is over,
 * - `takePermit(name, asker, signal, isAttempt)`, if it has permits; and if a permit is taken as a lock is,
 *   `permitPlace(name, permits)`,
 * - `querySync(name)`.
 */
class LocalEngine {
  constructor () {
    genuine.add(this)
  }

  /** Whether each lock waits for a disk. Then another thread takes it and gives it back. */
  get isSlow () { return false }

  permitPlace () { return undefined }

  async acquire (name, mode, signal, asker) { return grantFor(this, name, mode, signal, asker, false) }
  async attempt (name, mode, signal, asker) { return grantFor(this, name, mode, signal, asker, true) }
}

async function grantFor (engine, name, mode, signal, asker = {}, isAttempt) {
  throwIfAborted(signal)
  if (asker.permits !== undefined) return engine.takePermit(name, asker, signal, isAttempt)
  const { label } = asker
  const place = engine.placeOf(name, mode, asker)
  const lease = leaseFor(asker)
  let grant = engine.takeNow(place, label, isAttempt)
  if (grant === undefined && !isAttempt) grant = await engine.wait(place, label, signal)
  else if (grant === undefined && engine.isSlow) grant = await engine.attemptSlowly(place, label, signal)
  return limited(grant, lease)
}

/** Loads what tells of a limit, before a lock is taken: it takes a descriptor. Undefined without a limit. */
const leaseFor = ({ maxHold }) => maxHold === undefined ? undefined : require('./engines/server-lease')

/** Makes the grant of a lock whose hold is limited. Native code ends it; this tells of it. */
function limited (grant, lease) {
  if (lease === undefined || grant === undefined) return grant
  const { ownerDied, token } = grant
  // Before it says how long it lasts: this thread may stand still between.
  const from = lease.now()
  return new lease.Lease(Infinity, from).grant({
    token, ownerDied, maxHold: grant.remaining(), from, held: () => grant.held(), release: (died) => grant.release(died)
  })
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

/** A lock of such an engine. A subclass has `heldNow()`, and `releaseNow(died)`, which may give a promise. */
class LocalGrant {
  /** Never aborts: the lock is lost only if somebody interferes, which nobody is told of. */
  get lost () {
    const { signal } = new AbortController()
    define(this, 'lost', signal)
    return signal
  }

  remaining () { return Infinity }
  async held () { return this.heldNow() }
  async release (died) { return this.releaseNow(died) }
}

module.exports = { LocalEngine, LocalGrant, Question, isLocal }
