'use strict'
// timeout: 300

// `npx --no-install atomics-waitasync dump <pid>`: asks a process that was started without any variable, from outside.

const assert = require('assert')
const { spawn } = require('child_process')
const { readdirSync } = require('fs')
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
  const program = await started(t, {}, async ({ heldLock, require, say, startWorker, until }) => {
    const lock = heldLock('accounts')
    const { EventEmitter } = require('events')
    startWorker(lock, ({ api, data }) => { (function locks () { new api.AsyncLock(data).lock() }()) })
    startWorker(() => {
      (function waits () { Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1e6) }())
    })
    startWorker(() => { setInterval(() => {}, 1e6) })
    startWorker(({ require }) => { require('child_process').execFileSync('sleep', ['100']) })
    await until(() => lock.waiters === 1)
    say('ready')
    new EventEmitter().on('event', () => { (function spins () { for (;;); }()) }).emit('event')
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
    assert.ok(!/^ +at .*node:/m.test(last.stdout), last.stdout)
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

/** Says `asked` once the command asks for its timer, which gets 2 s; has a Worker that does not answer meanwhile. */
const saysWhenAsked = ({ api, require, say, startWorker }) => {
  const timers = require('timers')
  const { setTimeout } = timers
  timers.setTimeout = global.setTimeout = (fn) => {
    require('fs').writeSync(1, 'asked\n')
    return setTimeout(fn, 2000)
  }
  startWorker(({ require }) => { require('child_process').execFileSync('sleep', ['3']) })
  const timer = setInterval(() => {}, 10)
  process.once('SIGTERM', () => clearInterval(timer))
  api.AsyncLock.create().tryLock()
  say('ready')
}

/** Starts the command. Gives its process, and the promise of its end. */
function commandFor (t, { pid }) {
  const child = spawn(process.execPath, [COMMAND, 'dump', String(pid)])
  t.after(() => { child.kill('SIGKILL') })
  const seen = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr']) child[name].on('data', text => { seen[name] += text })
  const ended = new Promise(resolve => child.once('close', (code, signal) => {
    resolve(Object.assign(seen, { code, signal }))
  }))
  return { child, ended }
}

test('a command that is killed midway leaves no port open; other signals end it and close that', needed, async t => {
  for (const name of ['SIGKILL', 'SIGINT', 'SIGTERM']) {
    const program = await started(t, {}, saysWhenAsked)
    const command = commandFor(t, program)
    await until(() => program.lines.includes('asked'))
    command.child.kill(name)
    const { code, signal, stdout, stderr } = await command.ended
    assert.deepStrictEqual([code, signal, stdout], name === 'SIGKILL' ? [null, name, ''] : [1, null, ''])
    if (code === 1) assert.ok(stderr.includes(`got ${name}`) && !await isOpen(program.port), stderr)
    await closed(program.port)
    await endsByItself(program)
  }
})

test('a process that ends meanwhile is an error, not one that does not use the package', needed, async t => {
  const program = await started(t, {}, saysWhenAsked)
  const command = commandFor(t, program)
  await until(() => program.lines.includes('asked'))
  program.child.kill('SIGKILL')
  const { code, stdout, stderr } = await command.ended
  assert.deepStrictEqual([code, stdout], [1, ''])
  assert.ok(/its inspector has closed, the process ends/.test(stderr), stderr)
})

test('Workers that come and go do not keep the command, nor the exit of the process', needed, async t => {
  for (const ends of [false, true]) {
    const program = await started(t, { data: ends }, ({ api, data, require, say }) => {
      const { Worker } = require('worker_threads')
      const next = () => { new Worker('1', { eval: true }).on('exit', next) }
      for (let n = 0; n < 3; n++) next()
      const timers = require('timers')
      const { setTimeout } = timers
      timers.setTimeout = global.setTimeout = (...args) => {
        if (data) setTimeout(() => process.exit(), 20)
        return setTimeout(...args)
      }
      process.once('SIGTERM', () => process.exit())
      api.AsyncLock.create().tryLock()
      say('ready')
    })
    const start = Date.now()
    const { code, stdout, stderr } = await dump(t, program.pid)
    // The process may be quicker than the command.
    if (!ends || code === 0) assert.ok(code === 0 && stdout.includes('1 held'), stderr)
    if (!ends) program.child.kill('SIGTERM')
    assert.strictEqual((await program.ended).code, 0)
    assert.ok(Date.now() - start < 15000, `${Date.now() - start} ms`)
  }
})

test('Workers in native code do not hide those that use the package', needed, async t => {
  const index = JSON.stringify(require.resolve('../../../index.js'))
  const port = await freePort()
  const child = spawn(process.execPath, [`--inspect-port=${port}`, '-e', `
    const { Worker } = require('worker_threads')
    const native = "require('child_process').execFileSync('sleep', ['30'])"
    const uses = ${JSON.stringify(`require(${index}).AsyncLock.create().tryLock(); setInterval(() => {}, 1e6)
      require('worker_threads').parentPort.postMessage(0)`)}
    const start = source => new Worker(source, { eval: true })
    for (let n = 0; n < 4; n++) start(native)
    start(uses).on('message', () => console.log('ready'))
    for (let n = 0; n < 4; n++) start(native)`])
  t.after(() => { child.kill('SIGKILL') })
  await new Promise(resolve => child.stdout.once('data', resolve))
  const { code, stdout, stderr } = await dump(t, child.pid)
  assert.ok(code === 0 && stdout.includes('1 held, 0 awaited'), stderr || stdout)
  assert.strictEqual(Object.keys(placesIn(stdout)).length, 10)
})

test('what the signal has opened is closed, also if its pid is another one, or timers are fakes', needed, async t => {
  const another = await started(t, {}, ({ say }) => {
    const timer = setInterval(() => {}, 10)
    process.once('SIGTERM', () => clearInterval(timer))
    Object.defineProperty(process, 'pid', { value: 1 })
    say('ready')
  })
  await refused(t, another.pid, /process 1 has the inspector on its port/)
  await closed(another.port)
  await endsByItself(another)
  const faked = await started(t, {}, ({ api, say }) => {
    const timer = setInterval(() => {}, 10)
    process.once('SIGTERM', () => clearInterval(timer))
    global.setTimeout = global.clearTimeout = () => { throw new Error('a fake') }
    api.AsyncLock.create().tryLock()
    say('ready')
  })
  const { stdout } = await dump(t, faked.pid)
  assert.ok(stdout.includes('1 held'), stdout)
  await closed(faked.port)
  await endsByItself(faked)
})

test('a file of another machine, a name of control characters, and an output that is closed', needed, async t => {
  const program = await started(t, {}, ({ api, require, say }) => {
    api.AsyncLock.create().tryLock()
    say('ready')
    const filename = 'file://machine/\u{E0001}.js'
    require('vm').runInThisContext('(function spins () { for (;;); }())', { filename })
  })
  let lines
  do {
    const { code, stdout, stderr } = await dump(t, program.pid, '--json')
    assert.strictEqual(code, 0, stderr)
    assert.ok(!stdout.includes('\u{E0001}'))
    lines = stdout.trim().split('\n').map(line => JSON.parse(line)).filter(({ list }) => list === 'threads')
    await closed(program.port)
  } while (!lines[0].now[0].startsWith('at spins (file://machine/\u{E0001}.js:1:'))
  const command = commandFor(t, program)
  command.child.stdout.destroy()
  const { code, stderr } = await command.ended
  assert.deepStrictEqual([code, stderr], [0, ''])
  program.child.kill('SIGKILL')
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

test('a dump of several megabytes comes whole', needed, async t => {
  const program = await started(t, {}, ({ api, keep, say }) => {
    for (let n = 0; n < 20000; n++) keep(new api.AsyncLock().tryLock())
    process.once('SIGTERM', () => process.exit())
    setInterval(() => {}, 1e6)
    say('ready')
  })
  const { code, stdout } = await dump(t, program.pid, '--json')
  const held = stdout.split('\n').filter(line => line.includes('"list":"held"'))
  assert.deepStrictEqual([code, held.length], [0, 20000])
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
  const mute = createServer(() => {})
  await new Promise(resolve => mute.listen(0, '127.0.0.1', resolve))
  t.after(() => mute.close())
  const unasked = await started(t, { port: mute.address().port }, goesOn)
  await refused(t, unasked.pid, /port \d+ is taken by .*, or does not answer/)
  await endsByItself(unasked)
  assert.ok(!/Debugger listening|Starting inspector/.test(unasked.stderr), unasked.stderr)
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

/** Runs the command in a process that can neither signal nor ask: of no pid here shall ever one be sent a signal. */
const withoutSending = (t, pid) => runNode(t, ['-e', `
  process._debugProcess = process.kill = require('http').get = () => { throw new Error('sent') }
  require(${JSON.stringify(COMMAND)})`, 'dump', String(pid)])

test('a pid that the system would cut to another one is refused before anything is sent', needed, async t => {
  for (const pid of ['4294967297', '4294967295', '2147483648', '9'.repeat(400)]) {
    const { code, stdout, stderr } = await withoutSending(t, pid)
    assert.deepStrictEqual([code, stdout], [1, ''])
    assert.ok(stderr.includes(`${pid} is no process: a pid is an integer from 1 to 2147483647`), stderr)
  }
})

test('the id of a thread is refused before anything is sent', needsLinux, async t => {
  const ids = readdirSync('/proc/self/task').filter(id => Number(id) !== process.pid)
  const { code, stderr } = await withoutSending(t, ids[0])
  assert.strictEqual(code, 1)
  assert.ok(stderr.includes(`${ids[0]} is a thread of process ${process.pid}`), stderr)
  assert.ok(/sent/.test((await withoutSending(t, process.pid)).stderr))
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
