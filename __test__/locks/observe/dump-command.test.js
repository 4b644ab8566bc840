'use strict'
// timeout: 300

// `npx --no-install atomics-waitasync dump <pid>`: asks a process that was started without any variable, from outside.

const assert = require('assert')
const { spawn } = require('child_process')
const { createServer } = require('http')
const { connect } = require('net')
const { test } = require('../../harness')
const freePort = require('../../fixtures/free-port')
const { run } = require('../../fixtures/programs')
const { runNode } = require('../../fixtures/run-node')
const { MAJOR, sleep, until } = require('../../fixtures/queue-toolbox')

const COMMAND = require.resolve('../../../bin/atomics-waitasync')
const isWindows = process.platform === 'win32'
const needed = { skip: (isWindows || MAJOR < 18) && 'needs Node 18, and signals to end the programs', timeout: 120000 }
const needsLinux = Object.assign({}, needed, { skip: needed.skip || (process.platform !== 'linux' && 'needs /proc') })

/** Returns a server that listens on a port of its own. */
const listening = () => new Promise(resolve => {
  const server = createServer((_, response) => response.end('not an inspector'))
  server.listen(0, '127.0.0.1', () => resolve(server))
})

const isOpen = port => new Promise(resolve => {
  const socket = connect(port, '127.0.0.1', () => {
    socket.destroy()
    resolve(true)
  }).on('error', () => resolve(false))
})

/** Waits until a port is closed. */
async function closed (port) {
  while (await isOpen(port)) await sleep(20)
}

const dump = (t, pid, ...args) => runNode(t, [COMMAND, 'dump', String(pid), ...args])

/** Starts a program. Gives its process, its `port`, and the promise of its end, once it has said that it is ready. */
async function started (t, options, fn) {
  const port = options.port || await freePort()
  const execArgv = [`--inspect-port=${port}`].concat(options.execArgv || [])
  const seen = { port, lines: [] }
  const onOutput = ({ child, lines, stderr }) => Object.assign(seen, { child, lines, stderr })
  seen.ended = run(t, Object.assign({}, options, { execArgv, onOutput }), fn)
  await until(() => seen.lines.includes('ready'), () => JSON.stringify(seen))
  seen.pid = seen.child.pid
  return seen
}

/** Ends a program that goes on until SIGTERM, and then ends by itself. */
async function endsByItself ({ child, ended }) {
  child.kill('SIGTERM')
  const { code, signal } = await ended
  assert.deepStrictEqual([code, signal], [0, null])
}

const goesOn = ({ api, say }) => {
  const timer = setInterval(() => {}, 10)
  process.once('SIGTERM', () => clearInterval(timer))
  api.AsyncLock.create({ name: 'accounts' }).tryLock()
  say('ready')
}

/** Returns the lines below each thread in the last part of a dump. */
function placesIn (text) {
  const places = {}
  let name
  for (const line of text.split('\nNow:\n')[1].split('\n')) {
    if (/^ {2}\S/.test(line)) places[name = line.trim()] = []
    else if (line !== '') places[name].push(line.trim())
  }
  return places
}

test('a deadlock, and where each thread is, also in JSON; the port is closed afterwards', needed, async t => {
  const program = await started(t, {}, async ({ heldLock, newLock, say, startWorker, until }) => {
    const [one, other] = [heldLock('accounts'), newLock('orders')]
    startWorker([one, other], ({ api, data }) => {
      new api.AsyncLock(data[1]).lock()
      ;(function locks () { new api.AsyncLock(data[0]).lock() }())
    })
    await until(() => one.waiters === 1)
    other.lockAsync()
    say('ready')
  })
  for (let n = 0; n < 2; n++) {
    const { code, stdout, stderr } = await dump(t, program.pid)
    assert.strictEqual(code, 0, stderr)
    assert.ok(stdout.startsWith(`(node:${program.pid}) `) && stdout.includes('2 held, 2 awaited'), stdout)
    assert.ok(stdout.includes('These threads probably wait for one another:\n  the main thread has awaited'), stdout)
    const places = placesIn(stdout)
    assert.deepStrictEqual(Object.keys(places), ['the main thread', 'thread 1'])
    assert.deepStrictEqual(places['the main thread'], ['idle, in its event loop'])
    assert.ok(places['thread 1'][0].startsWith('at locks ('), stdout)
    await closed(program.port)
  }
  const { stdout } = await dump(t, program.pid, '--json')
  const [counts, ...lines] = stdout.trim().split('\n').map(line => JSON.parse(line))
  assert.deepStrictEqual([counts.pid, counts.held, counts.waiting, counts.cycles], [program.pid, 2, 2, 1])
  const lists = lines.map(({ list }) => list)
  assert.deepStrictEqual(lists, ['cycles', 'held', 'held', 'waiting', 'waiting', 'threads', 'threads'])
  assert.deepStrictEqual(lines[5], { pid: program.pid, list: 'threads', threadId: 0, now: ['idle, in its event loop'] })
  program.child.kill('SIGKILL')
})

test('main spins, and Workers lock, wait, are idle and in native code', needed, async t => {
  const program = await started(t, {}, async ({ heldLock, say, startWorker, until }) => {
    const lock = heldLock('accounts')
    startWorker(lock, ({ api, data }) => { (function locks () { new api.AsyncLock(data).lock() }()) })
    startWorker(() => {
      (function waits () { Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1e6) }())
    })
    startWorker(() => { setInterval(() => {}, 1e6) })
    startWorker(({ require }) => { require('child_process').execFileSync('sleep', ['100']) })
    await until(() => lock.waiters === 1)
    say('ready')
    ;(function spins () { for (;;); }())
  })
  const expected = {
    'the main thread': 'at spins (',
    'thread 1': 'at locks (',
    'thread 2': 'at waits (',
    'thread 3': 'idle, in its event loop',
    'thread 4': 'in native code'
  }
  // A thread may be on its way, or short of processor time.
  const seen = new Set()
  let last
  for (let n = 0; n < 20 && seen.size < 5; n++) {
    last = await dump(t, program.pid)
    assert.strictEqual(last.code, 0, last.stderr)
    assert.ok(last.stdout.includes('held by  the main thread'), last.stdout)
    const places = placesIn(last.stdout)
    for (const name of Object.keys(expected)) if (places[name][0].startsWith(expected[name])) seen.add(name)
    await closed(program.port)
  }
  assert.strictEqual(seen.size, 5, last.stdout)
  program.child.kill('SIGKILL')
})

test('a process whose Workers alone use the package, and one without it', needed, async t => {
  const index = JSON.stringify(require.resolve('../../../index.js'))
  for (const [source, expected] of [
    [`require(${index}).AsyncLock.create().tryLock(); say()`, '1 held, 0 awaited'],
    ['say()', 'No thread of process PID that answers has used atomics-waitasync.']
  ]) {
    const port = await freePort()
    const worker = `const say = () => { console.log('ready'); setInterval(() => {}, 1e6) }; ${source}`
    const main = `new (require('worker_threads').Worker)(${JSON.stringify(worker)}, { eval: true })`
    const child = spawn(process.execPath, [`--inspect-port=${port}`, '-e', main])
    t.after(() => { child.kill('SIGKILL') })
    let output = ''
    child.stdout.on('data', text => { output += text })
    await until(() => output.includes('ready'))
    const { code, stdout, stderr } = await dump(t, child.pid)
    assert.strictEqual(code, 0, stderr)
    assert.ok(stdout.includes(expected.replace('PID', child.pid)), stdout)
    assert.deepStrictEqual(Object.keys(placesIn(stdout)), ['the main thread', 'thread 1'])
    child.kill('SIGKILL')
  }
})

test('a command that is killed midway leaves no port open; other signals do not end it', needed, async t => {
  for (const signal of ['SIGKILL', 'SIGINT']) {
    const program = await started(t, {}, ({ api, require, say, startWorker }) => {
      const { setTimeout } = global
      // The command asks for a timer first.
      global.setTimeout = (fn) => {
        require('fs').writeSync(1, 'asked\n')
        return setTimeout(fn, 2000)
      }
      startWorker(({ require }) => { require('child_process').execFileSync('sleep', ['3']) })
      const timer = setInterval(() => {}, 10)
      process.once('SIGTERM', () => clearInterval(timer))
      api.AsyncLock.create().tryLock()
      say('ready')
    })
    const command = spawn(process.execPath, [COMMAND, 'dump', String(program.pid)])
    t.after(() => { command.kill('SIGKILL') })
    let output = ''
    command.stdout.on('data', text => { output += text })
    await until(() => program.lines.includes('asked'))
    command.kill(signal)
    const ended = await new Promise(resolve => command.once('close', (code, name) => resolve(name || code)))
    assert.deepStrictEqual([ended, output.includes('1 held')], signal === 'SIGKILL' ? ['SIGKILL', false] : [0, true])
    await closed(program.port)
    await endsByItself(program)
  }
})

test('an inspector that was open stays open, unless --close', needed, async t => {
  const port = await freePort()
  const program = await started(t, { port, execArgv: [`--inspect=${port}`] }, goesOn)
  assert.strictEqual((await dump(t, program.pid)).code, 0)
  assert.ok(await isOpen(port))
  const { code, stdout } = await dump(t, program.pid, '--close', '--port', String(port))
  assert.ok(code === 0 && stdout.includes('AsyncLock "accounts"'), stdout)
  await closed(port)
  await endsByItself(program)
})

/** Expects that the command says so, and that the program goes on. */
async function refused (t, pid, reason, ...args) {
  const { code, stdout, stderr } = await dump(t, pid, ...args)
  assert.deepStrictEqual([code, stdout], [1, ''])
  assert.ok(reason.test(stderr), stderr)
}

test('a port that is taken: by something else, or by another process', needed, async t => {
  const server = await listening()
  t.after(() => server.close())
  const { port } = server.address()
  const program = await started(t, { port }, goesOn)
  await refused(t, program.pid, /port \d+ is taken by something else than an inspector/)
  await endsByItself(program)
  const other = await started(t, {}, goesOn)
  const debugged = await started(t, { port: other.port, execArgv: [`--inspect=${other.port}`] }, goesOn)
  await refused(t, other.pid, new RegExp(`process ${debugged.pid} has the inspector on its port`))
  assert.ok(await isOpen(other.port))
  assert.ok(!/Debugger listening|Starting inspector/.test(other.stderr), other.stderr)
  await endsByItself(other)
  await endsByItself(debugged)
})

test('a program that listens to SIGUSR1 itself, and one whose main thread is in native code', needed, async t => {
  const program = await started(t, {}, ({ keep, say }) => {
    const timer = setInterval(() => {}, 10)
    process.once('SIGTERM', () => clearInterval(timer))
    process.on('SIGUSR1', () => say('heard'))
    say('ready')
  })
  await refused(t, program.pid, /has opened no inspector .* listens to SIGUSR1 itself/)
  assert.ok(program.lines.includes('heard'))
  await endsByItself(program)
  const port = await freePort()
  const native = await started(t, { port, execArgv: [`--inspect=${port}`] }, ({ require, say }) => {
    say('ready')
    setTimeout(() => require('child_process').execFileSync('sleep', ['100']), 10)
  })
  // It may still have been on its way.
  let result = await dump(t, native.pid)
  while (result.code === 0) result = await dump(t, native.pid)
  assert.ok(/its main thread does not answer: it is in native code/.test(result.stderr), result.stderr)
  native.child.kill('SIGKILL')
})

test('no such process, and what is no process id', needed, async t => {
  const { pid } = spawn(process.execPath, ['-e', '0'])
  const isAlive = () => {
    try {
      return process.kill(pid, 0)
    } catch (_) {
      return false
    }
  }
  await until(() => !isAlive())
  await refused(t, pid, /there is no such process/, '--port', String(await freePort()))
  for (const args of [[], ['dump'], ['dump', 'node'], ['dump', '0'], ['help', '1'], ['dump', '1', '--what']]) {
    const { code, stderr } = await runNode(t, [COMMAND, ...args])
    assert.ok(code === 1 && /usage: |Unknown option/.test(stderr), stderr)
  }
})

test('a process that the signal would end, or that forbids it, gets none', needsLinux, async t => {
  const port = String(await freePort())
  const child = spawn('sleep', ['100'])
  t.after(() => { child.kill('SIGKILL') })
  await refused(t, child.pid, /opens no inspector: .* is not Node/, '--port', port)
  assert.strictEqual(child.signalCode, null)
  const allowed = flag => process.allowedNodeEnvironmentFlags.has(flag.split('=')[0])
  const [permission] = ['--permission', '--experimental-permission'].filter(allowed)
  const ways = [['--disable-sigusr1'], permission === undefined ? [] : [permission, '--allow-fs-read=*']]
  for (const execArgv of ways.filter(([flag]) => flag !== undefined && allowed(flag))) {
    const program = spawn(process.execPath, [...execArgv, '-e', 'console.log("ready"); setInterval(() => {}, 1e6)'])
    t.after(() => { program.kill('SIGKILL') })
    await new Promise(resolve => program.stdout.once('data', resolve))
    await refused(t, program.pid, /--disable-sigusr1 or --permission/, '--port', port)
    assert.strictEqual(program.signalCode, null)
    program.kill('SIGKILL')
  }
})
