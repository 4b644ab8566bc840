'use strict'

// ATOMICS_WAITASYNC_DUMP: a signal writes a snapshot to the standard error; and formatSnapshot(), whose text that is.

const assert = require('assert')
const fs = require('fs')
const { test } = require('../../harness')
const { NEVER, run } = require('../../fixtures/programs')
const { runNode } = require('../../fixtures/run-node')
const { api } = require('../../subject')
const { MAJOR, startWorker, until } = require('../../fixtures/queue-toolbox')

const { AsyncLock, Condition, Latch, Queue, RwLock, Semaphore, formatSnapshot, locks, snapshot } = api

const CODE = 'ATOMICS_WAITASYNC_DUMP'
const env = { [CODE]: 'SIGQUIT' }
const isWindows = process.platform === 'win32'
const needsSignals = { skip: isWindows && 'Windows has no such signals' }
const isNamed = MAJOR >= 24 && 'threadName' in require('worker_threads')
const needsName = { skip: !isNamed && 'this Node does not tell it' }

/** Removes the parts that differ from run to run. */
const plain = text => text.replace(/id \d+/g, 'id N').replace(/\d+(\.\d+)? (ms|s|min|h)\b/g, 'T')
  .replace(/\(node:\d+\)/g, '(node:P)')
const dumpsIn = stderr => stderr.split(`[${CODE}] `).slice(1)
const isWhole = dump => /\n(\(node:\d+\) )?$/.test(dump)

/** Runs a program until there are `count` dumps, and kills it. It gets the signal whenever it has written `signal`. */
async function runUntilDumped (t, count, fn) {
  let sent = 0
  const result = await run(t, {
    env,
    onOutput ({ child, lines, stderr }) {
      const dumps = dumpsIn(stderr)
      if (dumps.length === count && dumps.every(isWhole)) child.kill('SIGKILL')
      else for (; sent < lines.filter(line => line === 'signal').length; sent++) child.kill('SIGQUIT')
    }
  }, fn)
  return Object.assign(result, { dumps: dumpsIn(result.stderr).map(plain) })
}

test('a dump comes while every thread is blocked or busy: cycles, holders and lines', needsSignals, async t => {
  const { signal, dumps, stderr } = await runUntilDumped(t, 1, async scope => {
    const { busy, heldLock, newLock, say, sleep, startWorker, until } = scope
    const [a, b] = [heldLock('accounts'), newLock('orders')]
    startWorker([b, a], ({ api, data }) => { for (const lock of data) new api.AsyncLock(lock).lock() })
    await until(() => a.waiters === 1)
    await sleep(100)
    b.lockAsync()
    a.lockAsync()
    say('signal')
    busy(1e9)
  })
  assert.strictEqual(signal, 'SIGKILL', stderr)
  assert.deepStrictEqual(dumps, [`2 held, 3 awaited

These threads probably wait for one another:
  the main thread has awaited AsyncLock "orders" for T, held for at least T by thread 1
  thread 1 has been blocked for T waiting for AsyncLock "accounts", held for at least T by the main thread

AsyncLock "accounts", id N
  held by     the main thread  exclusive  for at least T
  blocks      thread 1         exclusive  for T
  awaited by  the main thread  exclusive  for T

AsyncLock "orders", id N
  held by     thread 1 (blocked)  exclusive  for at least T
  awaited by  the main thread     exclusive  for T

ATOMICS_WAITASYNC_STALL=<milliseconds> in the environment adds where these were taken and awaited.
`], stderr)
})

test('listeners of the program hear the signal, too, as long as they are there', needsSignals, async t => {
  const { lines, dumps, stderr } = await runUntilDumped(t, 7, async ({ api, say, sleep, until }) => {
    api.snapshot()
    let heard = 0
    const signal = async (expected) => {
      const before = heard
      say('signal')
      await until(() => heard === before + expected)
      await sleep(300)
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
  })
  const heard = lines.filter(line => line !== 'signal').slice(0, 6)
  assert.deepStrictEqual(heard, [0, 1, 3, 4, 4, 5].map(n => `heard ${n}`), stderr)
  const text = '0 held, 0 awaited\n'
  assert.deepStrictEqual(dumps, [...new Array(6).fill(text + '(node:P) '), text], stderr)
})

test('a program that starts children goes on, however many signals interrupt one another', needsSignals, async t => {
  // libuv's handler takes a lock, so no other signal may interrupt it.
  const { code, lines, stderr } = await run(t, { env }, async ({ api, require, say }) => {
    const { spawn } = require('child_process')
    api.snapshot()
    let [heard, ended] = [0, 0]
    const start = (command, ...args) => spawn(command, args, { stdio: 'ignore' })
    const startNext = () => start('true').on('exit', () => { ended++ }).on('exit', startNext)
    const enough = new Promise(resolve => {
      process.on('SIGQUIT', () => { if (++heard >= 200 && ended >= 50) resolve() })
    })
    for (let n = 0; n < 4; n++) startNext()
    const sender = start('sh', '-c', `while kill -s QUIT ${process.pid}; do sleep 0.001; done 2> /dev/null`)
    await enough
    sender.kill('SIGKILL')
    say('goes on')
    process.exit()
  })
  assert.deepStrictEqual([code, lines], [0, ['goes on']], stderr.slice(-2000))
})

test('a program that does not use the package yet is dumped, by each entry', needsSignals, async t => {
  for (const entry of ['index', 'force', 'keep-alive', 'pure', 'web-locks']) {
    const source = `
      require(${JSON.stringify(require.resolve(`../../../${entry}`))})
      process.kill(process.pid, 'SIGQUIT')
      setTimeout(() => {}, 500)`
    const { code, stderr } = await runNode(t, ['-e', source], { env })
    assert.deepStrictEqual([code, dumpsIn(stderr)], [0, ['0 held, 0 awaited\n']], entry + stderr)
  }
})

test('a name that is no such signal is reported once, and the program goes on', async t => {
  const allowed = 'must be one of SIGQUIT, SIGUSR2, SIGHUP, SIGALRM, SIGURG, SIGWINCH, not'
  for (const name of ['SIGKILL', 'SIGUSR1', 'sigquit', '3']) {
    const { code, lines, stderr } = await run(t, { env: { [CODE]: name } }, async ({ api, startWorker, say }) => {
      api.snapshot()
      await startWorker(({ api }) => { api.snapshot() }).done()
      say('goes on')
    })
    assert.deepStrictEqual([code, lines], [0, ['goes on']], stderr)
    const reports = stderr.split('\n').filter(line => line.includes(`[${CODE}]`))
    assert.strictEqual(reports.length, 1, stderr)
    const expected = isWindows ? 'has no effect: this system has no such signals' : `${allowed} "${name}"`
    assert.ok(reports[0].endsWith(`Warning: ${CODE} ${expected}`), stderr)
  }
})

test('the dumping thread keeps no program running; a pipe that nobody reads stops it alone', needsSignals, async t => {
  const data = require.resolve('../../../index.js')
  const { code, lines, stderr } = await run(t, { env, data }, async ({ data, require, say }) => {
    const { spawn } = require('child_process')
    // Its standard error is never read, and 100 dumps of 500 lines do not fit.
    const child = spawn(process.execPath, process.execArgv.concat('-e', `
      const { AsyncLock } = require(${JSON.stringify(data)})
      for (let n = 0; n < 500; n++) AsyncLock.create().tryLock()
      const lock = AsyncLock.create()
      lock.tryLock()
      for (let n = 0; n < 100; n++) process.kill(process.pid, 'SIGQUIT')
      let n = 0
      const next = () => lock.lockAsync({ timeout: 5 }).catch(() => {
        if (++n === 100) process.exit(7)
        process.kill(process.pid, 'SIGQUIT')
        next()
      })
      next()`), { stdio: ['ignore', 'ignore', 'pipe'] })
    child.stderr.pause()
    const code = await new Promise(resolve => child.on('exit', resolve))
    say(`ended with ${code}`)
    process.exit()
  })
  assert.deepStrictEqual([code, lines], [0, ['ended with 7']], stderr)
})

test('formatSnapshot has each kind of hold and wait, and takes what has been sent as JSON', async t => {
  const semaphore = Semaphore.create({ name: 'connections "to" the\nbase' })
  semaphore.release(5)
  const [lock, rw, other, condition] = [new AsyncLock(), new RwLock(), new AsyncLock(), new Condition()]
  const latch = Latch.create({ count: 1 })
  const queue = Queue.create({ capacity: 1, messageSize: 8 })
  const ends = []
  const untilEnd = () => new Promise(resolve => ends.push(resolve))
  const tokens = [lock.tryLock(), rw.tryLockShared()]
  const token = other.tryLock()
  const waits = [
    semaphore.use(3, untilEnd), locks.request('cache', untilEnd), locks.request('cache', { mode: 'shared' }, () => {}),
    rw.executeLocked(() => {}), latch.waitAsync(), semaphore.acquireAsync(3), queue.takeAsync(),
    condition.waitAsync(token)
  ]
  await until(() => ends.length === 2)
  const text = formatSnapshot(JSON.parse(JSON.stringify(snapshot())))
  const [head, ...parts] = plain(text).split('\n\n')
  assert.strictEqual(head, '4 held, 6 awaited')
  assert.deepStrictEqual(parts.map(part => part.trim()).sort(), `
AsyncLock, id N
  held by  the main thread  exclusive  for at least T

Condition, id N
  awaited by  the main thread    for T

Latch, id N
  awaited by  the main thread    for T

Queue, id N
  awaited by  the main thread  take  for T

RwLock, id N
  held by     the main thread  shared     for at least T
  awaited by  the main thread  exclusive  for T

Semaphore "connections \\"to\\" the\\u000abase", id N
  held by     the main thread  3 permits  for at least T
  awaited by  the main thread  3 permits  for T

the lock named "cache", id N
  held by     the main thread  exclusive  for at least T
  awaited by  the main thread  shared     for T`.trim().split('\n\n'))
  for (const token of tokens) token.unlock()
  for (const end of ends) end()
  semaphore.release()
  latch.countDown()
  queue.tryPut('x')
  condition.notify()
  await Promise.all(waits)
  token.unlock()
})

test('formatSnapshot writes times as people say them, and where it was taken', () => {
  const lock = { kind: 'AsyncLock', mode: 'exclusive', id: 7, threadId: 1, blocked: false }
  const taken = '    at charge (billing.js:27:18)\n    at more'
  const times = {
    NaN: '',
    0.4: '0 ms',
    999: '999 ms',
    999.6: '1.0 s',
    1e3: '1.0 s',
    59940: '59.9 s',
    59960: '1 min 0 s',
    119700: '2 min 0 s',
    2e5: '3 min 20 s',
    3599600: '1 h 0 min',
    7199000: '2 h 0 min',
    726e4: '2 h 1 min'
  }
  for (const milliseconds of Object.keys(times)) {
    const held = [Object.assign({}, lock, { milliseconds: Number(milliseconds), threadName: 'billing0', taken })]
    const text = times[milliseconds] && `  for ${times[milliseconds]}`
    assert.strictEqual(formatSnapshot({ held, waiting: [], cycles: [] }), `1 held, 0 awaited

AsyncLock, id 7
  held by  thread 1 "billing0"  exclusive${text}
      at charge (billing.js:27:18)
      at more
`)
  }
})

test('a name in a text has no character that a terminal obeys or hides', () => {
  const name = 'a\u001b[2J\u007f\u009b1m\u202eb\u200b\ufeffé–'
  const lock = { kind: 'AsyncLock', mode: 'exclusive', name, id: 7, threadId: 1, blocked: false, milliseconds: 1 }
  const shown = 'a\\u001b[2J\\u007f\\u009b1m\\u202eb\\u200b\\ufeffé–'
  assert.ok(formatSnapshot({ held: [lock], waiting: [], cycles: [] }).includes(`AsyncLock "${shown}"`))
})

test('formatSnapshot of anything else is a TypeError, and an error of a getter is passed on', () => {
  const lock = { kind: 'AsyncLock', id: 7, threadId: 1, blocked: false, milliseconds: 1 }
  const empty = { held: [], waiting: [], cycles: [] }
  const having = (key, value) => Object.assign({}, empty, { [key]: value })
  const wrong = [
    undefined, null, 7, 'text', {}, [], { held: [], waiting: [] }, having('held', 7), having('held', [7]),
    having('held', [Object.assign({}, lock, { kind: 7 })]), having('waiting', [Object.assign({}, lock, { id: 'x' })]),
    having('cycles', [7]), having('cycles', [[{}]])
  ]
  const message = /^formatSnapshot: snapshot must be what snapshot\(\) returns, not /
  for (const value of wrong) assert.throws(() => formatSnapshot(value), { name: 'TypeError', message })
  const error = new Error('of a getter')
  const throwing = key => Object.defineProperty({}, key, { get () { throw error } })
  for (const value of [throwing('held'), having('held', [throwing('kind')])]) {
    assert.throws(() => formatSnapshot(value), each => each === error)
  }
})

test('a thread is called by its name, where Node tells it', needsName, async t => {
  const { Worker } = require('worker_threads')
  const path = JSON.stringify(require.resolve('../../../index.js'))
  const source = `require(${path}).AsyncLock.create().tryLock(); setInterval(() => {}, 1e6)`
  const worker = new Worker(source, { eval: true, name: 'billing0' })
  t.after(() => worker.terminate())
  await until(() => snapshot().held.length === 1)
  const [entry] = snapshot().held
  assert.deepStrictEqual([entry.threadName, entry.threadId], ['billing0', worker.threadId])
  assert.ok(formatSnapshot(snapshot()).includes(`thread ${worker.threadId} "billing0"`))
  startWorker(t, null, ({ api }) => {
    api.AsyncLock.create().tryLock()
    setInterval(() => {}, 1e6)
  })
  await until(() => snapshot().held.length === 2)
  assert.strictEqual(snapshot().held.filter(entry => 'threadName' in entry).length, 1)
})

test('a Worker that an install reaches is called by its name on every Node, if reports are asked for', async t => {
  const { code, told, stderr } = await run(t, { after: NEVER }, async ({ api, require, tell, turn, until }) => {
    const { Worker } = require('worker_threads')
    const pure = JSON.stringify(require.resolve('../../pure'))
    const source = `require(${pure}).AsyncLock.create().tryLock(); setInterval(() => {}, 1e6)`
    const properties = () => Object.getOwnPropertyNames(Object.prototype).join()
    const before = properties()
    const nothingIsLeft = () => { if (properties() !== before) throw new Error('something is left') }
    api.install({ force: true })
    class Derived extends Worker {}
    for (const [Class, name] of [[Worker, 'billing0'], [Derived, 'billing "1"'], [Worker, undefined], [Worker, '']]) {
      const options = { eval: true, name }
      const worker = new Class(source, options)
      worker.on('error', error => { throw error })
      nothingIsLeft()
      if (Object.keys(options).length !== 2) throw new Error('an option is left')
      await until(() => api.snapshot().held.some(({ threadId }) => threadId === worker.threadId))
    }
    // A constructor that throws leaves nothing, and neither does one without options.
    try { new Worker(source, { eval: true, execArgv: 7 }) } catch (_) {} // eslint-disable-line no-new
    new Worker(require.resolve('../../pure')) // eslint-disable-line no-new
    await turn()
    nothingIsLeft()
    const held = api.snapshot().held.sort((one, two) => one.threadId - two.threadId)
    tell(held.map(({ threadName }) => threadName || null))
    process.exit()
  })
  assert.deepStrictEqual([code, told()], [0, [['billing0', 'billing "1"', null, null]]], stderr)
})

/** The state of a process's dump thread, and how many pages of memory it has touched for the first time. */
function dumpThread (pid) {
  for (const thread of fs.readdirSync(`/proc/${pid}/task`)) {
    const [, name, fields] = /\((.*)\) (.*)/.exec(fs.readFileSync(`/proc/${pid}/task/${thread}/stat`, 'utf8'))
    const { 0: state, 7: faults } = fields.split(' ')
    if (name === 'atomics-dump') return [state, Number(faults)]
  }
  return ['', 0]
}

const needsProc = { skip: process.platform !== 'linux' && 'only Linux tells of a thread\'s memory' }
test('a dump for nobody comes before the first signal, which then takes little memory', needsProc, async t => {
  let looks
  let faults
  const { stderr } = await run(t, {
    env,
    onOutput ({ child, lines, stderr }) {
      if (looks === undefined && lines.includes('ready')) {
        // It has begun, and waits for the signal.
        let [before, calm] = [0, 0]
        looks = setInterval(() => {
          const [state, now] = dumpThread(child.pid)
          calm = state === 'S' && now === before ? calm + 1 : 0
          before = now
          if (calm < 20) return
          clearInterval(looks)
          faults = -now
          child.kill('SIGQUIT')
        }, 5)
      } else if (faults < 0 && dumpsIn(stderr).length === 1 && isWhole(dumpsIn(stderr)[0])) {
        faults += dumpThread(child.pid)[1]
        child.kill('SIGKILL')
      }
    }
  }, ({ heldLock, say }) => {
    heldLock('accounts').lockAsync()
    setInterval(() => {}, 1e6)
    say('ready')
  })
  // Seen: one to three, by the version of Node and the layout of the library; without a rehearsal two or three more.
  const most = MAJOR >= 20 && MAJOR < 26 ? 3 : 2
  assert.ok(faults >= 0 && faults <= most, `${faults}: ${stderr}`)
})
