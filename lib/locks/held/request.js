'use strict'

/**
 * What can be requested of a word, and what words hold; src/lock/ has the same numbers, and the rules.
 *
 * A request is a number, `kind + 8 * amount`. The amount is 0 where there is nothing to count.
 */

const LOCK = 0
const SHARED = 1
const EXCLUSIVE = 2
/** Permits that return when their holder dies. */
const PERMITS = 3
/** Permits that nobody holds. */
const SIGNALS = 4
/** A lock by its name; native code puts the number of the request in the place of the amount. */
const NAMED_SHARED = 5
const NAMED_EXCLUSIVE = 6

const UNLOCKED = 0
const LOCKED = 1
const WRITING = -1
/** The largest number of readers or permits. */
const MOST = 0x7fffffff

/** A value that no word holds. */
const UNAVAILABLE = -0x80000000

const requestOf = (kind, amount) => kind + 8 * amount
const kindOf = (request) => request & 7
const amountOf = (request) => (request - kindOf(request)) / 8
/** Whether what is requested has a holder. */
const isOwned = (request) => kindOf(request) !== SIGNALS

/** The kind and the mode of a request. */
function described (request) {
  switch (kindOf(request)) {
    case LOCK: return { kind: 'AsyncLock', mode: 'exclusive' }
    case SHARED: return { kind: 'RwLock', mode: 'shared' }
    case EXCLUSIVE: return { kind: 'RwLock', mode: 'exclusive' }
    case NAMED_SHARED: return { kind: 'named', mode: 'shared' }
    case NAMED_EXCLUSIVE: return { kind: 'named', mode: 'exclusive' }
    default: return { kind: 'Semaphore', mode: 'permits' }
  }
}

/** What a word that holds `current` holds after the request has been granted; UNAVAILABLE if it cannot be granted now. */
function after (kind, amount, current) {
  if (kind === SHARED) return current >= 0 && current < MOST ? current + 1 : UNAVAILABLE
  if (kind === EXCLUSIVE) return current === UNLOCKED ? WRITING : UNAVAILABLE
  return current >= amount ? current - amount : UNAVAILABLE
}

module.exports = {
  LOCK, SHARED, EXCLUSIVE, PERMITS, SIGNALS, NAMED_SHARED, NAMED_EXCLUSIVE, UNLOCKED, LOCKED, WRITING, MOST, UNAVAILABLE, after, amountOf, described, isOwned, kindOf, requestOf
}
