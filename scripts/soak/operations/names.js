'use strict'

// Locks by name. Laws: those of read-write locks; what `query` tells agrees with itself; a request that is told of a theft was robbed,
// and of two that overlap one was robbed. One name is stolen from, and another one whose callbacks never end.

const { TICKETS } = require('../arena')
const { laws, infosOf } = require('../snapshot')
const { api } = require('../subject')
const { beginToRead, beginToWrite, endToHold, endToRead } = require('./holding')

const { locks } = api
const STOLEN_FROM = 0
const DONE = 7
/** What is known of a ticket: it was kept to its end, and another was there before its end. */
const KEPT = 1
const FOLLOWED = 2

/**
 * Requests a name by the method that blocks or the one that awaits: `begin(lock)`, some time, `end()`. Gives DONE, or undefined if it
 * gave up; and when the callback has ended, which may be later than that if the name was stolen.
 */
async function hold (actor, index, options, begin, end) {
  const name = actor.arena.nameOf(index)
  const given = Object.assign({}, options)
  let ran = Promise.resolve()
  const attempt = actor.attempt(options, () => {
    if (!actor.blocks || given.steal || actor.chance(0.1)) {
      return locks.request(name, given, lock => {
        const result = (async () => {
          if (lock === null) return 0
          begin(lock)
          await actor.linger()
          end()
          return DONE
        })()
        ran = result
        return result
      })
    }
    return locks.requestSync(name, given, lock => {
      if (lock === null) return 0
      begin(lock)
      actor.lingerSync()
      end()
      return DONE
    })
  })
  try {
    const result = await attempt
    actor.require(result !== 0 || given.ifAvailable, () => 'a callback got null without ifAvailable')
    return result === DONE ? true : undefined
  } finally {
    await ran
  }
}

const optionsOf = (actor) => actor.chance(0.1) ? { ifAvailable: true } : actor.options()

function request (actor, index) {
  if (index === STOLEN_FROM) return requestStealable(actor, index)
  const shared = actor.chance(0.5)
  const options = Object.assign({ mode: shared ? 'shared' : 'exclusive' }, optionsOf(actor))
  if (shared) return hold(actor, index, options, lock => beginToRead(actor, 'name', index, lock), () => endToRead(actor, 'name', index))
  return hold(actor, index, options, lock => beginToWrite(actor, 'name', index, lock), () => endToHold(actor, 'name', index))
}

async function requestStealable (actor, index) {
  const { arena } = actor
  const ticket = arena.add('tickets', 0, 1)
  if (ticket >= TICKETS) return
  const steal = actor.chance(0.2)
  if (steal) arena.add('steals', 0, 1)
  let next = ticket
  const begin = () => {
    arena.add('nameTaken', index, 1)
    arena.set('lastTicket', 0, ticket)
  }
  const end = () => { next = arena.get('lastTicket') }
  const know = (of, what) => {
    const known = Atomics.or(arena.ledger, arena.at('ticketState', of), what) | what
    actor.require(known !== (KEPT | FOLLOWED), () => `a double grant: request ${ticket} of a name and another one both kept it`)
  }
  let result
  try {
    result = await hold(actor, index, steal ? { steal } : optionsOf(actor), begin, end)
  } catch (error) {
    if (error.name !== 'AbortError') throw error
    const stolen = arena.add('stolen', 0, 1)
    actor.require(stolen <= arena.get('steals'), () => `${stolen} requests were robbed by ${arena.get('steals')} thefts`)
    return
  }
  actor.require(result === true || !steal, () => 'a theft gave up')
  if (result === true) {
    know(ticket, KEPT)
    // It came while this one held the name, which was not stolen: so the other had been robbed before.
    if (next !== ticket) know(next, FOLLOWED)
  }
}

/** A callback that never ends, and thefts: its request is told, at whatever moment the theft comes, and its name is not kept. */
async function endless (actor) {
  const name = 'endless'
  let error
  const steal = actor.chance(0.5)
  const request = locks.request(name, { steal }, () => new Promise(() => {})).catch(thrown => { error = thrown })
  // If it waits behind another one, that one's theft lets it in.
  for (let n = 0; error === undefined; n++) {
    actor.require(n < 1000, () => 'a request with a callback that never ends was not told of a theft')
    await locks.request(name, { steal: true }, () => {}).catch(() => {})
    // The news come in a job of their own.
    if (error === undefined) await new Promise(resolve => setTimeout(resolve, n))
  }
  await request
  actor.require(error.name === 'AbortError', () => `a robbed request has rejected with ${error}`)
}

/** What is told of all names agrees with itself. */
async function query (actor) {
  const { held } = await locks.query()
  const problem = laws(infosOf(held))
  actor.require(problem === undefined, () => problem)
}

module.exports = [
  { name: 'request', weight: 12, of: 'name', bursts: true, run: request },
  { name: 'endless', weight: 1, run: endless },
  { name: 'query', weight: 1, run: query }
]
