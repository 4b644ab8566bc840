'use strict'

// With ATOMICS_WAITASYNC_STALL, `snapshot().cycles` has the cycles of tasks of one thread: a task is a callback that
// runs with a hold, and what is claimed in its asynchronous context.

const assert = require('assert')
const path = require('path')
const { test } = require('../../harness')
const { needsContexts } = require('../../fixtures/contexts')
const { packageCopy } = require('../../fixtures/entries/folders')
const { NEVER, run, toldBy } = require('../../fixtures/programs')
const { runForJSON } = require('../../fixtures/run-node')

/** Cycles count once they are older than the period. Their reports are warnings. */
const SOON = { after: 1, execArgv: ['--no-warnings'] }

/** Turns a cycle so that its first link is first in order. Links begin with a thread and the name of its hold. */
function turned (cycle) {
  const first = cycle.slice().sort()[0]
  return [...cycle.slice(cycle.indexOf(first)), ...cycle.slice(0, cycle.indexOf(first))]
}

test('two tasks of one thread that wait for each other are a cycle, which is not certain', needsContexts, async t => {
  const [isIn, cycles] = await toldBy(t, SOON, async ({ api, links, nested, newLock, tell, untilWaiting }) => {
    const [a, b] = ['a', 'b'].map(newLock)
    nested(a, b)
    nested(b, a)
    // Neither do those that hold nothing, nor one that waits behind them.
    b.executeLocked(() => {})
    newLock().executeLocked(() => a.lockAsync())
    await untilWaiting(4, 2, { blocked: false })
    const { cycles, held, waiting } = api.snapshot()
    tell(cycles[0].every(({ holds, waitsFor }) => held.includes(holds) && waiting.includes(waitsFor)))
    tell(cycles.map(links))
    process.exit()
  })
  assert.deepStrictEqual([isIn, cycles.map(turned)], [true, [['0 a b false false', '0 b a false false']]])
})

/**
 * Tells how many cycles there are in each of some situations. These begin tasks and return how many claims wait then.
 */
const situations = async ({ api, nested, newLock, tell, turn, untilWaiting }) => {
  const never = new Promise(() => {})
  const pair = () => [newLock(), newLock()]
  const newRw = () => new api.RwLock()
  const limits = (n, m, semaphore = api.Semaphore.create({ permits: n })) => {
    for (let k = 0; k < m; k++) semaphore.use(1, () => turn().then(() => semaphore.use(1, () => {})))
    return m
  }
  const forms = {
    'a task that waits for its own lock' () {
      const a = newLock()
      a.executeLocked(() => a.executeLocked(() => {}))
      return 1
    },
    'one that does so by a token, in a callback within' ([a, b] = pair()) {
      a.executeLocked(() => b.executeLocked(() => a.lockAsync()))
      return 1
    },
    'three tasks' () {
      const locks = [newLock(), newLock(), newLock()]
      locks.forEach((one, n) => nested(one, locks[(n + 1) % 3]))
      return 3
    },
    'a writer that was a reader' (rw = newRw()) {
      rw.executeShared(() => rw.executeLocked(() => {}))
      return 1
    },
    'a reader that was a writer, and has downgraded' (rw = newRw()) {
      rw.executeLocked(token => token.downgrade() && rw.executeLocked(() => {}))
      return 1
    },
    'a reader within a reader, behind a writer' (rw = newRw()) {
      rw.executeShared(() => turn().then(() => rw.executeShared(() => {})))
      rw.executeLocked(() => {})
      return 2
    },
    names () {
      api.locks.request('x', () => turn().then(() => api.locks.request('y', () => {})))
      api.locks.request('y', () => turn().then(() => api.locks.request('x', { mode: 'shared' }, () => {})))
      return 2
    },
    'a repair that waits for what it holds' () {
      const a = newLock()
      a.tryLock().abandon()
      a.executeLocked(() => {}, { repair: () => a.executeLocked(() => {}) })
      return 1
    },
    'a permit within a permit, of two': () => limits(2, 2),
    'a wait with a timeout, and one with a signal' ([a, b] = pair()) {
      const signal = { aborted: false, addEventListener () {}, removeEventListener () {} }
      nested(a, b, { timeout: 1e8 })
      b.executeLocked(() => turn().then(() => a.lockAsync({ signal })))
      return 2
    },
    'the lock of a Condition, after its notification' ([a, b] = pair()) {
      const condition = new api.Condition()
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
  const noCycle = {
    'work that is not in the callback' ([a, b] = pair()) {
      for (const lock of [a, b]) lock.executeLocked(() => never)
      for (const lock of [a, b]) lock.executeLocked(() => {})
      return 2
    },
    'tokens: what they hold has no context' ([a, b] = pair()) {
      a.lockAsync().then(() => b.executeLocked(() => {}))
      b.lockAsync().then(() => a.executeLocked(() => {}))
      return 2
    },
    'branches of one callback' ([a, b] = pair()) {
      a.executeLocked(() => Promise.all([b.executeLocked(() => never), b.executeLocked(() => {})]))
      return 1
    },
    'what a callback has left behind' ([a, b] = pair()) {
      const later = () => {
        a.executeLocked(() => never)
        a.executeLocked(() => {})
      }
      a.executeLocked(() => { setTimeout(later, 1) })
      b.executeLocked(() => {})
      return 1
    },
    'what is no more held' () {
      const a = newLock()
      a.executeLocked(token => {
        token.unlock()
        a.executeLocked(() => never)
        return a.executeLocked(() => {})
      })
      return 1
    },
    'permits of which there may be more' () {
      const semaphore = new api.Semaphore()
      semaphore.release(2)
      return limits(2, 2, semaphore)
    },
    'permits of which another one leaves enough': () => limits(3, 3)
  }
  let known = 0
  let claims = 0
  for (const name of Object.keys(forms).concat(Object.keys(noCycle))) {
    claims += (forms[name] || noCycle[name])()
    await untilWaiting(claims, 2, { blocked: false })
    const { cycles } = api.snapshot()
    const isCertain = cycles.some(cycle => cycle.some(({ certain }) => certain))
    if (isCertain) throw new Error('a cycle of promises is not certain')
    tell([name, cycles.length - known, name in forms ? 1 : 0])
    known = cycles.length
  }
  process.exit()
}

test('a cycle is found in each form, and none where the tasks are others', needsContexts, async t => {
  const found = await toldBy(t, SOON, situations)
  assert.strictEqual(found.length, 18)
  for (const [name, cycles, expected] of found) assert.strictEqual(cycles, expected, name)
})

test('tasks are on no cycle without the variable, before its time, or where there are no contexts', async t => {
  for (const [after, count] of [[0, 0], [NEVER, 0], [1, needsContexts.skip ? 0 : 1]]) {
    const options = Object.assign({}, SOON, { after })
    const [cycles] = await toldBy(t, options, async ({ api, nested, newLock, tell, untilWaiting }) => {
      const [a, b] = [newLock(), newLock()]
      nested(a, b)
      nested(b, a)
      await untilWaiting(2, 2, { blocked: false })
      tell(api.snapshot().cycles.length)
      process.exit()
    })
    assert.strictEqual(cycles, count)
  }
})

test('a cycle goes through tasks and through a blocked thread', needsContexts, async t => {
  const { told, stderr } = await run(t, SOON, async ({ api, links, newLock, startWorker, tell, turn }) => {
    const [a, b, c] = ['a', 'b', 'c'].map(newLock)
    let goOn
    a.executeLocked(() => new Promise(resolve => { goOn = resolve }).then(() => b.executeLocked(() => {})))
    const thread = startWorker([a, c], ({ api, data, post }) => {
      const [a, c] = data.map(lock => new api.AsyncLock(lock))
      c.lock()
      post('held')
      a.lock()
    })
    await thread.next()
    b.executeLocked(() => c.executeLocked(() => {}))
    goOn()
    // A thread is in its line a moment before it has noted that it waits.
    let cycles
    do await turn(); while ((cycles = api.snapshot().cycles).length === 0)
    tell(cycles.map(links))
    process.exit()
  })
  const [cycles] = told()
  assert.deepStrictEqual(cycles.map(turned), [['0 a b false false', '0 b c false false', '1 c a true false']], stderr)
})

test('two copies of the package in a thread know each other\'s tasks', needsContexts, async t => {
  const folders = [path.join(__dirname, '..', '..', '..'), packageCopy(t)]
  const count = await runForJSON(t, ['-e', `
    const { join } = require('path')
    const [one, other] = ${JSON.stringify(folders)}.map(folder => require(join(folder, 'pure')))
    const memory = new SharedArrayBuffer(4)
    new one.AsyncLock(memory).executeLocked(() => new other.AsyncLock(memory).executeLocked(() => {}))
    for (const end = Date.now() + 5; Date.now() < end;);
    console.log(JSON.stringify(one.snapshot().cycles.length))`], { env: { ATOMICS_WAITASYNC_STALL: '1' } })
  assert.strictEqual(count, 1)
})

test('a cycle is over with the time of one of its waits, or its abort', needsContexts, async t => {
  assert.deepStrictEqual(await toldBy(t, SOON, async ({ api, nested, newLock, tell, turn }) => {
    const [a, b] = [newLock(), newLock()]
    const until = async count => {
      while (api.snapshot().cycles.length !== count) await turn()
      tell(count)
    }
    const listeners = []
    const add = (_, listener) => { listeners.push(listener) }
    const signal = { aborted: false, addEventListener: add, removeEventListener () {} }
    for (const options of [{ timeout: 100 }, { signal }]) {
      const ended = Promise.all([nested(a, b, options).catch(({ name }) => tell(name)), nested(b, a)])
      await until(1)
      signal.aborted = options.signal !== undefined
      for (const listener of listeners) listener()
      await ended
      await until(0)
    }
  }), [1, 'TimeoutError', 0, 1, 'AbortError', 0])
})

test('callbacks get what they get without the variable, and so do their callers', async t => {
  for (const after of [0, NEVER]) {
    assert.deepStrictEqual(await toldBy(t, { after }, async ({ api, newLock, tell }) => {
      const lock = newLock()
      function callback (token) {
        tell([this === undefined || this === global, arguments.length, token.locked])
        return 7
      }
      tell(await lock.executeLocked(callback))
      tell(await api.locks.request('a', lock => lock.name))
      const fail = () => { throw new Error('its own') }
      for (const call of [() => lock.executeLocked(fail), () => api.locks.request('a', async () => fail())]) {
        tell([await call().catch(error => error.message), lock.locked])
      }
      // A primitive needs no further turn.
      lock.executeLocked(() => {})
      tell([lock.locked, await api.locks.request('a', { ifAvailable: true }, lock => lock === null)])
    }), [[true, 1, true], 7, 'a', ['its own', false], ['its own', false], [false, false]])
  }
})

const needsBoth = { skip: needsContexts.skip || (typeof WeakRef !== 'function' && 'this Node has no WeakRef') }
test('100 000 tasks leave nothing behind', needsBoth, async t => {
  const [left, grown] = await toldBy(t, async ({ newLock, require, tell, turn }) => {
    /* global WeakRef */
    const { AsyncLocalStorage } = require('async_hooks')
    require('v8').setFlagsFromString('--expose-gc')
    const gc = require('vm').runInNewContext('gc')
    const als = new AsyncLocalStorage()
    const [a, b] = [newLock(), newLock()]
    const weak = []
    /** Runs the nth task in a context of its own. */
    const inContext = (n, task) => {
      const store = {}
      if (n % 1000 === 0) weak.push(new WeakRef(store))
      return als.run(store, task)
    }
    // One within the other, and one that begins the next before it ends, so that all inherit each other's context.
    for (let n = 0; n < 25e3; n++) await inContext(n, () => a.executeLocked(() => b.executeLocked(() => {})))
    const bytes = () => {
      gc()
      return process.memoryUsage().heapUsed
    }
    const grown = await new Promise(resolve => {
      // So many that each is free by its turn: a callback begins before the one around it ends.
      const locks = [0, 0, 0, 0].map(() => newLock())
      let n = 0
      let before
      const next = () => {
        if (n === 100) before = bytes()
        if (n === 5e4) return resolve(bytes() - before)
        inContext(n++, () => { locks[n % 4].executeLocked(async () => { await null; next() }) })
      }
      next()
    })
    const count = () => weak.filter(ref => ref.deref() !== undefined).length
    for (let n = 0; n < 50 && count() > 1; n++) {
      await turn()
      gc()
    }
    tell(count())
    tell(grown)
  })
  assert.ok(left <= 1, `${left} contexts are left`)
  // In the last of the callbacks, which were begun one in the other.
  assert.ok(grown < 1e6, `${grown} bytes more`)
})
