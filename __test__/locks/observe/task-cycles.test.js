'use strict'

// With ATOMICS_WAITASYNC_STALL, `snapshot().cycles` has the rings of tasks of one thread: a task is a callback that runs with a hold, and
// what is claimed in its asynchronous context.

const assert = require('assert')
const { AsyncLocalStorage } = require('async_hooks')
const path = require('path')
const { test } = require('../../harness')
const { packageCopy } = require('../../fixtures/entries/folders')
const { runChild } = require('../../fixtures/queue-toolbox')
const { runForJSON } = require('../../fixtures/run-node')

const noContexts = (AsyncLocalStorage === undefined || process.version.startsWith('v13.')) && 'this Node has no AsyncLocalStorage, or one that calls back later'

/** Runs a program with that setting, and with what the tests below use; the JSON that it says. */
async function run (t, fn, after = '1000000') {
  const { code, lines, stderr } = await runChild(t, fn, undefined, { env: { ATOMICS_WAITASYNC_STALL: after } })
  assert.deepStrictEqual([code, stderr], [0, ''])
  return JSON.parse(lines[0])
}

test('two tasks of one thread that wait for each other are a ring, which is not certain', { skip: noContexts }, async t => {
  const cycles = await run(t, async ({ api, say }) => {
    const [a, b] = ['a', 'b'].map(name => new api.AsyncLock(new SharedArrayBuffer(4), { name }))
    const transfer = (from, to) => from.executeLocked(async () => {
      await new Promise(setImmediate)
      await to.executeLocked(() => {})
    })
    transfer(a, b)
    transfer(b, a)
    // Neither do those that hold nothing, nor one that waits behind them.
    b.executeLocked(() => {})
    new api.AsyncLock(new SharedArrayBuffer(4)).executeLocked(() => a.lockAsync())
    while (api.snapshot().waiting.length < 4) await new Promise(setImmediate)
    const { cycles, held, waiting } = api.snapshot()
    const isIn = cycles[0].every(({ holds, waitsFor }) => held.includes(holds) && waiting.includes(waitsFor))
    say(JSON.stringify([isIn, cycles.map(ring => ring.map(({ threadId, holds, waitsFor, blocked, certain }) => (
      [threadId, holds.name, waitsFor.name, blocked, certain])))]))
    process.exit()
  })
  assert.deepStrictEqual([cycles[0], cycles[1].map(turned)], [true, [[[0, 'a', 'b', false, false], [0, 'b', 'a', false, false]]]])
})

/** Turns a ring, whose links begin with a thread and the name of what it has, so that it begins with the first of these. */
function turned (ring) {
  const first = ring.slice().sort((a, b) => String(a) < String(b) ? -1 : 1)[0]
  return [...ring.slice(ring.indexOf(first)), ...ring.slice(0, ring.indexOf(first))]
}

/** Says how many rings there are in each of some situations: each begins some tasks, and returns how many claims wait in the end. */
const situations = async ({ api, say, require }) => {
  const { setImmediate: turn } = require('timers')
  const never = new Promise(() => {})
  const lock = (name) => new api.AsyncLock(new SharedArrayBuffer(4), { name })
  const semaphore = (permits) => new api.Semaphore(new SharedArrayBuffer(4), { permits })
  const limits = (n, m) => {
    const s = semaphore(n)
    for (let k = 0; k < m; k++) s.use(1, () => new Promise(turn).then(() => s.use(1, () => {})))
    return m
  }
  const forms = {
    'a task that waits for its own lock' () {
      const a = lock()
      a.executeLocked(() => a.executeLocked(() => {}))
      return 1
    },
    'one that does so by a token, in a callback within' () {
      const [a, b] = [lock(), lock()]
      a.executeLocked(() => b.executeLocked(() => a.lockAsync()))
      return 1
    },
    'three tasks' () {
      const locks = [lock(), lock(), lock()]
      locks.forEach((one, n) => one.executeLocked(async () => { await null; await locks[(n + 1) % 3].executeLocked(() => {}) }))
      return 3
    },
    'a writer that was a reader' () {
      const rw = new api.RwLock(new SharedArrayBuffer(4))
      rw.executeShared(() => rw.executeLocked(() => {}))
      return 1
    },
    'a reader that was a writer, and has downgraded' () {
      const rw = new api.RwLock(new SharedArrayBuffer(4))
      rw.executeLocked(token => { token.downgrade(); return rw.executeLocked(() => {}) })
      return 1
    },
    'a reader within a reader, behind a writer' () {
      const rw = new api.RwLock(new SharedArrayBuffer(4))
      rw.executeShared(async () => { await null; await rw.executeShared(() => {}) })
      rw.executeLocked(() => {})
      return 2
    },
    'names' () {
      api.locks.request('x', () => new Promise(turn).then(() => api.locks.request('y', () => {})))
      api.locks.request('y', () => new Promise(turn).then(() => api.locks.request('x', { mode: 'shared' }, () => {})))
      return 2
    },
    'a repair that waits for what it holds' () {
      const a = lock()
      const token = a.tryLock()
      token.abandon()
      a.executeLocked(() => {}, { repair: () => a.executeLocked(() => {}) })
      return 1
    },
    'a permit within a permit, of two': () => limits(2, 2),
    'a wait with a timeout, and one with a signal' () {
      const [a, b] = [lock(), lock()]
      const signal = { aborted: false, addEventListener () {}, removeEventListener () {} }
      a.executeLocked(async () => { await null; await b.executeLocked(() => {}, { timeout: 1e8 }) })
      b.executeLocked(async () => { await null; await a.lockAsync({ signal }) })
      return 2
    },
    'the lock of a Condition, after its notification' () {
      const [a, b] = [lock(), lock()]
      const condition = new api.Condition(new SharedArrayBuffer(4))
      let goOn
      new Promise(resolve => { goOn = resolve }).then(() => {
        b.executeLocked(() => a.executeLocked(() => {}))
        condition.notify()
      })
      a.executeLocked(() => b.executeLocked(async token => {
        const waiting = condition.waitAsync(token)
        goOn()
        await waiting
      }))
      return 2
    }
  }
  const noRing = {
    'work that is not in the callback' () {
      const [a, b] = [lock(), lock()]
      a.executeLocked(() => never)
      b.executeLocked(() => never)
      a.executeLocked(() => {})
      b.executeLocked(() => {})
      return 2
    },
    'tokens: what they hold has no context' () {
      const [a, b] = [lock(), lock()]
      a.lockAsync().then(() => b.executeLocked(() => {}))
      b.lockAsync().then(() => a.executeLocked(() => {}))
      return 2
    },
    'branches of one callback' () {
      const [a, b] = [lock(), lock()]
      a.executeLocked(() => Promise.all([b.executeLocked(() => never), b.executeLocked(() => {})]))
      return 1
    },
    'what a callback has left behind' () {
      const [a, b] = [lock(), lock()]
      a.executeLocked(() => { setTimeout(() => { a.executeLocked(() => never); a.executeLocked(() => {}) }, 1) })
      b.executeLocked(() => {})
      return 1
    },
    'what is no more held' () {
      const a = lock()
      a.executeLocked(token => {
        token.unlock()
        a.executeLocked(() => never)
        return a.executeLocked(() => {})
      })
      return 1
    },
    'permits of which there may be more' () {
      const s = new api.Semaphore(new SharedArrayBuffer(4))
      s.release(2)
      for (let n = 0; n < 2; n++) s.use(1, () => new Promise(turn).then(() => s.use(1, () => {})))
      return 2
    },
    'permits of which another one leaves enough': () => limits(3, 3)
  }
  const found = {}
  let known = 0
  let claims = 0
  for (const [name, begin] of Object.entries({ ...forms, ...noRing })) {
    claims += begin()
    while (api.snapshot().waiting.length < claims) await new Promise(turn)
    const { cycles } = api.snapshot()
    if (cycles.some(ring => ring.some(({ certain }) => certain))) throw new Error('a ring of promises is not certain')
    found[name] = cycles.length - known
    known = cycles.length
  }
  say(JSON.stringify([Object.keys(forms).length, found]))
  process.exit()
}

test('a ring is found in each form, and none where the tasks are others', { skip: noContexts }, async t => {
  const [forms, found] = await run(t, situations)
  const names = Object.keys(found)
  assert.ok(names.length > forms)
  assert.deepStrictEqual(found, Object.assign({}, ...names.map((name, n) => ({ [name]: n < forms ? 1 : 0 }))))
})

test('without the variable, and where there are no contexts, tasks of one thread are on no ring', async t => {
  const program = async ({ api, say, require }) => {
    const [a, b] = [0, 0].map(() => new api.AsyncLock(new SharedArrayBuffer(4)))
    for (const [from, to] of [[a, b], [b, a]]) from.executeLocked(async () => { await null; await to.executeLocked(() => {}) })
    while (api.snapshot().waiting.length < 2) await new Promise(setImmediate)
    say(JSON.stringify(api.snapshot().cycles.length))
    process.exit()
  }
  assert.strictEqual(await run(t, program, '0'), 0)
  assert.strictEqual(await run(t, program), noContexts ? 0 : 1)
})

test('a ring goes through tasks and through a blocked thread', { skip: noContexts }, async t => {
  const cycles = await run(t, async ({ api, say, startWorker }) => {
    const sab = new SharedArrayBuffer(12)
    const [a, b, c] = ['a', 'b', 'c'].map((name, n) => new api.AsyncLock(sab, { name, byteOffset: 4 * n }))
    let goOn
    a.executeLocked(() => new Promise(resolve => { goOn = resolve }).then(() => b.executeLocked(() => {})))
    const worker = startWorker(({ api, data: sab, post }) => {
      new api.AsyncLock(sab, { byteOffset: 8 }).lock()
      post('held')
      new api.AsyncLock(sab).lock()
    }, sab)
    await worker.next()
    b.executeLocked(() => c.executeLocked(() => {}))
    goOn()
    while (api.snapshot().waiting.length < 3) await new Promise(setImmediate)
    const { cycles } = api.snapshot()
    say(JSON.stringify(cycles.map(ring => ring.map(({ threadId, holds, waitsFor, blocked, certain }) => (
      [threadId, holds.name, waitsFor.name, blocked, certain])))))
    process.exit()
  })
  assert.deepStrictEqual(cycles.map(turned), [[[0, 'a', 'b', false, false], [0, 'b', 'c', false, false], [1, 'c', 'a', true, false]]])
})

test('two copies of the package in a thread know each other\'s tasks', { skip: noContexts }, async t => {
  const count = await runForJSON(t, ['-e', `
    const { join } = require('path')
    const [one, other] = ${JSON.stringify([path.join(__dirname, '..', '..', '..'), packageCopy(t)])}.map(folder => require(join(folder, 'pure')))
    const memory = new SharedArrayBuffer(4)
    new one.AsyncLock(memory).executeLocked(() => new other.AsyncLock(memory).executeLocked(() => {}))
    console.log(JSON.stringify(one.snapshot().cycles.length))`], { env: { ATOMICS_WAITASYNC_STALL: '1000000' } })
  assert.strictEqual(count, 1)
})

test('a ring is over with the time of one of its waits, or its abort', { skip: noContexts }, async t => {
  const seen = await run(t, async ({ api, say }) => {
    const [a, b] = [0, 0].map(() => new api.AsyncLock(new SharedArrayBuffer(4)))
    const counts = []
    const until = async count => {
      while (api.snapshot().cycles.length !== count) await new Promise(setImmediate)
      counts.push(count)
    }
    const nested = (from, to, options) => from.executeLocked(async () => { await null; await to.executeLocked(() => {}, options) })
    let ended = Promise.all([nested(a, b, { timeout: 100 }).catch(({ name }) => counts.push(name)), nested(b, a)])
    await until(1)
    await ended
    await until(0)
    const listeners = []
    const signal = { aborted: false, addEventListener (_, listener) { listeners.push(listener) }, removeEventListener () {} }
    ended = Promise.all([nested(a, b, { signal }).catch(({ name }) => counts.push(name)), nested(b, a)])
    await until(1)
    signal.aborted = true
    listeners.forEach(listener => listener())
    await ended
    await until(0)
    say(JSON.stringify(counts))
  })
  assert.deepStrictEqual(seen, [1, 'TimeoutError', 0, 1, 'AbortError', 0])
})

test('callbacks get what they get without the variable, and so do their callers', async t => {
  const program = async ({ api, say, require }) => {
    const lock = new api.AsyncLock(new SharedArrayBuffer(4))
    const seen = []
    function callback (token) {
      seen.push(this === undefined || this === global, arguments.length, token.locked)
      return 7
    }
    seen.push(await lock.executeLocked(callback), await api.locks.request('a', lock => lock.name))
    seen.push(await lock.executeLocked(() => { throw new Error('its own') }).catch(error => error.message), lock.locked)
    seen.push(await api.locks.request('a', async () => { throw new Error('its own') }).catch(error => error.message))
    // A primitive needs no further turn.
    lock.executeLocked(() => {})
    seen.push(lock.locked, await api.locks.request('a', { ifAvailable: true }, lock => lock === null))
    say(JSON.stringify(seen))
  }
  const expected = [true, 1, true, 7, 'a', 'its own', false, 'its own', false, false]
  assert.deepStrictEqual([await run(t, program, '0'), await run(t, program)], [expected, expected])
})

test('100 000 tasks leave nothing behind', { skip: noContexts || (typeof WeakRef !== 'function' && 'this Node has no WeakRef') }, async t => {
  const [left, grown] = await run(t, async ({ api, say, require }) => {
    /* global WeakRef */
    const { AsyncLocalStorage } = require('async_hooks')
    const { setFlagsFromString } = require('v8')
    setFlagsFromString('--expose-gc')
    const gc = require('vm').runInNewContext('gc')
    const als = new AsyncLocalStorage()
    const [a, b] = [0, 0].map(() => new api.AsyncLock(new SharedArrayBuffer(4)))
    const weak = []
    const turn = () => new Promise(setImmediate)
    // One within the other, and one that begins the next before it ends, so that all of them inherit each other's context.
    const task = async n => {
      const store = {}
      if (n % 1000 === 0) weak.push(new WeakRef(store))
      await als.run(store, () => a.executeLocked(() => b.executeLocked(() => {})))
    }
    for (let n = 0; n < 25e3; n++) await task(n)
    const bytes = () => {
      gc()
      return process.memoryUsage().heapUsed
    }
    const grown = await new Promise(resolve => {
      // So many that each is free by its turn: a callback begins before the one around it ends.
      const locks = [0, 0, 0, 0].map(() => new api.AsyncLock(new SharedArrayBuffer(4)))
      let n = 0
      let before
      const next = () => {
        const store = {}
        if (n % 1000 === 0) weak.push(new WeakRef(store))
        if (n === 100) before = bytes()
        if (n++ === 5e4) return resolve(bytes() - before)
        als.run(store, () => { locks[n % 4].executeLocked(async () => { await null; next() }) })
      }
      next()
    })
    const count = () => weak.filter(ref => ref.deref() !== undefined).length
    for (let n = 0; n < 50 && count() > 1; n++) {
      await turn()
      gc()
    }
    say(JSON.stringify([count(), grown]))
  })
  assert.ok(left <= 1, `${left} contexts are left`)
  // In the last of the callbacks, which were begun one in the other.
  assert.ok(grown < 1e6, `${grown} bytes more`)
})
