'use strict'

// The subject of the soak: that of the tests, /force unless SUBJECT says another; and their helpers.

const { isMainThread } = require('worker_threads')

if (isMainThread && process.env.SUBJECT === undefined) process.env.SUBJECT = 'force'

const { Atomics, api: exported } = require('../subject')
const { TinyController } = require('../fixtures/lock-toolbox')
const { MAJOR, busy, now, randomFrom, sleep, starved, until } = require('../fixtures/queue-toolbox')
const slowness = require('../fixtures/slowness')

const { wait, notify, waitAsync } = Atomics
/**
 * The exports of the entry. Where the plain one leaves the host's functions alone, they have another queue than the
 * locks: not those.
 */
const api = exported.engine === 'host' ? Object.assign({}, exported, { wait, notify, waitAsync }) : exported

/**
 * Makes a generator of numbers in [0, 1), by a seed; small seeds, too, give numbers that have nothing in common.
 */
const randomOf = (seed) => {
  const random = randomFrom(Math.imul(seed, 0x9E3779B1))
  for (let skipped = 0; skipped < 8; skipped++) random()
  return random
}

module.exports = { Atomics, MAJOR, TinyController, api, busy, now, randomOf, slowness, sleep, starved, until }
