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

const { load } = require('./binding')

/** Outcomes by their number in `src/store.rs`. */
const OUTCOMES = ['ok', 'not-equal', 'timed-out']
/** The answer of a wait that has been lined up. */
const PENDING = 3

/** How many settlements one call of `settle` takes. */
const BATCH = 4096
/** The layout of `Registers` in `src/agent.rs`: the number of its words, and where they are. */
const REGISTER_WORDS = 10
const ADDRESS = 0 // floats
const TIMEOUT = 1 // floats
const COUNT = 2 // floats
const EXPECTED = 6 // words
const EXPECTED_BYTES = 24
const SLOT = 8 // words
const WIDE = 9 // words

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
    setOperands(address, wide, value, timeout)
    let answer = binding.wait()
    if (answer === PENDING) {
      try {
        do {
          tick()
          answer = binding.resume()
        } while (answer === PENDING)
      } catch (error) {
        binding.abandon()
        throw error
      }
    }
    return OUTCOMES[answer]
  }

  /** Lines up a promise. Its outcome if there is one at once, otherwise undefined: the promise is pending. */
  function waitAsync (address, wide, value, timeout, typedArray, promise, resolve) {
    const slot = free.length === 0 ? resolvers.length : free[free.length - 1]
    setOperands(address, wide, value, timeout)
    words[SLOT] = slot
    const answer = binding.waitAsync()
    if (answer !== PENDING) return OUTCOMES[answer]
    if (slot === resolvers.length) {
      resolvers.push(resolve)
      arrays.push(typedArray)
      promises.push(promise)
    } else {
      free.pop()
      resolvers[slot] = resolve
      arrays[slot] = typedArray
      promises[slot] = promise
    }
    pending++
    if (slots !== null) slots.set(promise, slot)
    return undefined
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
    for (let n = 0; n < count; n++) {
      const settlement = words[REGISTER_WORDS + n]
      const slot = settlement >>> 2
      const resolve = resolvers[slot]
      if (slots !== null) slots.delete(promises[slot])
      resolvers[slot] = arrays[slot] = promises[slot] = undefined
      free.push(slot)
      pending--
      resolve(OUTCOMES[settlement & 3])
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

  binding.start(buffer, settle)
  return { addressOf: binding.addressOf, wait, waitAsync, notify, waiterCount, setRefed }
}

function tick () {}

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
