'use strict'

// Conditions, barriers and latches. Laws: whatever ends a wait, the lock is held again; no item is left while a
// consumer waits (the watcher sees to that); the generations of a barrier are the same for all parties, and each has
// one leader.

const { ACTORS } = require('../arena')

/**
 * Runs `body` under the lock of a queue. After the death of a holder nobody needs to be notified: what it owed has been
 * passed on.
 */
async function locked (actor, index, body) {
  const { lock } = actor.arena.queues[index]
  const token = actor.blocks ? lock.lock() : await lock.lockAsync()
  actor.arena.add('queueTaken', index, 1)
  await body(token, actor.arena.queues[index])
  actor.require(token.unlock(), () => 'the lock of a queue was lost')
}

function produce (actor, index) {
  return locked(actor, index, async (_, { condition, items }) => {
    const { words } = actor.arena
    const before = Atomics.load(words, items)
    if (before > 10) return
    // In this order: a producer that ends in between owes nothing.
    condition.notify(actor.chance(0.8) ? 1 : Infinity)
    if (actor.chance(0.3)) await actor.linger()
    Atomics.store(words, items, before + 1)
  })
}

function consume (actor, index) {
  return locked(actor, index, async (token, { condition, items }) => {
    const { words } = actor.arena
    const isThere = () => Atomics.load(words, items) > 0 || actor.stopped
    const options = actor.chance(0.5) ? actor.options() : Object.assign({ timeout: actor.timeout() }, actor.options())
    // As a program does that waits without a predicate: one that waited although an item is there might never be
    // notified of it.
    const plain = actor.chance(0.3) && Atomics.load(words, items) === 0
    const method = `wait${plain ? '' : 'For'}${actor.blocks ? '' : 'Async'}`
    const got = await actor.attempt(options, () => condition[method](token, ...(plain ? [] : [isThere]), options))
    actor.require(token.locked, () => 'the lock is not held after a wait')
    if (Atomics.load(words, items) === 0) {
      return actor.require(plain || got !== true || actor.stopped, () => 'the predicate was true, and is not')
    }
    // One that gave up, or that was notified of another item, takes one all the same, so that none is left.
    if (actor.chance(0.3)) await actor.linger()
    Atomics.sub(words, items, 1)
  })
}

async function meet (actor, index) {
  const { arena } = actor
  const barrier = arena.barriers[index]
  const options = { timeout: actor.random() * 30 }
  const result = await actor.attempt(options, () => actor.blocks ? barrier.wait(options) : barrier.waitAsync(options))
  if (result === undefined) return
  const cell = (party) => index * ACTORS * 16 + party
  const mine = arena.add('generations', cell(actor.party), 1)
  if (result.leader) arena.add('leaders', index, 1)
  for (let party = 0; party < arena.steady; party++) {
    const theirs = arena.get('generations', cell(party))
    actor.require(
      Math.abs(theirs - mine) <= 1,
      () => `party ${actor.party} has passed barrier ${index} ${mine} times, party ${party} ${theirs} times`
    )
  }
}

module.exports = [
  { name: 'produce', weight: 5, of: 'queue', run: produce },
  { name: 'consume', weight: 5, of: 'queue', run: consume },
  { name: 'meet', weight: 3, of: 'barrier', needs: actor => actor.party !== undefined, run: meet }
]
