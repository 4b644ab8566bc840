'use strict'

// ATOMICS_WAITASYNC_STALL: waits for locks that last longer are reported, each once.

const assert = require('assert')
const { runInNewContext } = require('vm')
const { test } = require('../../harness')
const { needsChannels } = require('../../fixtures/channels')
const { CODE, NEVER, run, toldBy } = require('../../fixtures/programs')

/** The first frame is the caller's, not the package's. */
/** A report's line with T for each time, and P for each position. */
const plainPlaces = line => line.replace(/ "\w*"/, '').replace(/\d+(\.\d+)? (ms|s)\b/g, 'T')
  .replace(/\(?function-of-the-test\.js:\d+:\d+\)?/g, 'P')

const FIRST_FRAME = /\] Warning: .*\n( {2}\S.*\n)* {4}at .*function-of-the-test\.js/

const promiseFor = (what) => `A promise of the main thread has been pending for T waiting for ${what}`
const OWN = promiseFor('an AsyncLock:\n  held for T by the main thread; it is the same thread')

test('a blocked thread is reported while it is blocked, although the main thread is busy', async t => {
  const { code, reports, stderr } = await run(t, { after: 1000 }, async ({ heldLock, startWorker, busy }) => {
    // Once its event loop has been quiet: a signal would make its slices shorter. Without a report the last one is too
    // long.
    const worker = startWorker(heldLock('accounts'), ({ api, data, post }) => new Promise(() => {
      setTimeout(() => { new api.AsyncLock(data).lock() }, 200)
      post('started')
    }))
    await worker.next()
    busy(4000)
    process.exit()
  })
  const holder = 'held for T by the main thread; it waits for no lock of this package'
  const report = `Thread 1 has been blocked for T waiting for AsyncLock "accounts":\n  ${holder}`
  assert.deepStrictEqual([code, reports], [0, [report]], stderr)
  assert.ok(FIRST_FRAME.test(stderr), stderr)
})

test('reports of blocked threads that nobody reads stop nobody, and the dropped ones are counted', async t => {
  const data = require.resolve('../../../index.js')
  const { code, told, stderr } = await run(t, { data }, async ({ data, require, tell }) => {
    const { spawn } = require('child_process')
    const child = spawn(process.execPath, process.execArgv.concat('-e', `
      const { Worker } = require('worker_threads')
      const { AsyncLock } = require(${JSON.stringify(data)})
      let ended = 0
      // A token that has been collected would be another report.
      global.tokens = []
      for (let n = 0; n < 8; n++) {
        const lock = AsyncLock.create()
        global.tokens.push(lock.tryLock())
        new Worker(\`
          const { workerData } = require('worker_threads')
          const { AsyncLock } = require(workerData.path)
          const lock = new AsyncLock(workerData.lock)
          for (let n = 0; n < 100; n++) lock.lockIfAvailable(50)\`,
          { eval: true, workerData: { lock, path: ${JSON.stringify(data)} } })
          .on('exit', () => { if (++ended === 8) console.log('all have ended') })
      }
      process.stdin.on('data', () => process.exit(7))`),
    { stdio: 'pipe', env: Object.assign({}, process.env, { ATOMICS_WAITASYNC_STALL: '10' }) })
    child.stderr.pause()
    await new Promise(resolve => child.stdout.once('data', resolve))
    let text = ''
    child.stderr.setEncoding('utf8').on('data', chunk => {
      text += chunk
      if (/were dropped, .*\n$/.test(text)) child.stdin.write('end')
    }).resume()
    const code = await new Promise(resolve => child.on('exit', resolve))
    const [, dropped] = /(\d+) reports of blocked/.exec(text)
    tell([code, text.split('has been blocked').length - 1, Number(dropped)])
    process.exit()
  })
  const [[ended, written, dropped]] = told()
  assert.deepStrictEqual([code, ended], [0, 7], stderr)
  assert.ok(written > 100 && dropped > 0 && written + dropped <= 800, `${written} and ${dropped}`)
})

test('a promise is reported by a warning, with the stack of the request', async t => {
  const { code, told, reports, stderr } = await run(t, { after: 100 }, ({ heldLock, tell }) => {
    process.on('warning', ({ name, code, detail }) => {
      if (code !== 'ATOMICS_WAITASYNC_STALL') return
      tell([name, /^ {4}at .*function-of-the-test\.js/.test(detail)])
      setTimeout(() => process.exit(), 1000)
    })
    setInterval(() => {}, 1e6)
    heldLock().executeLocked(() => {})
  })
  // The first line of the stack is the caller's, not the package's.
  assert.deepStrictEqual([code, told(), reports], [0, [['Warning', true]], [OWN]], stderr)
})

test('names, shares and permits are reported, blocked or by promises', async t => {
  const { reports, stderr } = await run(t, { after: 100 }, async ({ api, block, keep, startWorker, untilWaiting }) => {
    const rw = new api.RwLock()
    const semaphore = new api.Semaphore()
    const forever = new Promise(() => {})
    keep(rw.tryLock())
    semaphore.release(2)
    semaphore.use(2, () => forever)
    api.locks.request('cache', () => forever)
    rw.lockSharedAsync()
    semaphore.acquireAsync()
    api.locks.request('cache', { mode: 'shared' }, () => {})
    startWorker(({ api }) => { api.locks.requestSync('cache', () => {}) })
    block(rw, 'lockShared')
    block(semaphore, 'acquire')
    await untilWaiting(3, 1000)
    process.exit()
  })
  const holder = 'held for T by the main thread'
  const blocked = what => text => text.includes(`has been blocked for T waiting for ${what}`)
  const held = ['the lock named "cache":\n  ', 'an RwLock (shared):\n  ', 'permits of a Semaphore:\n  2 permits ']
  for (const what of held) {
    assert.ok(reports.includes(promiseFor(`${what}${holder}; it is the same thread`)), stderr)
    assert.strictEqual(reports.filter(blocked(what + holder)).length, 1, stderr)
  }
  assert.strictEqual(reports.length, 6, stderr)
})

test('waits for room in a Queue are reported, with the users of messages; those for a message, later', async t => {
  const { reports, stderr } = await run(t, { after: 300 }, async ({ api, block, startWorker, untilWaiting }) => {
    const [full, own, empty] = [1, 1, 1].map(capacity => api.Queue.create({ capacity, messageSize: 16 }))
    const named = new api.Queue(full, { name: 'jobs' })
    for (const queue of [full, own]) queue.tryPut(1)
    own.use(() => new Promise(() => {}))
    const user = startWorker(full, ({ api, data, post, words }) => {
      new api.Queue(data).useSync(() => {
        post('used')
        api.wait(words(1), 0, 0)
      })
    })
    await user.next()
    named.putAsync(2)
    own.putAsync(2)
    empty.takeAsync()
    empty.use(() => {})
    block(full, 'put', 3)
    block(empty, 'take')
    await untilWaiting(2, 1000, { kind: 'Queue' })
    process.exit()
  })
  const use = 'a message in use for T by'
  const cause = `room in Queue "jobs":\n  ${use} thread 1; it has been blocked for T in Atomics.wait`
  const forRoom = reports.filter(report => !report.includes('waiting for a message of '))
  assert.deepStrictEqual(forRoom.sort(), [
    promiseFor(cause),
    promiseFor(`room in a Queue:\n  ${use} the main thread; it is the same thread`),
    `Thread 2 has been blocked for T waiting for ${cause}`
  ], stderr)
  assert.ok(!/ for (?:\d+ ms|[12]\.\d s) waiting for a message of /.test(stderr), stderr)
  assert.ok(FIRST_FRAME.test(stderr), stderr)
})

for (const put of ['put', 'putAsync']) {
  test(`a ${put} that is woken in vain again and again is reported once: its steps are one wait`, async t => {
    const { reports, stderr } = await run(t, { after: 300, data: put }, async scope => {
      const { api, block, data: put, sleep, startWorker, until } = scope
      const queue = api.Queue.create({ capacity: 1, messageSize: 16, name: 'jobs' })
      queue.tryPut('first')
      const words = new Int32Array(queue.buffer)
      if (put === 'put') block(queue, 'put', 'late')
      else startWorker(queue, ({ api, data }) => new api.Queue(data).putAsync('late'))
      await until(() => queue.waiters === 1, 'it waits')
      let count = 0
      for (const began = Date.now(); Date.now() - began < 1500; await sleep(20)) {
        for (let n = 0; n < words.length; n++) count += api.notify(words, n)
      }
      if (count < 10) throw new Error(`it was woken ${count} times`)
      process.exit()
    })
    assert.strictEqual(reports.length, 1, stderr)
    assert.ok(/waiting for room in (?:a )?Queue "jobs"/.test(reports[0]), stderr)
  })
}

/** Reports main's wait behind a request of a thread that then sleeps in a `wait`, as an idle worker of a pool. */
const behindIdleWorker = (t, kind, wait) => run(t, { after: 200, data: [kind, wait] }, async scope => {
  const { api, data: [kind, wait], say, sleep, startWorker, until } = scope
  const lock = api[kind].create({ name: 'report' })
  const token = lock.tryLock()
  startWorker({ lock, kind, wait }, ({ Atomics, api, data: { lock, kind, wait }, require, words }) => {
    const host = require('vm').runInNewContext('Atomics')
    function task () { new api[kind](lock).executeLocked(() => {}) }
    task()
    ;(wait === 'host' ? host : api).wait(words(1), 0, 0)
  })
  process.on('warning', ({ code, message }) => {
    if (code === undefined) return
    say(message)
    process.exit()
  })
  await until(() => lock.waiters === 1)
  // It sleeps.
  await sleep(100)
  const promise = lock.lockAsync()
  token.unlock()
  await promise
})

const OWN_SLEEP = 'it has been blocked for T in Atomics.wait at P'
/** What is said of a sleep in the host's `wait`; where the package is in force, a new context has the package's. */
const HOST_SLEEP = /native code/.test(runInNewContext('String(Atomics.wait)'))
  ? 'it is busy, or blocked, for example in Node\'s Atomics.wait'
  : OWN_SLEEP

test('a wait behind a request of a thread that sleeps says where that requested it', async t => {
  const sleep = { host: HOST_SLEEP, own: OWN_SLEEP }
  for (const wait of ['host', 'own']) {
    const { lines } = await behindIdleWorker(t, 'AsyncLock', wait)
    const expected = `  behind thread 1, which requests it (exclusive) at task P; ${sleep[wait]}`
    assert.strictEqual(plainPlaces(lines[1]), expected, lines.join('\n'))
  }
})

test('a lock that has been given to a thread that sleeps is held since then, by its request', async t => {
  const { lines } = await behindIdleWorker(t, 'RwLock', 'host')
  const [, time] = /held for (\d+) ms/.exec(lines[1])
  assert.ok(time >= 100, lines.join('\n'))
  assert.strictEqual(plainPlaces(lines[1]), `  held for T by thread 1, taken at task P; ${HOST_SLEEP}`)
})

test('a request without a caller on its stack is reported without a frame of the package', async t => {
  const { stderr } = await run(t, { after: 100 }, ({ heldLock }) => {
    const lock = heldLock()
    Promise.resolve().then(lock.lockAsync.bind(lock, undefined))
    process.on('warning', () => setTimeout(() => process.exit(), 500))
    setInterval(() => {}, 1e6)
  })
  assert.ok(/\] Warning: .*\n {2}held .*\n {4}at no line of the program\n/.test(stderr), stderr)
})

/** The reports with the numbers of further waits, of which each look has its own: they come late on a busy machine. */
function counted (reports) {
  const counts = new Map()
  for (const report of reports) {
    const [, before, more = 0, after] = /^([^,]*?)(?:, and (\d+) more)?(:[^]*)$/.exec(report)
    counts.set(before + after, (counts.get(before + after) || 0) + 1 + Number(more))
  }
  return Array.from(counts).sort()
}

const needsChannel = { skip: needsChannels.skip }
test('a crowd at one lock is one report and one message, and hides no other lock', needsChannel, async t => {
  const withoutNames = reports => reports.map(report => (
    report.replace(/^Thread \d/, 'A thread').replace(/(?<=has awaited AsyncLock )"\w+"/, '"…"')))
  // A blocked thread's text is written after its message.
  const until = (reports, lines) =>
    lines.length > 0 && counted(withoutNames(reports)).reduce((sum, [, count]) => sum + count, 0) >= 27
  const { reports, stderr, told } = await run(t, { after: 300, until }, async scope => {
    const { block, heldLock, subscribe, tell, until } = scope
    const [popular, ledger] = ['popular', 'ledger'].map(heldLock)
    const heard = { popular: 0, ledger: 0 }
    let messages = 0
    subscribe('stall', ({ entry: { name }, more }) => {
      heard[name] += 1 + more
      messages++
    })
    for (let n = 0; n < 20; n++) popular.lockAsync()
    ledger.lockAsync()
    popular.lockAsync()
    for (let n = 0; n < 4; n++) block(popular)
    block(ledger)
    await until(() => heard.popular === 25 && heard.ledger === 2, 'all messages')
    tell(messages < 15)
  })
  const held = ':\n  held for T by the main thread; it is the same thread'
  const elsewhere = ':\n  held for T by the main thread; it has awaited AsyncLock "…" for T, and 21 more'
  const promise = name => promiseFor(`AsyncLock "${name}"`)
  assert.deepStrictEqual(counted(withoutNames(reports)), [
    [promise('ledger') + held, 1],
    [promise('popular') + held, 21],
    ['A thread has been blocked for T waiting for AsyncLock "ledger"' + elsewhere, 1],
    ['A thread has been blocked for T waiting for AsyncLock "popular"' + elsewhere, 4]
  ].sort(), stderr)
  assert.deepStrictEqual(told(), [true], stderr)
  assert.ok(reports.length < 15, stderr)
})

test('of many locks at one place some are reported, the others later, and another place at once', async t => {
  const { reports, stderr } = await run(t, { after: 300 }, async ({ heldLock, until }) => {
    const locks = Array.from({ length: 25 }, (_, n) => heldLock('shard ' + n))
    const ledger = heldLock('ledger')
    let left = 26
    process.on('warning', ({ code, message }) => { if (code !== undefined && /^A promise/.test(message)) left-- })
    for (const lock of locks) lock.lockAsync()
    ledger.lockAsync()
    await until(() => left === 0, 'all reports')
    process.exit()
  })
  const names = reports.map(line => /^A promise .* AsyncLock "(.*)":/.exec(line)[1])
  assert.strictEqual(new Set(names).size, 26, stderr)
  assert.strictEqual(names.length, 26, stderr)
  assert.ok(names.indexOf('ledger') < 20, stderr)
})

test('a wait is reported again if another holder has it for long, and not because holders come and go', async t => {
  const { reports, stderr, told } = await run(t, { after: 200 }, async ({ api, sleep, tell, until }) => {
    let count = 0
    process.on('warning', ({ code }) => { if (code !== undefined) count++ })
    const hold = options => { api.locks.request('x', options, () => new Promise(() => {})).catch(() => {}) }
    hold({})
    api.locks.request('x', () => {})
    await until(() => count === 1, 'a report')
    const age = () => api.snapshot().waiting[0].milliseconds
    while (age() < 1500) {
      hold({ steal: true })
      await sleep(10)
    }
    tell(count)
    await until(() => count === 2, 'another report')
    process.exit()
  })
  assert.deepStrictEqual(told(), [1], stderr)
  const report = promiseFor('the lock named "x":\n  held for T by the main thread; it is the same thread')
  assert.deepStrictEqual(reports, [report, report], stderr)
})

test('what is granted in time is not reported, although the thread was busy', async t => {
  assert.deepStrictEqual(await toldBy(t, { after: 500 }, async ({ busy, newLock, sleep, startWorker, tell }) => {
    const lock = newLock()
    const worker = startWorker(lock, ({ api, data, post }) => {
      const lock = new api.AsyncLock(data)
      const token = lock.lock()
      post('held')
      while (lock.waiters === 0);
      token.unlock()
      // Handed over to the promise, whose thread is busy.
      lock.lockIfAvailable(0)
    })
    await worker.next()
    const promise = lock.lockAsync()
    busy(1500)
    await promise
    // More than are reported one by one.
    const other = newLock()
    const token = other.tryLock()
    const others = Array.from({ length: 10 }, () => other.lockAsync().then(token => token.unlock()))
    token.unlock()
    await Promise.all(others)
    tell('locked')
    await sleep(1000)
    process.exit()
  }), ['locked'])
})

test('a wait that is over leaves nothing behind', async t => {
  const [bytes] = await toldBy(t, { after: NEVER, execArgv: ['--expose-gc'] }, async ({ newLock, tell }) => {
    const lock = newLock()
    const usedByWaits = async () => {
      for (let n = 0; n < 10000; n++) {
        const token = lock.tryLock()
        const next = lock.lockAsync()
        token.unlock()
        await next.then(token => token.unlock())
      }
      global.gc()
      return process.memoryUsage().heapUsed
    }
    const before = await usedByWaits()
    tell(await usedByWaits() - before)
  })
  assert.ok(bytes < 2 ** 20, `${bytes} bytes`)
})

test('waits for a Barrier, Latch or word are no stalls at once, but that for a Condition\'s lock is', async t => {
  const { reports, stderr, told } = await run(t, { after: 100 }, async scope => {
    const { api, Atomics, block, keep, startWorker, tell, untilWaiting, words } = scope
    const lock = new api.AsyncLock()
    const condition = new api.Condition()
    const [barrier, latch] = [api.Barrier.create({ parties: 5 }), api.Latch.create({ count: 1 })]
    for (const thing of [barrier, latch]) {
      thing.waitAsync()
      block(thing, 'wait')
    }
    Atomics.waitAsync(words(1), 0, 0)
    startWorker(({ words, Atomics }) => { Atomics.wait(words(1), 0, 0) })
    await untilWaiting(3, 400)
    const notified = function theCallOfTheCondition () { return condition.waitAsync(lock.tryLock()) }
    notified()
    keep(lock.tryLock())
    condition.notify()
    process.on('warning', ({ code, detail, message }) => {
      if (code === undefined || !message.includes('AsyncLock')) return
      tell(detail.includes('theCallOfTheCondition'))
      setTimeout(() => process.exit(), 100)
    })
  })
  const isOfLock = report => report.includes('AsyncLock')
  assert.deepStrictEqual([reports.filter(isOfLock), told()], [[OWN], [true]], stderr)
  // On a slow machine they last for ten periods.
  assert.ok(!/ for \d+ ms waiting for (?!an AsyncLock)/.test(stderr), stderr)
})

test('a stall that might come does not keep the process alive, and a reported thread can be terminated', async t => {
  for (const [after, count] of [[2 ** 31 - 1, 0], [100, 1]]) {
    const result = await run(t, { after, data: count }, async scope => {
      const { api, block, data: count, heldLock, tell, untilWaiting } = scope
      const lock = heldLock()
      if (count === 0) api.unref(lock.lockAsync())
      const worker = block(lock)
      await untilWaiting(1, 1000 * count)
      await worker.terminate()
      tell('ended')
    })
    const { code, lines, reports, stderr } = result
    assert.deepStrictEqual([code, lines, reports.length, stderr === ''], [0, ['"ended"'], count, count === 0], stderr)
  }
})

test('very many waits, most of which end while they are looked at: the one that stays is told of', async t => {
  const { code, stderr, told } = await run(t, { after: 400 }, async ({ api, newLock, sleep, tell }) => {
    const count = 30000
    const locks = Array.from({ length: count }, () => newLock())
    const tokens = locks.map(lock => lock.tryLock())
    let late = 0
    let isDrained = false
    process.on('warning', ({ message }) => {
      if (isDrained && !/"(?:stays|comes)"/.test(message)) late++
    })
    const heard = name => new Promise(resolve => (
      process.on('warning', ({ message }) => message.includes(`"${name}"`) && resolve())))
    const promises = locks.map(lock => lock.lockAsync().then(token => token.unlock()))
    // The first look may tell of it.
    const hasStayed = heard('stays')
    const stays = newLock('stays')
    stays.tryLock()
    stays.lockAsync()
    // They end from both ends while the looks go on.
    for (let n = 0; n < count / 2; n++) {
      tokens[n].unlock()
      tokens[count - 1 - n].unlock()
      if (n % 500 === 0) await sleep(20)
    }
    await Promise.all(promises)
    await hasStayed
    // What was reported while it ended is told of until the next turn.
    await sleep(800)
    isDrained = true
    setInterval(() => {}, 1e6)
    const comes = newLock('comes')
    comes.tryLock()
    comes.lockAsync()
    await heard('comes')
    tell([late, api.snapshot().waiting.length])
    process.exit()
  })
  assert.strictEqual(code, 0, stderr)
  assert.deepStrictEqual(told(), [[0, 2]])
})

test('an invalid value is reported once in the process, an empty one or 0 means never', async t => {
  for (const after of ['10s', '-1', '1.5', '2147483648', '', '0']) {
    const { reports, stderr } = await run(t, { after }, async ({ block, heldLock, untilWaiting }) => {
      const lock = heldLock()
      lock.lockAsync()
      for (let n = 0; n < 2; n++) block(lock)
      await untilWaiting(3, 300, { blocked: false })
      process.exit()
    })
    const report = `${CODE} must be a whole number of milliseconds from 0 to 2147483647, not the string "${after}"`
    if (Number(after) === 0) assert.strictEqual(stderr, '', after)
    else assert.deepStrictEqual(reports, [report], stderr)
  }
})

test('a Worker that has another environment reports, too', async t => {
  const { reports, stderr } = await run(t, { after: 100 }, async ({ heldLock, require, untilWaiting }) => {
    const { Worker } = require('worker_threads')
    const AsyncLock = `require(${JSON.stringify(require.resolve('../../pure'))}).AsyncLock`
    const source = `new (${AsyncLock})(require('worker_threads').workerData).lock()`
    const worker = new Worker(source, { eval: true, env: {}, workerData: heldLock() })
    worker.on('error', error => { throw error })
    await untilWaiting(1, 1000)
    process.exit()
  })
  assert.strictEqual(reports.length, 1, stderr)
})

test('where a program has replaced a function that Node needs for timers, locks work without a report', async t => {
  const { code, told, reports, stderr } = await run(t, { after: 60000 }, async ({ newLock, tell }) => {
    const lock = newLock()
    // From here on Node has an asynchronous context, for which it calls `apply` before version 24.
    await lock.executeLocked(() => {})
    const token = lock.tryLock()
    const { apply } = Function.prototype
    Function.prototype.apply = () => { throw new Error('apply was called') } // eslint-disable-line no-extend-native
    const promise = lock.lockAsync()
    Function.prototype.apply = apply // eslint-disable-line no-extend-native
    token.unlock()
    ;(await promise).unlock()
    tell('unlocked')
  })
  assert.deepStrictEqual([code, told(), reports], [0, ['unlocked'], []], stderr)
})
