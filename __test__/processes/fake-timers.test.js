'use strict'
// nodes: >=16 (older ones lack what the engines need)

// A test may replace everything that tells the time after the entry was loaded: locks of processes wait in real time.

const assert = require('assert')
const path = require('path')
const { test } = require('../harness')
const { scratchFolder } = require('../fixtures/lock-processes')
const { runNode } = require('../fixtures/run-node')

const ENTRY = path.join(__dirname, '..', '..', 'processes')
const FAKE_ENGINE = path.join(__dirname, '..', 'fixtures', 'fake-engine.js')
const INSIDE = path.join(__dirname, '..', 'fixtures', 'inside.js')

/** Replaces timers, clocks and queues of jobs with such as never call and stand still; or, later, far ahead. */
function replaceTime (time) {
  const never = () => ({ ref () {}, unref () {}, hasRef: () => false })
  const timers = ['setTimeout', 'setInterval', 'setImmediate', 'clearTimeout', 'clearInterval', 'clearImmediate']
  for (const target of [globalThis, require('timers')]) for (const name of timers) target[name] = never
  for (const name of ['setTimeout', 'setImmediate']) require('timers/promises')[name] = () => new Promise(() => {})
  globalThis.queueMicrotask = never
  process.nextTick = never
  process.hrtime = Object.assign(() => [time.now, 0], { bigint: () => BigInt(time.now) })
  globalThis.Date = class extends Date { static now () { return time.now } }
  require('perf_hooks').performance.now = () => time.now
  Object.defineProperty(globalThis, 'performance', { value: { now: () => time.now }, configurable: true })
}

/** What a program does while time stands still: each gives a text. */
const acts = {
  'a timeout behind a holder': async ({ locks, others }) => {
    const held = await others.hold('a')
    const { code } = await locks.request('a', { timeout: 20 }, () => {}).catch(error => error)
    await held.unlock()
    return code
  },
  'an abort': async ({ locks, others }) => {
    const held = await others.hold('a')
    const controller = new AbortController()
    const waiting = locks.request('a', { signal: controller.signal }, () => {}).catch(error => error)
    controller.abort()
    const { name } = await waiting
    await held.unlock()
    return name
  },
  'an attempt, a batch, and a query': async ({ locks }) => {
    const results = await Promise.all([1, 2, 3].map(n => locks.request('a', () => n)))
    const taken = await locks.request('b', { ifAvailable: true }, lock => lock !== null)
    const { held } = await locks.query()
    return [...results, taken, held.length].join()
  },
  'flushed states': async ({ api, folder }) => {
    const locks = api.processLocks(api.files(folder + '/durable', { durable: true }))
    return locks.request('a', { ifAvailable: true }, () => locks.request('b', () => 'done'))
  },
  'a query of many names': async ({ locks, folder }) => {
    const fs = require('fs')
    await locks.request('a', () => {})
    const [file] = fs.readdirSync(folder)
    const copyOf = n => folder + '/' + String(n).padStart(64, '0') + '.lock'
    const names = 3000 / (Number(process.env.TEST_SLOWNESS) || 1)
    for (let n = 0; n < names; n++) fs.copyFileSync(folder + '/' + file, copyOf(n))
    return (await locks.query()).held.length
  },
  'an engine that does not say who holds': async ({ api, FakeEngine, never }) => {
    const engine = new FakeEngine()
    engine.isOpen = never()
    engine.query = never
    return api.processLocks(engine).request('a', { timeout: 20 }, () => {}).catch(error => error.code)
  },
  'a lease, whose time passes as it is': async ({ Lease, never, now, time }) => {
    const kept = new Lease(60000, now(), { renew: async () => true })
    time.now = 1e12
    const before = kept.lost.aborted || kept.remaining() < 1000
    kept.stop()
    const lease = new Lease(30, now(), { renew: never })
    if (!lease.lost.aborted) await new Promise(resolve => lease.lost.addEventListener('abort', resolve))
    return before ? 'ended early' : 'ended'
  },
  'close()': async ({ locks, others }) => {
    const held = await others.hold('a')
    const waiting = locks.request('a', () => {}).catch(error => error.name)
    const closed = locks.close()
    await held.unlock()
    await closed
    return waiting
  }
}
const results = ['ERR_TIMEOUT', 'AbortError', '1,2,3,true,0', 'done', '0', 'ERR_TIMEOUT', 'ended', 'AbortError']

/** Runs in a process of its own. */
async function run (entry, fakeEngine, inside, folder, act) {
  const api = require(entry)
  const { FakeEngine, never } = require(fakeEngine)
  const time = { now: 0 }
  replaceTime(time)
  const { Lease, now } = require(inside)('processes/engines/server-lease')
  const locks = api.processLocks(folder)
  // By another id, they have no named lock in common with the first ones: those wait for the file.
  const others = api.processLocks(Object.assign(api.files(folder), { id: 'others' }))
  const result = await act({ api, folder, FakeEngine, never, Lease, now, locks, others, time })
  require('fs').writeSync(1, String(result))
  process.exit()
}

for (const [n, [what, act]] of Object.entries(acts).entries()) {
  test(`${what}: in real time, whatever of time is replaced`, async t => {
    const args = [ENTRY, FAKE_ENGINE, INSIDE, scratchFolder(t)].map(each => JSON.stringify(each))
    const program = `${replaceTime}\n(${run})(${args}, ${act})`
    const { stdout, stderr } = await runNode(t, ['-e', program])
    assert.strictEqual(stdout, results[n], stderr)
  })
}
