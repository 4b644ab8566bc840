'use strict'
// nodes: >=16 (older ones lack what the engines need)

// Locks in memory among processes: what their table promises besides that which one-machine.test.js checks.

const assert = require('assert')
const fs = require('fs')
const path = require('path')
const { execFile } = require('child_process')
const { promisify } = require('util')
const { Worker } = require('worker_threads')
const { test } = require('../harness')
const { ENTRY, scratchFolder, startMember, startMembers, suspend } = require('../fixtures/lock-processes')
const { noTable: ELSEWHERE } = require('../fixtures/shared-memory')
const size = require('../fixtures/size')
const slowness = require('../fixtures/slowness')
const { files, memory, processLocks } = require('../../processes')

const TABLE = 'locks-1.mapped'
/** How many names a table has room for. */
const NAMES = 10240
const sleep = milliseconds => new Promise(resolve => setTimeout(resolve, milliseconds))
const start = (t, folder) => startMember(t, folder, { engine: 'memory' })
const startAll = (t, folder, number) => startMembers(t, folder, number, { engine: 'memory' })
const told = ({ token, ownerDied }) => ({ token, ownerDied })

test('wrong arguments are errors at once', () => {
  assert.throws(() => memory(), { name: 'TypeError', message: /memory: folder must be a path/ })
  assert.throws(() => memory('a', { durable: true }), { name: 'TypeError', message: /memory: durable must be false/ })
  assert.throws(() => memory('a', { anyDrive: true }), { name: 'TypeError' })
  assert.strictEqual(memory('a', { durable: false }).modes.length, 2)
})

test('elsewhere: an error that says what is missing', { skip: !ELSEWHERE && 'it is to be had here' }, async t => {
  const locks = processLocks(memory(scratchFolder(t)))
  await assert.rejects(locks.request('a', () => {}), { code: 'ERR_SHARED_MEMORY_UNAVAILABLE', message: /Linux/ })
})

test('a folder of one kind refuses the other', { skip: ELSEWHERE }, async t => {
  for (const [one, other] of [[files, memory], [memory, files]]) {
    const folder = scratchFolder(t)
    await processLocks(one(folder)).request('a', () => {})
    const refused = processLocks(other(folder)).request('a', () => {})
    const message = new RegExp(`has locks of ${one.name}\\(\\)`)
    await assert.rejects(refused, { code: 'ERR_LOCK_UNAVAILABLE', message })
    await processLocks(one(folder)).request('a', () => {})
  }
})

test('a full table says its size; names that nobody uses give way; 2 MB', {
  skip: ELSEWHERE, timeout: 60000
}, async t => {
  const folder = scratchFolder(t)
  const locks = processLocks(memory(folder), { batch: 1 })
  const first = await locks.request('first', told)
  const held = []
  for (let n = 0; n < NAMES; n++) held.push(await locks.hold(`name ${n}`))
  const message = new RegExp(`all ${NAMES} names`)
  await assert.rejects(locks.hold('one more'), { code: 'ERR_LOCK_UNAVAILABLE', message })
  assert.strictEqual(new Set((await locks.query()).held.map(({ name }) => name)).size, NAMES)
  await Promise.all(held.map(lock => lock.unlock()))
  for (let n = 0; n < 50; n++) await locks.request(`other ${n}`, () => {})
  const again = await locks.request('first', told)
  assert.ok(again.token > first.token && !again.ownerDied)
  assert.ok(fs.statSync(path.join(folder, TABLE)).size <= 2e6)
  assert.deepStrictEqual(fs.readdirSync(folder), [TABLE])
})

/** Returns how often the watching thread of a process has gone to sleep. */
const naps = async ({ fs }) => {
  const isWatcher = task => fs.readFileSync(`/proc/self/task/${task}/comm`, 'latin1') === 'atomics-watcher\n'
  const task = fs.readdirSync('/proc/self/task').find(isWatcher)
  const status = fs.readFileSync(`/proc/self/task/${task}/status`, 'latin1')
  return Number(/^voluntary_ctxt_switches:\s+(\d+)/m.exec(status)[1])
}

test('a thousand names are awaited without wake-ups; at the death of their holder all are granted', {
  skip: ELSEWHERE, timeout: 60000
}, async t => {
  const [holder, waiter] = await startAll(t, scratchFolder(t), 2)
  const number = 1000
  await holder.run(async ({ locks }, number) => {
    for (let n = 0; n < number; n++) await locks.hold(`name ${n}`)
  }, number)
  const waiting = waiter.run(({ locks }, number) => Promise.all(Array.from({ length: number }, (_, n) =>
    locks.request(`name ${n}`, ({ ownerDied }) => ownerDied))), number)
  await waiter.run(async ({ locks, sleep }, number) => {
    while ((await locks.query()).pending.length < number) await sleep(5)
  }, number)
  const before = await waiter.run(naps)
  await sleep(3000)
  const woken = await waiter.run(naps) - before
  // Once a second it looks at the deaths.
  assert.ok(woken <= 6, `${woken} times`)
  await holder.kill()
  assert.deepStrictEqual(await waiting, Array.from({ length: number }, () => true))
})

test('who is suspended while it waits stops nobody, and goes on afterwards', { skip: ELSEWHERE }, async t => {
  const [holder, first, second] = await startAll(t, scratchFolder(t), 3)
  for (let round = 0; round < 3; round++) {
    await holder.hold('a')
    const suspended = first.pass('a')
    await first.waits('a')
    await suspend(first)
    const others = [second.pass('a')]
    await second.waits('a')
    await holder.release('a')
    others.push(holder.pass('a'))
    for (const { ownerDied } of await Promise.all(others)) assert.strictEqual(ownerDied, false)
    first.child.kill('SIGCONT')
    assert.strictEqual((await suspended).ownerDied, false)
  }
})

for (const [what, held, awaited] of [
  ['the lock', {}, {}], ['a share', {}, { mode: 'shared' }], ['a permit', { permits: 1 }, { permits: 1 }]
]) {
  test(`what a suspended process does not take goes on to the next, though nobody comes: ${what}`, {
    skip: ELSEWHERE, timeout: 60000
  }, async t => {
    const members = await startAll(t, scratchFolder(t), 3)
    // They have their turns in the order in which they have come to the table.
    for (const member of members) await member.pass('a')
    const [holder, first, second] = members
    const times = []
    for (let round = 0; round < 6; round++) {
      await holder.hold('a', held)
      const suspended = first.pass('a', awaited)
      await first.waits('a')
      await suspend(first)
      const next = second.pass('a', awaited)
      await second.waits('a')
      const start = Date.now()
      await holder.release('a')
      await next
      times.push(Date.now() - start)
      first.child.kill('SIGCONT')
      await suspended
    }
    // Each second, all that wait look by themselves. Only the first round can begin just before that.
    const [, ...others] = times
    assert.ok(Math.min(...others) < 400, String(times))
  })
}

test('no process starves: each of four has its share', { skip: ELSEWHERE, timeout: 120000 }, async t => {
  const folder = scratchFolder(t)
  const members = await startAll(t, folder, 4)
  const first = await processLocks(memory(folder)).hold('a')
  const running = members.map(member => member.run(async ({ locks, kept }) => {
    kept.count = 0
    const task = async () => {
      while (!kept.isOver) {
        await locks.request('a', () => { kept.count++ })
        // The last one has the lock for itself: jobs alone would never let it hear that it is over.
        if (kept.count % 1000 === 0) await new Promise(resolve => setImmediate(resolve))
      }
    }
    await Promise.all(Array.from({ length: 10 }, task))
  }))
  await Promise.all(members.map(member => member.waits('a')))
  await first.unlock()
  // A busy machine may keep one from the processors for a while, so that its turns are over before it runs.
  const limit = Date.now() + slowness * 60000
  let counts
  let isEven = false
  while (!isEven && Date.now() < limit) {
    await sleep(size(3000, 1000))
    counts = await Promise.all(members.map(member => member.run(({ kept }) => kept.count)))
    isEven = Math.max(...counts) > 200 && Math.min(...counts) > 0.2 * Math.max(...counts)
  }
  for (const member of members) member.run(({ kept }) => { kept.isOver = true })
  await Promise.all(running)
  assert.ok(isEven, String(counts))
})

test('a clock that is set back and forth: each lock is given back all the same', {
  skip: ELSEWHERE, timeout: 60000
}, async t => {
  const script = `
    const { now } = Date
    let calls = 0
    Date.now = () => now() + (++calls % 2 === 0 ? -1e6 : 0)
    const { memory, processLocks } = require(${JSON.stringify(ENTRY)})
    const locks = processLocks(memory(${JSON.stringify(scratchFolder(t))}))
    const task = async () => { for (let n = 0; n < 20; n++) await locks.request('a', () => {}) }
    Promise.all(Array.from({ length: 5 }, task)).then(() => process.stdout.write('all'))
  `
  const { stdout } = await promisify(execFile)(process.execPath, ['-e', script])
  assert.strictEqual(stdout, 'all')
})

test('query() names holders and waiters, with label, thread and modes', { skip: ELSEWHERE }, async t => {
  const folder = scratchFolder(t)
  const [holder, reader, writer] = await startAll(t, folder, 3)
  const name = 'é'.repeat(200)
  await holder.hold(name, { label: 'the night run' })
  const reading = reader.pass(name, { mode: 'shared' })
  await reader.waits(name)
  const writing = writer.pass(name)
  await writer.waits(name)
  const { held: [entry, ...more], pending } = await processLocks(memory(folder)).query(name)
  assert.ok(Math.abs(entry.since - Date.now()) < 60000)
  assert.deepStrictEqual({ ...entry, since: 0, host: '' }, {
    name, mode: 'exclusive', pid: holder.pid, host: '', threadId: 0, label: 'the night run', since: 0, isOurs: false
  })
  assert.deepStrictEqual(more, [])
  const seen = pending.map(({ pid, mode }) => `${pid} ${mode}`)
  assert.deepStrictEqual(seen.sort(), [`${reader.pid} shared`, `${writer.pid} exclusive`].sort())
  const { held: [listed] } = await reader.run(({ locks }) => locks.query())
  assert.ok(listed.name.startsWith('ééé') && listed.name.endsWith('…'), listed.name)
  await holder.release(name)
  await Promise.all([reading, writing])
  assert.deepStrictEqual(await reader.run(({ locks }) => locks.query()), { held: [], pending: [] })
})

test('a worker that blocks for another process gets the lock; one that ends with it has died', {
  skip: ELSEWHERE
}, async t => {
  const folder = scratchFolder(t)
  const member = await start(t, folder)
  await member.hold('a')
  const worker = new Worker(`
    const { parentPort } = require('worker_threads')
    const { memory, processLocks } = require(${JSON.stringify(ENTRY)})
    const locks = processLocks(memory(${JSON.stringify(folder)}))
    parentPort.postMessage(locks.requestSync('a', { ifAvailable: true }, lock => lock === null))
    try {
      locks.requestSync('a', { timeout: 30 }, () => {})
    } catch (error) {
      parentPort.postMessage([error.code, error.holder.pid])
    }
    parentPort.postMessage(locks.requestSync('a', lock => lock.ownerDied))
    locks.hold('a').then(() => parentPort.postMessage('held'))
    setInterval(() => {}, 1000)
  `, { eval: true })
  t.after(() => worker.terminate())
  const messages = []
  worker.on('message', message => messages.push(message)).on('error', error => messages.push(error))
  const next = async () => {
    while (messages.length === 0) await sleep(2)
    return messages.shift()
  }
  assert.strictEqual(await next(), true)
  assert.deepStrictEqual(await next(), ['ERR_TIMEOUT', member.pid])
  const granted = next()
  while ((await member.run(({ locks }) => locks.query('a'))).pending.length === 0) await sleep(2)
  await member.release('a')
  assert.strictEqual(await granted, false)
  assert.strictEqual(await next(), 'held')
  const waiting = member.pass('a')
  await member.waits('a')
  await worker.terminate()
  assert.strictEqual((await waiting).ownerDied, true)
})

test('processes that come and go use the same slots', { skip: ELSEWHERE, timeout: 120000 }, async t => {
  const folder = scratchFolder(t)
  const locks = processLocks(memory(folder))
  let last = 0
  for (let n = 0; n < size(80, 12); n++) {
    const member = await start(t, folder)
    const { token, ownerDied } = await member.hold('a')
    assert.ok(token > last && ownerDied === (n > 0), `${n}: ${token} after ${last}, ${ownerDied}`)
    last = token
    await member.kill()
  }
  assert.strictEqual(await locks.request('a', ({ ownerDied }) => ownerDied), true)
})

test('another boot: the table is made anew', { skip: ELSEWHERE }, async t => {
  const folder = scratchFolder(t)
  const member = await start(t, folder)
  const { token } = await member.hold('a')
  await member.kill()
  const file = path.join(folder, TABLE)
  const bytes = fs.readFileSync(file)
  bytes[40] ^= 1 // of the boot's id
  fs.writeFileSync(file, bytes)
  const after = await (await start(t, folder)).pass('a')
  assert.ok(after.token > token && !after.ownerDied)
})

test('what is no table is refused, and left as it is', { skip: ELSEWHERE }, async t => {
  const folder = scratchFolder(t)
  const file = path.join(folder, TABLE)
  const refused = async () => {
    const engine = memory(folder)
    await assert.rejects(processLocks(engine).request('a', () => {}), { code: 'ERR_LOCK_UNAVAILABLE' })
  }
  fs.writeFileSync(file, 'something else')
  await refused()
  assert.strictEqual(fs.readFileSync(file, 'latin1'), 'something else')
  fs.unlinkSync(file)
  await (await start(t, folder)).pass('a')
  fs.truncateSync(file, 12288)
  await refused()
  fs.unlinkSync(file)
  fs.symlinkSync('/dev/null', file)
  await refused()
})

test('whatever others write into the table: requests end, and no process does', {
  skip: ELSEWHERE, timeout: 120000
}, async t => {
  const folder = scratchFolder(t)
  const members = await startAll(t, folder, 2)
  const file = path.join(folder, TABLE)
  const visit = ({ locks }) => Promise.all(Array.from({ length: 20 }, (_, n) => Promise.all([
    locks.request(`name ${n}`, { timeout: 200 }, () => 'in').catch(({ code, name }) => code || name),
    locks.request(`name ${n}`, { timeout: 200, mode: 'shared' }, () => 'in').catch(({ code, name }) => code || name),
    locks.query().then(() => 'in')
  ])))
  // A RangeError: the table says that a living process uses the name with permits.
  const known = ['in', 'ERR_TIMEOUT', 'ERR_LOCK_LOST', 'RangeError']
  await Promise.all(members.map(member => member.run(visit)))
  for (let round = 0; round < size(40, 8); round++) {
    const descriptor = fs.openSync(file, 'r+')
    const bytes = Buffer.alloc(1 + Math.floor(Math.random() * 5000))
    for (let n = 0; n < bytes.length; n++) bytes[n] = Math.random() * 256
    // Behind the header and the slots: the titles, or anywhere.
    const most = round % 2 === 0 ? 90000 : fs.fstatSync(descriptor).size - 8192 - bytes.length
    fs.writeSync(descriptor, bytes, 0, bytes.length, 8192 + Math.floor(Math.random() * most))
    fs.closeSync(descriptor)
    const all = await Promise.all(members.map(member => member.run(visit)))
    for (const each of all.flat(2)) assert.ok(known.includes(each), String(each))
  }
  for (const { outside } of members) assert.deepStrictEqual(outside, [])
})
