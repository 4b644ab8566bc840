'use strict'

/** Questions to an engine: who holds locks, and who waits. */

const { within } = require('./engines/aborts')
const { obstacleIn } = require('./errors')

/** How long the error of a timeout waits for its holder. */
const MILLISECONDS = 1000

/**
 * Lists who holds locks and who waits: of one name, or of all.
 * @param {import('async_hooks').AsyncResource} scope the engine's asynchronous context
 */
async function query (engine, scope, name) {
  if (typeof engine.query !== 'function') return { held: [] }
  const { held, pending } = await scope.runInAsyncScope(() => engine.query(name))
  const { HOST, checked, shorten } = require('./engines/holder')
  const named = name === undefined ? {} : { name: shorten(name) }
  const isOurs = ({ pid, host }) => pid === process.pid && [undefined, HOST].includes(host)
  // Those of an engine of somebody else may have anything in their fields.
  const list = (infos) => infos.map((info) => ({ isOurs: isOurs(info), ...info, ...checked(info), ...named }))
  return pending === undefined ? { held: list(held) } : { held: list(held), pending: list(pending) }
}

/** Returns the first holder; undefined if the engine does not tell it soon. Never rejects. */
async function soonestHolder (engine, scope, name) {
  try {
    return obstacleIn(await within(MILLISECONDS, query(engine, scope, name), () => undefined))
  } catch (_) {
    return undefined
  }
}

module.exports = { query, soonestHolder }
