'use strict'

// The channel `atomics-waitasync:stall`: its messages, and in which thread.

const assert = require('assert')
const path = require('path')
const { test } = require('../../harness')
const { needsChannels } = require('../../fixtures/channels')
const stallReports = require('../../fixtures/stall-reports')
const { CODE, run } = require('../../fixtures/programs')
const { runForJSON } = require('../../fixtures/run-node')
const slowness = require('../../fixtures/slowness')

const root = path.join(__dirname, '..', '..', '..')

test('a thread hears of the waits of its promises, with the holders, in their context', needsChannels, async t => {
  const { told, reports, stderr } = await run(t, { after: 200 }, async scope => {
    const { heldLock, require, startWorker, subscribe, tell, until } = scope
    const { AsyncLocalStorage } = require('async_hooks')
    const storage = new AsyncLocalStorage()
    const heard = []
    subscribe('stall', ({ entry: { kind, name, milliseconds }, holders: [holder], cycle, threadId }, channel) => {
      const isLate = milliseconds >= 200
      heard.push([channel, threadId, kind, name, isLate, holder.threadId, cycle === undefined, storage.getStore()])
    })
    const lock = heldLock('accounts')
    storage.run('of the call', () => { lock.lockAsync() })
    const thread = startWorker(lock, ({ api, data, subscribe }) => new Promise(resolve => {
      subscribe('stall', ({ threadId, entry, holders }) => resolve([threadId, entry.threadId, holders[0].threadId]))
      new api.AsyncLock(data).lockAsync()
      setTimeout(() => {}, 1e6)
    }))
    tell(await thread.done())
    await until(() => heard.length > 0)
    // When it hears of a later wait, it would have heard again of that one.
    heldLock('later').lockAsync()
    await until(() => heard.some(([, , , name]) => name === 'later'))
    heard.slice(0, -1).map(tell)
    process.exit()
  })
  const message = ['atomics-waitasync:stall', 0, 'AsyncLock', 'accounts', true, 0, true, 'of the call']
  assert.deepStrictEqual(told(), [[1, 1, 0], message], stderr)
  assert.strictEqual(reports.length, 3, stderr)
})

test('the main thread publishes for a blocked thread, which writes its report, too', needsChannels, async t => {
  const until = ({ length }, lines) => length >= 3 && lines.length >= 2
  const { told, reports, stderr } = await run(t, { after: 200, until }, async scope => {
    const { heldLock, startWorker, subscribe, tell, until } = scope
    const heard = []
    subscribe('stall', message => heard.push(message))
    startWorker(heldLock(), ({ api, data, subscribe }) => {
      subscribe('stall', () => { throw new Error('not here') })
      new api.AsyncLock(data).lock()
    })
    await until(() => heard.length === 1)
    const locks = [0, 0].map(() => new SharedArrayBuffer(4))
    for (const order of [locks, locks.slice().reverse()]) {
      startWorker(order, ({ api, data }) => {
        const [mine, other] = data.map(memory => new api.AsyncLock(memory))
        mine.lock()
        while (!other.locked);
        other.lockIfAvailable(1e6)
      })
    }
    await until(() => heard.length === 2)
    // When it hears of a later wait, it would have heard again of the others.
    const isLater = ({ entry: { name } }) => name === 'later'
    heldLock('later').lockAsync()
    await until(() => heard.some(isLater))
    const linkOf = ({ threadId, holds, waitsFor, blocked }) => [threadId, holds.threadId, waitsFor.threadId, blocked]
    for (const { entry, holders, cycle = [], threadId } of heard.filter(message => !isLater(message))) {
      const isLate = entry.milliseconds >= 200
      tell([threadId === entry.threadId && isLate, entry.threadId, entry.blocked, holders.length, cycle.map(linkOf)])
    }
  })
  const [single, [isOwn, threadId, ...cycle], ...more] = told()
  assert.deepStrictEqual([single, more], [[true, 1, true, 1, []], []], stderr)
  assert.deepStrictEqual([isOwn, cycle], [true, [true, 1, [2, 3].map(id => [id, id, id, true])]], stderr)
  assert.ok([2, 3].includes(threadId), stderr)
  const heads = ['Thread 1 has been blocked for T waiting for an AsyncLock:', 'These threads wait for one another:']
  const later = 'A promise of the main thread has been pending for T waiting for AsyncLock "later":'
  assert.deepStrictEqual(reports.map(text => text.split('\n')[0]).sort(), [later, heads[1], heads[0]].sort(), stderr)
})

test('the main thread publishes, too, where it has only required the plain entry', needsChannels, async t => {
  const source = `
    require(${JSON.stringify(root)})
    const { channel } = require('diagnostics_channel')
    const { Worker } = require('worker_threads')
    const workerData = new SharedArrayBuffer(4)
    new Int32Array(workerData)[0] = 1
    const blocks = \`
      const { AsyncLock } = require(process.argv[2])
      new AsyncLock(require('worker_threads').workerData).lock()\`
    new Worker(blocks, { eval: true, argv: [${JSON.stringify(path.join(root, 'pure'))}], workerData })
    const end = (heard) => { console.log(JSON.stringify(heard)); process.exit() }
    channel('atomics-waitasync:stall').subscribe(({ entry, threadId }) => end([entry.kind, threadId]))
    setTimeout(end, ${slowness * 20000}, 'nothing')`
  const env = { [CODE]: '200' }
  assert.deepStrictEqual(await runForJSON(t, ['-e', source], { env }), ['AsyncLock', 1])
})

test('a subscriber that throws breaks no wait, and hides no report', needsChannels, async t => {
  const { told, reports, stderr } = await run(t, { after: 200 }, async scope => {
    const { newLock, startWorker, subscribe, tell, until } = scope
    let thrown = 0
    process.on('uncaughtException', ({ message }) => { if (message === 'of a subscriber') thrown++ })
    subscribe('stall', () => { throw new Error('of a subscriber') })
    const [lock, other] = [newLock(), newLock()]
    const tokens = [lock.tryLock(), other.tryLock()]
    const promises = [lock.lockAsync(), other.lockAsync()]
    const thread = startWorker(lock, ({ api, data }) => { new api.AsyncLock(data).lock().unlock() })
    await until(() => thrown === 3)
    for (const token of tokens) token.unlock()
    for (const promise of promises) (await promise).unlock()
    await thread.done()
    tell(thrown)
    process.exit()
  })
  assert.deepStrictEqual([told(), reports.length], [[3], 3], stderr)
})

test('a Worker whose standard error is a stream of its parent warns there', async t => {
  const { told, reports, stderr } = await run(t, { after: 200 }, async ({ heldLock, require, tell, until }) => {
    const { Worker } = require('worker_threads')
    const source = `
      const { AsyncLock } = require(${JSON.stringify(require.resolve('../../pure'))})
      new AsyncLock(require('worker_threads').workerData).lockAsync()
      setInterval(() => {}, 1e6)`
    const worker = new Worker(source, { eval: true, workerData: heldLock(), stderr: true })
    let text = ''
    worker.stderr.on('data', chunk => { text += chunk })
    await until(() => /\n {4}at /.test(text))
    tell(text)
    process.exit()
  })
  const report = 'A promise of thread 1 has been pending for T waiting for an AsyncLock:\n' +
    '  held for T by the main thread; it waits for no lock of this package'
  assert.deepStrictEqual([stallReports(told()[0]), reports], [[report], []], stderr)
})
