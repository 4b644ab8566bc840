'use strict'
// nodes: >=16 (older ones lack what the engines need)

// Locks of files among the threads of one process: blocking requests, ends of workers, contexts, and the event loop.

const assert = require('assert')
const { AsyncLocalStorage } = require('async_hooks')
const fs = require('fs')
const path = require('path')
const { Worker } = require('worker_threads')
const { test } = require('../harness')
const { ENTRY, scratchFolder, startMember } = require('../fixtures/lock-processes')
const { runForJSON, runNode } = require('../fixtures/run-node')
const { files, processLocks } = require('../../processes')

const sleep = milliseconds => new Promise(resolve => setTimeout(resolve, milliseconds))

/** Starts a worker that runs the body with `locks`, `api`, `parentPort`. */
function startWorker (t, folder, body, options = {}) {
  const worker = new Worker(`
    const { parentPort } = require('worker_threads')
    const api = require(${JSON.stringify(ENTRY)})
    const locks = api.processLocks(api.files(${JSON.stringify(folder)}, ${JSON.stringify(options)}))
    ;(${body})({ api, locks, parentPort })
  `, { eval: true })
  t.after(() => worker.terminate())
  worker.on('error', error => { throw error })
  return worker
}

const messageOf = worker => new Promise(resolve => worker.once('message', resolve))
const endOf = worker => new Promise(resolve => worker.once('exit', resolve))

test('threads of a process count one at a time, with and without blocking', async t => {
  const folder = scratchFolder(t)
  const file = path.join(folder, 'number')
  fs.writeFileSync(file, '0')
  const workers = [0, 1].map(() => startWorker(t, folder, `async ({ locks, parentPort }) => {
    const fs = require('fs')
    const file = ${JSON.stringify(file)}
    const add = (lock) => { fs.writeFileSync(file, String(Number(fs.readFileSync(file, 'utf8')) + 1)) }
    for (let n = 0; n < 50; n++) {
      locks.requestSync('number', add)
      await locks.request('number', async () => {
        const number = Number(fs.readFileSync(file, 'utf8'))
        await new Promise(resolve => setImmediate(resolve))
        fs.writeFileSync(file, String(number + 1))
      })
    }
    parentPort.postMessage('done')
  }`))
  await Promise.all(workers.map(messageOf))
  assert.strictEqual(fs.readFileSync(file, 'utf8'), '200')
})

test('a worker that ends with a lock: the next holder sees the death; one that waits leaves nothing', async t => {
  const folder = scratchFolder(t)
  const locks = processLocks(folder)
  for (const end of ['terminate', 'exit']) {
    const holder = startWorker(t, folder, `async ({ locks, parentPort }) => {
      await locks.hold('a')
      parentPort.postMessage('held')
      parentPort.once('message', () => process.exit())
    }`)
    await messageOf(holder)
    const waiter = startWorker(t, folder, `({ locks, parentPort }) => {
      locks.request('a', () => {})
      parentPort.postMessage('waits')
    }`)
    await messageOf(waiter)
    const told = locks.request('a', ({ ownerDied }) => ownerDied)
    await Promise.all([waiter.terminate(), endOf(waiter)])
    if (end === 'exit') holder.postMessage('exit')
    else holder.terminate()
    assert.strictEqual(await told, true)
    assert.strictEqual(await locks.request('a', ({ ownerDied }) => ownerDied), false)
  }
})

test('a worker that ends while it waits behind another process leaves nothing, in whichever form it waits', async t => {
  const folder = scratchFolder(t)
  const locks = processLocks(folder)
  const member = await startMember(t, folder)
  for (const form of ['request', 'requestSync']) {
    await member.hold('a')
    const waiter = startWorker(t, folder, `({ locks, parentPort }) => {
      parentPort.postMessage('waits')
      locks.${form}('a', () => { parentPort.postMessage('got it') })
    }`)
    await messageOf(waiter)
    await sleep(50)
    let told
    waiter.on('message', message => { told = message })
    // While the lock is held.
    await waiter.terminate()
    await member.release('a')
    assert.strictEqual((await member.pass('a')).ownerDied, false)
    assert.strictEqual(told, undefined)
    assert.strictEqual(await locks.request('a', ({ ownerDied }) => ownerDied), false)
  }
})

test('requestSync: results, errors, timeouts, repairs and lost locks', async t => {
  const folder = scratchFolder(t)
  const member = await startMember(t, folder)
  const held = await member.hold('held')
  const results = await messageOf(startWorker(t, folder, `({ locks, parentPort }) => {
    const fs = require('fs')
    const outcome = (...args) => {
      try {
        return locks.requestSync(...args)
      } catch (error) {
        return error.code || error.name + ' ' + error.message
      }
    }
    const fail = () => { throw new RangeError('on purpose') }
    const folder = ${JSON.stringify(folder)}
    parentPort.postMessage({
      result: outcome('a', lock => [lock.name, lock.mode, lock.ownerDied, lock.isLost, lock.signal.aborted]),
      fails: outcome('a', fail),
      late: outcome('held', { timeout: 30 }, () => {}),
      attempt: outcome('held', { timeout: 0 }, () => {}),
      none: outcome('held', { ifAvailable: true }, lock => lock),
      promise: outcome('a', async () => {}).slice(0, 9),
      nested: outcome('a', () => outcome('a', () => {})),
      nestedHold: locks.requestSync('a', () => {
        try {
          locks.holdSync('a')
        } catch ({ code, kind, message }) {
          return [code, kind, message]
        }
      }),
      abandoned: outcome('a', lock => lock.abandon()),
      told: outcome('a', fail) + outcome('a', lock => lock.ownerDied),
      mended: outcome('a', lock => lock.ownerDied),
      left: outcome('b', { repair () {} }, fail),
      repaired: outcome('b', { repair: lock => { fs.writeFileSync(folder + '/told', String(lock.ownerDied)) } },
        lock => lock.ownerDied),
      lost: outcome('c', lock => {
        for (const name of fs.readdirSync(folder)) if (name.endsWith('.lock')) fs.unlinkSync(folder + '/' + name)
        return lock.isLost
      })
    })
  }`))
  // Windows keeps a file that is removed until nobody has it open.
  if (process.platform === 'win32' && results.lost === false) results.lost = 'ERR_LOCK_LOST'
  assert.deepStrictEqual(results, {
    result: ['a', 'exclusive', false, false, false],
    fails: 'RangeError on purpose',
    late: 'ERR_TIMEOUT',
    attempt: 'ERR_TIMEOUT',
    none: null,
    promise: 'TypeError',
    nested: 'ERR_DEADLOCK',
    nestedHold: ['ERR_DEADLOCK', 'named',
      'holdSync: would wait for the lock named "a", which this thread itself already holds'],
    abandoned: true,
    told: 'RangeError on purposetrue',
    mended: false,
    left: 'RangeError on purpose',
    repaired: false,
    lost: 'ERR_LOCK_LOST'
  })
  assert.strictEqual(fs.readFileSync(path.join(folder, 'told'), 'utf8'), 'true')
  assert.ok(held.token > 0)
})

test('requestSync and holdSync on the main thread: one attempt only', t => {
  const locks = processLocks(scratchFolder(t))
  for (const options of [undefined, {}, { timeout: 1 }, { ifAvailable: false }]) {
    assert.throws(() => locks.requestSync('a', options, () => {}), /requestSync would block the main thread/)
    assert.throws(() => locks.holdSync('a', options), /holdSync would block the main thread/)
  }
  for (const options of [{ ifAvailable: true }, { timeout: 0 }, { timeout: -1 }]) {
    assert.strictEqual(locks.requestSync('a', options, ({ name }) => name), 'a')
    const lock = locks.holdSync('a', options)
    assert.strictEqual(locks.requestSync('a', { ifAvailable: true }, none => none), null)
    assert.strictEqual(locks.holdSync('a', { ifAvailable: true }), null)
    assert.throws(() => locks.holdSync('a', { timeout: 0 }), ({ code, holder }) => {
      return code === 'ERR_TIMEOUT' && holder.pid === process.pid
    })
    lock.unlock()
  }
})

test('holdSync: what it gives is held until its unlock, which says whether it was lost', async t => {
  const folder = scratchFolder(t)
  const locks = processLocks(folder)
  const member = await startMember(t, folder)
  const hold = (name, options) => locks.holdSync(name, { timeout: 0, ...options })

  const lock = hold('a', { label: 'report' })
  assert.deepStrictEqual([lock.name, lock.mode, lock.ownerDied, lock.isLost, lock.signal.aborted],
    ['a', 'exclusive', false, false, false])
  const { held } = await locks.query('a')
  assert.deepStrictEqual(held.map(({ pid, label }) => [pid, label]), [[process.pid, 'report']])
  assert.strictEqual(await member.pass('a', { ifAvailable: true }), null)
  let isGiven = false
  const next = member.pass('a').then(given => { isGiven = true; return given })
  // A request of this thread waits for its turn, and blocks nothing.
  const ours = locks.request('a', ({ token }) => token)
  await member.waits('a')
  assert.strictEqual(isGiven, false)
  assert.deepStrictEqual([lock.unlock(), lock.unlock()], [undefined, undefined])
  const given = await next
  assert.ok(given.token > lock.token && given.ownerDied === false && await ours > lock.token)

  const [one, two] = [hold('a', { mode: 'shared' }), hold('a', { mode: 'shared' })]
  assert.strictEqual((await member.pass('a', { mode: 'shared' })).ownerDied, false)
  assert.strictEqual(one.abandon(), false)
  one.unlock()
  assert.strictEqual(await member.pass('a', { ifAvailable: true }), null)
  two.unlock()

  const left = hold('a')
  assert.deepStrictEqual([left.abandon(), left.unlock(), left.abandon()], [true, undefined, false])
  const told = hold('a')
  assert.strictEqual(told.ownerDied, true)
  told.unlock()
  assert.strictEqual((await member.pass('a')).ownerDied, false)

  if (Symbol.dispose !== undefined) {
    hold('a')[Symbol.dispose]()
    hold('a').unlock()
  }
  // Windows keeps a file that is removed until nobody has it open.
  if (process.platform === 'win32') return
  const lost = hold('b')
  for (const name of fs.readdirSync(folder)) if (name.endsWith('.lock')) fs.unlinkSync(path.join(folder, name))
  assert.strictEqual(lost.isLost, true)
  for (let n = 0; n < 2; n++) assert.throws(() => lost.unlock(), { code: 'ERR_LOCK_LOST' })
  hold('b').unlock()
})

test('holdSync: close() waits for it; its thread that ends is a death; one that waits leaves nothing', async t => {
  const folder = scratchFolder(t)
  const locks = processLocks(folder)
  const lock = locks.holdSync('a', { timeout: 0 })
  let isClosed = false
  const closed = locks.close().then(() => { isClosed = true })
  await sleep(20)
  assert.strictEqual(isClosed, false)
  assert.throws(() => locks.holdSync('b', { timeout: 0 }), { name: 'AbortError' })
  lock.unlock()
  await closed

  const member = await startMember(t, folder)
  await member.hold('c')
  const worker = startWorker(t, folder, `({ locks, parentPort }) => {
    const lock = locks.holdSync('a')
    parentPort.postMessage(lock.token)
    try {
      locks.holdSync('a')
    } catch ({ code }) {
      parentPort.postMessage(code)
    }
    lock.unlock()
    locks.holdSync('b')
    locks.holdSync('c')
  }`)
  assert.ok(await messageOf(worker) > lock.token)
  assert.strictEqual(await messageOf(worker), 'ERR_DEADLOCK')
  await member.run(async ({ locks, sleep }) => {
    while ((await locks.query('b')).held.length === 0) await sleep(2)
  })
  await sleep(50)
  await worker.terminate()
  await member.release('c')
  assert.deepStrictEqual([(await member.pass('b')).ownerDied, (await member.pass('c')).ownerDied], [true, false])
})

test('holdSync: its arguments, and an engine that cannot block', t => {
  const locks = processLocks(scratchFolder(t))
  assert.throws(() => locks.holdSync(1), /^TypeError: holdSync: name must be a string, not the number 1$/)
  assert.throws(() => locks.holdSync('a', { repair () {} }),
    /^TypeError: holdSync: options may have mode, timeout, ifAvailable and label, not "repair"$/)
  const { signal } = new AbortController()
  assert.throws(() => locks.holdSync('a', { signal }), /holdSync blocks and takes no signal/)
  assert.throws(() => locks.holdSync('a', { mode: 'both' }), /holdSync: mode must be/)
  const engine = { id: 'mine', modes: ['exclusive'], acquire () {}, attempt () {}, close () {} }
  assert.throws(() => processLocks(engine).holdSync('a', { timeout: 0 }), {
    name: 'NotSupportedError', message: /mine cannot be asked by a thread that blocks: use hold\(\)/
  })
})

test('callbacks run in the context of their requests, those that waited for another process, too', async t => {
  const folder = scratchFolder(t)
  const locks = processLocks(folder)
  const member = await startMember(t, folder)
  const store = new AsyncLocalStorage()
  await member.hold('a')
  const results = [1, 2].map(n => store.run(n, () => locks.request('a', () => store.getStore())))
  results.push(store.run(3, () => locks.request('b', () => store.getStore())))
  await sleep(20)
  await member.release('a')
  assert.deepStrictEqual(await Promise.all(results), [1, 2, 3])
})

test('a process with locks ends by itself; a wait keeps it alive', async t => {
  const folder = scratchFolder(t)
  const begin = `const locks = require(${JSON.stringify(ENTRY)}).processLocks(${JSON.stringify(folder)});`
  const program = body => ['--no-warnings', '-e', `${begin} (async () => { ${body} })()`]
  assert.strictEqual(await runForJSON(t, program('await locks.request("a", () => {}); console.log(1)')), 1)
  assert.strictEqual(await runForJSON(t, program('await locks.hold("a"); console.log(2)')), 2)
  const member = await startMember(t, folder)
  assert.strictEqual((await member.hold('a')).ownerDied, true)
  const waiting = runForJSON(t, program('await locks.request("a", () => {}); console.log(3)'))
  await sleep(500)
  await member.release('a')
  assert.strictEqual(await waiting, 3)
})

test('durable: tokens, marks and waits are the same, and no flush is made on the thread of a promise', async t => {
  const folder = scratchFolder(t)
  const engine = files(folder, { durable: true })
  const locks = processLocks(engine)
  const member = await startMember(t, folder, { durable: true })
  const first = await member.hold('a')
  assert.strictEqual(await locks.request('a', { ifAvailable: true }, lock => lock), null)
  const waiting = locks.request('a', ({ token, ownerDied }) => ({ token, ownerDied }))
  await member.kill()
  const { token, ownerDied } = await waiting
  assert.ok(token > first.token && ownerDied)
  assert.strictEqual(await locks.request('a', { timeout: 0 }, lock => lock.ownerDied), false)
  const controller = new AbortController()
  const aborted = locks.request('b', { signal: controller.signal }, () => {})
  controller.abort()
  await assert.rejects(aborted)
  await locks.request('b', { timeout: 0 }, () => {}).catch(({ code }) => assert.strictEqual(code, 'ERR_TIMEOUT'))
  await locks.request('b', () => {})
  await locks.close()
})

test('the entry loads no native library before its use, touches no global, and refuses an older Node', async t => {
  const result = await runForJSON(t, ['-e', `
    const before = Object.getOwnPropertyNames(globalThis).length
    const { wait, waitAsync } = Atomics
    const api = require(${JSON.stringify(ENTRY)})
    api.processLocks('/nowhere/at/all')
    console.log(JSON.stringify([
      Object.keys(require.cache).filter(file => file.endsWith('.node')).length,
      Object.getOwnPropertyNames(globalThis).length - before, Atomics.wait === wait, Atomics.waitAsync === waitAsync
    ]))`])
  assert.deepStrictEqual(result, [0, 0, true, true])
  const { code, stderr } = await runNode(t, ['-e', `
    Object.defineProperty(process.versions, 'node', { value: '14.21.3' })
    require(${JSON.stringify(ENTRY)})`])
  assert.strictEqual(code, 1)
  assert.ok(/needs Node 16 or newer/.test(stderr), stderr)
})

test('a platform without tests of these locks: the first use warns, once', async t => {
  const folder = scratchFolder(t)
  const warnings = await runForJSON(t, ['-e', `
    const warnings = []
    process.on('warning', ({ code, message }) => warnings.push([code, message]))
    const { processLocks } = require(${JSON.stringify(ENTRY)})
    // It loads the library, whose name has the platform's.
    require(${JSON.stringify(path.join(path.dirname(ENTRY), 'pure'))}).AsyncLock.create()
    Object.defineProperty(process, 'platform', { value: 'plan9' })
    Object.defineProperty(process, 'arch', { value: 'mips' })
    const locks = processLocks(${JSON.stringify(folder)})
    const told = [warnings.length]
    locks.request('a', () => {}).then(() => locks.request('b', () => {})).then(() => setImmediate(() => {
      console.log(JSON.stringify([...told, ...warnings]))
    }))`])
  const [before, [code, message], ...more] = warnings
  assert.deepStrictEqual([before, code, more], [0, 'ATOMICS_WAITASYNC_PROCESSES', []])
  assert.match(message, /have not been tested on plan9-mips yet, only on .*linux-x64-gnu/)
})

test('wrong arguments of files are errors at once', () => {
  for (const args of [[], [''], [1], ['a', { durably: true }], ['a', { durable: 1 }], ['a', null]]) {
    assert.throws(() => files(...args), TypeError)
  }
})
