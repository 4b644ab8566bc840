'use strict'
// timeout: 180

// ATOMICS_WAITASYNC_PROFILE: how long was waited, by stacks, in a file that profilers open.

const assert = require('assert')
const fs = require('fs')
const path = require('path')
const { test } = require('../../harness')
const readProfile = require('../../fixtures/cpuprofile')
const { packageCopy, scratchFolder } = require('../../fixtures/entries/folders')
const { run } = require('../../fixtures/programs')
const { MAJOR, runChild, until } = require('../../fixtures/queue-toolbox')
const { runNode } = require('../../fixtures/run-node')
const slowness = require('../../fixtures/slowness')

const CODE = 'ATOMICS_WAITASYNC_PROFILE'
const ROOT = path.join(__dirname, '..', '..', '..')

const setting = (file) => ({ env: { [CODE]: file } })
const fileFor = (t) => path.join(scratchFolder(t), 'contention.cpuprofile')

/** Runs a program that ends well. Gives what the file then has, and its lines. `runs`: what runs it. */
async function profileOf (t, fn, runs = run, env = {}) {
  const file = fileFor(t)
  const { code, signal, lines, stderr } = await runs(t, { env: Object.assign(env, setting(file).env) }, fn)
  assert.deepStrictEqual([code, signal, stderr], [0, null, ''])
  return { ...readProfile(file), lines }
}

/** Runs a function alone: so its lines in the file are its own. */
const runAlone = (t, options, fn) => runChild(t, fn, undefined, options)

/** Returns the milliseconds of each leaf. */
function byLeaf (rows) {
  const times = {}
  for (const { leaf, milliseconds } of rows) times[leaf] = (times[leaf] || 0) + milliseconds
  return times
}

/**
 * Checks that a time is that of several waits with this timeout. Each of them ends so long after its call, and begins
 * later: on a slow machine, much later.
 */
function assertLasted (milliseconds, waits, what, timeout = 30) {
  const isRight = milliseconds >= 0.5 * timeout * waits / slowness && milliseconds < timeout * waits + slowness * 2000
  assert.ok(isRight, `${what}: ${milliseconds} ms`)
}

const LEAVES = `AsyncLock "accounts"
RwLock "rates" (shared)
RwLock "rates" (exclusive)
permits of Semaphore "files"
the lock named "cache"
Condition "changed"
the other parties of Barrier "phase"
Latch "done"
a message of Queue "jobs"
room in Queue "full"`.split('\n')

/** Holds all of these, and awaits each of them for WAIT milliseconds. In a thread of its own it blocks for them. */
async function waitForAll ({ api, startWorker }) {
  const create = (kind, name, options) => api[kind].create(Object.assign({ name }, options))
  const things = {
    accounts: create('AsyncLock', 'accounts'),
    rates: create('RwLock', 'rates'),
    files: create('Semaphore', 'files'),
    changed: create('Condition', 'changed'),
    phase: create('Barrier', 'phase', { parties: 9 }),
    done: create('Latch', 'done', { count: 9 }),
    own: new api.AsyncLock(),
    jobs: create('Queue', 'jobs', { capacity: 1, messageSize: 8 }),
    full: create('Queue', 'full', { capacity: 1, messageSize: 8 })
  }
  const { accounts, rates, files, changed, phase, done, own, jobs, full } = things
  accounts.tryLock()
  rates.tryLock()
  full.tryPut(1)
  let release
  const held = api.locks.request('cache', () => new Promise(resolve => { release = resolve }))
  const options = { timeout: Number(process.env.WAIT) }
  const unlessLate = error => { if (error.name !== 'TimeoutError') throw error }
  const late = promise => promise.then(() => { throw new Error('it was served') }).catch(unlessLate)
  const waits = [
    accounts.lockAsync(options), accounts.executeLocked(() => {}, options), rates.lockAsync(options),
    rates.executeShared(() => {}, options), files.acquireAsync(1, options), phase.waitAsync(options),
    done.waitAsync(options), jobs.takeAsync(options), full.putAsync(2, options),
    api.locks.request('cache', options, () => {})
  ]
  await Promise.all([...waits.map(late), changed.waitAsync(own.tryLock(), options)])
  const thread = startWorker(things, ({ api, data, revive }) => {
    const { accounts, rates, files, changed, phase, done, own, jobs, full } = revive(data)
    const options = { timeout: Number(process.env.WAIT) }
    const waits = [
      () => accounts.executeLockedSync(() => {}, options), () => rates.lock(options), () => rates.lockShared(options),
      () => files.acquire(1, options), () => phase.wait(options), () => done.wait(options), () => jobs.take(options),
      () => full.put(2, options), () => api.locks.requestSync('cache', options, () => {})
    ]
    if (accounts.lockIfAvailable(options.timeout) !== null) throw new Error('it was served')
    for (const wait of waits) {
      let name
      try {
        wait()
      } catch (error) {
        name = error.name
      }
      if (name !== 'TimeoutError') throw new Error(`${wait}: ${name}`)
    }
    if (changed.wait(own.lock(), options)) throw new Error('it was notified')
  })
  own.unlock()
  await thread.done()
  release()
  await held
}

test('waits of every class and for names, awaiting and blocking, count until they time out', {
  timeout: 120000
}, async t => {
  let timeout = 30 * slowness
  let profile
  // On a busy machine it is over before some of them begin to wait.
  while ((profile = await profileOf(t, waitForAll, run, { WAIT: timeout })).counts.waits < 22 && timeout < 3000) {
    timeout *= 10
  }
  const { rows, counts } = profile
  const times = byLeaf(rows)
  assert.deepStrictEqual(Object.keys(times).sort(), LEAVES.slice().sort())
  for (const leaf of LEAVES) assertLasted(times[leaf], leaf === 'AsyncLock "accounts"' ? 4 : 2, leaf, timeout)
  for (const { leaf, frames: [caller] } of rows) {
    assert.ok(caller.url === 'function-of-the-test.js' && caller.lineNumber >= 0, `${leaf}: ${JSON.stringify(caller)}`)
  }
  assert.deepStrictEqual(counts, { waits: 22, recorded: 22, factor: 1 })
})

async function nested ({ api }) {
  const lock = new api.AsyncLock(new SharedArrayBuffer(4))
  lock.tryLock()
  const listeners = []
  const controller = { aborted: false, addEventListener: (_, listener) => listeners.push(listener) }
  function charge (signal) {
    return lock.lockAsync({ signal })
  }
  function transfer () { return charge(controller) }
  const promise = transfer()
  await new Promise(resolve => setTimeout(resolve, 30))
  controller.aborted = true
  for (const listener of listeners) listener()
  await promise.then(() => { throw new Error('it was aborted') }, () => {})
}

test('an aborted wait counts, with the lines and columns of its callers from 0', async t => {
  const [{ leaf, frames, milliseconds }, ...more] = (await profileOf(t, nested, runAlone)).rows
  assert.deepStrictEqual([leaf, more], ['an AsyncLock', []])
  assertLasted(milliseconds, 1, leaf)
  const source = `(${nested})`.split('\n')
  const places = ['lockAsync(', 'charge(controller)', 'transfer()'].map(text => {
    const line = source.map(line => line.includes(text) && !line.includes(`function ${text}`)).lastIndexOf(true)
    return { lineNumber: line, columnNumber: source[line].indexOf(text) }
  })
  const callers = frames.slice(0, 3)
  assert.deepStrictEqual(callers.map(({ lineNumber, columnNumber }) => ({ lineNumber, columnNumber })), places)
  assert.deepStrictEqual(callers.map(({ functionName }) => functionName), ['charge', 'transfer', 'nested'])
})

for (const end of ['process.exit()', 'setTimeout(() => { throw new Error(\'of the program\') })', 'undefined']) {
  test(`the file is there when the process has ended by ${end}`, async t => {
    const file = fileFor(t)
    await runNode(t, ['-e', `
      const { AsyncLock } = require(${JSON.stringify(ROOT + '/pure')})
      const lock = new AsyncLock(new SharedArrayBuffer(4))
      lock.tryLock()
      lock.lockAsync({ timeout: 30 }).catch(() => { ${end} })`], setting(file))
    const { rows } = readProfile(file)
    assert.deepStrictEqual(rows.map(({ leaf }) => leaf), ['an AsyncLock'])
    assert.deepStrictEqual(fs.readdirSync(path.dirname(file)), [path.basename(file)])
  })
}

test('a process that is killed while it waits for ever leaves a file', async t => {
  const file = fileFor(t)
  const child = run(t, setting(file), ({ block, heldLock, require }) => {
    const lock = heldLock('accounts')
    lock.lockAsync()
    block(lock)
    const { existsSync } = require('fs')
    const isToEnd = () => existsSync(process.env.ATOMICS_WAITASYNC_PROFILE + '.end')
    setInterval(() => { if (isToEnd()) process.kill(process.pid, 'SIGKILL') }, 50)
  })
  // It was there from the start.
  await until(() => fs.existsSync(file))
  assert.deepStrictEqual(readProfile(file).rows, [])
  // It is written again each ten seconds.
  await until(() => readProfile(file).rows.length === 2)
  fs.writeFileSync(file + '.end', '')
  const { signal } = await child
  assert.strictEqual(signal === 'SIGKILL' || process.platform === 'win32', true)
  const { rows } = readProfile(file)
  assert.deepStrictEqual(rows.map(({ leaf }) => leaf), ['AsyncLock "accounts"', 'AsyncLock "accounts"'])
  // They began so long before the file was last written.
  for (const { milliseconds } of rows) assert.ok(milliseconds > 1000 / slowness, `${milliseconds} ms`)
})

const needsSignals = { skip: process.platform === 'win32' && 'this system has no signals' }

/** Waits by this copy and another one; and by the other one in a Worker. */
async function withTwoCopies ({ api, data, require, startWorker }) {
  const wait = ({ AsyncLock }) => {
    const lock = AsyncLock.create({ name: 'accounts' })
    lock.tryLock()
    return lock.lockAsync({ timeout: 30 }).catch(() => {})
  }
  const thread = startWorker(data, ({ data, require }) => {
    const lock = require(data).AsyncLock.create({ name: 'accounts' })
    lock.tryLock()
    return lock.lockAsync({ timeout: 30 }).catch(() => {})
  })
  // It is loaded before the first wait begins: that takes long on a slow machine.
  const other = require(data)
  await Promise.all([wait(api), wait(other), thread.done()])
}

test('the waits of two copies are in one file', async t => {
  const other = path.join(packageCopy(t), 'pure')
  const runs = (t, options, fn) => run(t, Object.assign({ data: other }, options), fn)
  const { rows } = await profileOf(t, withTwoCopies, runs)
  const { length } = rows
  assert.deepStrictEqual(rows.map(({ leaf }) => leaf), Array.from({ length }, () => 'AsyncLock "accounts"'))
  assertLasted(rows.reduce((sum, { milliseconds }) => sum + milliseconds, 0), 3, JSON.stringify(rows))
})

test('a Worker writes the file if the main thread has not loaded the package', async t => {
  const file = fileFor(t)
  const wait = `
    const { AsyncLock } = require(${JSON.stringify(path.join(ROOT, 'pure'))})
    const lock = AsyncLock.create()
    lock.tryLock()
    lock.lockAsync({ timeout: 30 }).catch(() => {})`
  const { code, stderr } = await runNode(t, ['-e', `
    const { Worker } = require('worker_threads')
    for (let n = 0; n < 3; n++) new Worker(${JSON.stringify(wait)}, { eval: true })`], setting(file))
  assert.deepStrictEqual([code, stderr], [0, ''])
  const { rows } = readProfile(file)
  assert.deepStrictEqual(rows.map(({ leaf }) => leaf), ['an AsyncLock'])
  assert.deepStrictEqual(fs.readdirSync(path.dirname(file)), [path.basename(file)])
})

test('the waits of a worker that is terminated count until then', async t => {
  const { rows } = await profileOf(t, async ({ block, newLock, sleep, startWorker, until }) => {
    const lock = newLock('accounts')
    const token = lock.tryLock()
    const awaiting = startWorker(lock, ({ api, data }) => {
      new api.AsyncLock(data).lockAsync()
      return new Promise(() => setInterval(() => {}, 1e6))
    })
    const threads = [block(lock), awaiting]
    await until(() => lock.waiters === 2)
    await sleep(500)
    for (const thread of threads) await thread.terminate()
    token.unlock()
    // The time after a wait's end does not count.
    await sleep(1000)
  })
  assert.deepStrictEqual(rows.map(({ leaf }) => leaf), ['AsyncLock "accounts"', 'AsyncLock "accounts"'])
  const isRight = time => time > 200 && time < 500 + slowness * 900
  for (const { milliseconds } of rows) assert.ok(isRight(milliseconds), `${milliseconds} ms`)
})

test('of many waits some are recorded for all', async t => {
  const { rows, counts, lines } = await profileOf(t, async ({ newLock, say, sleep }) => {
    const lock = newLock()
    const token = lock.tryLock()
    const waits = Array.from({ length: 20000 }, () => lock.lockAsync())
    await sleep(500)
    const began = Date.now()
    token.unlock()
    for (const wait of waits) (await wait).unlock()
    say(Date.now() - began)
  })
  const [took] = lines.map(Number)
  const total = rows.reduce((sum, { milliseconds }) => sum + milliseconds, 0)
  const said = `${total} ms, ${JSON.stringify(counts)}`
  assert.ok(counts.recorded < 5000 && counts.factor > 4, said)
  assert.ok(counts.waits > 12000 && counts.waits < 30000, said)
  assert.strictEqual(counts.factor, counts.waits / counts.recorded)
  assert.ok(total / counts.waits > 450 && total / counts.waits < 600 + took + slowness * 1000, said)
})

test('of one line that awaits any number of locks, the first 16 are told apart', async t => {
  const { rows } = await profileOf(t, async ({ heldLock }) => {
    const names = Array.from({ length: 20 }, (_, n) => `lock ${n}`)
    await Promise.all(names.map(name => heldLock(name).lockAsync({ timeout: 30 }).catch(() => {})))
  })
  const leaves = Object.keys(byLeaf(rows))
  assert.deepStrictEqual([leaves.length, leaves.includes('other locks')], [17, true], leaves.join())
})

/** Lines of stacks, and what a frame has of them. */
const FRAMES = [
  ['    at charge (/app/a b.js:27:18)', 'charge', 'file:///app/a%20b.js', 26, 17],
  ['    at async main (file:///app/main.mjs:3:1)', 'async main', 'file:///app/main.mjs', 2, 0],
  ['    at /app/ä.js:1:2', '', 'file:///app/%C3%A4.js', 0, 1],
  ['    at async /app/a.js:1:2', 'async', 'file:///app/a.js', 0, 1],
  ['    at new Foo [as bar] (webpack:///./a.js:5:6)', 'new Foo [as bar]', 'webpack:///./a.js', 4, 5],
  ['    at Array.forEach (<anonymous>)', 'Array.forEach', '<anonymous>', -1, -1],
  ['    at async Promise.all (index 0)', 'async Promise.all', 'index 0', -1, -1],
  ['no frame', 'no frame', '', -1, -1]
]

test('frames are read as V8 writes them', needsSignals, async t => {
  const file = fileFor(t)
  const options = Object.assign({ data: FRAMES.map(([line]) => line) }, setting(file))
  const { code, stderr } = await run(t, options, async ({ data: lines, heldLock }) => {
    const lock = heldLock()
    Error.prepareStackTrace = () => `Error\n${lines.join('\n')}`
    await lock.lockAsync({ timeout: 30 }).catch(() => {})
    delete Error.prepareStackTrace
  })
  assert.deepStrictEqual([code, stderr], [0, ''])
  const frames = readProfile(file).rows[0].frames.map(({ functionName, url, lineNumber, columnNumber }) => {
    return [functionName, url, lineNumber, columnNumber]
  })
  assert.deepStrictEqual(frames, FRAMES.map(([, ...frame]) => frame))
})

/** Starts a program that waits, in two threads; gives its warnings. */
async function warningsWith (t, file) {
  const { code, lines, stderr } = await run(t, setting(file), async ({ newLock, say, startWorker }) => {
    const lock = newLock()
    const token = lock.tryLock()
    const thread = startWorker(lock, ({ api, data }) => { new api.AsyncLock(data).lock().unlock() })
    const next = lock.lockAsync()
    setTimeout(() => token.unlock(), 50)
    ;(await next).unlock()
    await thread.done()
    say('done')
  })
  assert.deepStrictEqual([code, lines], [0, ['done']], stderr)
  return stderr.split('\n').filter(line => line.includes(CODE))
}

test('a file that cannot be written is one warning', async t => {
  const folder = scratchFolder(t)
  const readOnly = path.join(folder, 'read-only')
  fs.writeFileSync(readOnly, 'as it was')
  fs.chmodSync(readOnly, 0o444)
  for (const file of [path.join(folder, 'missing', 'file'), folder, readOnly]) {
    const warnings = await warningsWith(t, file)
    assert.strictEqual(warnings.length, 1, warnings.join('\n'))
    assert.ok(warnings[0].includes(`[${CODE}] Warning: ${CODE}: cannot write ${file}: `), warnings[0])
  }
  assert.deepStrictEqual([fs.readdirSync(folder), fs.readFileSync(readOnly, 'utf8')], [['read-only'], 'as it was'])
  fs.chmodSync(readOnly, 0o666)
})

test('a link or pipe at the name of the new file is replaced, and not written to', needsSignals, async t => {
  for (const kind of ['link', 'pipe']) {
    const file = fileFor(t)
    const other = file + '.other'
    fs.writeFileSync(other, 'other')
    const { code, signal, stderr } = await runNode(t, ['-e', `
      const [file, other] = ${JSON.stringify([file, other])}
      const beside = file + '.' + process.pid + '.0.tmp'
      if (${kind === 'link'}) require('fs').symlinkSync(other, beside)
      else require('child_process').execFileSync('mkfifo', [beside])
      require(${JSON.stringify(path.join(ROOT, 'pure'))})`], setting(file))
    assert.deepStrictEqual([code, signal, stderr], [0, null, ''], kind)
    assert.strictEqual(fs.readFileSync(other, 'utf8'), 'other')
    assert.ok(fs.lstatSync(file).isFile())
    readProfile(file)
    assert.deepStrictEqual(fs.readdirSync(path.dirname(file)).sort(), [file, other].map(name => path.basename(name)))
  }
})

test('a folder that goes away later is one warning, too', async t => {
  const folder = path.join(scratchFolder(t), 'folder')
  fs.mkdirSync(folder)
  const options = Object.assign({ data: folder }, setting(path.join(folder, 'file')))
  const { code, stderr } = await run(t, options, async ({ data: folder, heldLock, require }) => {
    const fs = require('fs')
    for (const name of fs.readdirSync(folder)) fs.unlinkSync(folder + '/' + name)
    fs.rmdirSync(folder)
    await heldLock().lockAsync({ timeout: 20 }).catch(() => {})
  })
  assert.strictEqual(code, 0)
  assert.strictEqual(stderr.split(CODE).length, 3, stderr)
})

test('a stack that cannot be taken is one warning, and its time counts', async t => {
  const file = fileFor(t)
  const { code, stderr } = await run(t, setting(file), async ({ heldLock }) => {
    Error.prepareStackTrace = () => { throw new TypeError('of the program') }
    const lock = heldLock()
    for (let n = 0; n < 3; n++) await lock.lockAsync({ timeout: 30 }).catch(() => {})
    delete Error.prepareStackTrace
  })
  assert.deepStrictEqual([code, stderr.split(`[${CODE}]`).length], [0, 2], stderr)
  const [{ leaf, frames, milliseconds }] = readProfile(file).rows
  assert.deepStrictEqual([leaf, frames.map(({ functionName }) => functionName)], ['an AsyncLock', ['(no stack)']])
  assertLasted(milliseconds, 3, leaf)
})

test('every entry makes the file when it is loaded, and none does without the variable', async t => {
  const folder = scratchFolder(t)
  for (const entry of ['index', 'force', 'keep-alive', 'pure', 'web-locks']) {
    const file = path.join(ROOT, entry)
    const runs = value =>
      runNode(t, ['-e', `require(${JSON.stringify(file)})`], { env: { [CODE]: value }, cwd: folder })
    const { stderr } = await runs(`${entry} \${pid}`)
    assert.strictEqual(stderr, '')
    const [name, ...more] = fs.readdirSync(folder)
    assert.ok(new RegExp(`^${entry} \\d+$`).test(name) && more.length === 0, name)
    assert.deepStrictEqual(readProfile(path.join(folder, name)).rows, [])
    fs.unlinkSync(path.join(folder, name))
    await runs('')
    assert.deepStrictEqual(fs.readdirSync(folder), [])
  }
})

test('an import makes the file, too', { skip: MAJOR < 14 && 'this Node has no ES modules' }, async t => {
  const folder = scratchFolder(t)
  fs.writeFileSync(path.join(folder, 'program.mjs'), `import ${JSON.stringify('file://' + ROOT + '/index.mjs')}`)
  const { stderr } = await runNode(t, ['program.mjs'], { env: { [CODE]: 'file' }, cwd: folder })
  assert.deepStrictEqual([fs.readdirSync(folder).sort(), stderr.includes(CODE)], [['file', 'program.mjs'], false])
})
