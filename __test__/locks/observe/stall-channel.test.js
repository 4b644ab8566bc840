'use strict'

// The channel `atomics-waitasync:stall`: what its subscribers are told, and in which thread.

const assert = require('assert')
const { test } = require('../../harness')
const { runChild } = require('../../fixtures/queue-toolbox')
const stallReports = require('../../fixtures/stall-reports')

const CODE = 'ATOMICS_WAITASYNC_STALL'
let options = {}
try {
  require('diagnostics_channel')
} catch (_) {
  options = { skip: 'this Node has no diagnostics_channel' }
}

async function run (t, fn) {
  const { code, lines, stderr } = await runChild(t, fn, undefined, { env: { [CODE]: '200' } })
  return { code, messages: lines.map(line => JSON.parse(line)), reports: stallReports(stderr), stderr }
}

test('a thread hears of the waits of its promises, with the holders, in the context of the call', options, async t => {
  const { code, messages, reports, stderr } = await run(t, async ({ api, keep, require, startWorker, say, until }) => {
    const { AsyncLocalStorage } = require('async_hooks')
    const channel = require('diagnostics_channel').channel('atomics-waitasync:stall')
    const storage = new AsyncLocalStorage()
    const heard = []
    // The limit counts from the call, `milliseconds` from the claim, a stack later.
    channel.subscribe(({ entry, holders, cycle, threadId }, name) => {
      heard.push([name, threadId, entry.kind, entry.name, entry.milliseconds >= 100, holders.map(({ threadId, kind }) => [threadId, kind]), cycle === undefined, storage.getStore()])
    })
    const lock = new api.AsyncLock(new SharedArrayBuffer(4), { name: 'accounts' })
    keep(lock.tryLock())
    storage.run('of the call', () => { lock.lockAsync() })
    const inWorker = await startWorker(({ api, data: sab, require }) => new Promise(resolve => {
      require('diagnostics_channel').channel('atomics-waitasync:stall').subscribe(({ threadId, entry, holders }) => {
        resolve([threadId, entry.threadId, holders[0].threadId])
      })
      new api.AsyncLock(sab).lockAsync()
      setTimeout(() => {}, 1e6)
    }), lock.sab).done()
    await until(() => heard.length > 0)
    await new Promise(resolve => setTimeout(resolve, 500))
    say(JSON.stringify({ heard, inWorker }))
    process.exit()
  })
  const [{ heard, inWorker }] = messages
  assert.deepStrictEqual([code, heard], [0, [['atomics-waitasync:stall', 0, 'AsyncLock', 'accounts', true, [[0, 'AsyncLock']], true, 'of the call']]], stderr)
  assert.deepStrictEqual(inWorker, [1, 1, 0])
  assert.strictEqual(reports.length, 2, stderr)
})

test('the main thread publishes for a thread that is blocked, which writes its report, too', options, async t => {
  const { messages, reports, stderr } = await run(t, async ({ api, keep, require, startWorker, say, until, sleep }) => {
    const heard = []
    require('diagnostics_channel').channel('atomics-waitasync:stall').subscribe(message => heard.push(message))
    const sab = new SharedArrayBuffer(12)
    const lock = new api.AsyncLock(sab)
    keep(lock.tryLock())
    startWorker(({ api, data: sab, require }) => {
      require('diagnostics_channel').channel('atomics-waitasync:stall').subscribe(() => { throw new Error('not here') })
      new api.AsyncLock(sab).lock()
    }, sab)
    await until(() => heard.length === 1)
    const ring = () => {
      for (const place of [0, 1]) {
        startWorker(({ api, Atomics, data: { sab, place } }) => {
          const lockAt = index => new api.AsyncLock(sab, { byteOffset: 4 + 4 * index })
          lockAt(place).lock()
          while (!lockAt(0).locked || !lockAt(1).locked);
          lockAt(1 - place).lockIfAvailable(1e6)
        }, { sab, place })
      }
    }
    ring()
    await until(() => heard.length === 2)
    await sleep(1000)
    for (const { entry, holders, cycle, threadId } of heard) {
      const links = cycle && cycle.map(({ threadId, holds, waitsFor, blocked }) => [threadId, holds.threadId, waitsFor.threadId, blocked])
      say(JSON.stringify([threadId, entry.threadId, entry.blocked, holders.length, links]))
    }
    process.exit()
  })
  const [single, ring] = messages
  assert.deepStrictEqual(single, [1, 1, true, 1, null], stderr)
  assert.deepStrictEqual(ring.slice(2), [true, 1, [[2, 2, 2, true], [3, 3, 3, true]]], stderr)
  assert.ok(ring[0] === ring[1] && [2, 3].includes(ring[0]), stderr)
  assert.strictEqual(messages.length, 2)
  assert.deepStrictEqual(reports.map(text => text.split('\n')[0]), [
    'Thread 1 has been blocked for T, and waits for an AsyncLock:', 'These threads wait for one another:'
  ], stderr)
})

test('a subscriber that throws breaks no wait, and hides no report', options, async t => {
  const { messages, reports, stderr } = await run(t, async ({ api, require, startWorker, say, until }) => {
    let thrown = 0
    process.on('uncaughtException', ({ message }) => { if (message === 'of a subscriber') thrown++ })
    require('diagnostics_channel').channel('atomics-waitasync:stall').subscribe(() => { throw new Error('of a subscriber') })
    const lock = new api.AsyncLock(new SharedArrayBuffer(4))
    const token = lock.tryLock()
    const promises = [lock.lockAsync(), lock.lockAsync()]
    const worker = startWorker(({ api, data: sab }) => { new api.AsyncLock(sab).lock().unlock() }, lock.sab)
    await until(() => thrown === 3)
    token.unlock()
    for (const promise of promises) (await promise).unlock()
    await worker.done()
    say(JSON.stringify(thrown))
    process.exit()
  })
  assert.deepStrictEqual([messages, reports.length], [[3], 3], stderr)
})

test('a Worker whose standard error is a stream of its parent warns there', async t => {
  const { messages, reports, stderr } = await run(t, async ({ api, keep, require, say, until }) => {
    const { Worker } = require('worker_threads')
    const lock = new api.AsyncLock(new SharedArrayBuffer(4))
    keep(lock.tryLock())
    const source = `new (require(${JSON.stringify(require.resolve('../../pure'))}).AsyncLock)(require('worker_threads').workerData).lockAsync(); setInterval(() => {}, 1e6)`
    const worker = new Worker(source, { eval: true, workerData: lock.sab, stderr: true })
    let text = ''
    worker.stderr.on('data', chunk => { text += chunk })
    await until(() => /\n {4}at /.test(text))
    say(JSON.stringify(text))
    process.exit()
  })
  assert.deepStrictEqual(stallReports(messages[0]), ['A promise of thread 1 has been pending for T, and waits for an AsyncLock:\n  held for T by the main thread; it waits for nothing'])
  assert.deepStrictEqual(reports, [], stderr)
})
