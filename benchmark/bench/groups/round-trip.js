'use strict'

// Two threads that hand a word to each other: from one thread to the other and back. Where `taskset` is, the threads
// are tied to two cores, or both to the same; otherwise they are where the system puts them.

const { fresh, now, takeTurns } = require('../sampling')
const { open, variants } = require('../queues')
const { Member, cores, tie } = require('../team')

/**
 * Plays until `end`, then tells the other that it is over. Gives how many round trips there were, if it is the first.
 */
function play (wait, notify, now, array, me, milliseconds) {
  const other = 1 - me
  let trips = 0
  let end = Infinity
  for (;;) {
    let turn
    while ((turn = Atomics.load(array, 0)) === other) wait(array, 0, other)
    if (turn === 2) return trips
    if (trips === 0) end = now() + milliseconds * 1e6
    const isOver = me === 0 && (trips & 15) === 15 && now() >= end
    Atomics.store(array, 0, isOver ? 2 : other)
    notify(array, 0, 1)
    if (isOver) return trips
    trips++
  }
}

/** Plays without blocking the thread. */
async function playAwaiting (waitAsync, notify, now, array, me, milliseconds) {
  const other = 1 - me
  let trips = 0
  let end = Infinity
  for (;;) {
    let turn
    while ((turn = Atomics.load(array, 0)) === other) {
      const { async, value } = waitAsync(array, 0, other)
      if (async) await value
    }
    if (turn === 2) return trips
    if (trips === 0) end = now() + milliseconds * 1e6
    const isOver = me === 0 && (trips & 15) === 15 && now() >= end
    Atomics.store(array, 0, isOver ? 2 : other)
    notify(array, 0, 1)
    if (isOver) return trips
    trips++
  }
}

/** No queue: both look again and again. */
const spinning = { wait () {}, notify () {} }

const queueOf = variant => variant === 'floor' ? spinning : open(variant)

/**
 * Samples so short that most are over before the system gives a core to another process; the others are taken again.
 */
const SHORT = { warmUp: 5, gc: false, tries: 6 }

async function run ({ rounds }) {
  const milliseconds = 20
  const places = cores()
  const several = places !== undefined && places.length > 1
  const members = [0, 1].map(me => new Member('round-trip', 'player', { me }))
  const results = {}

  const trip = async (figure, placement, names) => {
    if (several) await Promise.all(members.map((member, n) => member.ask({ core: placement[n] })))
    Object.assign(results, await takeTurns(names, rounds(31), async (variant) => {
      const array = new Int32Array(new SharedArrayBuffer(4))
      const [took] = await Promise.all(members.map(member => member.ask({ variant, array, milliseconds })))
      return { [figure]: took }
    }, SHORT))
  }

  const blocking = ['host', 'ours', 'again']
  await trip('round-trip-two-cores', places, blocking.concat('floor'))
  if (several) await trip('round-trip-one-core', [places[0], places[0]], blocking)

  // The main thread awaits, the worker blocks, or awaits, too. The floor: messages there and back.
  if (several) {
    await members[1].ask({ core: places[1] })
    tie(places[0])
  }
  const mains = {}
  for (const variant of variants()) mains[variant] = { ...open(variant), play: fresh(playAwaiting) }
  for (const [figure, awaiting] of [['round-trip-main', false], ['round-trip-awaiting', true]]) {
    Object.assign(results, await takeTurns(Object.keys(mains).concat('floor'), rounds(31), async (variant) => {
      if (variant === 'floor') return { [figure]: await messages(members[1], milliseconds) }
      const { play, waitAsync, notify } = mains[variant]
      const array = new Int32Array(new SharedArrayBuffer(4))
      const over = members[1].ask({ variant, array, milliseconds: Infinity, awaiting })
      // The first trip includes the start of the other.
      const begin = now()
      const trips = await play(waitAsync, notify, now, array, 0, milliseconds)
      const took = now() - begin
      await over
      return { [figure]: took / trips / 1e3 }
    }, SHORT))
  }
  return results
}

async function messages (member, milliseconds) {
  const begin = now()
  const end = begin + milliseconds * 1e6
  let trips = 0
  while (now() < end) {
    await member.ask({})
    trips++
  }
  return (now() - begin) / trips / 1e3
}

const threads = {
  player ({ me }) {
    const players = {}
    return async ({ variant, array, milliseconds, awaiting = false }) => {
      if (variant === undefined) return true
      const { wait, notify, waitAsync, loop, awaitingLoop } = players[variant] ||
        (players[variant] = { ...queueOf(variant), loop: fresh(play), awaitingLoop: fresh(playAwaiting) })
      const begin = now()
      const trips = await (awaiting
        ? awaitingLoop(waitAsync, notify, now, array, me, milliseconds)
        : loop(wait, notify, now, array, me, milliseconds))
      return (now() - begin) / trips / 1e3
    }
  }
}

module.exports = { run, threads }
