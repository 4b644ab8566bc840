'use strict'

// Notes on holders, by kind (`lock`, `rw`, `name`, `file`), and each holder's laws; and callbacks that hold.

const { ACTORS } = require('../arena')

const who = (actor) => `actor ${actor % ACTORS} of thread ${Math.floor(actor / ACTORS)}`

/** @param {{ ownerDied: boolean } | undefined} token undefined if nothing is told of deaths */
function inherited (actor, kind, index, token) {
  if (token === undefined || !token.ownerDied) return
  const { arena } = actor
  const times = arena.add(`${kind}Inherited`, index, 1)
  actor.count('owner died')
  // Readers are all told of one death.
  actor.require(arena.get('deaths') > 0 && (kind !== 'lock' || times <= arena.get('deaths')),
    () => `told of ${times} deaths, and ${arena.get('deaths')} threads died`)
}

/** Begins a hold that excludes all others. */
function beginToHold (actor, kind, index, token) {
  const { arena } = actor
  inherited(actor, kind, index, token)
  arena.add(`${kind}Taken`, index, 1)
  const before = Atomics.exchange(arena.ledger, arena.at(`${kind}Holder`, index), actor.number)
  if (before !== 0) {
    actor.require(
      arena.isDying(before),
      () => `a double grant: ${kind} ${index} is held by ${who(before)}, which is alive`
    )
    assertTold(actor, kind, index, token)
  }
  assertWhole(actor, kind, index, token)
  arena.ledger[arena.at(`${kind}First`, index)]++
}

function assertTold (actor, kind, index, token) {
  actor.require(
    token === undefined || token.ownerDied,
    () => `${kind} ${index} was held by a thread that died, and the next holder is not told`
  )
}

/** Checks, by plain reads, the last holder's writes; half of it only if the holder died. */
function assertWhole (actor, kind, index, token) {
  const { arena, arena: { ledger } } = actor
  if (ledger[arena.at(`${kind}First`, index)] !== ledger[arena.at(`${kind}Last`, index)])
    assertTold(actor, kind, index, token)
}

function endToHold (actor, kind, index) {
  const { arena } = actor
  arena.ledger[arena.at(`${kind}Last`, index)] = arena.ledger[arena.at(`${kind}First`, index)]
  const before = Atomics.compareExchange(arena.ledger, arena.at(`${kind}Holder`, index), actor.number, 0)
  actor.require(before === actor.number, () => `a double grant: ${kind} ${index} was entered by ${who(before)}`)
}

/** Begins an exclusive hold of something that others may share. */
function beginToWrite (actor, kind, index, token) {
  const { arena } = actor
  beginToHold(actor, kind, index, token)
  for (let other = 0; other < arena.actors; other++) {
    const reads = arena.get(`${kind}Reads`, other)
    actor.require(
      (reads & (1 << index)) === 0 || other === actor.number || arena.isDying(other),
      () => `the writer of ${kind} ${index} meets a reader, ${who(other)}, which is alive`
    )
  }
}

function beginToRead (actor, kind, index, token) {
  const { arena } = actor
  inherited(actor, kind, index, token)
  Atomics.or(arena.ledger, arena.at(`${kind}Reads`, actor.number), 1 << index)
  const writer = arena.get(`${kind}Holder`, index)
  actor.require(
    writer === 0 || arena.isDying(writer),
    () => `a reader of ${kind} ${index} meets the writer, ${who(writer)}, which is alive`
  )
  if (writer !== 0) assertTold(actor, kind, index, token)
  assertWhole(actor, kind, index, token)
}

function endToRead (actor, kind, index) {
  const { arena } = actor
  Atomics.and(arena.ledger, arena.at(`${kind}Reads`, actor.number), ~(1 << index))
}

/** The result of a callback. */
const DONE = 7
/** The error of a callback. */
const FAILURE = new Error('thrown by a callback of the soak')

/**
 * Runs a callback with something held: `begin(token)`, some time, `end()`. Gives whether it ran and did not throw.
 *
 * @param {(name: string, callback: Function, options: object) => any} call calls a method by its name
 * @param {string} name of the method that awaits; with `Sync` behind it, of the one that blocks
 */
async function execute (actor, call, name, begin, end, options = actor.options()) {
  const { steal = false } = options || {}
  const fails = !steal && actor.chance(0.1)
  let ran = false
  let over
  const finish = (token) => {
    end()
    if (token && token.unlock && actor.chance(0.2)) token.unlock()
    if (!fails) return DONE
    // The next holder sees a death that this one was reported.
    if (token && token.ownerDied) actor.arena.add('deaths', 0, 1)
    throw FAILURE
  }
  const awaiting = async (token) => {
    ran = true
    await begin(token)
    await actor.linger()
    return finish(token)
  }
  const blocking = (token) => {
    ran = true
    begin(token)
    actor.lingerSync()
    return finish(token)
  }
  const blocks = actor.blocks && !steal && !actor.chance(0.1)
  try {
    const result = await actor.attempt(options, () =>
      blocks ? call(`${name}Sync`, blocking, options) : call(name, token => (over = awaiting(token)), options)
    )
    actor.require(ran === (result === DONE), () => `the callback ran: ${ran}, and the result was ${result}`)
  } catch (error) {
    if (error !== FAILURE || !fails) throw error
  } finally {
    // The callback of a request that was robbed goes on.
    if (over) await over.catch(() => {})
  }
  return ran && !fails
}

/**
 * Requests a name of `locks`. Gives whether its callback ran with it, which may end later than the request if the name
 * was stolen.
 */
function request (actor, locks, index, options, begin, end) {
  const call = (method, callback) => locks[method](actor.arena.nameOf(index), options, lock => {
    if (lock !== null) return callback(lock)
    return actor.require(options.ifAvailable, () => 'a callback got null without ifAvailable')
  })
  return execute(actor, call, 'request', begin, end, options)
}

module.exports = { beginToHold, beginToRead, beginToWrite, endToHold, endToRead, execute, request }
