'use strict'

// Threads that have ended are part of the story of a wait for a notification.

const assert = require('assert')
const { test } = require('../../harness')
const { NEVER, run, toldBy } = require('../../fixtures/programs')
const { MAJOR } = require('../../fixtures/queue-toolbox')

/** Ways to end: that of a thread, and what a snapshot and a text say. */
const WAYS = {
  'terminate()': ['terminate', 'was terminated'],
  'process.exit()': ['exit', 'ended by process.exit()'],
  'process.exit(3)': ['exit', 'ended by process.exit()'],
  'an exception': ['exception', 'ended by an uncaught exception'],
  'a rejection': ['exception', 'ended by an uncaught exception'],
  'its end': ['end', 'came to its end'],
  'its end, with a code': ['end', 'came to its end'],
  'without its listeners': [undefined, 'ended']
}
// Old Nodes do not tell of exceptions, and only warn of rejections.
if (MAJOR < 14) WAYS['process.exit(3)'] = WAYS['an exception'] = [undefined, 'ended']
if (MAJOR < 15) delete WAYS['a rejection']

/** Tells of each end: the entry of a wait, its text, and that of a wait at another memory. Then, of the last three. */
const tellEnds = async ({ api, data: ways, startWorker, tell, words }) => {
  const memory = words(4).buffer
  const waitingFor = name => api.snapshot().waiting.find(entry => entry.name === name)
  const textOf = entry => api.formatSnapshot({ held: [], waiting: [entry], cycles: [] })
  new api.Latch(memory, { count: 1, byteOffset: 4, name: 'built' }).waitAsync()
  new api.Latch(words(1).buffer, { count: 1, name: 'other' }).waitAsync()
  new api.Semaphore(memory, { byteOffset: 8, name: 'permits' }).acquireAsync()
  const lock = new api.AsyncLock(memory, { byteOffset: 12, name: 'lock' })
  const token = lock.tryLock()
  lock.lockAsync()
  for (const way of ways) {
    const worker = startWorker([memory, way], ({ api, data: [memory, way], post, receive }) => {
      new api.Condition(memory).notify()
      post(process.listenerCount('exit'))
      if (way === 'terminate()') return receive()
      else if (way === 'process.exit()') process.exit()
      else if (way === 'process.exit(3)') process.exit(3)
      else if (way === 'an exception') setTimeout(() => { throw new Error('of the test') }, 0)
      else if (way === 'a rejection') setTimeout(() => Promise.reject(new Error('of the test')), 0)
      else if (way === 'its end, with a code') process.exitCode = 3
      else if (way === 'without its listeners') process.removeAllListeners()
    })
    worker.done().catch(() => {})
    const listeners = await worker.next()
    if (way === 'terminate()') worker.terminate()
    await worker.exited
    const { ended: [{ threadId, how, milliseconds, ...more }] } = waitingFor('built')
    const isLately = milliseconds >= 0 && milliseconds < 10000
    const line = textOf(waitingFor('built')).split('\n').find(line => line.includes('used this memory'))
    tell([listeners, threadId, how, isLately, Object.keys(more), line])
  }
  const other = waitingFor('other')
  tell([Object.keys(other).includes('ended'), textOf(other).includes('used this memory')])
  for (const name of ['built', 'permits', 'lock']) tell((waitingFor(name).ended || []).map(({ threadId }) => threadId))
  process.exit(token.locked ? 0 : 1)
}

test('a snapshot and its text say who has used the memory of a wait, and how they ended', async t => {
  const ways = Object.keys(WAYS)
  const told = await toldBy(t, { after: NEVER, data: ways }, tellEnds)
  const [other, latest, ofPermits, ofLock] = told.slice(ways.length)
  ways.forEach((way, n) => {
    const [, threadId, how, isLately, more, line] = told[n]
    assert.deepStrictEqual([how || undefined, threadId, isLately, more], [WAYS[way][0], n + 1, true, []], way)
    const expected = `  thread ${n + 1}, which used this memory, ${WAYS[way][1]} T ago`
    assert.strictEqual(line.replace(/\d+(\.\d+)? (ms|s) ago/, 'T ago'), expected)
  })
  assert.deepStrictEqual(other, [false, false])
  assert.deepStrictEqual(latest, [0, 1, 2].map(n => ways.length - n))
  // Who holds a lock is known.
  assert.deepStrictEqual([ofPermits, ofLock], [latest, []])
})

test('without a variable that asks for it, a thread listens for nothing, and has just ended', async t => {
  const listeners = []
  for (const [options, expected] of [[{}, 'ended'], [{ after: NEVER }, 'came to its end']]) {
    const [[count, , , , , line]] = await toldBy(t, Object.assign({ data: ['its end'] }, options), tellEnds)
    assert.ok(line.includes(`, which used this memory, ${expected} `), line)
    listeners.push(count)
  }
  assert.strictEqual(listeners[0] + 1, listeners[1])
})

const needsName = { skip: !('threadName' in require('worker_threads')) && 'this Node does not tell it' }
test('a thread that has ended has its name', needsName, async t => {
  const data = require.resolve('../../../pure')
  const told = await toldBy(t, { data }, async ({ api, data, require, tell }) => {
    const { Worker } = require('worker_threads')
    const latch = api.Latch.create({ count: 1 })
    latch.waitAsync()
    const source = `
      const { Latch } = require(${JSON.stringify(data)})
      console.assert(new Latch(require('worker_threads').workerData).remaining === 1)`
    const worker = new Worker(source, { eval: true, name: 'build "er" 3', workerData: latch })
    await new Promise(resolve => worker.once('exit', resolve))
    const { waiting } = api.snapshot()
    tell(waiting[0].ended[0].threadName)
    tell(api.formatSnapshot({ held: [], waiting, cycles: [] }))
    process.exit()
  })
  assert.strictEqual(told[0], 'build "er" 3')
  assert.ok(told[1].includes('\n  thread 1 "build \\"er\\" 3", which used this memory, ended '), told[1])
})

/** Begins each kind of wait, by a promise and blocked, at a memory each; gives the memories. */
const beginWaits = async ({ api, block, startWorker, until }) => {
  const made = [
    ['Latch', new api.Latch(new SharedArrayBuffer(8), { count: 1, name: 'latch' }), 'wait'],
    ['Barrier', new api.Barrier(new SharedArrayBuffer(8), { parties: 3, name: 'barrier' }), 'wait'],
    ['Queue', api.Queue.create({ capacity: 1, messageSize: 8, name: 'taken' }), 'take'],
    ['Queue', api.Queue.create({ capacity: 1, messageSize: 8, name: 'used' }), 'use'],
    ['Queue', api.Queue.create({ capacity: 1, messageSize: 8, name: 'idle' }), 'idle']
  ]
  made[4][1].tryPut(1)
  for (const [, thing, method] of made) {
    if (method === 'use') thing.use(() => {})
    else thing[{ wait: 'waitAsync', take: 'takeAsync', idle: 'onIdle' }[method]]()
    if (method === 'use') startWorker(thing, ({ api, data }) => { new api.Queue(data).useSync(() => {}) })
    else block(thing, method)
  }
  const condition = new api.Condition(new SharedArrayBuffer(8), { name: 'condition' })
  condition.waitAsync(api.AsyncLock.create().tryLock())
  startWorker(condition, ({ api, data }) => { new api.Condition(data).wait(api.AsyncLock.create().lock()) })
  await until(() => api.snapshot().waiting.length === 12, 'all wait')
  return [...made.map(([, { buffer }]) => buffer), condition.buffer]
}

const NOUNS = [
  'Latch "latch"', 'the other parties of Barrier "barrier"', 'a message of Queue "taken"', 'a message of Queue "used"',
  'the end of all work of Queue "idle"', 'Condition "condition"'
]

/** The reports of these waits: of promises and blocked threads, whose numbers do not count. */
const reportsOf = ending => [].concat(...NOUNS.map(noun => [
  `A promise of the main thread has been pending for T waiting for ${noun}${ending}`,
  `Thread N has been blocked for T waiting for ${noun}${ending}`
])).sort()

const withoutNumbers = reports => reports.map(report => report.replace(/hread \d+/g, 'hread N')).sort()

/** The seconds in the heads of reports. */
const secondsIn = stderr => (stderr.match(/ for \d+(\.\d+)? m?s waiting/g) || [])
  .map(text => parseFloat(text.slice(5)) / (/ ms /.test(text) ? 1000 : 1))

const withWaits = fn => `scope => (${fn})(Object.assign(scope, { beginWaits: () => (${beginWaits})(scope) }))`

test('each kind of wait is reported, once a thread that used its memory has ended since it began', async t => {
  const until = ({ length }) => length >= 12
  const { reports, stderr } = await run(t, { after: 1500, until }, withWaits(async ({ beginWaits, startWorker }) => {
    const memories = await beginWaits()
    startWorker(memories, ({ api, data, keep }) => {
      for (const memory of data) keep(new api.Condition(memory, { byteOffset: memory.byteLength - 4 }))
      process.exit()
    }).done().catch(() => {})
  }))
  const ending = ':\n  thread N, which used this memory, ended by process.exit() T ago'
  assert.deepStrictEqual(withoutNumbers(reports), reportsOf(ending), stderr)
  // Otherwise they would be reported after 15 s.
  assert.ok(secondsIn(stderr).every(seconds => seconds >= 1.5 && seconds < 15), stderr)
})

test('otherwise they are reported after ten periods, once; who had ended before is listed', async t => {
  const until = ({ length }, lines) => length >= 12 && lines.length > 0
  const { reports, stderr } = await run(t, { after: 150, until }, withWaits(async scope => {
    const { api, beginWaits, say, startWorker, untilWaiting } = scope
    const latch = new api.Latch(new SharedArrayBuffer(4), { count: 1, name: 'before' })
    await startWorker(latch, ({ api, data, keep }) => { keep(new api.Latch(data)) }).exited
    await beginWaits()
    latch.waitAsync()
    // Threads that have used other memory.
    for (let n = 0; n < 5; n++) await startWorker(({ api }) => { api.AsyncLock.create() }).exited
    await untilWaiting(13, 4500, { blocked: false })
    say('they wait')
  }))
  const before = 'A promise of the main thread has been pending for T waiting for Latch "before":\n' +
    '  thread N, which used this memory, came to its end T ago'
  assert.deepStrictEqual(withoutNumbers(reports), reportsOf('.').concat(before).sort(), stderr)
  assert.ok(secondsIn(stderr).every(seconds => seconds >= 1.5), stderr)
})

test('a pool that ends its workers reports those that stand by once', async t => {
  const until = ({ length }, lines) => length >= 2 && lines.length > 0
  const { reports, stderr } = await run(t, { after: 700, until }, async ({ api, block, say, startWorker, until }) => {
    const queue = api.Queue.create({ capacity: 1, messageSize: 8 })
    queue.takeAsync()
    block(queue, 'take')
    await until(() => queue.waiters === 2 || api.snapshot().waiting.length === 2)
    for (let n = 0; n < 30; n++) {
      await startWorker(queue, ({ api, data, keep, sleep }) => {
        keep(new api.Queue(data))
        return sleep(50)
      }).exited
    }
    say('all have ended')
  })
  const ending = / a message of a Queue(:(\n {2}thread \d+, which used this memory, came to its end T ago)+)$/
  assert.strictEqual(reports.length, 2, stderr)
  for (const report of reports) assert.ok(ending.test(report), report)
})

const needsWeakRef = { skip: typeof WeakRef === 'undefined' && 'this Node has no weak references', timeout: 60000 }
test('who has used a memory is forgotten with it', needsWeakRef, async t => {
  const options = { after: NEVER, execArgv: ['--expose-gc'] }
  const [hadEnded, stale, reused] = await toldBy(t, options, async ({ api, sleep, startWorker, tell }) => {
    const create = () => new api.Latch(new SharedArrayBuffer(4096), { count: 1 })
    const ids = new Set()
    const endedOf = latches => {
      latches.forEach(latch => latch.waitAsync())
      const { waiting } = api.snapshot()
      latches.forEach(latch => latch.countDown())
      return waiting.filter(({ ended }) => ended !== undefined).length
    }
    const use = async () => {
      const latches = Array.from({ length: 200 }, create)
      await startWorker(latches, ({ api, data }) => { data.map(latch => new api.Latch(latch)) }).exited
      for (const { id } of latches) ids.add(id)
      tell(endedOf(latches) === latches.length)
    }
    await use()
    let stale = 0
    let reused = 0
    for (let pass = 0; pass < 50; pass++) {
      global.gc()
      await sleep(2)
      const latches = Array.from({ length: 200 }, create)
      reused += latches.filter(({ id }) => ids.has(id)).length
      stale += endedOf(latches)
    }
    tell(stale)
    tell(reused > 0)
  })
  assert.deepStrictEqual([hadEnded, stale, reused], [true, 0, true])
})
