'use strict'

// What is noted of holders, by kind of thing (`lock`, `rw`, `name`), and the laws that each holder checks.

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

/** The actor holds something alone. */
function beginToHold (actor, kind, index, token) {
  const { arena } = actor
  inherited(actor, kind, index, token)
  arena.add(`${kind}Taken`, index, 1)
  const before = Atomics.exchange(arena.ledger, arena.at(`${kind}Holder`, index), actor.number)
  if (before !== 0) {
    actor.require(arena.isDying(before), () => `a double grant: ${kind} ${index} is held by ${who(before)}, which is alive`)
    requireTold(actor, kind, index, token)
  }
  requireWhole(actor, kind, index, token)
  arena.ledger[arena.at(`${kind}First`, index)]++
}

function requireTold (actor, kind, index, token) {
  actor.require(token === undefined || token.ownerDied, () => `${kind} ${index} was held by a thread that died, and the next holder is not told`)
}

/** What the last holder wrote is there, by plain reads; half of it only if the holder died. */
function requireWhole (actor, kind, index, token) {
  const { arena, arena: { ledger } } = actor
  if (ledger[arena.at(`${kind}First`, index)] !== ledger[arena.at(`${kind}Last`, index)]) requireTold(actor, kind, index, token)
}

function endToHold (actor, kind, index) {
  const { arena } = actor
  arena.ledger[arena.at(`${kind}Last`, index)] = arena.ledger[arena.at(`${kind}First`, index)]
  const before = Atomics.compareExchange(arena.ledger, arena.at(`${kind}Holder`, index), actor.number, 0)
  actor.require(before === actor.number, () => `a double grant: ${kind} ${index} was entered by ${who(before)}`)
}

/** The actor holds something alone that others may share. */
function beginToWrite (actor, kind, index, token) {
  const { arena } = actor
  beginToHold(actor, kind, index, token)
  const used = ACTORS * (arena.get('lastId') + 1)
  for (let other = 0; other < used; other++) {
    const reads = arena.get(`${kind}Reads`, other)
    actor.require((reads & (1 << index)) === 0 || other === actor.number || arena.isDying(other), () => `the writer of ${kind} ${index} meets a reader, ${who(other)}, which is alive`)
  }
}

function beginToRead (actor, kind, index, token) {
  const { arena } = actor
  inherited(actor, kind, index, token)
  Atomics.or(arena.ledger, arena.at(`${kind}Reads`, actor.number), 1 << index)
  const writer = arena.get(`${kind}Holder`, index)
  actor.require(writer === 0 || arena.isDying(writer), () => `a reader of ${kind} ${index} meets the writer, ${who(writer)}, which is alive`)
  if (writer !== 0) requireTold(actor, kind, index, token)
  requireWhole(actor, kind, index, token)
}

function endToRead (actor, kind, index) {
  const { arena } = actor
  Atomics.and(arena.ledger, arena.at(`${kind}Reads`, actor.number), ~(1 << index))
}

module.exports = { beginToHold, beginToRead, beginToWrite, endToHold, endToRead }
