'use strict'
// nodes: >=16 (older ones lack what the engines need)

// Waits for a lock that another process has, as snapshots, dumps and reports of stalls tell them: they name the holder.

const assert = require('assert')
const { hostname } = require('os')
const path = require('path')
const { test } = require('../harness')
const { ENTRY, scratchFolder, startMember } = require('../fixtures/lock-processes')
const { runNode } = require('../fixtures/run-node')
const slowness = require('../fixtures/slowness')

const PACKAGE = path.dirname(ENTRY)
const SIGNALS = process.platform === 'win32' && 'Windows has no such signals'
const LABEL = 'the "nightly" report\u202e'
const sleep = milliseconds => new Promise(resolve => setTimeout(resolve, milliseconds))

/** Starts a holder of 'a', and a process with these variables that waits for it. */
async function startPair (t, env) {
  const folder = scratchFolder(t)
  const holder = await startMember(t, folder)
  await holder.hold('a', { label: LABEL })
  const waiter = await startMember(t, folder, {}, env)
  waiter.stderr = ''
  waiter.child.stderr.setEncoding('utf8').on('data', text => { waiter.stderr += text })
  return { folder, holder, waiter, who: `process ${holder.pid} on ${hostname()}, "the \\"nightly\\" report\\u202e"` }
}

/** Waits until a function of the waiter gives something, and gives that. */
async function until (waiter, fn, ...args) {
  for (;;) {
    const result = await waiter.run(fn, ...args)
    if (result) return result
    await sleep(5)
  }
}

const beginWait = ({ locks, kept }) => { kept.wait = locks.request('a', () => {}) }

/** Gives the hold of the named lock in front, once it says for whom its thread waits. */
const heldInFront = ({ require }, main) => require(main).snapshot().held.find(({ awaits }) => awaits !== undefined)

test('a report of a stall names process and label of the holder; so does that of a thread behind', async t => {
  const { folder, holder, waiter, who } = await startPair(t, { ATOMICS_WAITASYNC_STALL: '100' })
  await waiter.run(({ kept, require }) => {
    kept.warnings = []
    process.on('warning', ({ code, message, detail }) => kept.warnings.push({ code, message, detail }))
    kept.messages = []
    require('diagnostics_channel').channel('atomics-waitasync:stall').subscribe(message => kept.messages.push(message))
  })
  await waiter.run(beginWait)
  await until(waiter, heldInFront, PACKAGE)
  await waiter.run(({ kept, require }, entry, place) => {
    const { Worker } = require('worker_threads')
    kept.worker = new Worker(`
      process.on('warning', ({ message }) => require('worker_threads').parentPort.postMessage(message))
      require(${JSON.stringify(entry)}).processLocks(${JSON.stringify(place)}).request('a', () => {})
    `, { eval: true })
    kept.behind = new Promise(resolve => kept.worker.once('message', resolve))
  }, ENTRY, folder)
  const [warnings, messages, behind] = await waiter.run(async ({ kept }) => {
    const text = await kept.behind
    return [kept.warnings.filter(({ code }) => code === 'ATOMICS_WAITASYNC_STALL'), kept.messages, text]
  })
  const plain = text => text.replace(/\d+(\.\d+)? (ms|s)\b/g, 'T').replace(/, taken at eval [^;]*/, '')
  const pending = 'has been pending for T waiting for the lock'
  assert.deepStrictEqual(warnings.map(({ message }) => plain(message)), [
    `A promise of the main thread ${pending} "a" of files ${folder}:\n  held by ${who}`
  ])
  assert.match(warnings[0].detail, /beginWait|eval/)
  const [{ entry, holders, process: told, threadId }] = messages
  assert.deepStrictEqual(
    [entry.kind, entry.name, entry.blocked, holders, told.pid, told.label, threadId],
    ['named', `files ${folder}: a`, false, [], holder.pid, LABEL, 0]
  )
  assert.strictEqual(plain(behind), [
    `A promise of thread 1 ${pending} named ${JSON.stringify(`files ${folder}: a`)}:`,
    `  held for T by the main thread; it waits for ${who}, which has the lock`
  ].join('\n'))
  await holder.release('a')
  await waiter.run(({ kept }) => kept.wait)
  assert.strictEqual(await waiter.run(heldInFront, PACKAGE), undefined)
})

test('reports of waits that began together come in the contexts of their requests', async t => {
  const { holder, waiter } = await startPair(t, { ATOMICS_WAITASYNC_STALL: '100' })
  await holder.hold('b')
  await waiter.run(({ kept, locks, require }) => {
    const context = new (require('async_hooks').AsyncLocalStorage)()
    kept.contexts = []
    process.on('warning', ({ message }) => kept.contexts.push([/lock "(.)"/.exec(message)[1], context.getStore()]))
    kept.waits = ['a', 'b'].map(name => context.run(name, () => locks.request(name, () => {})))
  })
  const contexts = await until(waiter, ({ kept }) => kept.contexts.length > 1 && kept.contexts)
  assert.deepStrictEqual(contexts.sort(), [['a', 'a'], ['b', 'b']])
  for (const name of ['a', 'b']) await holder.release(name)
  await waiter.run(({ kept }) => Promise.all(kept.waits))
})

test('a wait for a thread that waits for another process says so, however early', async t => {
  const { folder, holder, waiter, who } = await startPair(t, { ATOMICS_WAITASYNC_STALL: String(300 * slowness) })
  const doing = await waiter.run(async ({ api, kept, locks, require }, main) => {
    const { AsyncLock } = require(main)
    const { Worker } = require('worker_threads')
    const lock = new AsyncLock()
    const token = lock.tryLock()
    const worker = new Worker(`
      process.on('warning', ({ message }) => require('worker_threads').parentPort.postMessage(message))
      new (require(${JSON.stringify(main)}).AsyncLock)(require('worker_threads').workerData).lockAsync()
      setInterval(() => {}, 1e6)
    `, { eval: true, workerData: lock.buffer })
    while (lock.waiters === 0) await new Promise(setImmediate)
    kept.wait = locks.request('a', () => {})
    const text = await new Promise(resolve => worker.once('message', resolve))
    token.unlock()
    await worker.terminate()
    return text
  }, PACKAGE)
  const [, told] = /; it waits for (.*)$/.exec(doing)
  const awaited = `which has the lock ${JSON.stringify(`files ${folder}: a`)}`
  assert.ok([`another process, ${awaited}`, `${who}, ${awaited}`].includes(told), doing)
  await holder.release('a')
})

test('a snapshot says that it is another process, before the engine has said which', async t => {
  const { holder, waiter } = await startPair(t, { ATOMICS_WAITASYNC_STALL: '300' })
  await waiter.run(({ engine, kept, locks, require }, main) => {
    const { query } = engine
    engine.query = function (...args) {
      if (kept.seen === undefined) kept.seen = require(main).snapshot().held.map(({ awaits }) => String(awaits))
      return query.apply(this, args)
    }
    kept.wait = locks.request('a', () => {})
  }, PACKAGE)
  assert.deepStrictEqual(await until(waiter, ({ kept }) => kept.seen), ['another process'])
  await holder.release('a')
})

/** A thread's part of a cycle of a lock and one of processes: each takes one, and then the other. */
const PARTS = {
  async withCallback ({ both, lock, locks }) {
    await locks.request('a', async function withReport () {
      await both()
      await (function thenOrders () { return lock.executeLocked(() => {}) })()
    })
  },
  async withToken ({ both, lock, locks }) {
    await (function withReport () { return locks.hold('a') })()
    await both()
    await (function thenOrders () { return lock.executeLocked(() => {}) })()
  },
  async other ({ both, lock, locks }) {
    await lock.executeLocked(async function withOrders () {
      await both()
      await (function thenReport () { return locks.request('a', () => {}) })()
    })
  }
}

for (const first of ['withCallback', 'withToken']) {
  test(`a cycle of a lock and one of processes is one report of the program's lines: ${first}`, async t => {
    const folder = scratchFolder(t)
    const member = await startMember(t, folder, {}, { ATOMICS_WAITASYNC_STALL: '300' })
    const source = part => `
      const { AsyncLock } = require(${JSON.stringify(PACKAGE)})
      const { parentPort, workerData: memory } = require('worker_threads')
      process.on('warning', ({ message }) => { if (/^These threads/.test(message)) parentPort.postMessage(message) })
      const words = new Int32Array(memory)
      const both = async () => {
        Atomics.add(words, 1, 1)
        while (Atomics.load(words, 1) < 2) await new Promise(resolve => setTimeout(resolve, 5))
      }
      const locks = require(${JSON.stringify(ENTRY)}).processLocks(${JSON.stringify(folder)})
      const { ${part.name} } = { ${part} }
      ${part.name}({ both, lock: new AsyncLock(memory, { name: 'orders' }), locks })
      setInterval(() => {}, 1e6)`
    const text = await member.run(async ({ require }, sources) => {
      const { Worker } = require('worker_threads')
      const workerData = new SharedArrayBuffer(8)
      const workers = sources.map(source => new Worker(source, { eval: true, workerData }))
      const told = await Promise.race(workers.map(worker => new Promise(resolve => worker.once('message', resolve))))
      await Promise.all(workers.map(worker => worker.terminate()))
      return told
    }, [PARTS[first], PARTS.other].map(source))
    assert.match(text, /^These threads probably wait for one another:\n/)
    const lines = text.split('\n').slice(1).map(line => line.match(/(?<=at )\w+(?= \()/g)).sort()
    const taken = first === 'withToken' ? 'withReport' : 'withCallback'
    assert.deepStrictEqual(lines, [['thenOrders', 'other'], ['thenReport', taken]], text)
  })
}

test('a cycle of an AsyncLock and a lock of processes: found, with the lines of the program', async t => {
  const folder = scratchFolder(t)
  const member = await startMember(t, folder, {}, { ATOMICS_WAITASYNC_STALL: '100' })
  const { cycles, taken } = await member.run(async ({ locks, require, sleep }, main, entry, place) => {
    const { Worker } = require('worker_threads')
    const { AsyncLock, snapshot } = require(main)
    const lock = AsyncLock.create()
    const worker = new Worker(`
      const { parentPort, workerData } = require('worker_threads')
      const { AsyncLock } = require(${JSON.stringify(main)})
      require(${JSON.stringify(entry)}).processLocks(${JSON.stringify(place)}).request('a', async () => {
        parentPort.postMessage('has it')
        await new AsyncLock(workerData).executeLocked(() => {})
      })
    `, { eval: true, workerData: lock.buffer })
    lock.executeLocked(async () => {
      await new Promise(resolve => worker.once('message', resolve))
      await locks.request('a', () => {})
    })
    for (;;) {
      await sleep(5)
      const { cycles, held } = snapshot()
      if (cycles.length === 0) continue
      return { cycles: cycles.map(links => links.length), taken: held.map(entry => [entry.kind, entry.taken]) }
    }
  }, PACKAGE, ENTRY, folder)
  assert.deepStrictEqual(cycles, [2])
  for (const [kind, stack] of taken) assert.ok(!stack.split('\n')[0].includes(path.join(PACKAGE, 'lib')), kind + stack)
})

/** Programs of one thread that wait for a lock of processes which they hold: one alone, or in a cycle. */
const HANGS = {
  async ofCallback ({ locks }) {
    await locks.request('a', async function outer () {
      await (function inner () { return locks.request('a', () => {}) })()
    })
  },
  async ofToken ({ locks }) {
    await (function outer () { return locks.hold('a') })()
    await (function inner () { return locks.request('a', () => {}) })()
  },
  async crossed ({ lock, locks, pause }) {
    const report = () => locks.request('a', async function outer () {
      await pause()
      await (function inner () { return lock.executeLocked(() => {}) })()
    })
    const orders = () => lock.executeLocked(async function outerToo () {
      await pause()
      await (function innerToo () { return locks.request('a', () => {}) })()
    })
    await Promise.all([report(), orders()])
  }
}

for (const [how, expected] of Object.entries({
  ofCallback: [/This task probably waits for what it holds itself:\n.* at inner \(.*, taken at Object.ofCallback \(/],
  ofToken: [/the lock named .*:\n {2}held for .*, taken at outer \(.*; it is the same thread\n {4}at inner \(/],
  crossed: [
    /These tasks of one thread probably wait for one another:\n/,
    /has awaited AsyncLock "orders" .* at inner \(.*, taken at orders \(/,
    /has awaited the lock named ".*: a" .* at innerToo \(.*, taken at report \(/
  ]
})) {
  for (const isDry of [true, false]) {
    const code = `ATOMICS_WAITASYNC_${isDry ? 'PENDING' : 'STALL'}`
    test(`a thread that waits for a lock of processes that it holds is told by ${code}: ${how}`, async t => {
      const { stderr } = await runNode(t, ['-e', `
        const { AsyncLock } = require(${JSON.stringify(PACKAGE)})
        const locks = require(${JSON.stringify(ENTRY)}).processLocks(${JSON.stringify(scratchFolder(t))})
        const pause = () => new Promise(resolve => setTimeout(resolve, 5))
        const timer = ${isDry} ? undefined : setInterval(() => {}, 1000)
        process.once('warning', () => clearInterval(timer))
        ;({ ${HANGS[how]} }).${how}({ lock: AsyncLock.create({ name: 'orders' }), locks, pause })
      `], { env: { ATOMICS_WAITASYNC_STALL: '300' } })
      assert.ok(stderr.split('\n')[0].includes(`[${code}]`), stderr)
      for (const pattern of expected) assert.match(stderr, pattern)
    })
  }
}

test('without a variable that asks for it, a snapshot says after a second that it is another process', async t => {
  const { holder, waiter } = await startPair(t, { ATOMICS_WAITASYNC_STALL: '', ATOMICS_WAITASYNC_DUMP: '' })
  await waiter.run(beginWait)
  const { awaits, kind, threadId } = await until(waiter, heldInFront, PACKAGE)
  assert.deepStrictEqual([awaits, kind, threadId], ['another process', 'named', 0])
  await holder.release('a')
  await waiter.run(({ kept }) => kept.wait)
})

test('a dump and formatSnapshot name process and label of the holder', { skip: SIGNALS }, async t => {
  const { folder, waiter, who } = await startPair(t, { ATOMICS_WAITASYNC_DUMP: 'SIGQUIT' })
  await waiter.run(beginWait)
  await until(waiter, heldInFront, PACKAGE)
  const told = [
    `the lock named ${JSON.stringify(`files ${folder}: a`)}, id N`,
    '  held by  the main thread  exclusive  for at least T',
    `      it waits for ${who}, which has the lock`
  ].join('\n')
  const plain = text => text.replace(/, id \d+/, ', id N').replace(/at least .*/, 'at least T')
  const format = ({ require }, main) => {
    const { formatSnapshot, snapshot } = require(main)
    return formatSnapshot(JSON.parse(JSON.stringify(snapshot())))
  }
  assert.ok(plain(await waiter.run(format, PACKAGE)).includes(told))
  waiter.child.kill('SIGQUIT')
  while (!plain(waiter.stderr).includes(told)) await sleep(5)
})

test('a TimeoutError names process and label of the holder, also to a thread behind another one', async t => {
  const { folder, holder, waiter, who } = await startPair(t, {})
  await waiter.run(beginWait)
  const message = `Timed out after 20 ms waiting for "a", held by ${who}`
  for (const place of [folder, `${folder}/.`]) {
    const error = await waiter.run(({ api }, way) => api.processLocks(way).request('a', { timeout: 20 }, () => {})
      .catch(late => [late.code, late.message, late.holder.pid, late.holder.label]), place)
    assert.deepStrictEqual(error, ['ERR_TIMEOUT', message, holder.pid, LABEL])
  }
})

test('a thread that blocks for such a lock is reported while it does', async t => {
  const { folder, holder, waiter, who } = await startPair(t, { ATOMICS_WAITASYNC_STALL: '100' })
  await waiter.run(({ kept, require }, entry, place) => {
    const { Worker } = require('worker_threads')
    kept.worker = new Worker(`
      const locks = require(${JSON.stringify(entry)}).processLocks(${JSON.stringify(place)})
      locks.requestSync('a', () => {})
      require('worker_threads').parentPort.postMessage('done')
    `, { eval: true })
    kept.done = new Promise(resolve => kept.worker.once('message', resolve))
  }, ENTRY, folder)
  const told = `waiting for the lock "a" of files ${folder}:\n  held by ${who}\n`
  while (!waiter.stderr.includes(told)) await sleep(5)
  assert.match(waiter.stderr, /\[ATOMICS_WAITASYNC_STALL\] Warning: Thread 1 has been blocked for [\d.]+ m?s /)
  assert.match((await until(waiter, heldInFront, PACKAGE)).awaits, new RegExp(`^process ${holder.pid}`))
  await holder.release('a')
  assert.strictEqual(await waiter.run(({ kept }) => kept.done), 'done')
})
