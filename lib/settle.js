'use strict'

/**
 * This thread's pending promises: a table from the number that the native side knows a wait by (its slot) to what
 * settles it. Native code hands outcomes over in batches, so that none costs a Node-API call of its own.
 *
 * Invariants:
 * - A slot is in use from the native `waitAsync` that answered "pending" to the settlement of its promise.
 * - As long as it is, the table keeps the typed array, and so the memory waited on (invariant 8 in src/lib.rs).
 * - No JavaScript that could throw runs between the native call and the table's entry.
 */

const { threadId } = require('worker_threads')
const { load } = require('./binding')
const { createHeldLocks } = require('./sync/held-locks')

/** Outcomes of a wait by their number in `src/store.rs`. */
const OUTCOMES = ['ok', 'not-equal', 'timed-out']
/** The answer of a wait or claim that has been lined up. */
const PENDING = 3
/** From here on: the outcomes of a claim that has what it asked for. */
const ACQUIRED = 4
const ACQUIRED_FROM_DEAD = 5

/** How many settlements one call of `settle` takes. */
const BATCH = 4096
/** The layout of `Registers` in `src/agent.rs`: the number of its words, and where they are. */
const REGISTER_WORDS = 12
const ADDRESS = 0 // floats
const TIMEOUT = 1 // floats
const COUNT = 2 // floats
const EXPECTED = 6 // words
const EXPECTED_BYTES = 24
const SLOT = 8 // words
const WIDE = 9 // words
const PLACE = 11 // words

/** Tables longer than this are given back when nothing is pending. */
const RETAINED = 1024

function createAgent (binding) {
  const buffer = new ArrayBuffer(4 * (REGISTER_WORDS + BATCH))
  const floats = new Float64Array(buffer, 0, 3)
  const words = new Int32Array(buffer)
  const expected = typeof BigInt64Array === 'function' ? new BigInt64Array(buffer, EXPECTED_BYTES, 1) : null

  // Parallel arrays: by slot, what settles the promise, what it waits on, and the promise itself.
  let resolvers = []
  let arrays = []
  let promises = []
  let free = []
  let pending = 0
  // The word of the lock that this thread blocks for, so that its memory is kept also when the blocking is broken off.
  let blockedFor = null
  // From promise to slot. Only kept once somebody has asked for it, since it costs as much as the rest of a wait.
  let slots = null

  function setOperands (address, wide, value, timeout) {
    floats[ADDRESS] = address
    floats[TIMEOUT] = timeout
    words[WIDE] = wide ? 1 : 0
    if (wide) expected[0] = value
    else words[EXPECTED] = value
  }

  /**
   * Blocks until notified or timed out. `tick` runs between two slices: calling a function is what lets the engine
   * end a thread that is being terminated.
   */
  function wait (address, wide, value, timeout) {
    probeStack()
    setOperands(address, wide, value, timeout)
    const answer = binding.wait()
    return OUTCOMES[answer === PENDING ? resume() : answer]
  }

  function resume () {
    try {
      let answer
      do {
        tick()
        answer = binding.resume()
      } while (answer === PENDING)
      return answer
    } catch (error) {
      binding.abandon()
      throw error
    }
  }

  /**
   * Blocks for the lock whose word is `word` (see lib/sync/held-locks.js).
   *
   * @returns {boolean | undefined} undefined: the time is over. Otherwise the lock is this thread's, the last one in the
   *   table of held locks, and true says that its holder died
   */
  function lock (word, timeout) {
    probeStack()
    if (blockedFor !== null) binding.abandon()
    blockedFor = word
    floats[ADDRESS] = word.address
    floats[TIMEOUT] = timeout
    const begun = binding.lock()
    const answer = begun === PENDING ? resume() : begun
    blockedFor = null
    return answer < ACQUIRED ? undefined : answer === ACQUIRED_FROM_DEAD
  }

  /** Lines up a promise. Its outcome if there is one at once, otherwise undefined: the promise is pending. */
  function waitAsync (address, wide, value, timeout, typedArray, promise, resolve) {
    const slot = vacantSlot()
    setOperands(address, wide, value, timeout)
    words[SLOT] = slot
    const answer = binding.waitAsync()
    if (answer !== PENDING) return OUTCOMES[answer]
    fillSlot(slot, resolve, typedArray, promise)
    return undefined
  }

  /**
   * Takes the lock at `address`, or lines up `claim` for it.
   *
   * @param {object} claim what is told: `adopt(place, ownerDied)`, called in the batch before anything is settled, with the
   *   lock's place in the table of held locks, and gives what `settle(value)` is then called with; or `settle('timed-out')`.
   *   It is kept until then and so has to keep the lock's memory. `claim.slot` is set while it is lined up.
   * @returns {boolean | undefined} undefined: lined up. Otherwise the lock is this thread's, the last one in the table of
   *   held locks, and true says that its holder died
   */
  function lockAsync (address, timeout, claim) {
    const slot = vacantSlot()
    floats[ADDRESS] = address
    floats[TIMEOUT] = timeout
    words[SLOT] = slot
    const answer = binding.lockAsync()
    if (answer !== PENDING) return answer === ACQUIRED_FROM_DEAD
    claim.slot = slot
    fillSlot(slot, CLAIM, claim, claim)
    return undefined
  }

  /** Takes a claim out of the line. False if it is settled already: then it will be told so. */
  function cancel (claim) {
    words[SLOT] = claim.slot
    if (!binding.cancel()) return false
    vacate(claim.slot)
    return true
  }

  function vacantSlot () {
    return free.length === 0 ? resolvers.length : free[free.length - 1]
  }

  function fillSlot (slot, resolve, array, promise) {
    if (slot === resolvers.length) {
      resolvers.push(resolve)
      arrays.push(array)
      promises.push(promise)
    } else {
      free.pop()
      resolvers[slot] = resolve
      arrays[slot] = array
      promises[slot] = promise
    }
    pending++
    if (slots !== null) slots.set(promise, slot)
  }

  function vacate (slot) {
    if (slots !== null) slots.delete(promises[slot])
    resolvers[slot] = arrays[slot] = promises[slot] = undefined
    free.push(slot)
    pending--
  }

  function notify (address, count) {
    floats[ADDRESS] = address
    floats[COUNT] = count
    return binding.notify()
  }

  function waiterCount (address) {
    floats[ADDRESS] = address
    return binding.waiterCount()
  }

  /** Called by native code with the number of settlements that it has put behind the registers. */
  function settle (count) {
    adoptAcquired(count)
    for (let n = 0; n < count; n++) {
      const settlement = words[REGISTER_WORDS + n]
      const slot = settlement >>> 3
      const code = settlement & 7
      const resolve = resolvers[slot]
      if (resolve === CLAIM) {
        const claim = arrays[slot]
        vacate(slot)
        claim.settle(code < ACQUIRED ? OUTCOMES[code] : claim.adopted)
      } else {
        vacate(slot)
        resolve(OUTCOMES[code])
      }
    }
    if (pending === 0) {
      slots = null
      if (resolvers.length > RETAINED) {
        resolvers = []
        arrays = []
        promises = []
        free = []
      }
    }
  }

  /**
   * Gives each lock that this batch acquired its token. First of all, since settling may run JavaScript (hooks on
   * promises do) that gives up other locks, which moves places.
   */
  function adoptAcquired (count) {
    let place = words[PLACE]
    for (let n = 0; n < count; n++) {
      const settlement = words[REGISTER_WORDS + n]
      const code = settlement & 7
      if (code < ACQUIRED) continue
      const claim = arrays[settlement >>> 3]
      claim.adopted = claim.adopt(place++, code === ACQUIRED_FROM_DEAD)
    }
  }

  function setRefed (promise, refed) {
    if (slots === null) {
      slots = new Map()
      promises.forEach((promise, slot) => { if (promise !== undefined) slots.set(promise, slot) })
    }
    const slot = slots.get(promise)
    if (slot === undefined) return false
    words[SLOT] = slot
    binding.setRefed(refed)
    return true
  }

  binding.start(buffer, settle, threadId)
  const held = createHeldLocks(binding, floats, words)
  return { addressOf: binding.addressOf, wait, waitAsync, notify, waiterCount, setRefed, lock, lockAsync, cancel, held }
}

function tick () {}

/** Throws the RangeError of a stack overflow before a wait has begun rather than in its midst: as deep as that will go. */
function probeStack () {
  tick()
}

/** Stands in the table for the resolver of a wait where a slot is a claim's. */
const CLAIM = () => {}

let current

/**
 * This thread's agent: made at the first call, and shared by all copies of the package in the thread, for which reason
 * it hangs at the native library's exports and its methods belong to the protocol that `src/images.rs` numbers.
 */
function agent () {
  if (current === undefined) {
    const binding = load()
    if (binding.agent === undefined) {
      Object.defineProperty(binding, 'agent', { value: createAgent(binding) })
    }
    current = binding.agent
  }
  return current
}

/** Whether `agent()` has been called in this copy: if not, it has no pending promise. */
const started = () => current !== undefined

exports.agent = agent
/** Lets the pending wait `promise` keep this thread's event loop alive (again). False if it is no pending wait of this thread. */
exports.ref = (promise) => started() && current.setRefed(promise, true)
/** Lets this thread end although `promise` is pending. False if it is no pending wait of this thread. */
exports.unref = (promise) => started() && current.setRefed(promise, false)
