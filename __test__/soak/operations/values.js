'use strict'

// Waits and notifications. Laws: what `notify` counts is what was told 'ok', also where waits are cancelled; no timeout
// is early; first come, first served; a wait for a value that has changed since, and been notified of, does not stay.

const { BIG, COUNT, GATE_TIMES, TICKETS } = require('../arena')
const { Atomics, api, busy, now } = require('../subject')

const functions = (actor) => actor.chance(0.3) ? api : Atomics
const steady = (actor) => actor.steady
const steadyAwaiting = (actor) => actor.steady && !actor.blocks

/** Returns options for the exported `waitAsync`. */
const cancelling = (actor) => !actor.blocks && actor.chance(0.3) ? { signal: actor.signal() } : undefined

/**
 * Waits for a word of `array` that holds `expected`: gives the outcome, undefined if it was cancelled. It never is
 * early.
 */
async function wait (actor, array, at, expected, timeout) {
  const start = now()
  let result
  if (actor.blocks && actor.chance(0.8)) {
    result = functions(actor).wait(array, at, expected, timeout)
  } else {
    const options = cancelling(actor)
    const wait = (options ? api : functions(actor)).waitAsync(array, at, expected, timeout, options)
    if (wait.async && actor.chance(0.1)) {
      api.unref(wait.value)
      api.ref(wait.value)
    }
    result = wait.async ? await actor.attempt(options, () => wait.value) : wait.value
  }
  const took = now() - start
  actor.require(result !== 'timed-out' || took >= timeout, () => `timed out after ${took} of ${timeout} ms`)
  return result
}

/** Waits and counts. Without a timeout, it is notified at the round's end. */
async function counted (actor, n, timeout = actor.chance(0.1) ? Infinity : actor.timeout()) {
  const { arena } = actor
  const { array, at, zero } = arena.valueAt(n)
  arena.add('begun', n, 1)
  const result = await wait(actor, array, at, zero, timeout)
  arena.add(result === 'ok' ? 'ok' : 'over', n, 1)
  actor.require(result !== 'not-equal', () => 'not equal to a value that never changes')
  return result
}

const notify = (actor, n) => actor.arena.notifyValue(n, actor.chance(0.2) ? Infinity : actor.below(4), functions(actor))

const bigOf = (actor, index) => COUNT.value + (actor.steady ? 0 : BIG / 2) + index % (BIG / 2)

// ——— words whose waiters have tickets ———

function withMutex (actor, index, body) {
  for (;;) {
    const done = actor.arena.tryFifo(index, body)
    if (done !== undefined) return done.result
  }
}

async function takeTicket (actor, index) {
  const { arena } = actor
  let ticket
  const promise = withMutex(actor, index, () => {
    ticket = arena.get('fifoNext', index)
    if (ticket >= TICKETS) return undefined
    const wait = Atomics.waitAsync(arena.words, arena.place('fifo', index), 0)
    arena.set('fifoNext', index, ticket + 1)
    arena.set('fifoState', index * TICKETS + ticket, 1)
    return wait.value
  })
  if (promise === undefined) return
  const result = await promise
  arena.set('fifoState', index * TICKETS + ticket, 2)
  const notified = withMutex(actor, index, () => arena.get('fifoNotified', index))
  actor.require(result === 'ok', () => `${result} without a timeout`)
  actor.require(ticket < notified, () => `ticket ${ticket} was notified, when only ${notified} had been`)
}

function callTickets (actor, index) {
  withMutex(actor, index, () => actor.arena.notifyFifo(index, 1 + actor.below(4)))
}

// ——— words that change ———

async function waitForChange (actor, index) {
  const { arena } = actor
  const at = arena.place('gate', index)
  const value = Atomics.load(arena.words, at)
  // Mostly it changes before.
  const timeout = actor.chance(0.3) ? 4000 : actor.timeout()
  const deadline = actor.time + timeout
  const cell = index * GATE_TIMES + value % GATE_TIMES
  arena.add('gateBegun', cell, 1)
  const result = await wait(actor, arena.words, at, value, timeout)
  arena.add('gateEnded', cell, 1)
  if (result !== 'timed-out') return
  // Changes of which all had been notified in good time.
  const done = arena.get('gateDone', index)
  const earliest = Math.max(value + 1, done - GATE_TIMES + 1)
  if (done < earliest) return
  const changed = arena.get('gateTimes', index * GATE_TIMES + earliest % GATE_TIMES)
  actor.require(
    changed > deadline - 50,
    () =>
      `a wake-up was lost: waited ${timeout} ms for ${value} to change, and all had been notified of ${earliest} ` +
      `${deadline - changed} ms before`
  )
}

function change (actor, index) {
  const { arena } = actor
  const at = arena.place('gate', index)
  // Mostly somebody is to wait for it.
  for (const end = now() + actor.random() / 5; api.waiterCount(arena.words, at) === 0 && now() < end;);
  withMutex(actor, index % COUNT.fifo, () => {
    const value = arena.words[at] + 1
    // By a plain write, too.
    if (actor.chance(0.5)) Atomics.store(arena.words, at, value)
    else arena.words[at] = value
    Atomics.notify(arena.words, at)
    const cell = index * GATE_TIMES + value % GATE_TIMES
    arena.set('gateTimes', cell, actor.time)
    arena.set('gateDone', index, value)
    // Nobody is left that waits for an earlier value to change. In this order, so that those who come and go meanwhile
    // do not matter.
    const ended = arena.get('gateEnded', cell)
    const left = api.waiterCount(arena.words, at)
    const waiting = arena.get('gateBegun', cell) - ended
    actor.require(
      left <= waiting,
      () => `a wake-up was lost: ${left} wait for gate ${index} to change from ${value}, but only ${waiting} may`
    )
  })
}

/** Checks that one thread's waits for a word end in their order. Some time out or are cancelled. */
async function severalWaits (actor, index) {
  const ended = []
  const waits = Array.from({ length: 2 + actor.below(30) }, async (_, n) => {
    const result = await counted(actor, index, actor.chance(0.3) ? actor.timeout() : Infinity)
    if (result === 'ok') ended.push(n)
  })
  if (actor.chance(0.3)) notify(actor, index)
  await Promise.all(waits)
  actor.require(ended.every((n, place) => place === 0 || ended[place - 1] < n), () => `notified in the order ${ended}`)
}

module.exports = [
  { name: 'wait', weight: 12, of: 'value', run: (actor, n) => counted(actor, n) },
  { name: 'several waits', weight: 2, of: 'value', needs: actor => !actor.blocks, run: severalWaits },
  { name: 'notify', weight: 40, of: 'value', bursts: true, run: notify },
  {
    name: 'wait for a bigint',
    weight: BIG > 0 ? 2 : 0,
    of: 'value',
    run: (actor, n) => counted(actor, bigOf(actor, n))
  },
  { name: 'notify a bigint', weight: BIG > 0 ? 3 : 0, of: 'value', run: (actor, n) => notify(actor, bigOf(actor, n)) },
  { name: 'take a ticket', weight: 3, of: 'fifo', needs: steadyAwaiting, run: takeTicket },
  { name: 'call tickets', weight: 16, of: 'fifo', needs: steady, run: callTickets },
  { name: 'wait for a change', weight: 8, of: 'gate', needs: steady, bursts: true, run: waitForChange },
  { name: 'change', weight: 24, of: 'gate', needs: steady, bursts: true, run: change },
  { name: 'compute', weight: 2, run: actor => busy(actor.random() / 4) }
]
