'use strict'
// timeout: 180

// Where holders took what they hold, and which tokens have been collected, if ATOMICS_WAITASYNC_STALL is set.

const assert = require('assert')
const { test } = require('../../harness')
const { MAJOR, runChild } = require('../../fixtures/queue-toolbox')

const CODE = 'ATOMICS_WAITASYNC_STALL'
/** On, but nothing waits for so long. */
const ON = 1e9
const HAS_WEAK_REF = typeof WeakRef === 'function'
const needsWeakRef = { skip: !HAS_WEAK_REF && 'this Node has no WeakRef' }

/** Runs a program with that setting. `reports`: the warnings that it writes, without what differs from run to run. */
async function run (t, fn, after = ON, { data, execArgv } = {}) {
  const { code, lines, stderr } = await runChild(t, fn, data, { env: { [CODE]: String(after) }, execArgv })
  const reports = stderr.split('\n').filter(line => line.includes(`[${CODE}] Warning: `)).map(line => line.split('] Warning: ')[1])
  return { code, lines, stderr, reports: reports.map(plain) }
}

const plain = text => text.replace(/\d+(\.\d+)? (ms|s)\b/g, 'T').replace(/function-of-the-test\.js:\d+:\d+/g, 'test.js')

/** Runs a program that says what it has found, in the form `[what, found]`; each has to be found where it says. */
async function findings (t, fn, data) {
  const { code, lines, stderr } = await run(t, fn, ON, { data })
  assert.deepStrictEqual([code, stderr], [0, ''])
  const found = lines.map(line => JSON.parse(line))
  assert.ok(found.length > 0)
  for (const [what, taken] of found) {
    const [frame] = String(taken).split('\n')
    assert.ok(frame.includes(what) && frame.includes('function-of-the-test.js'), `${what}: ${taken}`)
  }
  return found.map(([what]) => what)
}

test('each way in which a promise, or a call that does not wait, takes something has its place', async t => {
  const found = await findings(t, async ({ api, say, until }) => {
    const { locks, snapshot } = api
    const held = () => snapshot().held
    /** Says where what is held was taken. */
    const tell = name => {
      const [entry, ...others] = held()
      if (entry === undefined || others.length > 0) throw new Error(`${name}: ${JSON.stringify(held())}`)
      say(JSON.stringify([name, entry.taken]))
    }
    const settled = () => new Promise(resolve => setTimeout(resolve, 5))
    const rw = new api.RwLock()
    const lock = new api.AsyncLock()
    const semaphore = new api.Semaphore()
    semaphore.release(2)
    const limit = new api.Semaphore(new SharedArrayBuffer(4), { permits: 2 })
    const queue = api.Queue.create({ capacity: 2, messageSize: 16 })
    let end
    const until1 = () => new Promise(resolve => { end = resolve })
    const byToken = {
      tryLock: () => lock.tryLock(),
      lockIfAvailable: () => lock.lockIfAvailable(0),
      lockAsync: () => lock.lockAsync(),
      tryLockExclusive: () => rw.tryLock(),
      tryLockShared: () => rw.tryLockShared(),
      lockExclusiveAsync: () => rw.lockAsync(),
      lockSharedAsync: () => rw.lockSharedAsync(),
      tryHold: () => semaphore.tryHold(2),
      holdAsync: () => semaphore.holdAsync(1),
      tryHoldOfLimit: () => limit.tryHold(1),
      downgrade: () => rw.tryLock().downgrade()
    }
    for (const name of Object.keys(byToken)) {
      const token = await byToken[name]()
      tell(name)
      token.unlock()
      if (held().length > 0) throw new Error(name)
    }
    const byCallback = {
      executeLocked: () => lock.executeLocked(until1),
      executeExclusive: () => rw.executeLocked(until1),
      executeShared: () => rw.executeShared(until1),
      use: () => semaphore.use(1, until1),
      useOfLimit: () => limit.use(2, until1),
      request: () => locks.request('name', until1),
      requestShared: () => locks.request('name', { mode: 'shared' }, until1),
      requestIfAvailable: () => locks.request('name', { ifAvailable: true }, until1),
      requestBySteal: () => locks.request('name', { steal: true }, until1),
      useOfQueue: () => { queue.tryPut(1); return queue.use(until1) }
    }
    for (const name of Object.keys(byCallback)) {
      const promise = byCallback[name]()
      await settled()
      tell(name)
      end()
      await promise
      if (held().length > 0) throw new Error(name)
    }
    // The same where they have to wait.
    const waiting = {
      lockAsync: [() => lock.tryLock()], executeLocked: [() => lock.tryLock(), true], lockExclusiveAsync: [() => rw.tryLock()],
      lockSharedAsync: [() => rw.tryLock()], executeShared: [() => rw.tryLock(), true], holdAsync: [() => semaphore.tryHold(2)],
      useOfLimit: [() => limit.tryHold(1), true]
    }
    for (const name of Object.keys(waiting)) {
      const [hold, isCallback] = waiting[name]
      const token = hold()
      const promise = (isCallback ? byCallback : byToken)[name]()
      // A call that comes later is another one's.
      new api.AsyncLock().tryLock().unlock()
      await settled()
      const [{ called }] = snapshot().waiting
      say(JSON.stringify([name, called]))
      token.unlock()
      await (isCallback ? settled() : promise)
      tell(name)
      if (isCallback) end()
      const got = await promise
      if (!isCallback) got.unlock()
    }
    for (const name of ['request', 'requestShared']) {
      const first = locks.request('name', until1)
      await settled()
      const goOn = end
      const promise = byCallback[name]()
      goOn()
      await first
      await settled()
      tell(name)
      end()
      await promise
    }
    const waited = queue.use(until1)
    const useThatWaits = () => queue.use(until1)
    const other = useThatWaits()
    queue.tryPut(1)
    await settled()
    end()
    await waited
    queue.tryPut(2)
    await settled()
    tell('useThatWaits')
    end()
    await other
    // Between notification and wait.
    const condition = new api.Condition()
    const token = lock.tryLock()
    const waitAsync = () => condition.waitAsync(token)
    const notified = waitAsync()
    const between = lock.tryLock()
    await until(() => condition.notify() === 1)
    await settled()
    between.unlock()
    await notified
    tell('waitAsync')
    token.unlock()
    if (held().length > 0) throw new Error('condition')
  })
  assert.ok(found.length > 30)
})

test('each way in which a thread blocks for something has its place, whether it has to wait or not', async t => {
  await findings(t, async ({ api, startWorker, say, until }) => {
    const sab = new SharedArrayBuffer(1024)
    const open = (api, sab) => ({
      lock: new api.AsyncLock(sab),
      rw: new api.RwLock(sab, { byteOffset: 4 }),
      semaphore: new api.Semaphore(sab, { byteOffset: 8 }),
      limit: new api.Semaphore(sab, { byteOffset: 12, permits: 1 }),
      condition: new api.Condition(sab, { byteOffset: 16 }),
      queue: new api.Queue(sab, { byteOffset: 64, capacity: 1, messageSize: 16 })
    })
    const own = open(api, sab)
    own.semaphore.release()
    const inWorker = ({ api, data: { sab, open, name }, post }) => {
      const { lock, rw, semaphore, limit, condition, queue } = eval(open)(api, sab) // eslint-disable-line no-eval
      const stop = () => {
        post('held')
        api.wait(new Int32Array(sab), 10, 0)
      }
      const ways = {
        lock: () => lock.lock(),
        lockIfAvailable: () => lock.lockIfAvailable(1e9),
        executeLockedSync: () => lock.executeLockedSync(stop),
        lockExclusive: () => rw.lock(),
        lockShared: () => rw.lockShared(),
        executeSharedSync: () => rw.executeSharedSync(stop),
        hold: () => semaphore.hold(),
        holdOfLimit: () => limit.hold(),
        useSync: () => semaphore.useSync(1, stop),
        requestSync: () => api.locks.requestSync('name', stop),
        useSyncOfQueue: () => queue.useSync(stop),
        waitForCondition: () => { condition.wait(lock.tryLock()) }
      }
      const token = ways[name]()
      stop()
      return token && token.locked
    }
    const takers = {
      lock: () => own.lock.tryLock(), executeLockedSync: () => own.lock.tryLock(), lockIfAvailable: () => own.lock.tryLock(),
      lockExclusive: () => own.rw.tryLock(), lockShared: () => own.rw.tryLock(), executeSharedSync: () => own.rw.tryLock(),
      hold: () => own.semaphore.tryHold(), holdOfLimit: () => own.limit.tryHold(), useSync: () => own.semaphore.tryHold(),
      requestSync: () => {
        let end
        api.locks.request('name', () => new Promise(resolve => { end = resolve }))
        return { unlock: () => end() }
      },
      useSyncOfQueue: () => null
    }
    const run = async (name, isAwaited) => {
      const before = isAwaited && takers[name]()
      if (isAwaited) await new Promise(resolve => setTimeout(resolve, 5))
      if (name === 'useSyncOfQueue' && !isAwaited) own.queue.tryPut(1)
      const worker = startWorker(inWorker, { sab, open: String(open), name })
      worker.done().catch(() => {})
      if (name === 'waitForCondition') await until(() => own.condition.notify() === 1)
      if (isAwaited) {
        await until(() => api.snapshot().waiting.length === 1)
        if (before) before.unlock()
        else own.queue.tryPut(1)
      }
      await worker.next()
      const { held } = api.snapshot()
      if (held.length !== 1 || !held[0].blocked) await until(() => api.snapshot().held[0].blocked)
      say(JSON.stringify([name, held[0].taken]))
      await worker.terminate()
      await until(() => api.snapshot().held.length === 0)
      if (name === 'useSyncOfQueue') own.queue.tryTake()
      else if (own.lock.locked || own.rw.locked || own.semaphore.available !== 1) throw new Error(name)
    }
    for (const name of Object.keys(takers)) {
      await run(name, false)
      await run(name, true)
    }
    await run('waitForCondition', false)
  })
})

test('a report says where the holder took it, also of a holder that is blocked, and of one of another Worker', async t => {
  const { reports, stderr } = await run(t, async ({ api, startWorker, until }) => {
    const sab = new SharedArrayBuffer(4)
    const worker = startWorker(function billing ({ api, data: sab, post }) {
      function charge () {
        return new api.AsyncLock(sab, { name: 'accounts' }).lock()
      }
      charge()
      post('held')
      api.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
    }, sab)
    await worker.next()
    new api.AsyncLock(sab).lockAsync()
    startWorker(({ api, data: sab }) => { new api.AsyncLock(sab).lock() }, sab)
    await until(() => api.snapshot().waiting.some(({ blocked, kind, milliseconds }) => kind === 'AsyncLock' && blocked && milliseconds > 1000))
    process.exit()
  }, 100)
  assert.strictEqual(reports.length, 2, stderr)
  assert.strictEqual(plain(stderr).match(/held for T by thread 1\b.*, taken at charge \(test\.js\)/gi).length, 2, stderr)
})

test('what a busy thread has been granted and has not heard of has its place, too', async t => {
  const [name] = await findings(t, async ({ api, startWorker, say, busy }) => {
    const sab = new SharedArrayBuffer(8)
    const worker = startWorker(({ api, data: sab, post, busy }) => {
      const lock = new api.RwLock(sab)
      const token = lock.lock()
      post('held')
      while (lock.waiters === 0);
      token.unlock()
      busy(50)
      const flag = new Int32Array(sab, 4)
      while (Atomics.load(flag, 0) === 0);
      return api.snapshot().held[0].taken
    }, sab)
    await worker.next()
    const lateGrant = () => new api.RwLock(sab).lockAsync()
    const promise = lateGrant()
    busy(100)
    Atomics.store(new Int32Array(sab, 4), 0, 1)
    busy(200)
    say(JSON.stringify(['lateGrant', await worker.done()]))
    ;(await promise).unlock()
  })
  assert.strictEqual(name, 'lateGrant')
})

test('moves of entries, a downgrade, an abandoned lock, a steal and a death leave each hold its own place', async t => {
  await findings(t, async ({ api, startWorker, say, until }) => {
    const { snapshot, locks } = api
    const sab = new SharedArrayBuffer(64)
    const open = byteOffset => new api.AsyncLock(sab, { byteOffset })
    const takeFirst = () => open(0).tryLock()
    const takeSecond = () => open(4).tryLock()
    const takeThird = () => open(8).tryLock()
    const tokens = [takeFirst(), takeSecond(), takeThird()]
    const placeOf = byteOffset => (snapshot().held.find(({ id }) => id === open(byteOffset).id) || {}).taken
    tokens[0].unlock()
    say(JSON.stringify(['takeSecond', placeOf(4)]))
    say(JSON.stringify(['takeThird', placeOf(8)]))
    const takeAnew = () => open(0).tryLock()
    const anew = takeAnew()
    say(JSON.stringify(['takeAnew', placeOf(0)]))
    anew.abandon()
    if (placeOf(0) !== undefined) throw new Error('abandoned')
    tokens[1].unlock()
    tokens[2].unlock()
    // A writer that becomes a reader, with other entries around it.
    const other = takeFirst()
    const rw = new api.RwLock(sab, { byteOffset: 16 })
    const writer = rw.tryLock()
    const more = takeThird()
    const becomeReader = () => writer.downgrade()
    const reader = becomeReader()
    const shared = () => snapshot().held.find(({ mode }) => mode === 'shared')
    say(JSON.stringify(['becomeReader', shared().taken]))
    say(JSON.stringify(['takeThird', placeOf(8)]))
    for (const token of [other, reader, more]) token.unlock()
    if (snapshot().held.length > 0) throw new Error('left')
    // A name, its thief, and the next one.
    const forever = () => new Promise(() => {})
    const loseIt = () => locks.request('name', forever).catch(() => {})
    const stealIt = () => locks.request('name', { steal: true }, forever).catch(() => {})
    loseIt()
    await new Promise(resolve => setTimeout(resolve, 5))
    stealIt()
    await new Promise(resolve => setTimeout(resolve, 5))
    say(JSON.stringify(['stealIt', snapshot().held[0].taken]))
    if (snapshot().held.length !== 1) throw new Error('thief')
    // A death, and the same memory for the next holder.
    const worker = startWorker(({ api, data: sab, post }) => {
      const takeAndDie = () => new api.AsyncLock(sab, { byteOffset: 4 }).lock()
      takeAndDie()
      post('held')
      api.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
    }, sab)
    await worker.next()
    say(JSON.stringify(['takeAndDie', placeOf(4)]))
    const inherit = () => open(4).lockAsync()
    const inherited = inherit()
    worker.done().catch(() => {})
    await worker.terminate()
    if (!(await inherited).ownerDied) throw new Error('nobody died')
    say(JSON.stringify(['inherit', placeOf(4)]))
    process.exit()
  })
})

test('100 000 holds leave nothing behind', async t => {
  const { code, lines, stderr } = await run(t, async ({ api, data, require, say }) => {
    const lock = new api.AsyncLock()
    const rw = new api.RwLock()
    const turn = count => {
      for (let n = 0; n < count; n++) {
        lock.tryLock().unlock()
        const reader = rw.tryLock().downgrade()
        reader.unlock()
      }
      global.gc()
      return process.memoryUsage()
    }
    turn(2000)
    const before = turn(1000)
    // In one job, as in a worker that loops.
    const after = turn(25000)
    say(JSON.stringify([after.heapUsed - before.heapUsed, after.rss - before.rss]))
    if (api.snapshot().held.length > 0 || require(data).load().holdCount() !== 0) throw new Error('held')
  }, ON, { data: require.resolve('../../../lib/agent/binding'), execArgv: ['--expose-gc'] })
  assert.deepStrictEqual([code, stderr], [0, ''])
  const [heap, resident] = JSON.parse(lines[0])
  assert.ok(heap < 2e6 && resident < 40e6, lines[0])
})

test('more different stacks than the table has room for: the others are told to be others', async t => {
  const { code, lines, stderr } = await run(t, async ({ api, say }) => {
    const lock = new api.AsyncLock()
    const placeOf = take => {
      const token = take(lock)
      const [{ taken }] = api.snapshot().held
      token.unlock()
      return taken
    }
    const takers = []
    for (let n = 0; n < 2100; n++) takers.push(new Function('lock', `return function taker${n} () { return lock.tryLock() }`)(lock)) // eslint-disable-line no-new-func
    const places = takers.concat(takers[7]).map(placeOf)
    say(takers.filter((taker, n) => places[n].includes(`taker${n} `)).length)
    for (const n of [2099, 2100]) say(places[n].split('\n')[0])
    const { held } = (takers[2099](), api.snapshot())
    say(api.formatSnapshot({ held, waiting: [], cycles: [] }).split('\n')[4])
  })
  assert.deepStrictEqual([code, stderr, lines.length], [0, '', 4])
  assert.ok(lines[0] > 2000 && lines[0] <= 2048, lines[0])
  assert.deepStrictEqual([lines[1], lines[3].trim()], ['    at a place that is not kept: there are more than 2048', lines[1].trim()])
  assert.ok(lines[2].includes('taker7 '), lines[2])
})

test('a stack that cannot be taken is one warning at most, and locks work', async t => {
  const ways = {
    limit: ({ Error }) => { Object.defineProperty(Error, 'stackTraceLimit', { value: 0, writable: false }) },
    frozen: ({ Error }) => {
      Error.stackTraceLimit = 0
      Object.freeze(Error)
    },
    deleted: ({ Error }) => { delete Error.captureStackTrace },
    limitDeleted: ({ Error }) => { delete Error.stackTraceLimit },
    throws: ({ Error }) => { Error.prepareStackTrace = () => { throw new TypeError('no stack') } },
    sites: ({ Error }) => { Error.prepareStackTrace = (error, sites) => sites },
    noText: ({ Error }) => { Error.prepareStackTrace = () => ({ toString () { throw new TypeError('no text') } }) },
    takes: ({ Error, lock }) => {
      Error.prepareStackTrace = () => {
        const token = lock.tryLock()
        if (token !== null) token.unlock()
        return 'Error\n    at patched (patched.js:1:1)'
      }
    }
  }
  for (const name of Object.keys(ways)) {
    const { code, lines, stderr, reports } = await run(t, async ({ api, data, say, startWorker }) => {
      const lock = new api.AsyncLock()
      const use = async ({ api, lock }) => {
        for (let n = 0; n < 3; n++) {
          const token = lock.tryLock()
          const promise = lock.lockAsync()
          const { held: [{ taken }] } = api.snapshot()
          token.unlock()
          ;(await promise).unlock()
          if (lock.locked) throw new Error('left')
          await api.locks.request('name', () => {})
          if (n === 0 && api.snapshot().held.length !== 0) throw new Error('left')
          if (n === 2) return taken
        }
      }
      const other = new api.AsyncLock()
      eval(`(${data})`)({ Error, lock: other }) // eslint-disable-line no-eval
      say(String(await use({ api, lock })))
    }, ON, { data: String(ways[name]) })
    assert.strictEqual(code, 0, `${name}: ${stderr}`)
    // These versions change the limit themselves when they warn, and then fail.
    const isMute = (MAJOR === 12 || MAJOR === 14) && ['limit', 'frozen'].includes(name)
    const isMissing = ['limit', 'frozen', 'throws', 'sites', 'noText'].includes(name)
    assert.strictEqual(reports.length, isMissing && !isMute ? 1 : 0, `${name}: ${stderr}`)
    if (reports.length > 0) assert.ok(reports[0].startsWith('The stack of a call is missing, so reports do not say where a lock was taken.'), stderr)
    assert.strictEqual(lines[0] === 'undefined', isMissing, `${name}: ${lines[0]}`)
  }
})

test('without the variable nothing is noted', async t => {
  const { code, lines, stderr } = await runChild(t, async ({ api, say }) => {
    const lock = new api.AsyncLock()
    const tokens = [lock.tryLock(), new api.RwLock().tryLock().downgrade()]
    lock.lockAsync()
    const { held, waiting } = api.snapshot()
    say(JSON.stringify([...held, ...waiting].map(entry => ['taken', 'called', 'collected'].filter(key => key in entry))))
    tokens.map(token => token.unlock())
    process.exit()
  })
  assert.deepStrictEqual([code, lines, stderr], [0, ['[[],[],[]]'], ''])
})

test('the error of a deadlock says where each thread took what it holds', async t => {
  const { code, lines, stderr } = await run(t, async ({ api, startWorker, say }) => {
    const sab = new SharedArrayBuffer(16)
    const worker = ({ api, data: { sab, first } }) => {
      const open = byteOffset => new api.AsyncLock(sab, { byteOffset })
      const takeMine = () => open(first).lock()
      takeMine()
      const count = new Int32Array(sab, 8)
      Atomics.add(count, 0, 1)
      while (Atomics.load(count, 0) < 2);
      try {
        open(4 - first).lock()
      } catch ({ message, cycle }) {
        return [message, ...cycle.map(({ holds, waitsFor }) => [holds.taken, waitsFor.called])]
      }
    }
    const ends = [0, 4].map(first => startWorker(worker, { sab, first }).done())
    for (const end of ends) {
      const found = await end
      if (found) say(JSON.stringify(found))
    }
  })
  assert.deepStrictEqual([code, stderr, lines.length], [0, '', 1])
  const [message, ...links] = JSON.parse(lines[0])
  assert.strictEqual(plain(message).split('that thread').filter(text => / holds \(taken at takeMine \(test\.js\)\)/.test(text)).length, 2, message)
  assert.strictEqual(links.length, 2)
  for (const [taken, called] of links) assert.ok(/^ +at takeMine /.test(taken) && /^ +at .*function-of-the-test/.test(called), lines[0])
})

test('what is held has been held since it was taken, also in the first snapshot', async t => {
  const { code, lines, stderr } = await run(t, async ({ api, say, busy }) => {
    const lock = new api.AsyncLock()
    const token = lock.tryLock()
    busy(60)
    say(api.snapshot().held[0].milliseconds)
    token.unlock()
  })
  assert.deepStrictEqual([code, stderr], [0, ''])
  assert.ok(lines[0] >= 60, lines[0])
})

test('a table has the places below the lines of holders and waiters', async t => {
  const { lines } = await run(t, async ({ api, say }) => {
    const lock = new api.AsyncLock(new SharedArrayBuffer(4), { name: 'accounts' })
    const charge = () => lock.tryLock()
    const token = charge()
    const transfer = () => lock.lockAsync()
    transfer()
    say(api.formatSnapshot(api.snapshot()))
    token.unlock()
    process.exit()
  })
  const text = plain(lines.join('\n').replace(/id \d+/, 'id N'))
  const [, , head, held, place] = text.split('\n')
  assert.deepStrictEqual([head, held, place], ['AsyncLock "accounts", id N', '  held by     the main thread  exclusive  for T', '      at charge (test.js)'])
  const at = text.indexOf('\n  awaited by  the main thread  exclusive  for T\n      at transfer (test.js)\n')
  assert.ok(at > 0, text)
})

// ——— Tokens that were collected ———

const GC = { execArgv: ['--expose-gc'] }

test('a lock whose token was collected is reported as such with the wait, for the same thread and for another one', needsWeakRef, async t => {
  const { lines, stderr } = await run(t, async ({ api, say, startWorker, until }) => {
    const lock = new api.AsyncLock(new SharedArrayBuffer(4), { name: 'forgotten' })
    const rw = new api.RwLock(new SharedArrayBuffer(4), { name: 'lost' })
    const kept = new api.AsyncLock(new SharedArrayBuffer(4), { name: 'kept' }).tryLock()
    const forget = async () => {
      await lock.lockAsync()
      rw.tryLockShared()
    }
    await forget()
    const orphans = () => api.snapshot().held.filter(({ collected }) => collected)
    await until(() => {
      global.gc()
      return orphans().length === 2
    })
    say(JSON.stringify(orphans().map(({ name }) => name).sort()))
    say(api.formatSnapshot(api.snapshot()).split('\n').filter(line => line.includes('collected')).map(line => line.trim()).join(' + '))
    startWorker(({ api, data: sab }) => { new api.RwLock(sab).lock() }, rw.buffer)
    const promise = lock.lockAsync()
    await new Promise(resolve => process.on('warning', resolve))
    await until(() => api.snapshot().waiting.some(({ blocked, milliseconds }) => blocked && milliseconds > 1000))
    // As the report says.
    lock.unlock()
    ;(await promise).unlock()
    if (!kept.locked) throw new Error('kept')
    process.exit()
  }, 300, GC)
  assert.deepStrictEqual(lines[0], '["forgotten","lost"]', stderr)
  const [byUnlock, byEnd] = ['lock.unlock() in that thread', 'the end of that thread'].map(what => `its token has been collected: only ${what} releases it`)
  assert.deepStrictEqual(lines[1].split(' + ').sort(), [byUnlock, byEnd])
  const told = plain(stderr).match(/taken at (async )?forget \(test\.js\).*collected: only (lock\.unlock\(\) in|the end of) that thread releases it/g)
  assert.deepStrictEqual(told.map(text => /only (\S+)/.exec(text)[1]).sort(), ['lock.unlock()', 'the'], stderr)
})

test('if the token is collected after the wait was reported, its thread reports that', needsWeakRef, async t => {
  const { reports, stderr } = await run(t, async ({ api, startWorker, until }) => {
    const lock = new api.AsyncLock(new SharedArrayBuffer(4), { name: 'forgotten' })
    const tokens = { token: lock.tryLock() }
    startWorker(({ api, data: sab }) => { new api.AsyncLock(sab).lock() }, lock.sab)
    await until(() => api.snapshot().waiting.some(({ blocked, milliseconds }) => blocked && milliseconds > 1000))
    tokens.token = undefined
    const timer = setInterval(() => global.gc(), 50)
    await new Promise(resolve => process.on('warning', ({ message }) => { if (message.includes('collected')) resolve() }))
    clearInterval(timer)
    setTimeout(() => process.exit(), 500)
  }, 300, GC)
  assert.strictEqual(reports.length, 2, stderr)
  assert.ok(stderr.indexOf('taken at ') < stderr.indexOf('collected'), stderr)
  assert.ok(/^The token of AsyncLock "forgotten", held for T by the main thread, taken at .*, has been collected: only lock\.unlock\(\) in that thread releases it\. For T thread 1 waits for it\.$/.test(reports[1]), stderr)
})
