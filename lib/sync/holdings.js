'use strict'

/**
 * What this thread holds: locks, shares of read-write locks, permits in use. Taking and giving them back, and the table by
 * which they outlive the thread.
 *
 * Invariants:
 * - An entry is in the first `held` places of the table exactly as long as this thread holds what it says. The table is read
 *   by native code when the thread ends, whatever ends it, and what is in it then is passed on.
 * - Therefore the word and the table change together: first the word, by an atomic operation, then the table, by plain writes,
 *   and between the two there is no call and no loop, nothing at which the engine could end the thread. (It may do so when
 *   a built-in Atomics function is called, but not between that one's work and its return.)
 * - Whoever changes a word puts its address into the registers before, and takes it away once the line has been told: if the
 *   thread ends in between, its clean-up tells the line.
 * - `tokens[place]` is the token of the entry at `place`.
 *
 * What is called a word here is `{ array, address, counter }`: the word as an Int32Array of length 1, its address, and where
 * its counter of waiters is. `src/line.rs` says what words hold and who comes next.
 */

const createLastHold = require('./last-hold')

/** What can be asked of a word. The numbers are those of `Request` in src/line.rs. */
const LOCK = 0
const SHARED = 1
const EXCLUSIVE = 2
const PERMITS = 3
const SIGNALS = 4

const UNLOCKED = 0
const LOCKED = 1
const WRITING = -1

// A token's own. By names that two copies of the package share, since they share this thread's table.
const WORD = Symbol.for('atomics-waitasync.word')
const REQUEST = Symbol.for('atomics-waitasync.request')
const COUNT = Symbol.for('atomics-waitasync.amount')
const POSITION = Symbol.for('atomics-waitasync.place')

const {
  ACQUIRED, ACQUIRED_FROM_DEAD, ADDRESS, AMOUNT, ANSWER, HELD, KIND, PLACE, RELEASING
} = require('../registers')

const { add, compareExchange, load, store, sub } = Atomics

/** What no word holds. */
const NONE = -0x80000000

/** What a word that holds `current` is to hold once the request has been taken from it; NONE if it cannot be now. */
function after (kind, amount, current) {
  if (kind === SHARED) return current >= 0 && current < 0x7fffffff ? current + 1 : NONE
  if (kind === EXCLUSIVE) return current === UNLOCKED ? WRITING : NONE
  return current >= amount ? current - amount : NONE
}

function createHoldings (binding, operations, counters, floats, words) {
  const keep = createLastHold(binding)
  // By place.
  const tokens = []
  // By place: an address, and a request's kind and amount as `kind + 8 * amount`.
  let entries = new Float64Array(0)
  // Claims that are lined up: each may be granted a place at any time. By address, too.
  let claims = 0
  const awaited = new Map()

  /** Makes sure that there is a place for one more. */
  function makeRoom () {
    if (2 * (words[HELD] + claims) >= entries.length) enlarge()
  }

  function enlarge () {
    const larger = new Float64Array(Math.max(32, entries.length * 2))
    larger.set(entries)
    binding.setHoldings(larger.buffer)
    entries = larger
  }

  /** Takes what a token stands for, if that needs no waiting. Whether it has it. */
  function take (token) {
    makeRoom()
    const word = token[WORD]
    const kind = token[REQUEST]
    const place = words[HELD]
    entries[2 * place] = word.address
    entries[2 * place + 1] = kind + 8 * token[COUNT]
    if (kind === LOCK) {
      if (compareExchange(word.array, 0, UNLOCKED, LOCKED) !== UNLOCKED) return false
      words[HELD] = place + 1
    } else {
      // Nobody is overtaken: where somebody may be waiting, the line is asked.
      if (counters === undefined || counters.read(word.counter) !== 0) return takeInLine(token)
      for (;;) {
        const current = load(word.array, 0)
        const next = after(kind, token[COUNT], current)
        if (next === NONE) return false
        if (compareExchange(word.array, 0, current, next) === current) break
      }
      if (kind === SIGNALS) return true
      words[HELD] = place + 1
    }
    tokens[place] = token
    token[POSITION] = place
    if (counters === undefined || counters.peek(counters.abandoned) !== 0) token.ownerDied = inherits(token)
    return true
  }

  function takeInLine (token) {
    setRequest(token)
    operations.tryTake()
    const answer = words[ANSWER]
    if (answer < ACQUIRED) return false
    if (token[REQUEST] !== SIGNALS) adoptLast(token, answer === ACQUIRED_FROM_DEAD)
    return true
  }

  function setRequest (token) {
    floats[ADDRESS] = token[WORD].address
    words[KIND] = token[REQUEST]
    words[AMOUNT] = token[COUNT]
  }

  /** Whether what was just taken had been left behind by a dead holder. */
  function inherits (token) {
    try {
      setRequest(token)
      operations.inherit()
      return words[ANSWER] === 1
    } catch (_) {
      // No stack is left for the call. It is held all the same, and not knowing is better than losing its token.
      return false
    }
  }

  /** `token` becomes that of the last entry of the table, which native code has put there. */
  function adoptLast (token, ownerDied) {
    return adopt(token, words[HELD] - 1, ownerDied)
  }

  function adopt (token, place, ownerDied) {
    tokens[place] = token
    token[POSITION] = place
    token.ownerDied = ownerDied
    return token
  }

  /** Gives back what a token stands for. */
  function give (token) {
    const word = token[WORD]
    const place = token[POSITION]
    if (counters !== undefined && counters.peek(word.counter) === 0) {
      const kind = token[REQUEST]
      const last = words[HELD] - 1
      floats[RELEASING] = word.address
      if (kind === SHARED) sub(word.array, 0, 1)
      else if (kind === PERMITS) add(word.array, 0, token[COUNT])
      else store(word.array, 0, UNLOCKED)
      entries[2 * place] = entries[2 * last]
      entries[2 * place + 1] = entries[2 * last + 1]
      words[HELD] = last
      // Who came after the first look was counted before it looked at the word, so it is seen now (see src/line.rs).
      // Not by `tellLine`: that would need more stack than the first look, which has shown that there is as much.
      if (counters.read(word.counter) !== 0) {
        floats[ADDRESS] = word.address
        operations.released()
      }
      floats[RELEASING] = 0
    } else {
      words[PLACE] = place
      operations.giveBack()
    }
    givenBack(token)
  }

  /** Gives back what a token stands for, and was a dead thread's before, unused: the next is told of the death instead. */
  function passOn (token) {
    words[PLACE] = token[POSITION]
    operations.passOn()
    givenBack(token)
  }

  /** The entry of a token has been taken out of the table: the last entry is in its place now. */
  function givenBack (token) {
    const place = token[POSITION]
    const last = words[HELD]
    if (place !== last) {
      const moved = tokens[last]
      tokens[place] = moved
      moved[POSITION] = place
    }
    // Not `pop`, which takes longer than all the rest.
    tokens[last] = undefined
    token[POSITION] = -1
  }

  /** Who wrote becomes one of those who read: `shared` takes the place of `exclusive`. */
  function downgrade (exclusive, shared) {
    const word = exclusive[WORD]
    const place = exclusive[POSITION]
    floats[RELEASING] = word.address
    store(word.array, 0, 1)
    entries[2 * place + 1] = SHARED
    adopt(shared, place, exclusive.ownerDied)
    exclusive[POSITION] = -1
    tellLine(word)
  }

  /** Adds permits. The number there was, or -1 if there would be too many. */
  function addPermits (word, amount) {
    floats[RELEASING] = word.address
    let current
    do {
      current = load(word.array, 0)
      if (current + amount > 0x7fffffff) {
        floats[RELEASING] = 0
        return -1
      }
    } while (compareExchange(word.array, 0, current, current + amount) !== current)
    tellLine(word)
    return current
  }

  /** Frees a lock that no token of this package stands for. */
  function free (word) {
    floats[RELEASING] = word.address
    store(word.array, 0, UNLOCKED)
    tellLine(word)
  }

  /** Gives the line its try, after a word has been changed. */
  function tellLine (word) {
    if (counters === undefined || counters.read(word.counter) !== 0) {
      floats[ADDRESS] = word.address
      operations.released()
    }
    floats[RELEASING] = 0
  }

  /** A promise of this thread's has been lined up for a word. */
  function claimBegins (word) {
    claims++
    awaited.set(word.address, (awaited.get(word.address) || 0) + 1)
  }

  function claimEnds (word) {
    claims--
    const left = awaited.get(word.address) - 1
    if (left > 0) awaited.set(word.address, left)
    else awaited.delete(word.address)
  }

  /** A token of this thread's for a word, undefined if it has none. */
  function tokenOf (word) {
    for (let place = words[HELD] - 1; place >= 0; place--) {
      if (entries[2 * place] === word.address) return tokens[place]
    }
    return undefined
  }

  /** The `threadId` of a thread that holds a word by means of this package, null if none does. */
  function holder (word) {
    floats[ADDRESS] = word.address
    const holder = binding.holder()
    return typeof holder === 'number' ? holder : null
  }

  /** The word in an Int32Array of length 1 on shared memory. */
  function wordOf (array) {
    keep(array.buffer)
    const address = binding.addressOf(new Uint8Array(array.buffer)) + array.byteOffset
    return { array, address, counter: counters === undefined ? 0 : counters.of(address) }
  }

  return {
    take,
    give,
    passOn,
    givenBack,
    downgrade,
    addPermits,
    free,
    adopt,
    adoptLast,
    tokenOf,
    holder,
    wordOf,
    makeRoom,
    claimBegins,
    claimEnds,
    /** Whether a promise of this thread's is lined up for a word. */
    isAwaited: (word) => awaited.has(word.address)
  }
}

module.exports = {
  LOCK, SHARED, EXCLUSIVE, PERMITS, SIGNALS, UNLOCKED, LOCKED, WRITING, WORD, REQUEST, COUNT, POSITION, createHoldings
}
