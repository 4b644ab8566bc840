'use strict'

/**
 * `Barrier` and `Latch`: threads wait until enough parties have arrived, or enough has happened.
 *
 * # Barrier: a number of parties wait for each other, again and again
 * The word's upper half holds the generation, its lower half the number of parties that have arrived in this
 * generation. A party that gives up is no longer counted: at once, if it is aborted. A party that dies while it waits
 * stays counted: its generation is completed, and the next one lacks a party; so give the others a timeout.
 *
 * # Latch: waiting until something has happened a number of times, once
 * The word holds how often it has happened. A thread's counts stay when it dies.
 */

const { assertStack } = require('../agent/find-agent')
const { compareExchange, load, max, min } = require('../util/intrinsics')
const { abortReason, throwIfAborted, waitKinds: { BARRIER, LATCH } } = require('../waiting/errors')
const { notify, waitUntil, waitUntilAsync } = require('../waiting/notice')
const { assertWorker, waitOptions } = require('../waiting/wait-options')
const { Steps, join, leave } = require('../waiting/waiter')
const { MOST } = require('../holding/request')
const { wordOf } = require('../holding/view-word')
const { assertWithin, initView, defineView, oneWord } = require('../view')

const MOST_PARTIES = 0xffff
const BARRIER_SHAPE = oneWord(['parties'], ['parties', 'byteOffset', 'name'], ({ 0: parties }) => {
  assertWithin(parties, 'Barrier: parties', 1, MOST_PARTIES)
})

const generation = (state) => state >>> 16
const arrived = (state) => state & 0xffff

class Barrier {
  constructor (buffer, options) {
    initView(this, buffer, options, 'Barrier', BARRIER_SHAPE)
  }

  wait (options) {
    assertWorker('wait', 'waitAsync()')
    const { timeout } = waitOptions(options, 'wait', false)
    const word = wordOf(this)
    assertStack()
    const mine = arrive(word, this.parties)
    if (mine === LEADER) return { leader: true }
    try {
      waitUntil(word, (state) => generation(state) !== mine, timeout, BARRIER)
    } catch (error) {
      if (withdraw(word, mine)) throw error
    }
    return { leader: false }
  }

  waitAsync (options) {
    const steps = new Steps()
    return steps.of(awaitParties(this, options, steps))
  }
}

async function awaitParties (barrier, options, steps) {
  assertStack()
  const { timeout, signal } = waitOptions(options, 'waitAsync')
  throwIfAborted(signal)
  const word = wordOf(barrier)
  // The generation that it waits to end; before its arrival, none.
  let mine = LEADER
  // It listens to the signal itself, since it must leave at the abort, whatever step it is at.
  const party = {
    __proto__: null,
    signal,
    abort () {
      const reason = abortReason(signal)
      if (mine === LEADER || withdraw(word, mine)) steps.reject(reason)
    }
  }
  try {
    if (!join(party)) throw steps.reason
    mine = arrive(word, barrier.parties)
    if (mine === LEADER) return { leader: true }
    const isOver = (state) => generation(state) !== mine
    await waitUntilAsync(word, isOver, { timeout, signal: undefined }, steps, BARRIER, awaitParties)
  } catch (error) {
    // Unless its generation has ended. An aborted party has left.
    if (steps.reason !== undefined || mine === LEADER || withdraw(word, mine)) throw error
  } finally {
    leave(party)
  }
  return { leader: false }
}

const LEADER = -1

/** Counts a party in. Returns its generation; LEADER if it was the last party, and has woken the others. */
function arrive (word, parties) {
  for (;;) {
    const state = load(word.array, 0)
    const last = arrived(state) + 1 >= parties
    const next = last ? (generation(state) + 1) << 16 : state + 1
    if (compareExchange(word.array, 0, state, next) !== state) continue
    if (!last) return generation(state)
    notify(word, Infinity)
    return LEADER
  }
}

/** Counts a party out. False if its generation has ended. */
function withdraw (word, mine) {
  for (;;) {
    const state = load(word.array, 0)
    if (generation(state) !== mine) return false
    if (compareExchange(word.array, 0, state, state - 1) === state) return true
  }
}

defineView(Barrier, ['parties'], ({ parties }, word) => (
  { parties, arrived: arrived(load(word.array, 0)) }))

const LATCH_SHAPE = oneWord(['count'], ['count', 'byteOffset', 'name'], ({ 0: count }) => {
  assertWithin(count, 'Latch: count', 0, MOST)
})

class Latch {
  constructor (buffer, options) {
    initView(this, buffer, options, 'Latch', LATCH_SHAPE)
  }

  get remaining () {
    return max(0, this.count - load(wordOf(this).array, 0))
  }

  countDown (n = 1) {
    const word = wordOf(this)
    assertWithin(n, 'countDown: n', 1, MOST)
    for (;;) {
      const happened = load(word.array, 0)
      if (happened >= this.count) return
      const next = min(this.count, happened + n)
      if (next === this.count) assertStack()
      if (compareExchange(word.array, 0, happened, next) !== happened) continue
      if (next === this.count) notify(word, Infinity)
      return
    }
  }

  wait (options) {
    assertWorker('wait', 'waitAsync()')
    const { timeout } = waitOptions(options, 'wait', false)
    waitUntil(wordOf(this), (happened) => happened >= this.count, timeout, LATCH)
  }

  waitAsync (options) {
    const steps = new Steps()
    return steps.of(awaitOpening(this, options, steps))
  }
}

async function awaitOpening (latch, options, steps) {
  assertStack()
  const wait = waitOptions(options, 'waitAsync')
  throwIfAborted(wait.signal)
  await waitUntilAsync(wordOf(latch), (happened) => happened >= latch.count, wait, steps, LATCH, awaitOpening)
}

defineView(Latch, ['count'], ({ count, remaining }) => ({ count, remaining }))

module.exports = { Barrier, Latch }
