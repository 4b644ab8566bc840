'use strict'

/**
 * `Barrier`: a number of parties wait for each other, again and again.
 *
 * The word holds the generation in its upper half and, in its lower half, how many have arrived in this generation. Who gives
 * up is no longer counted. Who dies while waiting stays counted: its generation is completed, the next one lacks a party; let
 * the others have a time-out.
 */

const util = require('util')
const describe = require('../describe')
const { RangeError, TypeError, compareExchange, define, isInteger, load, shield } = require('../intrinsics')
const { option } = require('../options')
const { requireWorker } = require('./acquire')
const notice = require('./notice')
const { becomeView } = require('./shared-words')
const Steps = require('./steps')
const { abortReason, timeoutError, waitOptions } = require('./wait-options')
const { wordOf } = require('./word-of')

const OPTIONS = ['parties', 'byteOffset']
const MOST_PARTIES = 0xffff
const LATE = 'The other parties did not arrive'
const PARTIES = { waitsFor: 'the other parties of a Barrier' }

const generation = (state) => state >>> 16
const arrived = (state) => state & 0xffff

class Barrier {
  constructor (buffer, options) {
    becomeView(this, buffer, options, 'Barrier', OPTIONS)
    const parties = option(options, 'parties')
    if (!isInteger(parties)) throw new TypeError('Barrier: parties must be an integer, not ' + describe(parties))
    if (parties < 1 || parties > MOST_PARTIES) {
      throw new RangeError('Barrier: parties must be from 1 to ' + MOST_PARTIES + ', not ' + describe(parties))
    }
    this.parties = parties
  }

  wait (options) {
    requireWorker('wait', 'waitAsync()')
    const { timeout } = waitOptions(options, 'wait', false)
    const word = wordOf(this)
    const left = notice.countdown(timeout)
    const mine = arrive(word, this.parties)
    if (mine === LEADER) return { leader: true }
    try {
      for (;;) {
        const state = load(word.array, 0)
        if (generation(state) !== mine) return { leader: false }
        if (notice.wait(word, state, left()) === 'timed-out') throw timeoutError(LATE, timeout)
      }
    } catch (error) {
      if (withdraw(word, mine)) throw error
      return { leader: false }
    }
  }

  waitAsync (options) {
    const steps = new Steps()
    return steps.of(awaitParties(this, options, steps))
  }

  [util.inspect.custom] (depth, options) {
    const state = { parties: this.parties, arrived: arrived(load(wordOf(this).array, 0)) }
    return this.constructor.name + ' ' + util.inspect(state, options)
  }
}

shield(Barrier, ['buffer', 'byteOffset', 'parties'])
define(Barrier, 'byteLength', 4, true)

async function awaitParties (barrier, options, steps) {
  try {
    const { timeout, signal } = waitOptions(options, 'waitAsync')
    if (signal !== undefined && signal.aborted) throw abortReason(signal)
    const word = wordOf(barrier)
    const left = notice.countdown(timeout)
    const mine = arrive(word, barrier.parties)
    if (mine === LEADER) return { leader: true }
    try {
      for (;;) {
        const state = load(word.array, 0)
        if (generation(state) !== mine) return { leader: false }
        const outcome = await notice.waitAsync(word, state, { timeout: left(), signal }, steps, PARTIES)
        if (outcome === 'timed-out') throw timeoutError(LATE, timeout)
      }
    } catch (reason) {
      if (withdraw(word, mine)) throw reason
      return { leader: false }
    }
  } finally {
    steps.end()
  }
}

const LEADER = -1

/** Counts a party in. The generation it waits for the end of; LEADER if it was the last one, and has let the others go. */
function arrive (word, parties) {
  // Who has been counted must be able to withdraw, also where that would have to be compiled and little of the stack is left.
  withdraw(word, LEADER)
  for (;;) {
    const state = load(word.array, 0)
    const last = arrived(state) + 1 >= parties
    const next = last ? (generation(state) + 1) << 16 : state + 1
    if (last) notice.rehearseNotify(word)
    if (compareExchange(word.array, 0, state, next) !== state) continue
    if (!last) return generation(state)
    notice.notify(word, Infinity)
    return LEADER
  }
}

/** Counts a party out. False if its generation has come to its end. */
function withdraw (word, mine) {
  for (;;) {
    const state = load(word.array, 0)
    if (generation(state) !== mine) return false
    if (compareExchange(word.array, 0, state, state - 1) === state) return true
  }
}

module.exports = Barrier
