'use strict'

/**
 * Engines of this package whose locks are on this machine. A free lock is taken, and given back, without a promise; and
 * a thread can block for one. Other engines are known by the public interface alone.
 *
 * What such an engine knows of a name, its place, is made once.
 */

const { define } = require('../util/intrinsics')
const { BuiltInEngine } = require('./built-in-engine')

/**
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

module.exports = { LocalEngine, LocalGrant }
