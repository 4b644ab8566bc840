'use strict'

// Locks by name. Laws: those of read-write locks; what `query` tells agrees with itself; a request that is told of a
// theft was robbed, and of two that overlap one was robbed. One name is stolen from, and another one whose callbacks
// never end.

const { TICKETS } = require('../arena')
const { laws, infosOf } = require('../snapshot')
const { api } = require('../subject')
const holding = require('./holding')

const { locks } = api
const { beginToRead, beginToWrite, endToHold, endToRead } = holding
const STOLEN_FROM = 0
/** The state of a ticket: it was kept to its end, and another was there before its end. */
const KEPT = 1
const FOLLOWED = 2

/** Holds a name by a callback. */
const hold = (actor, ...rest) => holding.request(actor, locks, ...rest)

/** Holds a name by a token, as `hold` by a callback. */
async function holdByToken (actor, index, options, begin, end) {
  const name = actor.arena.nameOf(index)
  const { ifAvailable, steal, mode } = options
  const blocks = actor.blocks && !steal && !actor.chance(0.1)
  const token = ifAvailable
    ? locks.tryHold(name, { mode })
    : await actor.attempt(options, () => locks[blocks ? 'hold' : 'holdAsync'](name, options))
  if (!token) return false
  await begin(token)
  await actor.linger()
  end()
  const abandons = mode !== 'shared' && actor.chance(0.05)
  if (abandons) actor.arena.add('deaths', 0, 1)
  const wasHeld = abandons ? token.abandon() : token.unlock()
  actor.require(!token.locked && !token.unlock(), () => 'a name was released twice')
  actor.require(token.stolen !== wasHeld, () => `a name was given back: ${wasHeld}, and stolen: ${token.stolen}`)
  if (!wasHeld) throw Object.assign(new Error('robbed'), { name: 'AbortError' })
  return true
}

const formOf = (actor) => actor.chance(0.3) ? holdByToken : hold

const optionsOf = (actor) => actor.chance(0.1) ? { ifAvailable: true } : Object.assign({}, actor.options())

function request (actor, index) {
  if (index === STOLEN_FROM) return requestStealable(actor, index)
  const shared = actor.chance(0.5)
  const options = Object.assign({ mode: shared ? 'shared' : 'exclusive' }, optionsOf(actor))
  const [begin, end] = shared ? [beginToRead, endToRead] : [beginToWrite, endToHold]
  const form = formOf(actor)
  return form(actor, index, options, lock => begin(actor, 'name', index, lock), () => end(actor, 'name', index))
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
    actor.require(
      known !== (KEPT | FOLLOWED),
      () => `a double grant: request ${ticket} of a name and another one both kept it`
    )
  }
  let kept
  try {
    kept = await formOf(actor)(actor, index, steal ? { steal } : optionsOf(actor), begin, end)
  } catch (error) {
    if (error.name !== 'AbortError') throw error
    const stolen = arena.add('stolen', 0, 1)
    actor.require(
      stolen <= arena.get('steals'),
      () => `${stolen} requests were robbed by ${arena.get('steals')} thefts`
    )
    return
  }
  actor.require(kept || !steal, () => 'a theft gave up')
  if (!kept) return
  know(ticket, KEPT)
  // It came while this one held the name, which was not stolen: so the other had been robbed before.
  if (next !== ticket) know(next, FOLLOWED)
}

/**
 * Begins callbacks that never end, and thefts: a request is told, at whatever moment the theft comes, and its name is
 * not kept.
 */
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

/** Checks that the answers about all names agree. */
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
