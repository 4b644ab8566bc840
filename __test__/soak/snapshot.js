'use strict'

// The laws of reports on holders: `snapshot()`, and `locks.query()`.

const { PERMITS } = require('./arena')
const { api } = require('./subject')

/** Turns the answer of `query` into entries like a snapshot's. */
const infosOf = infos =>
  infos.map(({ name, mode, clientId }) => ({ kind: 'named', id: name, mode, threadId: Number(clientId.split('-')[1]) }))

/** Returns the error of holders' entries; undefined if there is none. */
function laws (held) {
  const holders = new Map()
  for (const entry of held) holders.set(entry.id, (holders.get(entry.id) || []).concat(entry))
  for (const entries of holders.values()) {
    const permits = entries.reduce((sum, { amount = 0 }) => sum + amount, 0)
    const isAlone = entries.length === 1 || !entries.some(({ mode }) => mode === 'exclusive')
    if (!isAlone || permits > PERMITS) return `a snapshot tells of a double grant: ${JSON.stringify(entries)}`
  }
  return undefined
}

/** Returns the error of the cycles. */
function cycleLaws (cycles) {
  const links = (cycle, n) =>
    cycle[n].threadId === cycle[n].holds.threadId && cycle[n].waitsFor.id === cycle[(n + 1) % cycle.length].holds.id
  // A task may wait for itself, a thread does not.
  const isAlone = cycle => cycle.length < 2 && (process.env.ATOMICS_WAITASYNC_STALL === undefined || cycle.length < 1)
  const wrong = cycles.find(cycle => isAlone(cycle) || !cycle.every((_, n) => links(cycle, n)))
  return wrong && `a snapshot tells of a cycle that is none: ${JSON.stringify(wrong)}`
}

/** Takes a snapshot, and finds its error; `arena` knows the threads that were gone before. */
function look (arena) {
  const gone = new Set()
  for (let id = 1; id <= arena.get('lastId'); id++) gone.add(arena.get('gone', id))
  const { held, waiting, cycles } = api.snapshot()
  const ghost = held.concat(waiting).find(({ threadId }) => threadId !== 0 && gone.has(threadId))
  const problem = ghost
    ? `a snapshot tells of a thread that is gone: ${JSON.stringify(ghost)}`
    : laws(held) || cycleLaws(cycles)
  return { held, waiting, problem }
}

module.exports = { infosOf, laws, look }
