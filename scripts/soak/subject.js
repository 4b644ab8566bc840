'use strict'

// What is soaked: the package as `/force` installs it, and a clock.

const path = require('path')

const api = require(path.join(__dirname, '..', '..', 'force'))
const MAJOR = Number(process.versions.node.split('.')[0])

/** Milliseconds of the monotonic clock, which all threads share. */
function now () {
  const [seconds, nanoseconds] = process.hrtime()
  return seconds * 1e3 + nanoseconds / 1e6
}

const sleep = (milliseconds) => new Promise(resolve => setTimeout(resolve, milliseconds))

/** Holds this thread, without its event loop. */
function busy (milliseconds) {
  for (const end = now() + milliseconds; now() < end;);
}

/** A generator of numbers in [0, 1), the same ones for the same seed (xorshift32). */
function randomFrom (seed) {
  let state = (Math.imul(seed, 0x9E3779B1) >>> 0) || 1
  return () => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return (state >>> 0) / 2 ** 32
  }
}

module.exports = { MAJOR, api, busy, now, randomFrom, sleep }
