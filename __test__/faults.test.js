'use strict'
// subjects: none
// timeout: 120

// The system fails: it gives no thread, no clock, no memory. Each ends in working or in a clear error, and nothing that others wait for
// is lost. Where the clock fails, Rust's standard library panics in the midst of an operation: that shows what a panic does.

const assert = require('assert')
const { spawnSync } = require('child_process')
const fs = require('fs')
const os = require('os')
const path = require('path')
const { test } = require('./harness')
const { runForJSON, runNode } = require('./fixtures/run-node')

const force = JSON.stringify(path.join(__dirname, '..', 'force'))

/** Builds fixtures/faults.c: `{ library, remove }`, or why it cannot be done. */
function build () {
  if (process.platform !== 'linux') return { missing: 'functions of the system are replaced on Linux only' }
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'faults-'))
  const library = path.join(folder, 'faults.so')
  const remove = () => {
    if (fs.existsSync(library)) fs.unlinkSync(library)
    fs.rmdirSync(folder)
  }
  const { status, error } = spawnSync('cc', ['-shared', '-fPIC', '-O1', '-o', library, path.join(__dirname, 'fixtures', 'faults.c'), '-ldl'], { encoding: 'utf8' })
  // Not where there is no compiler, or no glibc.
  const preloads = status === 0 && spawnSync(process.execPath, ['-e', ''], { env: { LD_PRELOAD: library } }).status === 0
  if (preloads) return { library, remove }
  remove()
  return { missing: `fixtures/faults.c is not compiled or loaded here: ${error ? error.message : `cc: ${status}`}` }
}

const { library, remove, missing: skip } = build()
if (remove) process.on('exit', remove)
const env = (faults) => Object.assign({ LD_PRELOAD: library, RUST_BACKTRACE: '0' }, faults)

test('without a thread for the service, what needs it says so, and the rest works', { skip }, async t => {
  const result = await runForJSON(t, ['-e', `
    const { Worker } = require('worker_threads')
    const api = require(${force})
    const array = new Int32Array(new SharedArrayBuffer(32))
    const lock = new api.AsyncLock(array.buffer, { byteOffset: 16 })
    const outcome = async (call) => { try { return await call() } catch (error) { return error.message } }
    async function run () {
      const token = lock.tryLock()
      const worker = new Worker(\`
        const { workerData, parentPort } = require('worker_threads')
        const { AsyncLock } = require(${force})
        new AsyncLock(workerData, { byteOffset: 16 }).executeLockedSync(() => { parentPort.postMessage(Atomics.wait(new Int32Array(workerData), 4, 1, 60)) })
        Atomics.wait(new Int32Array(workerData), 1, 0)\`, { eval: true, workerData: array.buffer })
      const told = new Promise(resolve => worker.on('message', resolve))
      while (lock.waiters === 0) await new Promise(setImmediate)
      const untimed = Atomics.waitAsync(array, 0, 0).value
      const timed = await outcome(() => Atomics.waitAsync(array, 0, 0, 1).value)
      const claim = await outcome(() => lock.lockAsync({ timeout: 1 }))
      const left = api.waiterCount(array, 0)
      token.unlock()
      const blocked = await told
      while (api.waiterCount(array, 1) === 0) await new Promise(setImmediate)
      const ended = await worker.terminate()
      const gone = api.waiterCount(array, 1)
      const woken = Atomics.notify(array, 0)
      const ok = await untimed
      delete process.env.FAULT_THREADS
      const later = await Atomics.waitAsync(array, 0, 0, 1).value
      console.log(JSON.stringify({ timed, claim, left, blocked, gone, woken, ok, later, locked: lock.locked }))
    }
    run()`], { env: env({ FAULT_THREADS: '1' }) })
  const refusal = 'atomics-waitasync: the timer could not be started: the system allows this process no more threads or file descriptors (ulimit -u, ulimit -n)'
  assert.deepStrictEqual(result, { timed: refusal, claim: refusal, left: 1, blocked: 'timed-out', gone: 0, woken: 1, ok: 'ok', later: 'timed-out', locked: false })
})

/** A program with `run(nth)`, which calls `attempt(call)` for what may fail while the nth look at the clock fails. */
const withFaults = (body) => `
  const api = require(${force})
  const { AsyncLock, Condition, RwLock, Semaphore, locks } = api
  const errors = []
  const turn = () => new Promise(setImmediate)
  const attempt = (call) => {
    try {
      return call()
    } catch (error) {
      errors.push(error.message)
    }
  }
  const fail = (nth) => {
    delete process.env.FAULT_HIT
    process.env.FAULT_CLOCK = nth + ':' + nth
  }
  /** Whether it has failed. */
  const repair = () => {
    process.env.FAULT_CLOCK = ''
    return process.env.FAULT_HIT === '1'
  }
  ${body}`

test('a panic at any look at the clock is an error of that call: no other wait is lost, and no lock', { skip, timeout: 110000 }, async t => {
  const { count, errors, problems } = await runForJSON(t, ['-e', withFaults(`
    async function run (nth) {
      const buffer = new SharedArrayBuffer(64)
      const words = new Int32Array(buffer)
      const at = word => ({ byteOffset: 4 * word })
      const [lock, other, left] = [8, 9, 13].map(word => new AsyncLock(buffer, at(word)))
      const [rw, semaphore, condition] = [new RwLock(buffer, at(10)), new Semaphore(buffer, at(11)), new Condition(buffer, at(12))]
      const promises = []
      const promised = (call) => {
        const promise = attempt(call)
        if (promise !== undefined) promises.push(promise.catch(error => errors.push(error.message)))
      }
      const release = token => token.unlock()
      const tokens = [lock.tryLock(), rw.tryLock()]
      const waiting = other.tryLock()
      tokens.push(left.tryLock())
      fail(nth)
      for (const timeout of [Infinity, 60000, 1]) {
        promised(() => Atomics.waitAsync(words, 0, 0, timeout).value)
        promised(() => lock.lockAsync({ timeout }).then(release))
        promised(() => left.lockAsync({ timeout }).then(release))
        promised(() => rw.lockSharedAsync({ timeout }).then(release))
        promised(() => rw.lockAsync({ timeout }).then(release))
        promised(() => semaphore.acquireAsync(2, { timeout }))
        promised(() => locks.request('a', { timeout }, turn))
        promised(() => locks.request('a', { mode: 'shared', timeout }, turn))
      }
      promised(() => condition.waitAsync(waiting, { timeout: 60000 }))
      attempt(() => api.snapshot())
      promised(() => locks.query())
      promised(() => locks.request('a', { steal: true }, turn))
      await turn()
      attempt(() => Atomics.notify(words, 0, 1))
      attempt(() => tokens[0].unlock())
      attempt(() => tokens[2].abandon())
      tokens.push(attempt(() => lock.tryLock()))
      await turn()
      for (const token of tokens.slice(1)) if (token) attempt(() => token.unlock())
      attempt(() => semaphore.release(6))
      attempt(() => Atomics.notify(words, 0))
      attempt(() => condition.notify())
      await turn()
      const hit = repair()
      // What has failed is done again.
      for (const token of tokens) if (token && token.locked) token.unlock()
      if (semaphore.available === 0 && semaphore.waiters > 0) semaphore.release(6)
      Atomics.notify(words, 0)
      condition.notify()
      const late = setTimeout(() => {
        console.log(JSON.stringify({ count: nth, errors, problems: ['look ' + nth + ': not settled: ' + JSON.stringify(api.snapshot())] }))
        process.exit()
      }, 20000)
      await Promise.all(promises)
      clearTimeout(late)
      if (waiting.locked) waiting.unlock()
      const { held, waiting: pending } = api.snapshot()
      const names = await locks.query()
      const counts = words.map((_, index) => api.waiterCount(words, index))
      const isLocked = [lock, other, left].some(lock => lock.locked)
      if (held.length + pending.length + names.held.length + names.pending.length > 0 || isLocked || rw.locked || rw.readers > 0 || counts.some(count => count > 0)) {
        problems.push('look ' + nth + ': left over: ' + JSON.stringify({ held, pending, names, counts: [...counts], words: [...words] }))
      }
      return hit
    }
    const problems = []
    async function all () {
      let nth = 1
      while (await run(nth)) nth++
      console.log(JSON.stringify({ count: nth - 1, errors, problems }))
    }
    all()`)], { env: env({}) })
  assert.deepStrictEqual(problems, [])
  assert(count > 20, `the clock has failed ${count} times`)
  const clear = /^atomics-waitasync: the operation failed$|Result::unwrap|^Timed out after 1 ms|^The lock named "a" was stolen/
  assert.deepStrictEqual(errors.filter(error => !clear.test(error)), [])
  assert(errors.filter(error => /operation failed|Result::unwrap/.test(error)).length > 10, errors.join('\n'))
})

test('a panic while a thread blocks is an error of that call, or ends the process and says why', { skip, timeout: 110000 }, async t => {
  let failed = 0
  for (let nth = 1; nth < 9; nth++) {
    const { code, signal, stdout, stderr } = await runNode(t, ['-e', withFaults(`
      const words = new Int32Array(new SharedArrayBuffer(8))
      fail(${nth})
      const first = attempt(() => Atomics.wait(words, 0, 0, 20))
      repair()
      console.log(JSON.stringify([first || errors[0], Atomics.wait(words, 0, 0, 20), api.waiterCount(words, 0), Atomics.notify(words, 0)]))`)], { env: env({}) })
    if (signal === 'SIGABRT') {
      // The clock of a mutex or of a condition variable of the system: Rust's standard library gives up.
      assert(/fatal runtime error: .*aborting/.test(stderr), stderr)
      failed++
      continue
    }
    assert.strictEqual(code, 0, stderr)
    const [first, ...rest] = JSON.parse(stdout)
    assert.deepStrictEqual(rest, ['timed-out', 0, 0])
    assert(first === 'timed-out' || first === 'atomics-waitasync: the operation failed', first)
    if (first !== 'timed-out') failed++
  }
  assert(failed > 1, `${failed} of 8 have failed`)
})

// Workers of Node 10 have no `process.umask`, by which such a worker says that its clock is to fail.
const skipWorkers = skip || (process.version.startsWith('v10.') && 'workers of this Node have no process.umask')
test('a panic while a worker blocks for a lock or a Condition leaves no waiter and no lock behind', { skip: skipWorkers, timeout: 110000 }, async t => {
  const forms = {
    lock: 'lock.lock().unlock()',
    'rw.lock': 'rw.lock().unlock()',
    requestSync: 'locks.requestSync("x", () => {})',
    'condition.wait': 'lock.executeLockedSync(token => condition.wait(token, { timeout: 40 }))'
  }
  let failed = 0
  for (const [name, form] of Object.entries(forms)) {
    for (let nth = 1; nth < 7; nth++) {
      const { code, signal, stdout, stderr } = await runNode(t, ['-e', `
        const { Worker, isMainThread, parentPort, workerData } = require('worker_threads')
        const source = ${JSON.stringify(`
          const { parentPort, workerData } = require('worker_threads')
          const { AsyncLock, Condition, RwLock, locks } = require(${force})
          const [lock, rw, condition] = [AsyncLock, RwLock, Condition].map((Class, n) => new Class(workerData, { byteOffset: 32 + 4 * n }))
          parentPort.once('message', () => {
            process.umask()
            try {
              ${form}
              parentPort.postMessage('done')
            } catch (error) {
              parentPort.postMessage(error.message)
            }
            // It lives on, and calls nothing of the package any more.
            setInterval(() => {}, 1000)
          })`)}
        ${withFaults(`
          const buffer = new SharedArrayBuffer(64)
          const [lock, rw] = [AsyncLock, RwLock].map((Class, n) => new Class(buffer, { byteOffset: 32 + 4 * n }))
          const worker = new Worker(source, { eval: true, workerData: buffer })
          worker.once('online', async () => {
            const name = ${JSON.stringify(name)}
            const tokens = name === 'condition.wait' ? [] : [lock.tryLock(), rw.tryLock()]
            let release
            const held = name === 'requestSync' ? locks.request('x', () => new Promise(resolve => { release = resolve })) : undefined
            await turn()
            const heard = []
            worker.on('message', message => heard.push(message))
            worker.postMessage('go')
            const begin = Date.now()
            while (heard.length === 0 && Date.now() - begin < 60) await new Promise(resolve => setTimeout(resolve, 5))
            for (const token of tokens) token.unlock()
            if (release) release()
            await held
            const busy = () => api.snapshot().held.length + api.snapshot().waiting.length > 0 || lock.locked || rw.locked || rw.readers > 0
            while (heard.length < 1) await new Promise(resolve => setTimeout(resolve, 1))
            for (let n = 0; n < 500 && busy(); n++) await new Promise(resolve => setTimeout(resolve, 1))
            const { held: left, waiting } = api.snapshot()
            console.log(JSON.stringify({ said: heard[0], left: left.length + waiting.length, locked: lock.locked || rw.locked || rw.readers > 0 }))
            process.exit()
          })`)}`], { env: env({ FAULT_WORKER_CLOCK: String(nth) }) })
      const where = name + ', look ' + nth
      if (signal === 'SIGABRT') {
        assert(/fatal runtime error: .*aborting/.test(stderr), where + ': ' + stderr)
        continue
      }
      assert.strictEqual(code, 0, where + ': ' + stderr)
      const { said, left, locked } = JSON.parse(stdout)
      assert.deepStrictEqual({ left, locked }, { left: 0, locked: false }, where + ': ' + stdout)
      if (said !== 'done') failed++
    }
  }
  assert(failed >= 3, `${failed} have failed`)
})

test('a panic while a thread ends loses nothing of what it held', { skip: skipWorkers, timeout: 110000 }, async t => {
  for (let nth = 1; nth < 9; nth++) {
    const result = await runForJSON(t, ['-e', withFaults(`
      const { Worker } = require('worker_threads')
      const buffer = new SharedArrayBuffer(64)
      const [lock, rw, semaphore] = [AsyncLock, RwLock, Semaphore].map((Class, n) => new Class(buffer, { byteOffset: 32 + 4 * n }))
      semaphore.release(1)
      const worker = new Worker(\`
        const { parentPort, workerData } = require('worker_threads')
        const { AsyncLock, RwLock, Semaphore, locks } = require(${force})
        const [lock, rw, semaphore] = [AsyncLock, RwLock, Semaphore].map((Class, n) => new Class(workerData, { byteOffset: 32 + 4 * n }))
        const held = [lock.tryLock(), rw.tryLock(), semaphore.tryHold()]
        locks.request('x', () => new Promise(() => {}))
        setImmediate(() => parentPort.postMessage('held'))
        parentPort.once('message', () => {
          process.umask()
          process.exit(held.length)
        })\`, { eval: true, workerData: buffer })
      worker.once('message', async () => {
        const wait = { timeout: 10000 }
        const use = token => token.unlock()
        const waits = [lock.lockAsync(wait).then(use), rw.lockAsync(wait).then(use), semaphore.holdAsync(1, wait).then(use), locks.request('x', wait, () => true)]
        worker.postMessage('end')
        const outcomes = await Promise.all(waits.map(wait => wait.catch(error => error.message)))
        const { held, waiting } = api.snapshot()
        const { held: names, pending } = await locks.query()
        console.log(JSON.stringify({ outcomes, left: held.length + waiting.length + names.length + pending.length }))
      })`)], { env: env({ FAULT_WORKER_CLOCK: String(nth) }) })
    assert.deepStrictEqual(result, { outcomes: [true, true, true, true], left: 0 }, `look ${nth}`)
  }
})

test('a thread that holds much and gets no memory for more says so, and keeps what it holds', { skip }, async t => {
  const result = await runForJSON(t, ['-e', `
    const { AsyncLock } = require(${force})
    const buffer = new SharedArrayBuffer(4 * 200)
    const locks = Array.from({ length: 200 }, (_, n) => new AsyncLock(buffer, { byteOffset: 4 * n }))
    const tokens = []
    let message
    // Room for 128: at 20 bytes each.
    process.env.FAULT_MEMORY = String(20 * 128)
    try {
      for (const lock of locks) tokens.push(lock.tryLock())
    } catch (error) {
      message = error.name + ': ' + error.message
    }
    const count = tokens.length
    const isFree = !locks[count].locked
    delete process.env.FAULT_MEMORY
    while (tokens.length < 200) tokens.push(locks[tokens.length].tryLock())
    const holders = new Set(locks.map(lock => lock.holder))
    const unlocked = tokens.every(token => token.unlock())
    console.log(JSON.stringify({ message, count, isFree, holders: [...holders], unlocked, locked: locks.some(lock => lock.locked) }))`], { env: env({}) })
  assert.deepStrictEqual(Object.assign(result, { message: /^RangeError: Array buffer allocation failed/.test(result.message) || result.message, count: result.count < 128 && result.count >= 32 }),
    { message: true, count: true, isFree: true, holders: [0], unlocked: true, locked: false })
})
