'use strict'
// flags: --expose-gc

// Near the end of the stack an operation succeeds, or throws: a RangeError. Then it has done nothing.

const assert = require('assert')
const { Worker } = require('worker_threads')
const { test } = require('../harness')
const { needsChannels } = require('../fixtures/channels')
const { startMember, waiters } = require('../fixtures/family-toolbox')
const { TinyController } = require('../fixtures/lock-toolbox')
const { atTheEndOfTheStack } = require('../fixtures/odd-calls')
const { MAJOR, startWorker, words } = require('../fixtures/queue-toolbox')
const size = require('../fixtures/size')
const { api } = require('../subject')

const LEAVES_EXCEPTIONS = parseInt(process.versions.node, 10) < 12 &&
  'a stack overflow while a rejected promise is tracked leaves an exception behind, which the next native call throws'
/** How many sizes of frames are tried; the small test has others on each Node. */
const PADDINGS = size(12, 2)
/** More frames than an operation asks for: with 32 bits one takes half as much. */
const MORE = process.arch === 'arm' || process.arch === 'ia32' ? 2.5 : 1
const DEPTHS = 1500 * MORE
const AROUND = { smallest: size(0, 2 * size.partOf(6)), paddings: PADDINGS, depths: DEPTHS }

/**
 * Runs `body(atTheEndOfTheStack, scope)` in a thread that may block; `data` is in its scope. Node 20 crashes if V8's
 * thread that optimizes wants a collection while the worker ends, whose isolate Node has forgotten already
 * (`NodePlatform::GetForegroundTaskRunner`): so there is one before. `--concurrent-recompilation-delay=10` shows the
 * crash.
 */
async function inWorker (t, body, data) {
  const { done, thrown } = await startWorker(t, data, `async scope => {
    const PADDINGS = ${PADDINGS}
    const DEPTHS = ${DEPTHS}
    const attemptAt = ${attemptAt}
    const tryAround = ${tryAround}
    const atTheEndOfTheStack = attempt => (${atTheEndOfTheStack})(attempt, ${JSON.stringify(AROUND)})
    const { done, thrown } = await (${body})(atTheEndOfTheStack, scope)
    gc()
    return { done, thrown }
  }`).done()
  assert.ok(done > 0 && thrown > 0, `${done} carried out, ${thrown} thrown`)
}

const settled = promise => promise.then(value => ({ value }), error => {
  if (!(error instanceof RangeError)) throw error
  return { error }
})

/** Returns the first message of a program with a small stack. */
function answerOf (t, program, workerData) {
  const worker = new Worker(program, { eval: true, workerData, resourceLimits: { stackSizeMb: 1 } })
  t.after(() => worker.terminate())
  return new Promise((resolve, reject) => worker.on('message', resolve).on('error', reject))
}

/**
 * Makes an attempt with so many frames left, of `padding` arguments each: `{ value, error }`. For other threads, too.
 */
function attemptAt (distance, padding, attempt) {
  const outcome = { value: undefined, error: undefined }
  let left = distance
  const down = (...padding) => {
    try {
      down(...padding)
    } catch (_) {}
    if (left-- !== 0) return
    try {
      outcome.value = attempt()
    } catch (error) {
      outcome.error = error
    }
  }
  down(...new Array(padding).fill(0))
  if (outcome.error !== undefined && !(outcome.error instanceof RangeError)) throw outcome.error
  return outcome
}

/**
 * Searches the distance, up to `high`, from which on attempts succeed; then tries those `around` it, or one in `step`.
 * For other threads, too.
 */
async function tryAround (isDone, high, around, step) {
  let low = 0
  while (high - low > 1) {
    const middle = low + high >> 1
    if (await isDone(middle)) high = middle
    else low = middle
  }
  for (let distance = high + 2; distance > high - around; distance -= step) await isDone(distance)
}

/**
 * Makes attempts whose code has not been compiled yet. Each is in a state of its own, at distances from the end of the
 * stack around that from which on they succeed: there the engine compiles some functions and refuses others. Afterwards
 * nothing may be held or awaited.
 *
 * `work(api, dive, settled)` is sent as source text. It makes its attempt by `dive(attempt)`, which gives `{ value,
 * error }`, and resolves with whether it was carried out; it throws if that is not certain.
 */
async function withoutCode (t, work) {
  const { done, thrown } = await answerOf(t, `
    const api = require(${JSON.stringify(require.resolve('../../force'))})
    const { parentPort } = require('worker_threads')
    const v8 = require('v8')
    v8.setFlagsFromString(${MAJOR < 16} ? '--stress-flush-bytecode' : '--stress-flush-code')
    const settled = ${settled}
    process.on('unhandledRejection', error => { throw error })
    const alive = setInterval(() => {}, 1000)
    const counts = { done: 0, thrown: 0 }
    async function isDone (distance, padding) {
      // Takes away the code of all functions that do not run.
      gc()
      const isDone = await (${work})(api, attempt => (${attemptAt})(distance, padding, attempt), settled)
      const { held, waiting } = api.snapshot()
      const state = JSON.stringify({ distance, isDone, held, waiting })
      if (held.length + waiting.length > 0) throw new Error(state)
      counts[isDone ? 'done' : 'thrown']++
      return isDone
    }
    async function all () {
      // The small test has one, and each Node another.
      for (let padding = ${size(0, size.partOf(4))}; padding < ${size(4, size.partOf(4) + 1)}; padding++) {
        await (${tryAround})(distance => isDone(distance, padding), ${2000 * MORE}, ${size(100, 30)}, ${size(1, 2)})
      }
      clearInterval(alive)
      return counts
    }
    all().then(counts => parentPort.postMessage(counts), error => { process.nextTick(() => { throw error }) })`)
  assert.ok(done > 0 && thrown > 0, `${done} carried out, ${thrown} thrown`)
}

const NO_FLUSH =
  MAJOR < 14 && 'this Node has no flag that takes the code of functions away, or no limit for the stack of a worker'

const COLD = {
  'downgrade() makes a reader, and serves the one in line': async (api, dive) => {
    const lock = new api.RwLock(new SharedArrayBuffer(4))
    const token = lock.tryLock()
    const reader = lock.lockSharedAsync()
    const { value: shared, error } = dive(() => token.downgrade())
    if (token.locked !== (error !== undefined))
      throw new Error(`it says ${error}, and the writer's token ${token.locked}`)
    if (error === undefined) (await reader).unlock()
    for (const each of [token, shared]) if (each !== undefined) each.unlock()
    if (error !== undefined) (await reader).unlock()
    return error === undefined
  },
  'release() adds permits, and serves the waiter': async (api, dive) => {
    const semaphore = new api.Semaphore(new SharedArrayBuffer(4))
    const waiter = semaphore.acquireAsync()
    const { error } = dive(() => semaphore.release())
    if (semaphore.available !== 0) throw new Error('permits are left beside a waiter')
    if (error !== undefined) semaphore.release()
    await waiter
    return error === undefined
  },
  'Condition.wait holds the lock again': (api, dive) => {
    const sab = new SharedArrayBuffer(8)
    const token = new api.AsyncLock(sab).lock()
    const { error } = dive(() => new api.Condition(sab, { byteOffset: 4 }).wait(token, { timeout: 1e-6 }))
    if (!token.unlock()) throw new Error('the lock was not held')
    return error === undefined
  },
  'Condition.waitAsync waits, or leaves no waiter': async (api, dive, settled) => {
    const sab = new SharedArrayBuffer(8)
    const token = new api.AsyncLock(sab).tryLock()
    const condition = new api.Condition(sab, { byteOffset: 4 })
    const { value, error } = dive(() => condition.waitAsync(token))
    const notified = condition.notify()
    const isDone = error === undefined && (await settled(value)).error === undefined
    if (notified !== Number(isDone)) throw new Error(`${notified} were notified, and the promise says ${isDone}`)
    if (!token.unlock()) throw new Error('the lock was not held')
    return isDone
  },
  'a message of a Queue is put, or not': (api, dive) => {
    const queue = api.Queue.create({ capacity: 1, messageSize: 4 })
    const { error } = dive(() => queue.put(7))
    if (queue.length !== Number(error === undefined)) throw new Error(`it says ${error}, and ${queue.length} are in`)
    return error === undefined
  },
  'a message of a Queue is used, or comes back': (api, dive) => {
    const queue = api.Queue.create({ capacity: 1, messageSize: 4 })
    queue.tryPut(7)
    const { error } = dive(() => queue.useSync(() => {}))
    const { inUse, length } = queue
    if (inUse !== 0 || length !== Number(error !== undefined))
      throw new Error(`${error}, ${length} in, ${inUse} in use`)
    return error === undefined
  },
  'requestSync gives the name back': (api, dive) =>
    dive(() => api.locks.requestSync('cold', () => {})).error === undefined,
  'request of a held name waits, or rejects': async (api, dive, settled) => {
    let free
    const holder = api.locks.request(
      'cold',
      () =>
        new Promise(resolve => {
          free = resolve
        })
    )
    await new Promise(setImmediate)
    const { value, error } = dive(() => api.locks.request('cold', () => {}))
    free()
    await holder
    return error === undefined && (await settled(value)).error === undefined
  }
}

for (const [name, work] of Object.entries(COLD)) {
  test(`where code must be compiled first, ${name}`, { skip: NO_FLUSH, timeout: 60000 }, t => withoutCode(t, work))
}

test(
  'the first use of the package in a thread works, or throws a RangeError, and the next use works',
  { skip: NO_FLUSH, timeout: 60000 },
  async t => {
    const program = `
    const { AsyncLock, snapshot } = require(${JSON.stringify(require.resolve('../..'))})
    const { parentPort, workerData } = require('worker_threads')
    const sab = new SharedArrayBuffer(4)
    const { error } = (${attemptAt})(workerData, 0, () => new AsyncLock(sab).tryLock().unlock())
    const lock = new AsyncLock(sab)
    const token = lock.tryLock()
    const next = lock.lockAsync()
    token.unlock()
    next.then(token => parentPort.postMessage([error && String(error), token.unlock(), snapshot().held.length]))`
    await tryAround(
      async distance => {
        const [error, ...after] = await answerOf(t, program, distance)
        assert.deepStrictEqual(after, [true, 0])
        assert.ok(error === undefined || error === 'RangeError: Maximum call stack size exceeded', error)
        return error === undefined
      },
      4000 * MORE,
      size(100, 12),
      size(1, 2)
    )
  }
)

// Short waits in many threads: the engine optimizes at another moment in each, and then a call takes another part of
// the stack.
for (const { slice, threads } of [{ slice: 1e-6, threads: size(8, 2) }, { slice: 33, threads: 1 }]) {
  test(`Barrier.wait counts only parties that wait, for ${slice} ms`, async t => {
    for (let thread = 0; thread < threads; thread++) {
      await inWorker(t, (atTheEndOfTheStack, { api, data: slice }) => {
        const barrier = new api.Barrier(new SharedArrayBuffer(4), { parties: 10000 })
        const word = new Int32Array(barrier.buffer)
        let attempts = 0
        const counts = atTheEndOfTheStack(() => {
          try {
            barrier.wait({ timeout: attempts++ % 1000 < 990 ? 1e-6 : slice })
          } catch (error) {
            if (error instanceof RangeError) throw error
          }
        })
        if (word[0] !== 0) throw new Error(`${word[0]} are counted`)
        if (api.waiterCount(word, 0) !== 0) throw new Error('somebody waits')
        return counts
      }, slice)
    }
  })
}

for (const name of ['Barrier', 'Latch']) {
  test(`an arrival that completes a ${name} wakes all, or has not completed it`, async t => {
    await inWorker(t, async (atTheEndOfTheStack, { api, data: name }) => {
      const things = Array.from(
        { length: DEPTHS * PADDINGS },
        () => new api[name](new SharedArrayBuffer(4), name === 'Latch' ? { count: 1 } : { parties: 2 })
      )
      const isComplete = thing => new Int32Array(thing.buffer)[0] === (name === 'Latch' ? 1 : 1 << 16)
      let released = 0
      const waits = things.map(thing => thing.waitAsync().then(() => { released++ }))
      let at = 0
      const counts = atTheEndOfTheStack(() => {
        const thing = things[at++]
        if (name === 'Latch') thing.countDown()
        else thing.wait()
      })
      const complete = things.filter(isComplete)
      if (complete.length !== counts.done)
        throw new Error(`${complete.length} are complete, ${counts.done} have been completed`)
      for (const thing of complete)
        if (api.waiterCount(new Int32Array(thing.buffer), 0) !== 0) throw new Error('somebody has not been woken')
      for (const thing of things) {
        if (isComplete(thing)) continue
        if (name === 'Latch') thing.countDown()
        else thing.wait()
      }
      await Promise.all(waits)
      if (released !== things.length) throw new Error(`${released} were released`)
      return counts
    }, name)
  })
}

for (const Lock of ['AsyncLock', 'RwLock']) {
  test(`Condition.wait: the ${Lock} is held again by the same token, also if it throws`, async t => {
    const sab = new SharedArrayBuffer(12)
    const member = await startMember(t, sab)
    await inWorker(t, (atTheEndOfTheStack, { api, data: { sab, Lock } }) => {
      const condition = new api.Condition(sab, { byteOffset: 4 })
      const token = new api[Lock](sab).lock()
      // So that what it needs is compiled, for which V8 wants much of the stack.
      for (const timeout of [1e-6, 33]) condition.wait(token, { timeout })
      let wrong = 0
      let attempts = 0
      const counts = atTheEndOfTheStack(() => {
        try {
          condition.wait(token, { timeout: attempts++ % 1000 < 990 ? 1e-6 : 33 })
        } finally {
          if (!token.locked) wrong++
        }
      })
      if (wrong > 0) throw new Error(`${wrong} of ${counts.done + counts.thrown} times the lock was not held`)
      if (!token.unlock()) throw new Error('it was not held')
      if (api.waiterCount(new Int32Array(sab), 1) !== 0) throw new Error('somebody waits')
      return counts
    }, { sab, Lock })
    assert.notStrictEqual(await member.on(Lock)('tryLock'), null)
  })
}

test('a lock() that blocks gives the token, or throws and holds nothing', async t => {
  const sab = new SharedArrayBuffer(8)
  // Frees the word, which it does not hold, whenever somebody waits for it.
  const other = startWorker(t, sab, ({ api, data }) => {
    const [word, stop] = [0, 4].map(offset => new Int32Array(data, offset, 1))
    while (Atomics.load(stop, 0) === 0) {
      if (api.waiterCount(word, 0) === 0) continue
      Atomics.store(word, 0, 0)
      api.notify(word, 0, 1)
    }
  })
  await inWorker(t, async (_, { api, data: { sab, tells, paddings }, subscribe }) => {
    // A hold that is told of needs more of the stack than the claim does that comes before it.
    if (tells) subscribe('hold', () => {})
    const word = new Int32Array(sab, 0, 1)
    const lock = new api.AsyncLock(sab)
    const counts = { done: 0, thrown: 0 }
    for (let padding = 0; padding < paddings; padding++) {
      await tryAround(distance => {
        word[0] = 1
        const { value: token, error } = attemptAt(distance, padding, () => lock.lock())
        if (token !== undefined) token.unlock()
        else if (api.snapshot().held.length > 0) throw new Error(`it is held, and ${error}`)
        counts[token === undefined ? 'thrown' : 'done']++
        return token !== undefined
      }, DEPTHS, 6, 1)
    }
    return counts
  }, { sab, tells: !needsChannels.skip, paddings: size(12, 6) })
  new Int32Array(sab)[1] = 1
  await other.done()
})

/** Rivals: takes one, holds it for a millisecond and gives it back, again and again until it shall stop. */
function holdAgainAndAgain ({ api, data: { thing, name, stop, form }, words }) {
  const mine = new (form === 'useSync' ? api.Semaphore : api[name])(thing)
  const nothing = words(1)
  while (Atomics.load(stop, 0) === 0) {
    const token = name === 'Semaphore' ? mine.acquire(1) : form === 'useSync' ? mine.hold(1) : mine.lock()
    Atomics.wait(nothing, 0, 0, 1)
    if (name === 'Semaphore') mine.release(1)
    else token.unlock()
  }
}

for (const [place, [name, form]] of [
  ['AsyncLock', 'executeLockedSync'], ['RwLock', 'executeLockedSync'], ['RwLock', 'executeSharedSync'],
  ['Semaphore', 'useSync'], ['Semaphore with permits', 'useSync']
].entries()) {
  for (const rival of [false, true].filter(rival => size.has(2, place + Number(rival)))) {
    test(`${name}.${form} gives back what it has taken, ${rival ? 'with a rival' : 'without contention'}`, async t => {
      const sab = new SharedArrayBuffer(4)
      const Class = form === 'useSync' ? api.Semaphore : api[name]
      const thing = new Class(sab, name === 'Semaphore with permits' ? { permits: 1 } : {})
      if (name === 'Semaphore') thing.release(1)
      const stop = words(1)
      const other = rival && startWorker(t, { thing, name, stop, form }, holdAgainAndAgain)
      await inWorker(
        t,
        (atTheEndOfTheStack, { api, data: { thing: clone, name, form } }) => {
          const thing = new (form === 'useSync' ? api.Semaphore : api[name])(clone)
          const before = form === 'useSync' ? [1] : []
          const tokens = new Array(20000).fill(undefined)
          let attempts = 0
          const again = () => {
            again()
          }
          const callbacks = [
            token => {
              tokens[attempts] = token
            },
            token => {
              tokens[attempts] = token
              again()
            }
          ]
          let thrown = 0
          const counts = atTheEndOfTheStack(() => {
            attempts++
            if (before.length === 0) thing[form](callbacks[attempts % 2], undefined)
            else thing[form](1, callbacks[attempts % 2], undefined)
          })
          for (const token of tokens) {
            if (token === undefined) continue
            thrown++
            if (token.locked) throw new Error('what a callback held was not given back')
          }
          if (thrown === 0) throw new Error('no callback ran')
          return counts
        },
        { thing, name, form }
      )
      Atomics.store(stop, 0, 1)
      if (rival) await other.done()
      const free = form === 'useSync' ? thing.available : Number(thing.tryLock() !== null)
      assert.strictEqual(free, 1)
    })
  }
}

for (const [name, ...forms] of [
  ['AsyncLock', 'lock', 'tryLock', 'lockIfAvailable', 'lockAsync', 'executeLocked'],
  ['RwLock', 'lock', 'tryLock', 'lockShared', 'tryLockShared', 'lockAsync', 'executeShared'],
  ['Semaphore', 'hold', 'tryHold', 'acquire', 'tryAcquire', 'holdAsync', 'acquireAsync'],
  ['Semaphore with permits', 'hold', 'tryHold', 'holdAsync']
]) {
  for (const form of forms) {
    const isAsync = /Async|execute/.test(form)
    test(`${name}.${form} has taken what it says, or nothing`, { skip: isAsync && LEAVES_EXCEPTIONS }, async t => {
      await inWorker(t, async (atTheEndOfTheStack, { api, data: { name, form } }) => {
        const sab = new SharedArrayBuffer(4 * DEPTHS * PADDINGS)
        const words = new Int32Array(sab)
        const permits = name === 'Semaphore' ? 1 : 0
        const [Class, options] = name === 'Semaphore with permits' ? [api.Semaphore, { permits: 1 }] : [api[name], {}]
        const things = Array.from(
          words.fill(permits),
          (_, n) => new Class(sab, Object.assign({ byteOffset: 4 * n }, options))
        )
        // Of `acquire`, that it has returned.
        const given = things.map(() => undefined)
        const argument = form.startsWith('execute') ? () => {} : undefined
        let at = 0
        const counts = atTheEndOfTheStack(() => {
          const n = at++
          given[n] = things[n][form](argument)
          if (form === 'acquire') given[n] = true
        })
        for (let n = 0; n < things.length; n++) {
          let isTaken = false
          try {
            const token = await given[n]
            isTaken = given[n] !== undefined && argument === undefined
            if (token && token.locked === false) throw new Error('it is not held')
          } catch (error) {
            if (!(error instanceof RangeError)) throw error
          }
          if (isTaken !== (words[n] !== permits)) throw new Error(`the word is ${words[n]}, taken: ${isTaken}`)
        }
        return counts
      }, { name, form })
    })
  }
}

for (const form of ['hold', 'tryHold', 'holdAsync']) {
  test(`locks.${form} has taken the name, or nothing`, { skip: form === 'holdAsync' && LEAVES_EXCEPTIONS }, async t => {
    await inWorker(t, async (atTheEndOfTheStack, { api: { locks }, data: form }) => {
      const given = Array.from({ length: DEPTHS * PADDINGS }, () => undefined)
      let at = 0
      const counts = atTheEndOfTheStack(() => {
        const n = at++
        given[n] = locks[form](`x${n}`)
      })
      for (const each of given) Promise.resolve(each).catch(() => {})
      const tokens = []
      for (let n = 0; n < given.length; n++) {
        try {
          const token = await given[n]
          if (token !== undefined) tokens.push(token)
        } catch (error) {
          if (!(error instanceof RangeError)) throw error
        }
      }
      const { held, pending } = await locks.query()
      const [names, mine] = [held, tokens].map(all => String(all.map(({ name }) => name).sort()))
      if (names !== mine || pending.length > 0) throw new Error(`${names} are held, by tokens ${mine}`)
      for (const token of tokens) if (!token.unlock()) throw new Error(`${token.name} was not held`)
      return counts
    }, form)
  })
}

for (const form of ['tryPut', 'put', 'putAsync', 'tryTake', 'take', 'takeAsync', 'tryTakeMany', 'takeMany',
  'takeManyAsync', 'useSync', 'use']) {
  const isAsync = form === 'use' || form.endsWith('Async')
  test(`Queue.${form} has done what it says, or nothing`, { skip: isAsync && LEAVES_EXCEPTIONS }, async t => {
    await inWorker(t, async (atTheEndOfTheStack, { api, data: form }) => {
      const puts = /put/i.test(form)
      const uses = /use/.test(form)
      const options = { capacity: 1, messageSize: 4, format: 'json' }
      const bytes = api.Queue.byteLength(1, 4)
      const sab = new SharedArrayBuffer(bytes * DEPTHS * PADDINGS)
      const queues = Array.from(
        { length: DEPTHS * PADDINGS },
        (_, n) => new api.Queue(sab, Object.assign({ byteOffset: bytes * n }, options))
      )
      if (!puts) for (const queue of queues) queue.tryPut(7)
      const results = queues.map(() => undefined)
      let used = 0
      const argument = puts || form.includes('Many') ? 7 : uses ? () => { used++ } : undefined
      let at = 0
      const counts = atTheEndOfTheStack(() => {
        const n = at++
        results[n] = queues[n][form](argument)
        if (form === 'put') results[n] = true
      })
      // The event loop may turn before the last one is looked at.
      for (const result of results) Promise.resolve(result).catch(() => {})
      const isDone = async result => {
        try {
          const value = await result
          return puts ? value !== undefined || form === 'putAsync' : uses ? value === true : String(value) === '7'
        } catch (error) {
          if (!(error instanceof RangeError)) throw error
          return false
        }
      }
      let done = 0
      for (let n = 0; n < queues.length; n++) {
        const says = results[n] !== undefined && await isDone(results[n])
        done += Number(says)
        const { length, inUse, waiters } = queues[n]
        if (inUse !== 0 || waiters !== 0 || length !== Number(says === puts))
          throw new Error(`${says}: ${length} ${inUse} ${waiters}`)
        if (queues[n].tryPut(8) !== (length === 0)) throw new Error('the slot is lost')
      }
      if (uses && used < done) throw new Error(`${used} callbacks ran, and ${done} uses ended`)
      return counts
    }, form)
  })
}

test('a promise form without stack left takes nothing, and leaves no waiter', async () => {
  const lock = new api.AsyncLock(new SharedArrayBuffer(4))
  const semaphore = new api.Semaphore(new SharedArrayBuffer(4))
  const token = lock.tryLock()
  const promises = []
  let at = 0
  atTheEndOfTheStack(() => {
    const n = at++
    promises[n] = n % 3 === 0 ? semaphore.acquireAsync() : n % 3 === 1 ? lock.lockAsync() : lock.executeLocked(() => {})
  }, AROUND)
  const settled = Promise.all(promises.filter(Boolean).map(promise => promise.then(token => {
    if (token !== undefined) token.unlock()
    return 'served'
  }, error => error.name)))
  const [lined, wanted] = [waiters(lock.i32a.buffer), waiters(semaphore.buffer)]
  assert.ok(lined > 0 && wanted > 0, `${lined} ${wanted}`)
  semaphore.release(wanted + 1)
  token.unlock()
  const outcomes = await settled
  const served = outcomes.filter(outcome => outcome === 'served').length
  assert.strictEqual(served, lined + wanted)
  assert.ok(outcomes.every(outcome => outcome === 'served' || outcome === 'RangeError'), String(new Set(outcomes)))
  assert.strictEqual(lock.locked, false)
  assert.strictEqual(semaphore.available, 1)
})

for (const name of ['waitAsync', 'lockAsync']) {
  test(`an abort of a ${name} rejects its promise, or leaves it in the line`, { skip: LEAVES_EXCEPTIONS }, async () => {
    const lock = new api.AsyncLock(new SharedArrayBuffer(4))
    const token = lock.tryLock()
    const begin = name === 'waitAsync'
      ? signal => api.waitAsync(lock.i32a, 0, 1, undefined, { signal }).value
      : signal => lock.lockAsync({ signal }).then(token => { token.unlock() })
    const waits = Array.from({ length: DEPTHS * PADDINGS }, () => {
      const wait = { outcome: undefined }
      const signal = { aborted: false, reason: 'aborted', addEventListener (_, listener) { wait.abort = listener } }
      begin(signal).then(() => { wait.outcome = 'served' }, reason => { wait.outcome = reason })
      return wait
    })
    let at = 0
    const { done, thrown } = atTheEndOfTheStack(() => { waits[at++].abort() }, AROUND)
    assert.ok(done > 0 && thrown > 0, `${done} ${thrown}`)
    // Things that began near the end of the stack are over in a later tick.
    await new Promise(resolve => setImmediate(resolve))
    const left = waits.filter(({ outcome }) => outcome === undefined)
    assert.strictEqual(waiters(lock.buffer), left.length)
    assert.ok(left.length <= waits.length - done, `${left.length} are left, ${done} ${thrown}`)
    token.unlock()
    if (name === 'waitAsync') api.notify(lock.i32a, 0)
    while (left.some(({ outcome }) => outcome === undefined)) await new Promise(resolve => setImmediate(resolve))
    assert.deepStrictEqual(new Set(waits.map(({ outcome }) => outcome)), new Set(['aborted', 'served']))
    assert.strictEqual(waiters(lock.buffer), 0)
  })
}

test('waitAsync with a signal enqueues a waiter whose promise the caller has, or throws', async () => {
  const word = new Int32Array(new SharedArrayBuffer(4))
  const { abort, listeners, signal } = new TinyController({ reason: 'aborted' })
  const attempt = () => api.waitAsync(word, 0, 0, undefined, { signal }).value
  const { results: promises, done, thrown } = atTheEndOfTheStack(attempt, AROUND)
  assert.ok(done > 0 && thrown > 0, `${done} ${thrown}`)
  const lined = waiters(word.buffer)
  const outcomes = Promise.all(promises.map(promise => promise.catch(reason => reason.name || reason)))
  abort()
  assert.strictEqual(waiters(word.buffer), 0)
  const aborted = (await outcomes).filter(outcome => outcome === 'aborted').length
  assert.strictEqual(aborted, lined)
  assert.strictEqual(listeners.size, 0)
})
