'use strict'

/**
 * This thread's pending promises: a table from the number that the native side knows a wait by (its slot) to what
 * settles it. Native code hands outcomes over in batches, so that none costs a Node-API call of its own.
 *
 * Invariants:
 * - A slot is in use from the native `waitAsync` that answered "pending" to the settlement of its promise.
 * - As long as it is, the table keeps the typed array, and so the memory waited on (invariant 8 in src/lib.rs).
 * - No function is called between the native call that lines a wait up and the last of what it takes to remember it:
 *   near the end of the stack any call may throw, and then there would be a waiter whose promise nobody has. For the same
 *   reason an outcome is read with no call in between, or a thread that was woken would not know it.
 */

const { load } = require('./binding')
const { createCounters } = require('./counters')
const {
  ArrayBuffer, BigInt64Array, Error, Float64Array, Int32Array, createArray, createMap, define, getOwnPropertyDescriptor, keys
} = require('./intrinsics')
const {
  ACQUIRED, ACQUIRED_FROM_DEAD, ADDRESS, AMOUNT, ANSWER, COUNT, EXPECTED, FLOATS, GIVEN, KIND, PLACE, RELAY, SETTLED, SLOT, TIMEOUT, WIDE,
  WORDS
} = require('./registers')
const startingWorkers = require('./starting-workers')
const { threads } = require('./worker-threads')
// Takes built-ins as they are now.
require('./sync/memories')

const { nextTick } = process

/** Outcomes of a wait by their number in `src/store.rs`. */
const OUTCOMES = ['ok', 'not-equal', 'timed-out']
/** The answer of a wait or claim that has been lined up. */
const PENDING = 3
/** No operation answers this. */
const NONE = -1
/** From here on: why an operation could not be carried out. */
const NO_TIMER = 6
/** The engine has broken off what runs: by an exception, or in its own way. */
const INTERRUPTED = 8

/** How many settlements one call of `settle` takes. */
const BATCH = 4096
/** How many slots a chunk of the table has, as a power of two. */
const CHUNK_BITS = 8
const CHUNK = 1 << CHUNK_BITS
/** A table of more chunks than this is given back when nothing is pending. */
const RETAINED = 4

// What the table has of a slot, and how much that is.
/** What settles the promise. */
const RESOLVE = 0
/** The typed array that it waits on. */
const ARRAY = 1
const PROMISE = 2
/** The slot that is vacant after this one, if this one is. */
const NEXT = 3
const FIELDS = 4

function createAgent (binding) {
  const buffer = new ArrayBuffer(4 * (WORDS + BATCH))
  const floats = new Float64Array(buffer, 0, FLOATS)
  const words = new Int32Array(buffer)
  const expected = BigInt64Array !== undefined ? new BigInt64Array(buffer, 4 * EXPECTED, 1) : null

  // The table. In chunks, since an array that grows is copied time and again, to memory fresh from the system if it is long.
  let chunks = createArray(0)
  // The first slot that is vacant, or would be with one chunk more; and the next one, as `fillSlot` found it.
  let vacant = 0
  let nextVacant
  let pending = 0
  // The word that this thread blocks for: keeps its memory.
  const blockedFor = { word: null }
  // From promise to slot. Only kept once somebody has asked for it, since it costs as much as the rest of a wait.
  let slots = null
  // What stands in a line for a promise of lib/sync, or will do so in a later step of it.
  const waitingOf = createMap()

  function setOperands (address, wide, value, timeout) {
    floats[ADDRESS] = address
    floats[TIMEOUT] = timeout
    words[WIDE] = wide ? 1 : 0
    if (wide) expected[0] = value
    else words[EXPECTED] = value
  }

  /** Blocks until notified or timed out. */
  function wait (address, wide, value, timeout) {
    probeStack()
    setOperands(address, wide, value, timeout)
    operations.wait()
    const answer = words[ANSWER]
    if (floats[GIVEN] !== 0) goOn()
    if (answer >= NO_TIMER) throw operationError(answer)
    return OUTCOMES[answer]
  }

  /**
   * This thread has been given something, and goes on: if it is being terminated, it ends here, and what it was given goes to
   * another. The engine looks whether it is to end a thread where a function is called, or, if the call is inlined, where a loop
   * begins anew: which this one does once.
   */
  function goOn () {
    for (let isAlive = false; floats[GIVEN] !== 0; isAlive = true) {
      tick()
      if (isAlive) floats[GIVEN] = 0
    }
  }

  /**
   * Blocks for what is asked of a word (see lib/sync/holdings.js).
   *
   * @returns {boolean | undefined} undefined: the time is over. Otherwise it is this thread's, the last in the table of
   *   holdings, and true says that who held it died
   */
  function claim (word, kind, amount, timeout) {
    probeStack()
    blockedFor.word = word
    setRequest(word.address, kind, amount, timeout)
    operations.claim()
    const answer = words[ANSWER]
    if (floats[GIVEN] !== 0) goOn()
    blockedFor.word = null
    if (answer >= NO_TIMER) throw operationError(answer)
    return answer < ACQUIRED ? undefined : answer === ACQUIRED_FROM_DEAD
  }

  function setRequest (address, kind, amount, timeout) {
    floats[ADDRESS] = address
    floats[TIMEOUT] = timeout
    words[KIND] = kind
    words[AMOUNT] = amount
  }

  /**
   * Lines up at `address`, then gives back what is at `place` in the table of holdings, then blocks: nobody who has what was
   * given back can notify too early. `givenBack` is called between the two.
   *
   * Once it is notified, and until `useNotification` is called, the notification goes to another should this thread end.
   */
  function waitGivingBack (address, timeout, place, givenBack) {
    probeStack()
    floats[ADDRESS] = address
    floats[TIMEOUT] = timeout
    words[PLACE] = place
    operations.waitGivingBack()
    if (words[ANSWER] !== PENDING) throw operationError(words[ANSWER])
    givenBack()
    operations.resume()
    const answer = words[ANSWER]
    if (answer >= NO_TIMER) throw operationError(answer)
    return OUTCOMES[answer]
  }

  function useNotification () {
    floats[RELAY] = 0
  }

  /** Lines up a promise. Its outcome if there is one at once, otherwise undefined: the promise is pending. */
  function waitAsync (address, wide, value, timeout, typedArray, promise, resolve) {
    const slot = fillSlot(resolve, typedArray, promise)
    setOperands(address, wide, value, timeout)
    words[SLOT] = slot
    floats[RELAY] = 0
    operations.waitAsync()
    const answer = words[ANSWER]
    if (answer !== PENDING) return OUTCOMES[refused(slot, answer)]
    vacant = nextVacant
    pending++
    return undefined
  }

  /**
   * Takes what is asked of the word at `address`, or lines up `claimant` for it.
   *
   * @param {object} claimant what is told. `adopt(place, ownerDied)` is called in the batch before anything is settled, with
   *   its place in the table of holdings (-1 if `owned` is false), and gives what `settle(value)` is then called with; or
   *   `settle('timed-out')`. It is kept until then and so has to keep the memory. Its `slot` is set while it is lined up
   * @param {number} relay the address at which somebody else is notified if this thread ends before it has what was asked
   *   for; 0 for none
   * @returns {boolean | undefined} undefined: lined up. Otherwise it is this thread's, the last in the table of holdings, and
   *   true says that who held it died
   */
  function claimAsync (address, kind, amount, timeout, claimant, relay) {
    const slot = fillSlot(CLAIMANT, claimant, claimant)
    setRequest(address, kind, amount, timeout)
    words[SLOT] = slot
    floats[RELAY] = relay
    operations.claimAsync()
    const answer = words[ANSWER]
    if (answer !== PENDING) return refused(slot, answer) === ACQUIRED_FROM_DEAD
    claimant.slot = slot
    vacant = nextVacant
    pending++
    return undefined
  }

  /**
   * Lines up `claimant` to be notified at `address`, for which it is told `settle('ok')` or `settle('timed-out')`.
   * @param {boolean} relayed whether the notification goes to another if this thread ends before it is told
   * @returns {string | undefined} the outcome if there is one at once
   */
  function waitClaim (address, value, timeout, claimant, relayed) {
    const slot = fillSlot(CLAIMANT, claimant, claimant)
    setOperands(address, false, value, timeout)
    words[SLOT] = slot
    floats[RELAY] = relayed ? address : 0
    operations.waitAsync()
    const answer = words[ANSWER]
    if (answer !== PENDING) return OUTCOMES[refused(slot, answer)]
    claimant.slot = slot
    vacant = nextVacant
    pending++
    return undefined
  }

  /** Takes a claimant out of the line. False if it is settled already: then it will be told so. */
  function cancel (claimant) {
    words[SLOT] = claimant.slot
    operations.cancel()
    if (words[ANSWER] === 0) return false
    vacate(claimant.slot)
    return true
  }

  /** The chunk of a slot, and the place there of what is kept of it. */
  const chunkOf = (slot) => chunks[slot >>> CHUNK_BITS]
  const placeOf = (slot) => (slot & CHUNK - 1) * FIELDS

  function addChunk () {
    // As long as it is going to be, since one that grows gets more than it needs.
    const chunk = createArray(CHUNK * FIELDS)
    const first = chunks.length * CHUNK
    for (let n = 0; n < CHUNK; n++) chunk[n * FIELDS + NEXT] = first + n + 1
    chunks[chunks.length] = chunk
  }

  /**
   * Writes down a wait that is about to begin, in the first vacant slot. It stays that until the caller, once native code has
   * answered "pending", makes `nextVacant` the first.
   */
  function fillSlot (resolve, array, promise) {
    const slot = vacant
    if (slot === chunks.length * CHUNK) addChunk()
    const chunk = chunkOf(slot)
    const place = placeOf(slot)
    chunk[place + RESOLVE] = resolve
    chunk[place + ARRAY] = array
    chunk[place + PROMISE] = promise
    nextVacant = chunk[place + NEXT]
    if (slots !== null) slots.set(promise, slot)
    return slot
  }

  function emptySlot (slot) {
    const chunk = chunkOf(slot)
    const place = placeOf(slot)
    if (slots !== null) slots.delete(chunk[place + PROMISE])
    chunk[place + RESOLVE] = chunk[place + ARRAY] = chunk[place + PROMISE] = undefined
  }

  function vacate (slot) {
    emptySlot(slot)
    chunkOf(slot)[placeOf(slot) + NEXT] = vacant
    vacant = slot
    pending--
  }

  /** What was written down has not begun to wait: `answer` says why. */
  function refused (slot, answer) {
    emptySlot(slot)
    if (answer >= NO_TIMER) throw operationError(answer)
    return answer
  }

  function notify (address, count) {
    floats[ADDRESS] = address
    floats[COUNT] = count
    operations.notify()
    return words[ANSWER] >>> 0
  }

  /**
   * The same, with no native call where nobody waits: whether somebody does is certain only for who changed the word and has passed a
   * fence since. By itself, and not by `notify`: who has called it once with no count has compiled it all, and has the stack for it.
   */
  function notifyWaiting (address, count) {
    if (!mayBeWaiting(address)) return 0
    floats[ADDRESS] = address
    floats[COUNT] = count
    operations.notify()
    return words[ANSWER] >>> 0
  }

  /** Whether somebody may be waiting at an address, likewise. */
  function mayBeWaiting (address) {
    return counters === undefined || counters.read(counters.of(address)) !== 0
  }

  function waiterCount (address) {
    floats[ADDRESS] = address
    operations.waiterCount()
    return words[ANSWER]
  }

  /**
   * Called by native code with the number of settlements that it has put behind the registers. If this fails as a whole, and the
   * thread lives on, it is called again with those that are not settled, and what they acquired has its tokens if this one's has.
   */
  function settle (count) {
    if (words[SETTLED] < 0) {
      adoptAcquired(count)
      words[SETTLED] = 0
    }
    for (let n = 0; n < count; n++) {
      try {
        settleOne(n)
      } catch (error) {
        // Nobody else's business: it is reported as an error that nobody has caught.
        nextTick(() => { throw error })
      }
    }
    if (pending === 0) {
      slots = null
      if (chunks.length > RETAINED) {
        chunks = createArray(0)
        vacant = 0
      }
    }
  }

  function settleOne (n) {
    const settlement = words[WORDS + n]
    const slot = settlement >>> 3
    const code = settlement & 7
    const chunk = chunkOf(slot)
    const place = placeOf(slot)
    const resolve = chunk[place + RESOLVE]
    const claimant = chunk[place + ARRAY]
    vacate(slot)
    words[SETTLED] = n + 1
    if (resolve !== CLAIMANT) resolve(OUTCOMES[code])
    else claimant.settle(code < ACQUIRED ? OUTCOMES[code] : claimant.adopted)
  }

  /**
   * Gives what this batch acquired its tokens. First of all, since settling may run JavaScript (hooks on promises do) that
   * gives back other things, which moves places.
   */
  function adoptAcquired (count) {
    let place = words[PLACE]
    for (let n = 0; n < count; n++) {
      const settlement = words[WORDS + n]
      const code = settlement & 7
      if (code < ACQUIRED) continue
      const slot = settlement >>> 3
      const claimant = chunkOf(slot)[placeOf(slot) + ARRAY]
      claimant.adopted = claimant.adopt(claimant.owned ? place++ : -1, code === ACQUIRED_FROM_DEAD)
    }
  }

  /** Lets `ref` and `unref` find what stands in a line for a promise of lib/sync, a Claimant or Steps; until `forget`. */
  function remember (promise, waiting) {
    waiting.promise = promise
    waitingOf.set(promise, waiting)
  }

  function forget (waiting) {
    if (waiting.promise !== undefined) waitingOf.delete(waiting.promise)
  }

  function setRefed (promise, refed) {
    const waiting = waitingOf.get(promise)
    if (waiting !== undefined) return waiting.setRefed(refed)
    if (slots === null) {
      slots = createMap()
      for (let slot = 0; slot < chunks.length * CHUNK; slot++) {
        const promise = chunkOf(slot)[placeOf(slot) + PROMISE]
        if (promise !== undefined) slots.set(promise, slot)
      }
    }
    const slot = slots.get(promise)
    if (slot === undefined) return false
    setSlotRefed(slot, refed)
    return true
  }

  function setSlotRefed (slot, refed) {
    words[SLOT] = slot
    if (refed) operations.ref()
    else operations.unref()
  }

  /**
   * What is unref'd does not hold the loop. But what has been notified by now is to be settled before this thread ends, and a claim
   * whose word is free is to have it.
   */
  function beforeExit () {
    operations.runsDry()
    if (words[ANSWER] === 1 || pending === 0) return
    const left = []
    for (let slot = 0; slot < chunks.length * CHUNK; slot++) {
      const chunk = chunkOf(slot)
      const place = placeOf(slot)
      if (chunk[place + RESOLVE] === CLAIMANT && chunk[place + ARRAY].refed) left.push(chunk[place + ARRAY])
    }
    if (left.length > 0) require('./sync/warn-pending')(left)
  }

  const native = binding.start(buffer, settle, tick, threads === undefined ? 0 : threads.threadId)
  startingWorkers.tell(binding)
  const operations = LEAVES_EXCEPTIONS ? shielded(native, words) : native
  process.on('beforeExit', beforeExit)

  const counters = createCounters(binding)
  let holdings
  return {
    addressOf: binding.addressOf,
    wait,
    waitAsync,
    notify,
    waiterCount,
    forget,
    remember,
    setRefed,
    setSlotRefed,
    claim,
    claimAsync,
    waitClaim,
    waitGivingBack,
    useNotification,
    cancel,
    mayBeWaiting,
    notifyWaiting,
    /** What this thread holds: for locks and their like, so made for the first of them. */
    get holdings () {
      if (holdings === undefined) holdings = require('./sync/holdings').createHoldings(binding, operations, counters, floats, words)
      return holdings
    }
  }
}

/** If it is the engine that does not want to go on, it ends what runs when this is called. */
function operationError (answer) {
  return new Error('atomics-waitasync: ' + (
    answer === NO_TIMER ? 'the system gave no thread for the timer'
      : answer === INTERRUPTED ? 'the wait was broken off' : 'the operation failed'))
}

/** Node 10: an overflow of the stack where rejected promises are tracked stays behind, and the next native call throws it. */
const LEAVES_EXCEPTIONS = parseInt(process.versions.node) < 12

/** The operations, which throw only if they have not been carried out. */
function shielded (operations, words) {
  const shields = {}
  const names = keys(operations)
  for (let n = 0; n < names.length; n++) {
    const operation = operations[names[n]]
    define(shields, names[n], () => {
      words[ANSWER] = NONE
      try {
        operation()
      } catch (error) {
        if (words[ANSWER] === NONE || words[ANSWER] === INTERRUPTED) throw error
      }
    })
  }
  return shields
}

/** Native code calls it between the slices in which a thread blocks: a function is where the engine can break off what runs. */
function tick () {}

/** Throws the RangeError of a stack overflow before a wait has begun rather than in its midst: as deep as that will go. */
function probeStack () {
  tick()
}

/** Stands in the table for the resolver where a slot is a claimant's. */
const CLAIMANT = () => {}

let current

/**
 * This thread's agent: made at the first call, and shared by all copies of the package in the thread, for which reason
 * it hangs at the native library's exports and its methods belong to the protocol that `src/images.rs` numbers.
 */
function agent () {
  if (current === undefined) {
    const binding = load()
    // Not what an object may have inherited.
    if (getOwnPropertyDescriptor(binding, 'agent') === undefined) define(binding, 'agent', createAgent(binding))
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
