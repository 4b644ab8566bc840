'use strict'

// ATOMICS_WAITASYNC_DUMP: at a signal, a snapshot is written to the standard error; and formatSnapshot(), whose text that is.

const assert = require('assert')
const { test } = require('../../harness')
const { runNode } = require('../../fixtures/run-node')
const { api } = require('../../subject')
const { memory } = require('../../fixtures/lock-toolbox')
const { MAJOR, runChild, startWorker, until } = require('../../fixtures/queue-toolbox')

const { AsyncLock, Condition, Latch, Queue, RwLock, Semaphore, formatSnapshot, locks, snapshot } = api

const CODE = 'ATOMICS_WAITASYNC_DUMP'
const WINDOWS = process.platform === 'win32' && 'Windows has no such signals'
const IS_NAMED = MAJOR >= 24 && 'threadName' in require('worker_threads')

/** Without what differs from run to run. */
const plain = text => text.replace(/id \d+/g, 'id N').replace(/\d+(\.\d+)? (ms|s|min|h)\b/g, 'T').replace(/\(node:\d+\)/g, '(node:P)')
const dumpsIn = stderr => stderr.split(`[${CODE}] `).slice(1)
const isWhole = dump => /\n(\(node:\d+\) )?$/.test(dump)

/**
 * Runs a program with that signal. It gets the signal whenever it has written `signal` to its output, and is killed once there are
 * `count` dumps.
 */
async function run (t, fn, { count = 1, signal = 'SIGQUIT', env = { [CODE]: signal }, data } = {}) {
  let sent = 0
  const result = await runChild(t, fn, data, {
    env,
    onOutput ({ child, lines, stderr }) {
      const dumps = dumpsIn(stderr)
      if (dumps.length === count && dumps.every(isWhole)) child.kill('SIGKILL')
      else while (sent < lines.filter(line => line === 'signal').length) { sent++; child.kill(signal) }
    }
  })
  return Object.assign(result, { dumps: dumpsIn(result.stderr).map(plain) })
}

test('the dump comes while every thread is blocked or busy, and has rings, holders and lines', { skip: WINDOWS }, async t => {
  const { signal, dumps, stderr } = await run(t, async ({ api, startWorker, say, sleep, until, busy }) => {
    const sab = new SharedArrayBuffer(8)
    const [a, b] = [0, 4].map(byteOffset => new api.AsyncLock(sab, { byteOffset, name: 'accounts and orders'.split(' and ')[byteOffset / 4] }))
    a.tryLock()
    startWorker(({ api, data: sab }) => {
      new api.AsyncLock(sab, { byteOffset: 4 }).lock()
      new api.AsyncLock(sab).lock()
    }, sab)
    await until(() => a.waiters === 1)
    await sleep(100)
    b.lockAsync()
    a.lockAsync()
    say('signal')
    busy(1e9)
  })
  assert.strictEqual(signal, 'SIGKILL', stderr)
  assert.deepStrictEqual(dumps, [[
    '2 held, 3 awaited',
    '',
    'These threads probably wait for one another:',
    '  the main thread has awaited AsyncLock "orders" for T, held for at least T by thread 1',
    '  thread 1 has been blocked for T, and waits for AsyncLock "accounts", held for at least T by the main thread',
    '',
    'AsyncLock "accounts", id N',
    '  held by     the main thread  exclusive  for at least T',
    '  blocks      thread 1         exclusive  for T',
    '  awaited by  the main thread  exclusive  for T',
    '',
    'AsyncLock "orders", id N',
    '  held by     thread 1 (blocked)  exclusive  for at least T',
    '  awaited by  the main thread     exclusive  for T',
    ''
  ].join('\n')], stderr)
})

test('listeners of the program hear the signal, too, before and after they are added, added once, and removed', { skip: WINDOWS }, async t => {
  const { lines, dumps, stderr } = await run(t, async ({ api, say, until }) => {
    api.snapshot()
    let heard = 0
    const dumped = () => new Promise(resolve => setTimeout(resolve, 300))
    const signal = async (expected) => {
      const before = heard
      say('signal')
      await until(() => heard === before + expected)
      await dumped()
      say(`heard ${heard}`)
    }
    const hear = () => { heard++ }
    await signal(0)
    process.on('SIGQUIT', hear)
    await signal(1)
    process.once('SIGQUIT', hear)
    await signal(2)
    await signal(1)
    process.removeListener('SIGQUIT', hear)
    await signal(0)
    process.once('SIGQUIT', hear)
    await signal(1)
    await signal(0)
    setInterval(() => {}, 1e6)
  }, { count: 7 })
  assert.deepStrictEqual(lines.filter(line => line !== 'signal').slice(0, 6), ['heard 0', 'heard 1', 'heard 3', 'heard 4', 'heard 4', 'heard 5'], stderr)
  assert.deepStrictEqual(dumps, Array.from({ length: 7 }, (_, n) => '0 held, 0 awaited\n' + (n < 6 ? '(node:P) ' : '')), stderr)
})

test('a program that does not use the package yet is dumped, by each entry', { skip: WINDOWS }, async t => {
  for (const entry of ['index', 'force', 'keep-alive', 'pure', 'web-locks']) {
    const source = `require(${JSON.stringify(require.resolve(`../../../${entry}`))}); process.kill(process.pid, 'SIGQUIT'); setTimeout(() => {}, 500)`
    const { code, stderr } = await runNode(t, ['-e', source], { env: { [CODE]: 'SIGQUIT' } })
    assert.deepStrictEqual([code, dumpsIn(stderr)], [0, ['0 held, 0 awaited\n']], entry + stderr)
  }
})

test('a name that is no such signal is reported once, and the program goes on', async t => {
  for (const name of ['SIGKILL', 'SIGUSR1', 'sigquit', '3']) {
    const { code, lines, stderr } = await runChild(t, async ({ api, startWorker, say }) => {
      api.snapshot()
      await startWorker(({ api }) => { api.snapshot() }).done()
      say('goes on')
    }, undefined, { env: { [CODE]: name } })
    assert.deepStrictEqual([code, lines], [0, ['goes on']], stderr)
    const reports = stderr.split('\n').filter(line => line.includes(`[${CODE}]`))
    assert.strictEqual(reports.length, 1, stderr)
    const expected = WINDOWS ? 'has no effect: this system has no such signals' : `must be one of SIGQUIT, SIGUSR2, SIGHUP, SIGALRM, SIGURG, SIGWINCH, not "${name}"`
    assert.ok(reports[0].endsWith(`Warning: ${CODE} ${expected}`), stderr)
  }
})

test('the thread that dumps keeps no program running, and a pipe that nobody reads stops only the dump', { skip: WINDOWS }, async t => {
  const { code, lines, stderr } = await runChild(t, async ({ data, require, say }) => {
    const { spawn } = require('child_process')
    // Its standard error is never read, and 100 dumps of 500 lines do not fit.
    const child = spawn(process.execPath, process.execArgv.concat('-e', `
      const { AsyncLock } = require(${JSON.stringify(data)})
      for (let n = 0; n < 500; n++) AsyncLock.create().tryLock()
      const lock = AsyncLock.create()
      lock.tryLock()
      for (let n = 0; n < 100; n++) process.kill(process.pid, 'SIGQUIT')
      let n = 0
      const next = () => lock.lockAsync({ timeout: 5 }).catch(() => { if (++n === 100) process.exit(7); process.kill(process.pid, 'SIGQUIT'); next() })
      next()
    `), { stdio: ['ignore', 'ignore', 'pipe'] })
    child.stderr.pause()
    const code = await new Promise(resolve => child.on('exit', resolve))
    say(`ended with ${code}`)
    process.exit()
  }, require.resolve('../../../index.js'), { env: { [CODE]: 'SIGQUIT' } })
  assert.deepStrictEqual([code, lines], [0, ['ended with 7']], stderr)
})

test('formatSnapshot has each kind of hold and wait, and takes what has been sent as JSON', async t => {
  const sab = memory(64)
  const at = (byteOffset, more) => Object.assign({ byteOffset }, more)
  const semaphore = new Semaphore(sab, at(8, { name: 'connections "to" the\nbase' }))
  semaphore.release(5)
  const end = []
  const tokens = [new AsyncLock(sab).tryLock(), new RwLock(sab, at(4)).tryLockShared()]
  const used = [
    semaphore.use(3, () => new Promise(resolve => end.push(resolve))),
    locks.request('cache', () => new Promise(resolve => end.push(resolve)))
  ]
  const waits = [new RwLock(sab, at(4)).lockAsync(), new Latch(sab, at(12, { count: 1 })).waitAsync(), semaphore.acquireAsync(3)]
  const queue = Queue.create({ capacity: 1, messageSize: 8 })
  const [taken, wanted] = [queue.takeAsync(), locks.request('cache', { mode: 'shared' }, () => {})]
  const condition = new Condition(sab, at(16))
  const other = AsyncLock.create().tryLock()
  const notified = condition.waitAsync(other)
  await until(() => end.length === 2)
  const text = formatSnapshot(JSON.parse(JSON.stringify(snapshot())))
  const parts = plain(text).split('\n\n')
  assert.strictEqual(parts[0], '4 held, 6 awaited')
  assert.deepStrictEqual(parts.slice(1).map(part => part.trim()).sort(), [
    'AsyncLock, id N\n  held by  the main thread  exclusive  for at least T',
    'Condition, id N\n  awaited by  the main thread    for T',
    'Latch, id N\n  awaited by  the main thread    for T',
    'Queue, id N\n  awaited by  the main thread  take  for T',
    'RwLock, id N\n  held by     the main thread  shared     for at least T\n  awaited by  the main thread  exclusive  for T',
    'Semaphore "connections \\"to\\" the\\u000abase", id N\n  held by     the main thread  3 permits  for at least T\n  awaited by  the main thread  3 permits  for T',
    'the lock named "cache", id N\n  held by     the main thread  exclusive  for at least T\n  awaited by  the main thread  shared     for T'
  ])
  for (const token of tokens) token.unlock()
  for (const each of end) each()
  semaphore.release()
  new Latch(sab, at(12, { count: 1 })).countDown()
  queue.tryPut('x')
  condition.notify()
  for (const token of [await waits[0]]) token.unlock()
  await Promise.all([...waits, ...used, taken, wanted, notified])
  other.unlock()
})

test('formatSnapshot writes times as people say them, and where it was taken', () => {
  const lock = { kind: 'AsyncLock', mode: 'exclusive', id: 7, threadId: 1, blocked: false }
  const times = [[NaN, ''], [0.4, '0 ms'], [999, '999 ms'], [1000, '1.0 s'], [59940, '59.9 s'], [200000, '3 min 20 s'], [7260000, '2 h 1 min']]
  for (const [milliseconds, text] of times) {
    const held = [Object.assign({}, lock, { milliseconds, threadName: 'billing0', taken: '    at charge (billing.js:27:18)\n    at more' })]
    const line = '  held by  thread 1 "billing0"  exclusive' + (text === '' ? '' : '  for ' + text)
    assert.strictEqual(formatSnapshot({ held, waiting: [], cycles: [] }),
      `1 held, 0 awaited\n\nAsyncLock, id 7\n${line}\n      at charge (billing.js:27:18)\n      at more\n`)
  }
})

test('formatSnapshot of anything else is a TypeError, and an error of a getter is passed on', () => {
  const lock = { kind: 'AsyncLock', id: 7, threadId: 1, blocked: false, milliseconds: 1 }
  const empty = { held: [], waiting: [], cycles: [] }
  const wrong = [
    undefined, null, 7, 'text', {}, [], { held: [], waiting: [] }, Object.assign({}, empty, { held: 7 }), Object.assign({}, empty, { held: [7] }),
    Object.assign({}, empty, { held: [Object.assign({}, lock, { kind: 7 })] }), Object.assign({}, empty, { waiting: [Object.assign({}, lock, { id: 'x' })] }),
    Object.assign({}, empty, { cycles: [7] }), Object.assign({}, empty, { cycles: [[{}]] })
  ]
  for (const value of wrong) assert.throws(() => formatSnapshot(value), { name: 'TypeError', message: /^formatSnapshot: snapshot must be what snapshot\(\) returns, not / })
  const error = new Error('of a getter')
  assert.throws(() => formatSnapshot({ get held () { throw error } }), each => each === error)
  assert.throws(() => formatSnapshot(Object.assign({}, empty, { held: [Object.defineProperty({}, 'kind', { get () { throw error } })] })), each => each === error)
})

test('a thread is called by its name, where Node tells it', { skip: !IS_NAMED && 'this Node does not tell it' }, async t => {
  const { Worker } = require('worker_threads')
  const worker = new Worker(`require(${JSON.stringify(require.resolve('../../../index.js'))}).AsyncLock.create().tryLock(); setInterval(() => {}, 1e6)`, { eval: true, name: 'billing0' })
  t.after(() => worker.terminate())
  await until(() => snapshot().held.length === 1)
  const [entry] = snapshot().held
  assert.deepStrictEqual([entry.threadName, entry.threadId], ['billing0', worker.threadId])
  assert.ok(formatSnapshot(snapshot()).includes(`thread ${worker.threadId} "billing0"`))
  const other = startWorker(t, ({ api }) => { api.AsyncLock.create().tryLock(); setInterval(() => {}, 1e6) })
  other.done().catch(() => {})
  await until(() => snapshot().held.length === 2)
  assert.strictEqual(snapshot().held.filter(entry => 'threadName' in entry).length, 1)
})

test('a Worker that an install reaches is called by its name on every Node, if reports are asked for', async t => {
  const { code, lines, stderr } = await runChild(t, async ({ api, require, say, until }) => {
    const { Worker } = require('worker_threads')
    const pure = JSON.stringify(require.resolve('../../pure'))
    const source = `require(${pure}).AsyncLock.create().tryLock(); setInterval(() => {}, 1e6)`
    const before = Object.getOwnPropertyNames(Object.prototype).join()
    api.install({ force: true })
    class Derived extends Worker {}
    for (const [Class, name] of [[Worker, 'billing0'], [Derived, 'billing "1"'], [Worker, undefined], [Worker, '']]) {
      const options = { eval: true, name }
      const worker = new Class(source, options)
      worker.on('error', error => { throw error })
      if (Object.keys(options).length !== 2 || Object.getOwnPropertyNames(Object.prototype).join() !== before) throw new Error('something is left')
      await until(() => api.snapshot().held.some(({ threadId }) => threadId === worker.threadId))
    }
    // A constructor that throws leaves nothing, and neither does one without options.
    try { new Worker(source, { eval: true, execArgv: 7 }) } catch (_) {} // eslint-disable-line no-new
    new Worker(require.resolve('../../pure')) // eslint-disable-line no-new
    await new Promise(resolve => setImmediate(resolve))
    if (Object.getOwnPropertyNames(Object.prototype).join() !== before) throw new Error('something is left')
    say(JSON.stringify(api.snapshot().held.sort((one, two) => one.threadId - two.threadId).map(({ threadName }) => threadName || null)))
    process.exit()
  }, undefined, { env: { ATOMICS_WAITASYNC_STALL: '100000' } })
  assert.deepStrictEqual([code, lines], [0, [JSON.stringify(['billing0', 'billing "1"', null, null])]], stderr)
})
