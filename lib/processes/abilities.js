'use strict'

/**
 * What engines of this package can do besides the public interface: those of a program can do nothing of it.
 *
 * | ability | what the engine heeds of its asker |
 * |---|---|
 * | `maxHold` | `maxHold`: after so many milliseconds the grant is lost, and the next holder sees a death |
 * | `permits` | `permits`: the grant is one of so many, and has its number as `permit` |
 *
 * Also through a proxy, which hands on what is asked for.
 */

const { define } = require('../util/intrinsics')

const ABILITIES = Symbol.for('atomics-waitasync.abilities')
const NOTHING = {}

/** Notes what an engine can do. Returns the engine. */
function withAbilities (engine, abilities) {
  define(engine, ABILITIES, abilities)
  return engine
}

const abilitiesOf = (engine) => engine[ABILITIES] || NOTHING

module.exports = { abilitiesOf, withAbilities }
