'use strict'

/**
 * What this thread holds: locks, shares of read-write locks, permits in use. Taking and giving them back, and the table by
 * which they outlive the thread.
 *
 * Invariants:
 * - An entry is in the first `words[HELD]` places of the table exactly as long as this thread holds what it says. The table is
 *   read by native code when the thread ends, whatever ends it, and what is in it then is passed on.
 * - Therefore the word and the table change together: first the word, then the table, by plain writes, and between the two there
 *   is no call and no loop, nothing at which the engine could end the thread. (It may do so when a built-in Atomics function is
 *   called, but not between that one's work and its return.)
 * - Whoever changes a word puts its address into the registers before, and takes it away once the line has been told: if the
 *   thread ends in between, its clean-up tells the line.
 * - Before this thread tries to take a lock, it writes the entry behind the last one, with a serial number, and takes the number
 *   away again if it was in vain. So whoever finds the lock taken finds its holder in the table or behind it; `unlock()` of
 *   another thread does so (`free` in src/store.rs). Who gives a lock back puts its address into the registers before the entry
 *   goes.
 * - Each entry has a serial number, which its token knows. A token stands for what is held as long as there is an entry of its
 *   number: so nobody has to find the token when an entry goes. Places behind that of a lock that is being taken have the number 0.
 * - `held[place]` is the word of the entry at `place`: what is held keeps its memory.
 * - Nothing here is reached by code outside of the package: neither the table nor a word, which has an address (see
 *   lib/intrinsics.js). What a token says is only ever compared with the table.
 *
 * `src/line.rs` says what words hold and who comes next.
 */

const { FENCED } = require('../counters')
const {
  ArrayBuffer, Float64Array, Int32Array, add, apply, bare, compareExchange, createArray, createMap, getBuffer, getByteOffset,
  load, max, sizeOf, store, sub
} = require('../intrinsics')
const createLastHold = require('./last-hold')
const createMemories = require('./memories')

/**
 * What can be asked of a word, by the numbers of `Request` in src/line.rs. A request is such a kind and an amount, as
 * `kind + 8 * amount`; where there is nothing to count, the amount is 0.
 */
const LOCK = 0
const SHARED = 1
const EXCLUSIVE = 2
const PERMITS = 3
const SIGNALS = 4

const UNLOCKED = 0
const LOCKED = 1
const WRITING = -1

// A token's own. By names that two copies of the package share, since they share this thread's table.
const POSITION = Symbol.for('atomics-waitasync.place')
const SERIAL = Symbol.for('atomics-waitasync.serial')

const {
  ACQUIRED, ACQUIRED_FROM_DEAD, ADDRESS, AMOUNT, ANSWER, FREED, HELD, HELD_ELSEWHERE, KIND, NOT_LOCKED, PLACE, RELEASING
} = require('../registers')

/** What no word holds. */
const NONE = -0x80000000

/** What is given instead of a holder: it is free. */
const FREE = -1

/** The serial number of a token that has nothing yet. */
const NOT_HELD = -1
/**
 * The numbers go from 1 to this, and on with 1; 31 bits are what every engine keeps in a property without a box. So a number comes
 * again after a thousand million holdings. A token that gave back itself what it stood for has forgotten its number; only one whose
 * lock was given back by `lock.unlock()` could then be taken for the one who holds it.
 */
const LAST_SERIAL = 0x3fffffff

const kindOf = (request) => request & 7
const amountOf = (request) => (request - kindOf(request)) / 8

/** What a word that holds `current` is to hold once the request has been taken from it; NONE if it cannot be now. */
function after (kind, amount, current) {
  if (kind === SHARED) return current >= 0 && current < 0x7fffffff ? current + 1 : NONE
  if (kind === EXCLUSIVE) return current === UNLOCKED ? WRITING : NONE
  return current >= amount ? current - amount : NONE
}

function createHoldings (binding, operations, counters, floats, words) {
  const keep = createLastHold(binding)
  const register = createMemories(binding)
  const table = {
    // By place: an address and a request.
    entries: new Float64Array(0),
    // By place. Behind the entries, in the same memory.
    serials: new Int32Array(0),
    // The words, by place; undefined where there is no entry.
    held: createArray(0),
    // How many places there are.
    places: 0,
    // The latest number.
    serial: 0,
    // How many entries there may be; the other places are for the claims that are lined up, of which each may be granted one.
    room: 0,
    // Whether what was taken last had been left behind by a dead holder.
    ownerDied: false
  }
  // The places of entries that have been moved, by serial number: their tokens know an earlier place. And some of what has gone.
  const moved = createMap()
  // The Steps of a Condition's promise that is pending, by the token that it waits with.
  const stepsOf = createMap()
  // How many claims of this thread's promises are lined up; by address, too.
  let claims = 0
  const awaited = createMap()

  /**
   * A word of shared memory from which something can be taken.
   * - `array`: the word, as an Int32Array of length 1
   * - `address`: where it is
   * - `counter`: where its counter of waiters is
   * - `abandoned`: where the counter is of what dead holders have left behind in its bucket
   */
  class Word {
    constructor (array, address, counter, abandoned) {
      this.array = array
      this.address = address
      this.counter = counter
      this.abandoned = abandoned
    }

    /** Takes the lock that this word is, if it is free. The place of the entry, whose token is still to be made; -1 if it is not. */
    takeLock () {
      makeRoom()
      const place = words[HELD]
      table.entries[2 * place] = this.address
      table.entries[2 * place + 1] = LOCK
      table.serials[place] = table.serial = table.serial === LAST_SERIAL ? 1 : table.serial + 1
      if (compareExchange(this.array, 0, UNLOCKED, LOCKED) !== UNLOCKED) return notTaken(place)
      words[HELD] = place + 1
      table.held[place] = this
      return place
    }

    /** Takes anything else, by who would wait for nothing. The place, likewise; for SIGNALS, which nobody holds, any number from 0. */
    takeUncontended (request) {
      const kind = kindOf(request)
      const amount = amountOf(request)
      const place = words[HELD]
      table.entries[2 * place] = this.address
      table.entries[2 * place + 1] = request
      for (;;) {
        const current = load(this.array, 0)
        const next = after(kind, amount, current)
        if (next === NONE) return -1
        if (compareExchange(this.array, 0, current, next) === current) break
      }
      if (kind === SIGNALS) return place
      words[HELD] = place + 1
      table.held[place] = this
      table.serials[place] = table.serial = table.serial === LAST_SERIAL ? 1 : table.serial + 1
      return place
    }

    /**
     * Takes what the request says, if that needs no waiting. The place, likewise, or -1; then `table.ownerDied` says whether it had
     * been left behind by a dead holder.
     */
    take (request) {
      if (request === LOCK) {
        const place = this.takeLock()
        if (place >= 0) table.ownerDied = this.inherits(LOCK)
        return place
      }
      makeRoom()
      // Nobody is overtaken: where somebody may be waiting, the line is asked.
      if (counters === undefined || counters.read(this.counter) !== 0) return this.takeInLine(request)
      const place = this.takeUncontended(request)
      if (place >= 0 && kindOf(request) !== SIGNALS) table.ownerDied = this.inherits(request)
      return place
    }

    takeInLine (request) {
      this.setRequest(request)
      operations.tryTake()
      const answer = words[ANSWER]
      if (answer < ACQUIRED) return -1
      table.ownerDied = answer === ACQUIRED_FROM_DEAD
      return kindOf(request) === SIGNALS ? 0 : numberLast(this)
    }

    setRequest (request) {
      floats[ADDRESS] = this.address
      words[KIND] = kindOf(request)
      words[AMOUNT] = amountOf(request)
    }

    /** Whether what was just taken had been left behind by a dead holder. */
    inherits (request) {
      if (counters !== undefined && counters.peek(this.abandoned) === 0) return false
      try {
        this.setRequest(request)
        operations.inherit()
        return words[ANSWER] === 1
      } catch (_) {
        // No stack is left for the call. It is held all the same, and not knowing is better than losing its token.
        return false
      }
    }

    /** Gives back the lock that this word is; its entry is at `place`. */
    giveLock (place) {
      if (counters === undefined || counters.peek(this.counter) !== 0) {
        giveInLine(place)
        return
      }
      const last = toEnd(place)
      floats[RELEASING] = this.address
      store(this.array, 0, UNLOCKED)
      words[HELD] = last
      table.serials[last] = 0
      table.held[last] = undefined
      // Who came after the first look was counted before it looked at the word, so it is seen now (see src/line.rs).
      // Not by `tellLine`: that would need more stack than the first look, which has shown that there is as much.
      if (counters.read(this.counter) !== 0) {
        floats[ADDRESS] = this.address
        operations.released()
      }
      floats[RELEASING] = 0
    }

    /**
     * The same where somebody may wait in the host's queue; `hostNotify` is the host's `notify`.
     *
     * That passes a fence anyway. So the word is freed by a plain write, where such a write comes after all writes before it.
     */
    giveLockBesideHost (place, hostNotify) {
      if (!FENCED || counters === undefined || counters.peek(this.counter) !== 0) {
        this.giveLock(place)
        hostNotify(this.array, 0, 1)
        return
      }
      const last = toEnd(place)
      floats[RELEASING] = this.address
      this.array[0] = UNLOCKED
      words[HELD] = last
      table.serials[last] = 0
      table.held[last] = undefined
      try {
        hostNotify(this.array, 0, 1)
      } finally {
        // As in `giveLock`.
        if (counters.read(this.counter) !== 0) {
          floats[ADDRESS] = this.address
          operations.released()
        }
        floats[RELEASING] = 0
      }
    }

    /** Gives back what `request` has taken, by the entry at `place`. */
    give (place, request) {
      if (counters === undefined || counters.peek(this.counter) !== 0) {
        giveInLine(place)
        return
      }
      const kind = kindOf(request)
      const amount = amountOf(request)
      const last = toEnd(place)
      floats[RELEASING] = this.address
      if (kind === SHARED) sub(this.array, 0, 1)
      else if (kind === PERMITS) add(this.array, 0, amount)
      else store(this.array, 0, UNLOCKED)
      words[HELD] = last
      table.serials[last] = 0
      table.held[last] = undefined
      // As in `giveLock`.
      if (counters.read(this.counter) !== 0) {
        floats[ADDRESS] = this.address
        operations.released()
      }
      floats[RELEASING] = 0
    }

    /** Who wrote, by the entry at `place`, becomes one of those who read: the entry becomes that of the demand `shared`. */
    downgrade (place, ownerDied, shared) {
      floats[RELEASING] = this.address
      store(this.array, 0, 1)
      table.entries[2 * place + 1] = SHARED
      adopt(shared, place, ownerDied)
      this.tellLine()
    }

    /** Adds permits. The number there was, or -1 if there would be too many. */
    addPermits (amount) {
      floats[RELEASING] = this.address
      let current
      do {
        current = load(this.array, 0)
        if (current + amount > 0x7fffffff) {
          floats[RELEASING] = 0
          return -1
        }
      } while (compareExchange(this.array, 0, current, current + amount) !== current)
      this.tellLine()
      return current
    }

    /**
     * Frees a lock that this thread does not hold, if nobody else is known to.
     *
     * @returns {number | null} the `threadId` of the thread that holds it, NOT_LOCKED if it is free, and null if it has been freed
     */
    free () {
      floats[ADDRESS] = this.address
      operations.free()
      const answer = words[ANSWER]
      if (answer === FREED) return null
      if (answer === HELD_ELSEWHERE) return words[AMOUNT]
      if (answer === NOT_LOCKED) return FREE
      throw new Error('atomics-waitasync: the operation failed')
    }

    /** Gives the line its try, after the word has been changed. */
    tellLine () {
      if (counters === undefined || counters.read(this.counter) !== 0) {
        floats[ADDRESS] = this.address
        operations.released()
      }
      floats[RELEASING] = 0
    }

    /** A promise of this thread's is about to be lined up for it. */
    claimBegins () {
      awaited.set(this.address, (awaited.get(this.address) || 0) + 1)
      claims++
      table.room--
    }

    claimEnds () {
      const left = awaited.get(this.address) - 1
      if (left > 0) awaited.set(this.address, left)
      else awaited.delete(this.address)
      claims--
      table.room++
    }

    /** Whether a promise of this thread's is lined up for it. */
    isAwaited () {
      return awaited.has(this.address)
    }

    /** Where an entry of this thread's for it is, -1 if there is none. */
    find () {
      let place = words[HELD] - 1
      while (place >= 0 && table.entries[2 * place] !== this.address) place--
      return place
    }

    /** The `threadId` of a thread that holds it by means of this package, null if none does. */
    holder () {
      floats[ADDRESS] = this.address
      const holder = binding.holder()
      return typeof holder === 'number' ? holder : null
    }
  }
  bare(Word)

  /** Takes what is demanded, if that needs no waiting. Whether it has it. */
  function take (demand) {
    const place = demand.word.take(demand.request)
    if (place < 0) return false
    if (kindOf(demand.request) !== SIGNALS) standFor(demand, place, table.ownerDied)
    return true
  }

  /** A new token becomes that of the entry at `place`, which `Word.take` has made. Gives it. */
  const fillTaken = (token, place) => fill(token, place, table.ownerDied)

  /**
   * Where the entry with this number is that was last known to be at `position`. -1 if there is none any more.
   *
   * Neither needs to be what a token was given: anybody can write into one. So a place is a number here, and a number that is not
   * one of an entry (as 0 is of what is at no place) finds none.
   */
  function placeOf (serial, position) {
    const place = position | 0
    if (!(serial > 0)) return -1
    if (table.serials[place] === serial) return place
    const now = moved.get(serial)
    return now === undefined || table.serials[now] !== serial ? -1 : now
  }

  /** A lock was not free that was to be at `place`. */
  function notTaken (place) {
    table.serials[place] = 0
    table.serial--
    return -1
  }

  /** Makes sure that there is a place for one more. */
  function makeRoom () {
    if (words[HELD] >= table.room) enlarge()
  }

  function enlarge () {
    const places = max(16, 2 * table.places)
    const memory = new ArrayBuffer(20 * places)
    const entries = new Float64Array(memory, 0, 2 * places)
    const serials = new Int32Array(memory, 16 * places, places)
    const held = createArray(places)
    for (let place = 0; place < words[HELD]; place++) {
      entries[2 * place] = table.entries[2 * place]
      entries[2 * place + 1] = table.entries[2 * place + 1]
      serials[place] = table.serials[place]
      held[place] = table.held[place]
    }
    binding.setHoldings(memory)
    table.entries = entries
    table.serials = serials
    table.held = held
    table.places = places
    // One place is behind all others.
    table.room = places - 1 - claims
  }

  /** Numbers the entry at the end of the table, which native code has put there. Its place. */
  function numberLast (word) {
    const place = words[HELD] - 1
    number(word, place)
    return place
  }

  function number (word, place) {
    table.held[place] = word
    table.serials[place] = table.serial = table.serial === LAST_SERIAL ? 1 : table.serial + 1
  }

  /** The entry at the end of the table, which native code has put there, becomes that of a demand. Gives its token. */
  function adoptLast (demand, ownerDied) {
    return standFor(demand, numberLast(demand.word), ownerDied)
  }

  /** The same of the entry at `place`. */
  function adopt (demand, place, ownerDied) {
    number(demand.word, place)
    return standFor(demand, place, ownerDied)
  }

  /** The token of a demand becomes that of the entry at `place`. Gives it. */
  function standFor (demand, place, ownerDied) {
    if (demand.serial === NOT_HELD) return fill(demand.token, place, ownerDied)
    keepNumber(demand, place)
    const { token } = demand
    try {
      token.ownerDied = ownerDied
    } catch (_) {}
    return token
  }

  /** The entry at `place` gets the number that its token knows: others have had that, so it may be frozen, or a proxy. */
  function keepNumber ({ serial, place: former }, place) {
    if (former !== place) {
      tidyMoved()
      moved.set(serial, place)
    }
    table.serials[place] = serial
  }

  /** A new token becomes that of the entry at `place`. Gives it. */
  function fill (token, place, ownerDied) {
    token[POSITION] = place
    token[SERIAL] = table.serials[place]
    token.ownerDied = ownerDied
    return token
  }

  function giveInLine (place) {
    words[PLACE] = toEnd(place)
    operations.giveBack()
    vacate()
  }

  /** Gives back what was a dead thread's before, unused: the next is told of the death instead. */
  function passOn (place) {
    words[PLACE] = toEnd(place)
    operations.passOn()
    vacate()
  }

  /** Moves an entry that is to be given back to the end of the table. Its place there. */
  function toEnd (place) {
    const last = words[HELD] - 1
    return place === last ? last : swap(place, last)
  }

  function swap (place, last) {
    const { entries, held, serials } = table
    const serial = serials[place]
    // First, since there may be no stack for it.
    tidyMoved()
    moved.set(serials[last], place)
    moved.set(serial, last)
    const address = entries[2 * place]
    const request = entries[2 * place + 1]
    const word = held[place]
    // Behind the last one, for who looks meanwhile.
    entries[2 * last + 2] = address
    serials[last + 1] = serial
    entries[2 * place] = entries[2 * last]
    entries[2 * place + 1] = entries[2 * last + 1]
    held[place] = held[last]
    serials[place] = serials[last]
    entries[2 * last] = address
    entries[2 * last + 1] = request
    held[last] = word
    serials[last] = serial
    serials[last + 1] = 0
    return last
  }

  /** Takes out of the map what is not in the table any more, if it has become long. */
  function tidyMoved () {
    if (sizeOf(moved) <= 2 * words[HELD] + 32) return
    moved.forEach((place, serial) => { if (table.serials[place] !== serial) moved.delete(serial) })
  }

  /** The last entry has been taken out of the table. */
  function vacate () {
    const place = words[HELD]
    table.serials[place] = 0
    table.held[place] = undefined
  }

  /** The word in an Int32Array of length 1 on shared memory. */
  function createWord (array) {
    const buffer = apply(getBuffer, array, [])
    keep(buffer)
    const address = binding.addressOf(array)
    register(buffer, address - apply(getByteOffset, array, []))
    return counters === undefined
      ? new Word(array, address, 0, 0)
      : new Word(array, address, counters.of(address), counters.abandonedOf(address))
  }

  return {
    adopt, adoptLast, createWord, fill, fillTaken, makeRoom, passOn, placeOf, stepsOf, table, take, toEnd, vacate
  }
}

module.exports = {
  LOCK,
  SHARED,
  EXCLUSIVE,
  PERMITS,
  SIGNALS,
  UNLOCKED,
  LOCKED,
  WRITING,
  POSITION,
  SERIAL,
  NOT_HELD,
  amountOf,
  FREE,
  createHoldings,
  kindOf
}
