'use strict'

/**
 * Engines of this package whose locks are on this machine. A free lock is taken, and given back, without a promise; and
 * a thread can block for one. Other engines are known by the public interface alone.
 *
 * What such an engine knows of a name, its place, is made once.
 */

const { throwIfAborted } = require('../waiting/errors')
const { Question } = require('./engine-claim')

/**
 * A subclass has
 * - `placeOf(name, mode)`,
 * - `takeNow(place, label, isAttempt)`: a LocalGrant; undefined if it is taken, or if `isSlow`,
 * - `wait(place, label, question)`: a promise of a LocalGrant; it rejects once the question is withdrawn,
 * - `attemptSlowly(place, label, question)`: as `takeNow`, of an engine that is slow,
 * - `block(place, label, milliseconds, look)`: a LocalGrant; undefined once the time is over,
 * - `querySync(name)`.
 */
class LocalEngine {
  /** Whether each lock waits for a disk. Then another thread takes it and gives it back. */
  get isSlow () { return false }

  async acquire (name, mode, signal, { label } = {}) {
    throwIfAborted(signal)
    const place = this.placeOf(name, mode)
    const grant = this.takeNow(place, label, false)
    return grant === undefined ? withSignal(signal, (question) => this.wait(place, label, question)) : grant
  }

  async attempt (name, mode, signal, { label } = {}) {
    throwIfAborted(signal)
    const place = this.placeOf(name, mode)
    if (!this.isSlow) return this.takeNow(place, label, true)
    return withSignal(signal, (question) => this.attemptSlowly(place, label, question))
  }
}

/** Asks a question that a signal withdraws. */
async function withSignal (signal, ask) {
  const question = new Question()
  const withdraw = () => question.withdraw()
  signal.addEventListener('abort', withdraw)
  try {
    return await ask(question)
  } finally {
    signal.removeEventListener('abort', withdraw)
  }
}

/** A lock of such an engine. A subclass has `heldNow()`, and `releaseNow(died)`, which may give a promise. */
class LocalGrant {
  #lost

  /** Never aborts: the lock is lost only if somebody interferes, which nobody is told of. */
  get lost () {
    if (this.#lost === undefined) this.#lost = new AbortController().signal
    return this.#lost
  }

  remaining () { return Infinity }
  async held () { return this.heldNow() }
  async release (died) { return this.releaseNow(died) }
}

module.exports = { LocalEngine, LocalGrant }
