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
const { throwIfAborted } = require('../waiting/errors')

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

module.exports = { BuiltInEngine, Question, ServerEngine, abilitiesOf, isBuiltIn }
