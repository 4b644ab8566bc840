'use strict'
// timeout: 300

// ATOMICS_WAITASYNC_DUMP_NOW: a dump says where each thread is at that moment, as a helper Worker finds out.

const assert = require('assert')
const path = require('path')
const { test } = require('../../harness')
const { packageCopy } = require('../../fixtures/entries/folders')
const { run } = require('../../fixtures/programs')
const { runNode } = require('../../fixtures/run-node')
const { MAJOR } = require('../../fixtures/queue-toolbox')

const CODE = 'ATOMICS_WAITASYNC_DUMP'
const env = { [CODE]: 'SIGQUIT', [`${CODE}_NOW`]: '1' }
const isWindows = process.platform === 'win32'
const needsHelper = { skip: (isWindows || MAJOR < 18) && 'Windows has no such signals, and the helper needs Node 18' }
/** Threads that are short of processor time may not answer in time, so they are asked again. */
const slow = Object.assign({ timeout: 120000 }, needsHelper)
const needsSignals = { skip: isWindows && 'Windows has no such signals' }

const dumpsIn = stderr => stderr.split(`[${CODE}] `).slice(1)
/** Whether a dump is there to its end. The first ones may come before there is the helper. */
const isWhole = dump => /\n(?:\(node:\d+\) )?$/.test(dump)

/** Returns the last section of a dump: the lines of each thread, by its number. */
function threadsIn (dump) {
  const threads = {}
  let names = []
  for (const line of (dump.split('\nNow:\n')[1] || '').split('\n')) {
    if (/^ {2}\S/.test(line)) {
      names = line.trim().split(', ')
        .map(name => name === 'the main thread' ? 0 : Number(/^thread (\d+)/.exec(name)[1]))
      for (const name of names) threads[name] = []
    } else if (line !== '') {
      for (const name of names) threads[name].push(line.trim())
    }
  }
  return threads
}

const NO_ANSWER = /^(?:in native code|unknown)/

/**
 * Runs a program that writes `signal` when it hangs, and dumps it until each thread was seen where it is. On a busy
 * machine some do not answer in time, but none may be seen elsewhere. Gives all dumps.
 * @param {Object<number, string>} places the beginning of each thread's first line
 */
async function dumpOf (t, places, fn, data) {
  const seen = new Set()
  let signals = 0
  const all = []
  let wrong
  // A thread that has no processor time looks as if it was in native code, and an idle one may begin something.
  const isSeen = name => seen.has(name) && places[name].startsWith('at ')
  const look = dump => {
    all.push(dump)
    const threads = threadsIn(dump)
    for (const name of Object.keys(threads)) {
      const [line] = threads[name]
      if (places[name] === undefined) wrong = dump
      else if (line.startsWith(places[name])) seen.add(name)
      // It may not have come there yet.
      else if (line.startsWith('idle') || (isSeen(name) && !NO_ANSWER.test(line))) wrong = dump
    }
    return wrong !== undefined || seen.size === Object.keys(places).length
  }
  const onOutput = ({ child, lines, stderr }) => {
    if (!lines.includes('signal')) return
    const dump = dumpsIn(stderr)[signals - 1]
    if (signals > 0 && (dump === undefined || !isWhole(dump))) return
    if (signals > 0 && look(dump)) child.kill('SIGKILL')
    else if (++signals > 1000) child.kill('SIGKILL')
    else child.kill('SIGQUIT')
  }
  await run(t, { env, data, onOutput }, fn)
  assert.strictEqual(wrong, undefined, wrong)
  assert.deepStrictEqual([...seen].sort(), Object.keys(places).sort(), all[all.length - 1])
  return all
}

test('each thread is where it is: in a loop, in a lock, in a wait, in a native call, or idle', slow, async t => {
  // The helper has been started before the others.
  const places = {
    0: 'at spins (', 2: 'at locks (', 3: 'at waits (', 4: 'idle, in its event loop', 5: 'in native code'
  }
  const dumps = await dumpOf(t, places, async ({ api, heldLock, say, startWorker, until }) => {
    const lock = heldLock('accounts')
    startWorker(lock, ({ api, data }) => { (function locks () { new api.AsyncLock(data).lock() }()) })
    startWorker(() => {
      (function waits () { Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1e6) }())
    })
    startWorker(() => { setInterval(() => {}, 1e6) })
    startWorker(({ require }) => {
      (function calls () { require('child_process').execFileSync('sleep', ['1000']) }())
    })
    await until(() => lock.waiters === 1)
    say('signal')
    ;(function spins () { for (;;); }())
  })
  assert.ok(dumps.some(dump => dump.includes('      now at spins (')), dumps[dumps.length - 1])
  // None of the package's frames, and no more than ten.
  const threads = [].concat(...dumps.map(dump => Object.values(threadsIn(dump))))
  assert.deepStrictEqual([].concat(...threads).filter(line => /[\\/]lib[\\/]/.test(line)), [])
  assert.ok(threads.every(lines => lines.length <= 10))
})

test('a Worker in a regular expression, and one without the package in a loop', slow, async t => {
  const places = { 0: 'idle, in its event loop', 2: 'at matches (', 3: 'at spins (' }
  await dumpOf(t, places, async ({ api, keep, require, say, startWorker }) => {
    const { Worker } = require('worker_threads')
    api.snapshot()
    startWorker(({ api }) => {
      api.snapshot()
      ;(function matches () { /^(a+)+$/.test('a'.repeat(60) + 'b') }())
    })
    keep(new Worker('(function spins () { for (;;); }())', { eval: true }))
    say('signal')
  })
})

test('frames of another copy of the package are left out, also of one that a single Worker has', slow, async t => {
  const places = { 0: 'idle, in its event loop', 2: 'at locks (' }
  const dumps = await dumpOf(t, places, async ({ data, heldLock, keep, require, say, until }) => {
    const lock = heldLock('accounts')
    const { Worker } = require('worker_threads')
    const source = `
      const { AsyncLock } = require(${JSON.stringify(data)})
      ;(function locks () { new AsyncLock(require('worker_threads').workerData).lock() }())`
    keep(new Worker(source, { env: {}, eval: true, workerData: lock }))
    await until(() => lock.waiters === 1)
    say('signal')
  }, path.join(packageCopy(t), 'pure'))
  const lines = [].concat(...dumps.map(dump => threadsIn(dump)[2] || []))
  assert.deepStrictEqual(lines.filter(line => /[\\/]lib[\\/]/.test(line)), [])
})

test('of 64 Workers that block each is where it is, in one dump', slow, async t => {
  const isAnswered = dump => /\n {2}thread .* and 56 more\n {6}at locks \(/.test(dump)
  const onOutput = ({ child, lines, stderr }) => {
    const dumps = dumpsIn(stderr)
    if (lines.length === 0 || (dumps.length > 0 && !isWhole(dumps[dumps.length - 1]))) return
    child.kill(dumps.some(isAnswered) || dumps.length > 20 ? 'SIGKILL' : 'SIGQUIT')
  }
  const { stderr } = await run(t, { env, onOutput }, async ({ heldLock, say, sleep, startWorker, until }) => {
    const lock = heldLock()
    for (let n = 0; n < 64; n++) {
      startWorker(lock, ({ api, data }) => { (function locks () { new api.AsyncLock(data).lock() }()) })
    }
    // It takes long to start as many.
    while (lock.waiters < 64) await sleep(100)
    say('signal')
    await until(() => false)
  })
  const dumps = dumpsIn(stderr)
  assert.ok(dumps.some(isAnswered), dumps[dumps.length - 1])
})

test('who is asked notices nothing', slow, async t => {
  const { code, lines } = await run(t, { env }, async ({ api, say, until }) => {
    api.snapshot()
    process.on('uncaughtException', error => say('uncaught: ' + error))
    const { prepareStackTrace } = Error
    let isOver = false
    Error.prepareStackTrace = (error, sites) => {
      say('a stack of ' + error)
      return prepareStackTrace === undefined ? String(error) : prepareStackTrace(error, sites)
    }
    setTimeout(() => { isOver = true }, 1500)
    while (!isOver) {
      process.kill(process.pid, 'SIGQUIT')
      const end = Date.now() + 100
      while (Date.now() < end);
      await new Promise(setImmediate)
    }
    delete Error.prepareStackTrace
    say('done')
    process.exit()
  })
  assert.deepStrictEqual([code, lines], [0, ['done']])
})

test('a main thread in a native call is named; its Workers cannot be asked', slow, async t => {
  const places = { 0: 'in native code', 2: 'unknown' }
  const dumps = await dumpOf(t, places, async ({ heldLock, require, say, startWorker, until }) => {
    const lock = heldLock('accounts')
    startWorker(lock, ({ api, data }) => { new api.AsyncLock(data).lock() })
    await until(() => lock.waiters === 1)
    say('signal')
    require('child_process').execFileSync('sleep', ['1000'])
  })
  assert.ok(dumps.some(dump => /held by {2}the main thread .*\n {6}now in native code/.test(dump)), dumps[0])
})

test('signals while Workers start and end: nothing is left, and the process ends by itself', slow, async t => {
  const { code, signal, lines, stderr } = await run(t, { env }, async ({ api, require, say, sleep, startWorker }) => {
    api.snapshot()
    for (let n = 0; n < 15; n++) {
      process.kill(process.pid, 'SIGQUIT')
      const worker = startWorker(({ api }) => { api.AsyncLock.create().tryLock() })
      await sleep(7 * n)
      process.kill(process.pid, 'SIGQUIT')
      await worker.done()
    }
    const { performance } = require('perf_hooks')
    const began = performance.now()
    // A thread that is still paused, or that pauses later, would not come to its end.
    while (performance.now() - began < 500) await sleep(1)
    say('ends')
  })
  assert.deepStrictEqual([code, signal, lines], [0, null, ['ends']], stderr)
  assert.ok(dumpsIn(stderr).length > 0)
  assert.ok(!/Waiting for the debugger|Warning: |Error: /.test(stderr), stderr)
})

test('a thread that a debugger has stopped stays stopped', slow, async t => {
  const { code, lines, stderr } = await run(t, { env }, async ({ api, require, say, until }) => {
    const { Worker } = require('worker_threads')
    api.snapshot()
    const debuggerThread = new Worker(`
      const { Session } = require('inspector')
      const { parentPort } = require('worker_threads')
      const session = new Session()
      session.connectToMainThread()
      let resumed = 0
      setInterval(() => {}, 1e6)
      session.on('Debugger.resumed', () => { resumed++ })
      session.post('Debugger.enable', () => parentPort.postMessage('ready'))
      session.once('Debugger.paused', () => {
        const dumped = setInterval(() => process.kill(process.pid, 'SIGQUIT'), 300)
        setTimeout(() => {
          clearInterval(dumped)
          parentPort.postMessage(resumed)
          session.post('Debugger.resume')
          setTimeout(() => session.disconnect(), 100)
        }, 2000)
      })
    `, { eval: true })
    const told = []
    debuggerThread.on('message', message => { told.push(message) })
    await until(() => told.length === 1)
    debugger // eslint-disable-line no-debugger
    await until(() => told.length === 2)
    say(told[1])
    process.exit()
  })
  assert.deepStrictEqual([code, lines], [0, ['0']], stderr)
  assert.ok(dumpsIn(stderr).length > 2, stderr)
})

test('the helper is no thread of the program: no install reaches it, and no wait waits for it', slow, async t => {
  const force = JSON.stringify(require.resolve('../../../force'))
  // With another thread that has the package, the forgotten wait would hold the event loop.
  const source = `
    require(${force})
    Atomics.waitAsync(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
    setTimeout(() => {}, 1000)`
  const { code, stderr } = await runNode(t, ['-r', require.resolve('../../../force'), '-e', source], { env })
  assert.strictEqual(code, 0, stderr)
  const { stdout } = await runNode(t, ['-e', `
    require(${force})
    const { Worker } = require('worker_threads')
    new Worker('', { eval: true }).once('exit', () => process.exit())
    console.log(process._getActiveHandles().length)`], { env })
  assert.strictEqual(stdout, (await runNode(t, ['-e', `
    require(${force})
    const { Worker } = require('worker_threads')
    new Worker('', { eval: true }).once('exit', () => process.exit())
    console.log(process._getActiveHandles().length)`], { env: {} })).stdout)
})

test('without the helper, dumps are as without the variable; a warning says why', needsSignals, async t => {
  if (MAJOR >= 18) return
  const { code, stderr } = await run(t, { env }, async ({ api, sleep }) => {
    api.snapshot()
    process.kill(process.pid, 'SIGQUIT')
    await sleep(500)
  })
  assert.strictEqual(code, 0)
  assert.ok(stderr.includes('0 held, 0 awaited\n'), stderr)
  assert.strictEqual(stderr.split('ATOMICS_WAITASYNC_DUMP_NOW has no effect: ').length, 2, stderr)
})

const hasFlag = flag => process.allowedNodeEnvironmentFlags.has(flag)
const PERMISSION = ['--permission', '--experimental-permission'].find(hasFlag)
const needsPermission = { skip: (isWindows || PERMISSION === undefined) && 'this Node has no --permission' }

test('with --permission it needs Workers and the inspector; without, a warning says why', needsPermission, async t => {
  const [worker, inspector] = ['--allow-worker', '--allow-inspector']
  const ways = [[worker], []]
  if (hasFlag(inspector)) ways.push([inspector], [worker, inspector])
  for (const allowed of ways) {
    const execArgv = [PERMISSION, '--allow-fs-read=*', '--allow-addons', ...allowed]
    const isHelped = allowed.length === 2
    const { code, stderr } = await run(t, { env, execArgv }, async ({ api, sleep }) => {
      api.snapshot()
      // The first ones may come before there is the helper.
      for (let n = 0; n < 10; n++) {
        process.kill(process.pid, 'SIGQUIT')
        await sleep(300)
      }
    })
    const what = `${allowed}: ${stderr}`
    assert.strictEqual(code, 0, what)
    assert.ok(stderr.includes('0 held, 0 awaited\n'), what)
    assert.strictEqual(stderr.includes('\nNow:\n'), isHelped, what)
    assert.strictEqual(stderr.split('ATOMICS_WAITASYNC_DUMP_NOW has no effect: ').length, isHelped ? 1 : 2, what)
  }
})
