'use strict'
// timeout: 180

// ATOMICS_WAITASYNC_PROFILE: how long was waited, by stacks, in a file that profilers open.

const assert = require('assert')
const fs = require('fs')
const os = require('os')
const path = require('path')
const { test } = require('../../harness')
const readProfile = require('../../fixtures/cpuprofile')
const { MAJOR, runChild, until } = require('../../fixtures/queue-toolbox')
const { runNode } = require('../../fixtures/run-node')
const slowness = require('../../fixtures/slowness')

const CODE = 'ATOMICS_WAITASYNC_PROFILE'
const ROOT = path.join(__dirname, '..', '..', '..')

/** A new folder. */
function folderFor (t) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'profile-'))
  t.after(() => {
    for (const name of fs.readdirSync(folder)) fs.unlinkSync(path.join(folder, name))
    fs.rmdirSync(folder)
  })
  return folder
}

const setting = (file) => ({ env: { [CODE]: file } })

/** Runs a program that ends well. Gives what the file then has, and its lines. */
async function profileOf (t, fn) {
  const file = path.join(folderFor(t), 'contention.cpuprofile')
  const { code, signal, lines, stderr } = await runChild(t, fn, undefined, setting(file))
  assert.deepStrictEqual([code, signal, stderr], [0, null, ''])
  return { ...readProfile(file), lines }
}

/** The milliseconds of each leaf. */
function byLeaf (rows) {
  const times = {}
  for (const { leaf, milliseconds } of rows) times[leaf] = (times[leaf] || 0) + milliseconds
  return times
}

/** Whether a time is that of so many waits of 30 ms. */
function assertLasted (milliseconds, waits, what) {
  assert.ok(milliseconds >= 29 * waits && milliseconds < 30 * waits + slowness * 2000, `${what}: ${milliseconds} ms`)
}

const LEAVES = [
  'AsyncLock "accounts"', 'RwLock "rates" (shared)', 'RwLock "rates" (exclusive)', 'permits of Semaphore "files"', 'the lock named "cache"',
  'Condition "changed"', 'the other parties of Barrier "phase"', 'Latch "done"', 'a message of Queue "jobs"', 'room in Queue "full"'
]

/** A program that holds all of these and awaits each of them for 30 ms. In a thread of its own it blocks for them. */
async function waitForAll ({ api, startWorker }) {
  const sab = new SharedArrayBuffer(1024)
  const open = (api, sab) => ({
    accounts: new api.AsyncLock(sab, { name: 'accounts' }),
    rates: new api.RwLock(sab, { byteOffset: 4, name: 'rates' }),
    files: new api.Semaphore(sab, { byteOffset: 8, name: 'files' }),
    changed: new api.Condition(sab, { byteOffset: 12, name: 'changed' }),
    phase: new api.Barrier(sab, { byteOffset: 16, parties: 9, name: 'phase' }),
    done: new api.Latch(sab, { byteOffset: 20, count: 9, name: 'done' }),
    own: new api.AsyncLock(sab, { byteOffset: 24 }),
    jobs: new api.Queue(sab, { byteOffset: 64, capacity: 1, messageSize: 8, name: 'jobs' }),
    full: new api.Queue(sab, { byteOffset: 512, capacity: 1, messageSize: 8, name: 'full' })
  })
  const { accounts, rates, files, changed, phase, done, own, jobs, full } = open(api, sab)
  accounts.tryLock()
  rates.tryLock()
  full.tryPut(1)
  let release
  const held = api.locks.request('cache', () => new Promise(resolve => { release = resolve }))
  const options = { timeout: 30 }
  const late = promise => promise.then(() => { throw new Error('it was late') }, error => { if (error.name !== 'TimeoutError') throw error })
  await Promise.all([
    late(accounts.lockAsync(options)), late(accounts.executeLocked(() => {}, options)), late(rates.lockAsync(options)),
    late(rates.executeShared(() => {}, options)), late(files.acquireAsync(1, options)), late(api.locks.request('cache', options, () => {})),
    late(phase.waitAsync(options)), late(done.waitAsync(options)), late(jobs.takeAsync(options)), late(full.putAsync(2, options)),
    changed.waitAsync(own.tryLock(), options)
  ])
  const worker = startWorker(({ api, data: { sab, source } }) => {
    const { accounts, rates, files, changed, phase, done, own, jobs, full } = eval(source)(api, sab) // eslint-disable-line no-eval
    const options = { timeout: 30 }
    const late = wait => {
      try {
        wait()
      } catch (error) {
        if (error.name === 'TimeoutError') return
        throw error
      }
      throw new Error('it was late')
    }
    if (accounts.lockIfAvailable(30) !== null) throw new Error('it was late')
    late(() => accounts.executeLockedSync(() => {}, options))
    for (const wait of [() => rates.lock(options), () => rates.lockShared(options), () => files.acquire(1, options), () => phase.wait(options)]) late(wait)
    for (const wait of [() => done.wait(options), () => jobs.take(options), () => full.put(2, options)]) late(wait)
    late(() => api.locks.requestSync('cache', options, () => {}))
    if (changed.wait(own.lock(), options)) throw new Error('it was late')
  }, { sab, source: String(open) })
  own.unlock()
  await worker.done()
  release()
  await held
}

test('waits of every class and for names, awaiting and blocking, count until they time out', async t => {
  const { rows, counts } = await profileOf(t, waitForAll)
  const times = byLeaf(rows)
  assert.deepStrictEqual(Object.keys(times).sort(), LEAVES.slice().sort())
  for (const leaf of LEAVES) assertLasted(times[leaf], leaf === 'AsyncLock "accounts"' ? 4 : 2, leaf)
  for (const { leaf, frames: [caller] } of rows) {
    assert.ok(caller.url === 'function-of-the-test.js' && caller.lineNumber >= 0, `${leaf}: ${JSON.stringify(caller)}`)
  }
  assert.deepStrictEqual(counts, { waits: 22, recorded: 22, factor: 1, otherStacks: 0 })
})

async function nested ({ api }) {
  const lock = new api.AsyncLock(new SharedArrayBuffer(4))
  lock.tryLock()
  const controller = { aborted: false, listeners: [], addEventListener (_, listener) { this.listeners.push(listener) } }
  function charge (signal) {
    return lock.lockAsync({ signal })
  }
  function transfer () { return charge(controller) }
  const promise = transfer()
  await new Promise(resolve => setTimeout(resolve, 30))
  controller.aborted = true
  for (const listener of controller.listeners) listener()
  await promise.then(() => { throw new Error('it was aborted') }, () => {})
}

test('an aborted wait counts, with the lines and columns of its callers from 0', async t => {
  const { rows: [{ leaf, frames, milliseconds }, ...more] } = await profileOf(t, nested)
  assert.deepStrictEqual([leaf, more], ['an AsyncLock', []])
  assertLasted(milliseconds, 1, leaf)
  const source = `(${nested})`.split('\n')
  const places = ['lockAsync(', 'charge(controller)', 'transfer()'].map(text => {
    const line = source.map(line => line.includes(text) && !line.includes(`function ${text}`)).lastIndexOf(true)
    return { lineNumber: line, columnNumber: source[line].indexOf(text) }
  })
  assert.deepStrictEqual(frames.slice(0, 3).map(({ lineNumber, columnNumber }) => ({ lineNumber, columnNumber })), places)
  assert.deepStrictEqual(frames.slice(0, 3).map(({ functionName }) => functionName), ['charge', 'transfer', 'nested'])
})

for (const end of ['process.exit()', 'setTimeout(() => { throw new Error(\'of the program\') })', 'undefined']) {
  test(`the file is there when the process has ended by ${end}`, async t => {
    const file = path.join(folderFor(t), 'contention.cpuprofile')
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
  const file = path.join(folderFor(t), 'contention.cpuprofile')
  const child = runChild(t, ({ api, startWorker, say }) => {
    const lock = new api.AsyncLock(new SharedArrayBuffer(4), { name: 'accounts' })
    lock.tryLock()
    lock.lockAsync()
    startWorker(({ api, data: sab }) => { new api.AsyncLock(sab).lock() }, lock.sab)
    setInterval(() => {}, 1e6)
    say(process.pid)
    setTimeout(() => process.kill(process.pid, 'SIGKILL'), 12000)
  }, undefined, setting(file))
  // It was there from the start.
  await until(() => fs.existsSync(file))
  assert.deepStrictEqual(readProfile(file).rows, [])
  const { signal } = await child
  assert.strictEqual(signal === 'SIGKILL' || process.platform === 'win32', true)
  const { rows } = readProfile(file)
  assert.deepStrictEqual(rows.map(({ leaf }) => leaf), ['AsyncLock "accounts"', 'AsyncLock "accounts"'])
  for (const { milliseconds } of rows) assert.ok(milliseconds > 5000, `${milliseconds} ms`)
})

test('a dump writes the file at once', { skip: process.platform === 'win32' && 'this system has no signals' }, async t => {
  const file = path.join(folderFor(t), 'contention.cpuprofile')
  const child = runChild(t, ({ api, say, require }) => {
    const lock = new api.AsyncLock(new SharedArrayBuffer(4))
    lock.tryLock()
    lock.lockAsync()
    const { readFileSync } = require('fs')
    const timer = setInterval(() => {
      if (!readFileSync(process.env.ATOMICS_WAITASYNC_PROFILE, 'utf8').includes('an AsyncLock')) return
      clearInterval(timer)
      say(Math.round(process.uptime()))
      process.exit()
    }, 10)
    process.kill(process.pid, 'SIGQUIT')
  }, undefined, { env: { [CODE]: file, ATOMICS_WAITASYNC_DUMP: 'SIGQUIT' } })
  const { lines: [seconds] } = await child
  assert.ok(seconds < 9, `after ${seconds} s`)
})

test('the waits of a worker that is terminated count until then', async t => {
  const { rows } = await profileOf(t, async ({ api, startWorker, until }) => {
    const lock = new api.AsyncLock(new SharedArrayBuffer(4), { name: 'accounts' })
    const token = lock.tryLock()
    const workers = [({ api, data: sab }) => { new api.AsyncLock(sab).lock() }, ({ api, data: sab }) => {
      new api.AsyncLock(sab).lockAsync()
      return new Promise(() => setInterval(() => {}, 1e6))
    }].map(fn => startWorker(fn, lock.sab))
    for (const worker of workers) worker.done().catch(() => {})
    await until(() => lock.waiters === 2)
    // Until the blocked one has slept through its first slice.
    await new Promise(resolve => setTimeout(resolve, 500))
    for (const worker of workers) await worker.terminate()
    token.unlock()
    // What comes after a wait's end does not count.
    await new Promise(resolve => setTimeout(resolve, 1000))
  })
  assert.deepStrictEqual(rows.map(({ leaf }) => leaf), ['AsyncLock "accounts"', 'AsyncLock "accounts"'])
  for (const { milliseconds } of rows) assert.ok(milliseconds > 200 && milliseconds < 500 + slowness * 900, `${milliseconds} ms`)
})

test('of many waits some are recorded for all', async t => {
  const { rows, counts, lines } = await profileOf(t, async ({ api, say }) => {
    const lock = new api.AsyncLock(new SharedArrayBuffer(4))
    const token = lock.tryLock()
    const waits = []
    for (let n = 0; n < 20000; n++) waits.push(lock.lockAsync())
    await new Promise(resolve => setTimeout(resolve, 500))
    const began = Date.now()
    token.unlock()
    for (const wait of waits) (await wait).unlock()
    say(Date.now() - began)
  })
  const [took] = lines.map(Number)
  assert.ok(counts.recorded < 5000 && counts.factor > 4, JSON.stringify(counts))
  assert.ok(counts.waits > 12000 && counts.waits < 30000, JSON.stringify(counts))
  assert.strictEqual(counts.factor, counts.waits / counts.recorded)
  const total = rows.reduce((sum, { milliseconds }) => sum + milliseconds, 0)
  assert.ok(total / counts.waits > 450 && total / counts.waits < 600 + took + slowness * 1000, `${total} ms, ${JSON.stringify(counts)}`)
})

/** Starts a program that waits, in two threads; gives its warnings and what it says. */
async function runWith (t, file) {
  const { code, lines, stderr } = await runChild(t, async ({ api, startWorker, say }) => {
    const lock = new api.AsyncLock(new SharedArrayBuffer(4))
    const token = lock.tryLock()
    const worker = startWorker(({ api, data: sab }) => { new api.AsyncLock(sab).lock().unlock() }, lock.sab)
    const next = lock.lockAsync()
    setTimeout(() => token.unlock(), 50)
    ;(await next).unlock()
    await worker.done()
    say('done')
  }, undefined, setting(file))
  assert.deepStrictEqual([code, lines], [0, ['done']], stderr)
  return stderr.split('\n').filter(line => line.includes(CODE))
}

test('a file that cannot be written is one warning', async t => {
  const folder = folderFor(t)
  const readOnly = path.join(folder, 'read-only')
  fs.writeFileSync(readOnly, 'as it was')
  fs.chmodSync(readOnly, 0o444)
  for (const file of [path.join(folder, 'missing', 'file'), folder, readOnly]) {
    const warnings = await runWith(t, file)
    assert.strictEqual(warnings.length, 1, warnings.join('\n'))
    assert.ok(warnings[0].includes(`[${CODE}] Warning: ${CODE}: cannot write ${file}: `), warnings[0])
  }
  assert.deepStrictEqual([fs.readdirSync(folder), fs.readFileSync(readOnly, 'utf8')], [['read-only'], 'as it was'])
  fs.chmodSync(readOnly, 0o666)
})

test('a folder that goes away later is one warning, too', async t => {
  const folder = path.join(folderFor(t), 'folder')
  fs.mkdirSync(folder)
  const { code, stderr } = await runChild(t, async ({ api, data: folder, require }) => {
    const fs = require('fs')
    for (const name of fs.readdirSync(folder)) fs.unlinkSync(folder + '/' + name)
    fs.rmdirSync(folder)
    const lock = new api.AsyncLock(new SharedArrayBuffer(4))
    lock.tryLock()
    await lock.lockAsync({ timeout: 20 }).catch(() => {})
  }, folder, setting(path.join(folder, 'file')))
  assert.strictEqual(code, 0)
  assert.strictEqual(stderr.split(CODE).length, 3, stderr)
})

test('a stack that cannot be taken is one warning, and its time counts', async t => {
  const file = path.join(folderFor(t), 'file')
  const { code, stderr } = await runChild(t, async ({ api }) => {
    Error.prepareStackTrace = () => { throw new TypeError('of the program') }
    const lock = new api.AsyncLock(new SharedArrayBuffer(4))
    lock.tryLock()
    for (let n = 0; n < 3; n++) await lock.lockAsync({ timeout: 30 }).catch(() => {})
    delete Error.prepareStackTrace
  }, undefined, setting(file))
  assert.strictEqual(code, 0, stderr)
  assert.strictEqual(stderr.split(`[${CODE}]`).length, 2, stderr)
  const { rows: [{ leaf, frames, milliseconds }] } = readProfile(file)
  assert.deepStrictEqual([leaf, frames.map(({ functionName }) => functionName)], ['an AsyncLock', ['(no stack)']])
  assertLasted(milliseconds, 3, leaf)
})

test('every entry makes the file when it is loaded, and none does without the variable', async t => {
  const folder = folderFor(t)
  for (const entry of ['index', 'force', 'keep-alive', 'pure', 'web-locks']) {
    const file = path.join(ROOT, entry)
    const { stderr } = await runNode(t, ['-e', `require(${JSON.stringify(file)})`], { env: { [CODE]: `${entry} \${pid}` }, cwd: folder })
    assert.strictEqual(stderr, '')
    const [name, ...more] = fs.readdirSync(folder)
    assert.ok(new RegExp(`^${entry} \\d+$`).test(name) && more.length === 0, name)
    assert.deepStrictEqual(readProfile(path.join(folder, name)).rows, [])
    fs.unlinkSync(path.join(folder, name))
    await runNode(t, ['-e', `require(${JSON.stringify(file)})`], { env: { [CODE]: '' }, cwd: folder })
    assert.deepStrictEqual(fs.readdirSync(folder), [])
  }
})

test('an import makes the file, too', { skip: MAJOR < 14 && 'this Node has no ES modules' }, async t => {
  const folder = folderFor(t)
  fs.writeFileSync(path.join(folder, 'program.mjs'), `import ${JSON.stringify('file://' + ROOT + '/index.mjs')}`)
  const { stderr } = await runNode(t, ['program.mjs'], { env: { [CODE]: 'file' }, cwd: folder })
  assert.deepStrictEqual([fs.readdirSync(folder).sort(), stderr.includes(CODE)], [['file', 'program.mjs'], false])
})
