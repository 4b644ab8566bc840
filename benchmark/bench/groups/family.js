'use strict'

// The locks beside AsyncLock, and the classes on top of it: operations that do not wait, and two threads that wait for
// each other, there and back.

const { AsyncLock, Barrier, Condition, Latch, RwLock, Semaphore } = require('../../../pure')
const { fresh, now, takeTurns, timeCalls } = require('../sampling')
const { Member } = require('../team')

const VARIANTS = ['ours', 'again']
/** How often two threads wait for each other in a sample. */
const ROUNDS = 2000

/** Makes a view of the class in its own memory: some way into it. */
const view = (Class, options) => new Class(new SharedArrayBuffer(64), { byteOffset: 32, ...options })
const callback = () => {}

/** Each gives a function that does it once; it may give a promise. */
const immediate = {
  'rw-shared' () {
    const lock = view(RwLock)
    return () => { lock.tryLockShared().unlock() }
  },
  'rw-exclusive' () {
    const lock = view(RwLock)
    return () => { lock.tryLock().unlock() }
  },
  'rw-execute' () {
    const lock = view(RwLock)
    return () => lock.executeShared(callback)
  },
  'permits' () {
    const semaphore = view(Semaphore)
    semaphore.release()
    return () => { semaphore.tryAcquire(); semaphore.release() }
  },
  'permits-use' () {
    const semaphore = view(Semaphore)
    semaphore.release()
    return () => semaphore.use(1, callback)
  },
  'condition-notify' () {
    const condition = view(Condition)
    return () => { condition.notify(1) }
  },
  'barrier-last' () {
    const barrier = view(Barrier, { parties: 1 })
    return () => barrier.waitAsync()
  },
  'latch-count' () {
    const latch = view(Latch, { count: 0x7fffffff })
    return () => { latch.countDown() }
  },
  'latch-open' () {
    const latch = view(Latch, { count: 0 })
    return () => latch.waitAsync()
  }
}

/** Each gets the number of its thread, 0 or 1. */
const meetings = {
  'condition-and-back' (me, sab) {
    const lock = new AsyncLock(sab)
    const condition = new Condition(sab, { byteOffset: 16 })
    const turn = new Int32Array(sab, 32, 1)
    const token = lock.lock()
    for (let n = 0; n < ROUNDS; n++) {
      condition.waitFor(token, () => turn[0] === me)
      turn[0] = 1 - me
      condition.notify(1)
    }
    token.unlock()
  },
  'semaphore-signal' (me, sab) {
    const [mine, other] = [me, 1 - me].map(n => new Semaphore(sab, { byteOffset: 16 * n }))
    for (let n = 0; n < ROUNDS; n++) {
      if (me === 1) mine.acquire()
      other.release()
      if (me === 0) mine.acquire()
    }
  },
  'barrier-meeting' (me, sab) {
    const barrier = new Barrier(sab, { parties: 2 })
    for (let n = 0; n < ROUNDS; n++) barrier.wait()
  }
}

function repeat (operation, count) {
  for (let n = 0; n < count; n++) operation()
}

async function repeatAwaiting (operation, count) {
  for (let n = 0; n < count; n++) await operation()
}

async function run ({ rounds }) {
  const results = {}
  for (const [name, prepare] of Object.entries(immediate)) {
    const operation = prepare()
    const loop = fresh(operation() === undefined ? repeat : repeatAwaiting)
    Object.assign(results, await timeCalls(name, VARIANTS, rounds(100), 2000, () => loop(operation, 2000), 30))
  }
  const members = [0, 1].map(me => new Member('family', 'player', { me }))
  for (const name of Object.keys(meetings)) {
    Object.assign(results, await takeTurns(VARIANTS, rounds(15), async () => {
      const sab = new SharedArrayBuffer(64)
      return { [name]: Math.max(...await Promise.all(members.map(member => member.ask({ name, sab })))) }
    }, { warmUp: 3, gc: false }))
  }
  return results
}

const threads = {
  player: ({ me }) => ({ name, sab }) => {
    const begin = now()
    meetings[name](me, sab)
    return (now() - begin) / ROUNDS / 1e3
  }
}

module.exports = { run, threads }
