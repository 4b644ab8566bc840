'use strict'

/**
 * The locks that this thread holds: taking and giving them up, and the table by which they outlive the thread.
 *
 * Invariants:
 * - A lock's address is in the first `held` places of the table exactly as long as this thread holds it. The table is read
 *   by native code when the thread ends, whatever ends it, and what is in it then is passed on.
 * - Therefore the word and the table change together: between the two there is no call of a JavaScript function, no loop,
 *   nothing at which the engine could end the thread. (Calls of built-in Atomics functions are no such point.)
 * - `tokens[place]` is the token of the lock at `place`.
 *
 * What is called a word here is `{ array, address, counter }`: the lock's element as an Int32Array of length 1, its address,
 * and where its bucket's counter of waiters is.
 */

const UNLOCKED = 0
const LOCKED = 1

// The layout of `Registers` in src/agent.rs.
const ADDRESS = 0 // floats
const HELD = 10 // words
const PLACE = 11 // words

const { compareExchange, load, store } = Atomics

/**
 * The counters of waiters as a typed array, or null where they cannot be read from JavaScript: Node before 15 has no
 * `Atomics.load` for memory that is not shared, and some embedders no buffers from outside. Then each question is a call.
 */
function readableCounters (binding) {
  try {
    load(new Int32Array(new ArrayBuffer(4)), 0)
  } catch (_) {
    return null
  }
  const buffer = binding.counters()
  return buffer ? new Int32Array(buffer) : null
}

function createHeldLocks (binding, floats, words) {
  const counters = readableCounters(binding)
  // How many locks of dead holders nobody has taken yet: the last counter.
  const abandoned = counters === null ? 0 : counters.length - binding.counterWords()
  const tokens = []
  let table = new Float64Array(0)
  // Claims that are lined up: each may be granted a place at any time.
  let claims = 0

  /** Makes sure that one more lock can be taken. */
  function makeRoom () {
    if (words[HELD] + claims < table.length) return
    const larger = new Float64Array(Math.max(16, table.length * 2))
    larger.set(table)
    binding.setHeldTable(larger.buffer)
    table = larger
  }

  /**
   * Takes a lock for `token` if it is free. Whether it was.
   */
  function take (word, token) {
    makeRoom()
    const place = words[HELD]
    table[place] = word.address
    if (compareExchange(word.array, 0, UNLOCKED, LOCKED) !== UNLOCKED) return false
    words[HELD] = place + 1
    tokens[place] = token
    token.place = place
    if (counters === null || load(counters, abandoned) !== 0) token.ownerDied = inherits(word)
    return true
  }

  /** Whether the lock, just taken, had been left behind by a dead holder. */
  function inherits (word) {
    try {
      floats[ADDRESS] = word.address
      return binding.inherit()
    } catch (_) {
      // No stack is left for the call. The lock is held all the same, and not knowing is better than losing its token.
      return false
    }
  }

  /** `token` becomes that of the lock in the last place of the table, which native code has put there. */
  function adoptLast (token, ownerDied) {
    return adopt(token, words[HELD] - 1, ownerDied)
  }

  function adopt (token, place, ownerDied) {
    tokens[place] = token
    token.place = place
    token.ownerDied = ownerDied
    return token
  }

  /** Gives up the lock of `token`. */
  function give (word, token) {
    const place = token.place
    const last = words[HELD] - 1
    if (counters !== null && load(counters, word.counter) === 0) {
      table[place] = table[last]
      words[HELD] = last
      store(word.array, 0, UNLOCKED)
      // Who came after the first look was counted before it found the word locked, so it is seen now (see src/line.rs).
      if (load(counters, word.counter) !== 0) released(word)
    } else {
      floats[ADDRESS] = word.address
      words[PLACE] = place
      binding.unlock()
    }
    const moved = tokens[last]
    tokens[place] = moved
    moved.place = place
    tokens.pop()
    token.place = -1
  }

  /** Frees a lock that no token of this package stands for. */
  function free (word) {
    store(word.array, 0, UNLOCKED)
    if (counters === null || load(counters, word.counter) !== 0) released(word)
  }

  function released (word) {
    floats[ADDRESS] = word.address
    binding.released()
  }

  /** This thread's token of a lock, undefined if it does not hold it. */
  function tokenOf (word) {
    for (let place = words[HELD] - 1; place >= 0; place--) {
      if (table[place] === word.address) return tokens[place]
    }
    return undefined
  }

  /** The `threadId` of the thread that holds a lock by means of this package, null if none does. */
  function holder (word) {
    floats[ADDRESS] = word.address
    const holder = binding.holder()
    return typeof holder === 'number' ? holder : null
  }

  /** Where the counter of an address's bucket is. */
  function counterOf (address) {
    floats[ADDRESS] = address
    return binding.counterOf()
  }

  return {
    take,
    give,
    free,
    adopt,
    adoptLast,
    tokenOf,
    holder,
    counterOf,
    makeRoom,
    claimBegins () { claims++ },
    claimEnds () { claims-- }
  }
}

module.exports = { LOCKED, UNLOCKED, createHeldLocks }
