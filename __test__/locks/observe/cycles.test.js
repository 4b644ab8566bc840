'use strict'

// `snapshot().cycles`: cycles of threads that wait for one another, blocked or by promises.

const assert = require('assert')
const { test } = require('../../harness')
const { api } = require('../../subject')
const { startMember, waiters } = require('../../fixtures/family-toolbox')
const { memory } = require('../../fixtures/lock-toolbox')
const { now, startWorker, until } = require('../../fixtures/queue-toolbox')

const { AsyncLock, RwLock, Semaphore, locks, snapshot } = api

/** Returns the cycles once there are so many. */
async function untilCycles (count) {
  let cycles
  await until(() => { cycles = snapshot().cycles; return cycles.length === count }, `there are ${count} cycles`)
  return cycles
}

const linkOf = ({ threadId, holds, waitsFor, blocked }) => (
  `${threadId}: ${holds.kind} ${holds.mode}, ${waitsFor.kind} ${waitsFor.mode}${blocked ? ', blocked' : ''}`)
const threadsOf = cycle => cycle.map(({ threadId }) => threadId)
const forever = () => new Promise(() => {})
const unlock = token => { token.unlock() }
const holdsName = name => until(() => snapshot().held.some(entry => entry.name === name), `${name} is held`)
const waits = member => until(() => snapshot().waiting.some(({ threadId }) => threadId === member.threadId))
/**
 * Returns a pending promise that does not hold the event loop. What it acquires when the threads have ended is given
 * back.
 */
const awaits = promise => api.unref(promise) && promise.then(unlock)

test('a cycle through a promise of the main thread is seen, and is no longer once it is broken', async t => {
  const sab = memory(8)
  const [a, b] = [new AsyncLock(sab), new AsyncLock(sab, { byteOffset: 4 })]
  const member = await startMember(t, sab)
  await member.on('AsyncLock', 4)('lock as b')
  const token = a.tryLock()
  awaits(b.lockAsync())
  assert.deepStrictEqual(snapshot().cycles, [])
  const blocked = member.on('AsyncLock')('lock as a')
  const [cycle] = await untilCycles(1)
  const link = 'AsyncLock exclusive, AsyncLock exclusive'
  assert.deepStrictEqual(cycle.map(linkOf), [`0: ${link}`, `${member.threadId}: ${link}, blocked`])
  assert.deepStrictEqual(Object.keys(cycle[0]), ['threadId', 'holds', 'waitsFor', 'blocked', 'certain'])
  assert.deepStrictEqual([cycle[0].waitsFor.id, cycle[1].waitsFor.id], [b.id, a.id])
  assert.deepStrictEqual([cycle[0].holds.id, cycle[1].holds.id], [a.id, b.id])
  assert.deepStrictEqual(cycle.map(({ certain }) => certain), [false, false])
  const { held, waiting, cycles } = snapshot()
  assert.ok(cycles[0].every(({ holds, waitsFor }) => held.includes(holds) && waiting.includes(waitsFor)))
  token.unlock()
  await blocked
  assert.deepStrictEqual(snapshot().cycles, [])
})

test('a cycle of promises over a named lock and an RwLock is seen', async t => {
  const sab = memory(4)
  const member = await startMember(t, sab)
  await member.do('requestForEver', 'request', 'cycles')
  await holdsName('cycles')
  const share = new RwLock(sab).tryLockShared()
  api.unref(locks.request('cycles', { mode: 'shared' }, () => {}))
  member.on('RwLock')('lockAsync')
  const [cycle] = await untilCycles(1)
  const expected = ['0: RwLock shared, named shared', `${member.threadId}: named exclusive, RwLock exclusive`]
  assert.deepStrictEqual(cycle.map(linkOf), expected)
  assert.strictEqual(cycle[0].waitsFor.name, 'cycles')
  share.unlock()
})

test('a cycle of threads blocked with timeouts is seen once, and apart from one through promises', async t => {
  const sab = memory(16)
  const members = await Promise.all([0, 1, 2].map(() => startMember(t, sab)))
  for (const [n, member] of members.entries()) await member.on('AsyncLock', 4 * n)('lock as its own')
  const block = n => { members[n].on('AsyncLock', 4 * ((n + 1) % 3))('lockIfAvailable', 1e6) }
  for (const n of [0, 1]) {
    block(n)
    await waits(members[n])
  }
  assert.deepStrictEqual(snapshot().cycles, [])
  block(2)
  const [cycle] = await untilCycles(1)
  assert.ok(cycle.every(({ certain, blocked }) => certain && blocked))
  const ids = threadsOf(members)
  const first = ids.indexOf(Math.min(...ids))
  assert.deepStrictEqual(threadsOf(cycle), [0, 1, 2].map(n => ids[(first + n) % 3]))

  // Main holds what a fourth thread wants, and awaits what that one and the cycle hold.
  const token = new AsyncLock(sab, { byteOffset: 12 }).tryLock()
  const other = await startMember(t, memory(4))
  await other.do('requestForEver', 'request', 'of the fourth')
  await holdsName('of the fourth')
  locks.request('of main', forever)
  await holdsName('of main')
  awaits(new AsyncLock(sab).lockAsync())
  api.unref(locks.request('of the fourth', () => {}))
  other.do('requestForEver', 'requestSync', 'of main')
  const cycles = await untilCycles(2)
  assert.deepStrictEqual(cycles.map(threadsOf), [threadsOf(cycle), [0, other.threadId]])
  assert.deepStrictEqual(cycles[1].map(({ blocked }) => blocked), [false, true])
  token.unlock()
})

test('readers that want to write wait for each other, and so does a reader behind a writer', async t => {
  const sab = memory(12)
  const rw = new RwLock(sab)
  const share = rw.tryLockShared()
  const member = await startMember(t, sab)
  await member.on('RwLock')('lockShared')
  member.on('RwLock')('lockAsync')
  await waits(member)
  assert.deepStrictEqual(snapshot().cycles, [])
  awaits(rw.lockAsync())
  const [cycle] = await untilCycles(1)
  assert.deepStrictEqual(cycle.map(linkOf), [0, member.threadId].map(id => `${id}: RwLock shared, RwLock exclusive`))

  // A thread reads, another waits to write and holds a lock, and the first one's new share waits behind that writer.
  const second = memory(8)
  const [reader, writer] = [await startMember(t, second), await startMember(t, second)]
  await reader.on('RwLock')('lockShared')
  writer.on('RwLock')('lock', { timeout: 1e6 })
  await waits(writer)
  reader.on('RwLock')('lockSharedAsync')
  const nested = (await untilCycles(2)).find(cycle => cycle[0].threadId > member.threadId)
  const ofReader = `${reader.threadId}: RwLock shared, RwLock shared`
  const ofWriter = `${writer.threadId}: RwLock exclusive, RwLock exclusive, blocked`
  assert.deepStrictEqual(nested.map(linkOf).sort(), [ofReader, ofWriter].sort())
  share.unlock()
})

test('threads that hold permits wait for each other, as far as one alone leaves too little room', async t => {
  const sab = memory(8)
  const limit = { permits: 3 }
  const rooms = [0, 4].map(byteOffset => new Semaphore(sab, Object.assign({ byteOffset }, limit)))
  const tokens = rooms.map(room => room.tryHold())
  const member = await startMember(t, sab)
  for (const [at, count] of [[0, 2], [4, 3]]) {
    await member.on('Semaphore', at, limit)(`tryHold as ${at}`)
    member.on('Semaphore', at, limit)('holdAsync', count)
  }
  await until(() => rooms.every(room => waiters(sab, room.byteOffset) === 1))
  // Beside one permit there is room for two; but no turn for one behind a claim for three.
  awaits(rooms[0].holdAsync(2))
  assert.deepStrictEqual(snapshot().cycles, [])
  awaits(rooms[1].holdAsync())
  const [cycle] = await untilCycles(1)
  const link = 'Semaphore permits, Semaphore permits'
  assert.deepStrictEqual(cycle.map(linkOf), [`0: ${link}`, `${member.threadId}: ${link}`])
  assert.deepStrictEqual(cycle.map(({ holds, waitsFor }) => `${holds.amount} ${waitsFor.amount}`), ['1 1', '3 3'])
  tokens.forEach(unlock)
})

test('no cycle: tasks for the same lock, permits, chains, and promises of a blocked thread', async t => {
  const sab = memory(16)
  const [lock, other] = [new AsyncLock(sab), new AsyncLock(sab, { byteOffset: 4 })]
  const token = lock.tryLock()
  const tasks = Array.from({ length: 100 }, () => lock.executeLocked(() => {}))
  const member = await startMember(t, sab)
  await member.on('AsyncLock', 4)('lock')
  member.on('AsyncLock')('lockAsync as another')
  await waits(member)
  assert.deepStrictEqual(snapshot().cycles, [])
  awaits(other.lockAsync())
  await untilCycles(1)
  // The thread blocks for permits: then nothing that it awaits matters.
  const acquired = member.on('Semaphore', 8)('acquire')
  await untilCycles(0)
  new Semaphore(sab, { byteOffset: 8 }).release()
  await acquired
  await untilCycles(1)
  token.unlock()
  await Promise.all(tasks)
})

test('threads that keep one order never seem to wait for one another', { timeout: 60000 }, async t => {
  const sab = memory(20)
  const threads = [0, 1, 2].map(seed => startWorker(t, { sab, seed }, ({ api, data, Atomics, randomFrom }) => {
    const { sab, seed } = data
    const random = randomFrom(1 + seed)
    const locks = [0, 4, 8, 12].map(byteOffset => new api.AsyncLock(sab, { byteOffset }))
    while (Atomics.load(new Int32Array(sab), 4) === 0) {
      const last = 1 + Math.floor(3 * random())
      const tokens = [locks[Math.floor(last * random())].lock(), locks[last].lock()]
      for (const token of tokens) token.unlock()
    }
  }))
  const start = now()
  let seen = 0
  while (now() - start < 500 || seen < 100) {
    const { cycles, waiting } = snapshot()
    assert.deepStrictEqual(cycles, [])
    seen += waiting.length
  }
  Atomics.store(new Int32Array(sab), 4, 1)
  await Promise.all(threads.map(thread => thread.done()))
})

test('the cycles among 100 000 entries are found without delay', async t => {
  const sab = memory(8)
  const lock = new AsyncLock(sab)
  const member = await startMember(t, sab)
  await member.on('AsyncLock')('lock')
  const token = new AsyncLock(sab, { byteOffset: 4 }).tryLock()
  for (let n = 0; n < 1e5; n++) awaits(lock.lockAsync())
  const look = () => {
    const start = now()
    const { waiting, cycles } = snapshot()
    return { waiting: waiting.length, cycles: cycles.length, time: now() - start }
  }
  const before = look()
  member.on('AsyncLock', 4)('lock')
  await untilCycles(1)
  const after = look()
  assert.deepStrictEqual([before.waiting, before.cycles, after.waiting, after.cycles], [1e5, 0, 1e5 + 1, 1])
  // It looks twice.
  assert.ok(after.time < 8 * before.time + 100, `${before.time} ms without a cycle, ${after.time} ms with one`)
  token.unlock()
})
