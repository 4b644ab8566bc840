'use strict'

// { detectReentry: true }: a task that waits for what it holds itself. And the right programs that look like one.

const assert = require('assert')
const { test } = require('../harness')
const { needsChannels } = require('../fixtures/channels')
const { needsContexts } = require('../fixtures/contexts')
const { turns } = require('../fixtures/family-toolbox')
const { TinyController, rejection } = require('../fixtures/lock-toolbox')
const { run } = require('../fixtures/programs')
const { startWorker, until } = require('../fixtures/queue-toolbox')
const { api } = require('../subject')

const { AsyncLock, RwLock, Semaphore, locks } = api
const DETECTS = { detectReentry: true }
const ignore = () => {}

const newLock = (options = DETECTS) => AsyncLock.create(options)
const newRw = (options = DETECTS) => RwLock.create(options)
const newLimit = (permits = 1, options = DETECTS) => Semaphore.create(Object.assign({ permits }, options))

/** Each: by the message, a task that waits for itself. It gives the promise of the inner call. */
const REENTRIES = {
  'lockAsync: would wait for an AsyncLock': lock => lock.executeLocked(() => lock.lockAsync()),
  'executeLocked: would wait for an AsyncLock': lock => lock.executeLocked(() => lock.executeLocked(ignore)),
  'lockAsync: would wait for AsyncLock "cache"' () {
    const lock = newLock({ name: 'cache', detectReentry: true })
    return lock.executeLocked(async () => {
      await undefined
      await new Promise(setImmediate)
      return lock.lockAsync()
    })
  },
  'executeLocked: would wait for an RwLock (exclusive)' (_, rw) {
    return rw.executeLocked(() => rw.executeLocked(ignore))
  },
  'lockAsync: would wait for an RwLock (exclusive)': (_, rw) => rw.executeShared(() => rw.lockAsync()),
  'lockSharedAsync: would wait for an RwLock (shared)': (_, rw) => rw.executeLocked(() => rw.lockSharedAsync()),
  'executeShared: would wait for an RwLock (shared)' (_, rw) {
    // It would wait behind the writer, which waits for its own share.
    return rw.executeShared(() => {
      rw.executeLocked(ignore, { timeout: 1e6 })
      return rw.executeShared(ignore)
    })
  },
  'lockAsync: would wait for an RwLock (exclusive), ': (_, rw) => (
    rw.executeLocked(token => token.downgrade() && rw.lockAsync())),
  'use: would wait for permits of a Semaphore': (_, __, limit) => limit.use(1, () => limit.use(1, ignore)),
  'holdAsync: would wait for permits of a Semaphore': (_, __, limit) => limit.use(1, () => limit.holdAsync(1)),
  'lockAsync: would wait for an AsyncLock, ': lock => (
    // By a view of its own, within the callback of another lock, in a repair.
    lock.executeLocked(() => newLock().executeLocked(() => new AsyncLock(lock.buffer, DETECTS).lockAsync()))),
  'executeLocked: would wait for an AsyncLock, ' (lock) {
    lock.tryLock().abandon()
    return lock.executeLocked(ignore, { repair: () => lock.executeLocked(ignore) })
  }
}

for (const text of Object.keys(REENTRIES)) {
  test(`a task that waits for itself: ${text}`, needsContexts, async () => {
    const [lock, rw, limit] = [newLock(), newRw(), newLimit()]
    const { code, id, kind, message } = await rejection(REENTRIES[text](lock, rw, limit))
    assert.deepStrictEqual([code, typeof id, message.includes(kind)], ['ERR_DEADLOCK', 'number', true])
    assert.ok(message.startsWith(text), message)
    assert.ok(message.endsWith(', which the callback around this call already holds'), message)
    await turns()
    // Nothing is held or awaited.
    assert.deepStrictEqual([lock.locked, rw.locked, rw.readers, limit.available], [false, false, 0, 1])
    assert.deepStrictEqual([lock.waiters, rw.waiters, limit.waiters], [0, 0, 0])
  })
}

test('many permits: those of all callbacks around the call count, and no others', needsContexts, async () => {
  const limit = newLimit(4)
  const other = limit.tryHold(1)
  // Another one leaves enough.
  const within = limit.use(1, () => limit.use(1, () => limit.use(2, () => 'granted')))
  await until(() => limit.waiters === 1, 'it waits')
  other.unlock()
  assert.strictEqual(await within, 'granted')
  const error = await rejection(limit.use(1, () => limit.use(2, () => limit.use(2, ignore))))
  assert.strictEqual(error.code, 'ERR_DEADLOCK')
  assert.strictEqual(limit.available, 4)
})

/**
 * Right programs. Each gets options of a constructor and `log`. `detects`: whether it is right with the option, too;
 * `log`: what it logs.
 */
const RIGHT = {
  'a follow-up that is asked for and not awaited': {
    async run (options, log) {
      const lock = newLock(options)
      let followUp
      await lock.executeLocked(() => {
        followUp = lock.executeLocked(() => log('follow-up'))
        log('done')
      })
      await followUp
    },
    log: ['done', 'follow-up']
  },
  'an interval that was begun in a callback': {
    async run (options, log) {
      const lock = newLock(options)
      let ticked
      const ticks = new Promise(resolve => { ticked = resolve })
      await lock.executeLocked(async () => {
        let count = 0
        const timer = setInterval(() => lock.executeLocked(() => {
          if (count++ === 2) {
            clearInterval(timer)
            ticked()
          }
        }), 1)
        log('begun')
      })
      await ticks
      log('ticked')
    },
    detects: true,
    log: ['begun', 'ticked']
  },
  'one whose ticks come while the callback runs': {
    async run (options, log) {
      const lock = newLock(options)
      let tick
      await lock.executeLocked(async () => {
        await new Promise(resolve => setTimeout(() => {
          tick = lock.lockAsync()
          resolve()
        }, 1))
        log('done')
      })
      ;(await tick).unlock()
      log('ticked')
    },
    log: ['done', 'ticked']
  },
  'an inner wait with a signal, and one with a timeout': {
    async run (options, log) {
      const lock = newLock(options)
      const { abort, signal } = new TinyController({ reason: 'aborted' })
      await lock.executeLocked(async () => {
        setTimeout(abort, 1)
        log(await lock.lockAsync({ signal }).catch(reason => reason))
        log(await lock.executeLocked(ignore, { timeout: 1 }).catch(({ code }) => code))
        log(await lock.executeLocked(ignore, { timeout: 0 }).catch(({ code }) => code))
        log(lock.tryLock())
      })
    },
    detects: true,
    log: ['aborted', 'ERR_TIMEOUT', 'ERR_TIMEOUT', null]
  },
  'a callback that has unlocked before it locks again': {
    async run (options, log) {
      const lock = newLock(options)
      await lock.executeLocked(async token => {
        token.unlock()
        const other = lock.tryLock()
        setImmediate(() => other.unlock())
        log(await lock.executeLocked(() => 'again'))
      })
    },
    detects: true,
    log: ['again']
  },
  'what a finished callback has left behind, while another one holds the lock': {
    async run (options, log) {
      const lock = newLock(options)
      let later
      await lock.executeLocked(() => {
        later = new Promise(resolve => setTimeout(() => resolve(lock.executeLocked(() => log('later'))), 1))
      })
      const token = await lock.lockAsync()
      await until(() => lock.waiters === 1, 'it waits')
      token.unlock()
      await later
    },
    detects: true,
    log: ['later']
  },
  'a Condition\'s wait, and other work of its callback meanwhile': {
    async run (options, log) {
      const [lock, condition] = [newLock(options), new api.Condition()]
      await lock.executeLocked(async token => {
        const waiting = condition.waitAsync(token)
        const other = lock.tryLock()
        const work = lock.executeLocked(() => {
          log('work')
          condition.notify()
        })
        other.unlock()
        log(await waiting)
        await work
      })
    },
    detects: true,
    log: ['work', true]
  },
  'a request of the name that it holds, with a signal': {
    async run (options, log) {
      const { abort, signal } = new TinyController({ reason: 'aborted' })
      await locks.request('x', async () => {
        setTimeout(abort, 1)
        log(await locks.request('x', { signal }, ignore).catch(reason => reason))
        locks.request('x', () => log('follow-up'))
      })
      await locks.request('x', ignore)
    },
    detects: true,
    log: ['aborted', 'follow-up']
  }
}

for (const name of Object.keys(RIGHT)) {
  const { detects, log: expected, run } = RIGHT[name]
  for (const options of detects ? [{}, DETECTS] : [{}, { detectReentry: false }]) {
    test(`a right program, with ${JSON.stringify(options)}: ${name}`, async () => {
      const log = []
      await run(options, what => log.push(what))
      assert.deepStrictEqual(log, expected)
    })
  }
}

test('both calls have to be by views that detect it; a clone does not', needsContexts, async () => {
  const lock = newLock()
  const plain = new AsyncLock(lock.buffer)
  assert.ok(!('detectReentry' in lock))
  for (const [outer, inner] of [[lock, plain], [plain, lock], [plain, new AsyncLock(lock, DETECTS)]]) {
    let waits
    await outer.executeLocked(() => { waits = inner.lockAsync() })
    ;(await waits).unlock()
  }
  const again = new AsyncLock(lock, DETECTS)
  assert.strictEqual((await rejection(again.executeLocked(() => lock.lockAsync()))).code, 'ERR_DEADLOCK')
})

test('a token is no task: what follows lockAsync() is not known to hold', needsContexts, async () => {
  const lock = newLock()
  const token = await lock.lockAsync()
  const waiting = lock.lockAsync()
  token.unlock()
  assert.strictEqual((await waiting).unlock(), true)
})

test('the option must be a boolean, and a Semaphore needs permits for it', () => {
  for (const Class of [AsyncLock, RwLock]) {
    for (const value of [1, null, 'true', {}]) {
      assert.throws(() => Class.create({ detectReentry: value }), {
        name: 'TypeError', message: new RegExp(`^${Class.name}: detectReentry must be a boolean, not `)
      })
    }
    for (const detectReentry of [true, false, undefined]) assert.ok(Class.create({ detectReentry }))
  }
  const memory = new SharedArrayBuffer(4)
  const named = { detectReentry: true, name: 'refused' }
  assert.throws(() => new Semaphore(memory, named), { name: 'TypeError', message: /detectReentry needs permits/ })
  assert.strictEqual(new Semaphore(memory).name, '')
  const clone = new Semaphore(newLimit(2), DETECTS)
  assert.strictEqual(clone.permits, 2)
  for (const Class of [api.Condition, api.Latch, api.Queue]) {
    assert.throws(() => new Class(memory, DETECTS), { name: 'TypeError', message: /not "detectReentry"/ })
  }
})

test('in a worker a promise form detects it as well, and a blocking form as ever', needsContexts, async t => {
  const codes = await startWorker(t, async ({ api }) => {
    const lock = api.AsyncLock.create({ detectReentry: true })
    const codeOf = ({ code, message }) => `${code} ${/which (the callback|this thread)/.exec(message)[1]}`
    return lock.executeLocked(async () => {
      const codes = [await lock.lockAsync().catch(codeOf)]
      try {
        lock.lock()
      } catch (error) {
        codes.push(codeOf(error))
      }
      return codes
    })
  }).done()
  assert.deepStrictEqual(codes, ['ERR_DEADLOCK the callback', 'ERR_DEADLOCK this thread'])
})

test('100 000 tasks that detect it leave nothing behind, and other locks are not noted', needsContexts, async () => {
  const { agent } = require('../../lib/agent/find-agent')
  const [lock, plain] = [newLock(), new AsyncLock()]
  const { tasks } = agent().robustList
  await plain.executeLocked(async () => {
    await undefined
    assert.strictEqual(count(tasks.scopes), 0)
    await lock.executeLocked(() => assert.strictEqual(count(tasks.scopes), 1))
  })
  for (let n = 0; n < 1000; n++) {
    await Promise.all(Array.from({ length: 100 }, (_, n) => lock.executeLocked(n % 2 ? ignore : async () => {})))
  }
  assert.strictEqual(count(tasks.scopes), 0)
})

function count (map) {
  let count = 0
  map.forEach(() => { count++ })
  return count
}

// ——— If stalls are reported ———

const needsBoth = { skip: needsContexts.skip || needsChannels.skip }

test('a stall report says of a task that waits for itself that it is probable', needsBoth, async t => {
  const { told, reports, stderr } = await run(t, { after: 200 }, async ({ api, subscribe, tell, until }) => {
    const heard = []
    subscribe('stall', ({ entry: { kind }, cycle }) => {
      heard.push([kind, cycle && cycle.map(({ blocked, certain, threadId }) => [blocked, certain, threadId])])
    })
    const [lock, rw] = [new api.AsyncLock(), new api.RwLock()]
    const limit = api.Semaphore.create({ permits: 1 })
    lock.executeLocked(() => lock.lockAsync())
    rw.executeShared(() => rw.executeLocked(() => {}))
    limit.use(1, () => limit.holdAsync())
    api.locks.request('x', () => api.locks.request('x', () => {}))
    await until(() => heard.length === 4)
    heard.sort().map(tell)
    process.exit()
  })
  const cycle = [[false, false, 0]]
  const kinds = ['AsyncLock', 'RwLock', 'Semaphore', 'named']
  assert.deepStrictEqual(told(), kinds.map(kind => [kind, cycle]), stderr)
  assert.strictEqual(reports.length, 4, stderr)
  for (const report of reports) assert.ok(report.includes('probably'), report)
})

test('with stalls reported, the right programs go on', needsBoth, async t => {
  const { told, code } = await run(t, { after: 50 }, async ({ api, sleep, tell }) => {
    const lock = new api.AsyncLock()
    let followUp
    await lock.executeLocked(async () => {
      followUp = lock.executeLocked(() => 'follow-up')
      await sleep(300)
    })
    tell(await followUp)
    await lock.executeLocked(async () => {
      tell(await lock.lockAsync({ timeout: 200 }).catch(({ code }) => code))
    })
  })
  assert.deepStrictEqual([code, told()], [0, ['follow-up', 'ERR_TIMEOUT']])
})
