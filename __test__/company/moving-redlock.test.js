'use strict'
// nodes: >=20 (the scripts that install packages need it)
// timeout: 300

// docs/coming-from-redlock.md, with the real packages beside this one, on a server of its own.

const assert = require('assert')
const fs = require('fs')
const path = require('path')
const { setTimeout: sleep } = require('timers/promises')
const servers = require('../engines/servers')
const { scratchFolder } = require('../fixtures/entries/folders')
const { codeOf, load, movingFrom } = require('../fixtures/moving')
const { runNode } = require('../fixtures/run-node')
const { processLocks, redis } = require('../../processes')

const LEASE = 1000 // milliseconds
const skip = servers.missing('redis')
const moving = movingFrom('redlock', ['redlock', 'redlock-5', 'redis-semaphore', 'ioredis'])
const { test } = moving

/** Starts a server, and makes locks of each package on it; `theirs` and `ours` run a cell of a pair. */
async function place (t) {
  const folder = scratchFolder(t)
  fs.chmodSync(folder, 0o755) // for the server's account
  const server = await servers.start('redis', folder)
  t.after(() => server.stop())
  const [Redis, Redlock, { default: Redlock5 }, { Mutex }] =
    await Promise.all(['ioredis', 'redlock', 'redlock-5', 'redis-semaphore'].map(load))
  const client = new Redis(server.url)
  t.after(() => { client.disconnect() })
  const locks = processLocks(redis(client, { lease: LEASE }))
  t.after(() => locks.close())
  const made = {
    redlock: new Redlock([client]), once: new Redlock([client], { retryCount: 0 }), redlock5: new Redlock5([client])
  }
  const newMutex = options => new Mutex(client, 'a', options)
  // A server that has just started grants nothing for the time of a lease.
  await (await locks.hold('a')).unlock()
  return {
    server, client, locks, newMutex, ...made,
    theirs: (pair, names) => moving.theirs(pair, { ...made, ...names }),
    ours: (pair, names) => moving.ours(pair, { locks, ...names })
  }
}

test('redlock 4: a lock is taken, refused and given back', { skip, timeout: 60000 }, async t => {
  const { client, theirs, ours, locks } = await place(t)
  const refused = async () => {
    const { name } = await theirs('await once.lock(\'a\', 5000)').catch(error => error)
    const { code, holder } = await ours('await once.lock(\'a\', 5000)').catch(error => error)
    assert.deepStrictEqual([name, code, holder.pid], ['LockError', 'ERR_TIMEOUT', process.pid])
  }
  const pair = 'await redlock.lock(\'a\', 5000)'
  for (const lost of [false, true]) {
    const [their, our] = [await theirs(pair), await ours(pair)]
    await refused()
    if (lost) await client.del('a', ...await client.keys('locks*'))
    const ends = [theirs('await lock.unlock()', { lock: their }), ours('await lock.unlock()', { lock: our })]
    const codes = await Promise.all(ends.map(codeOf))
    assert.deepStrictEqual(codes, lost ? ['LockError', 'ERR_LOCK_LOST'] : ['none', 'none'])
  }
  assert.deepStrictEqual((await locks.query('a')).held, [])
})

test('several names: all or none', { skip, timeout: 60000 }, async t => {
  const { theirs, ours, locks, once } = await place(t)
  const pair = 'await redlock.lock([\'a\', \'b\'], 5000)'
  const [their, our] = [await theirs(pair), await ours(pair)]
  for (const name of ['a', 'b']) {
    assert.strictEqual(await once.lock(name, 5000).catch(error => error.name), 'LockError')
    assert.strictEqual(await locks.hold(name, { ifAvailable: true }), null)
  }
  await Promise.all([their.unlock(), our.unlock()])
  for (const name of ['a', 'b']) {
    await (await once.lock(name, 5000)).unlock()
    await (await locks.hold(name, { timeout: 0 })).unlock()
  }
})

test('redlock 5: acquire, release and using', { skip, timeout: 60000 }, async t => {
  const { theirs, ours, locks } = await place(t)
  const pair = 'await redlock5.acquire([\'a\'], 5000)'
  const [lock5, lock] = [await theirs(pair), await ours(pair)]
  assert.strictEqual(await locks.hold('a', { ifAvailable: true }), null)
  await theirs('await lock5.release()', { lock5 })
  await ours('await lock5.release()', { lock })
  const signals = []
  const using = 'await redlock5.using([\'a\'], 5000, callback)'
  const callback = signal => signals.push(signal)
  assert.strictEqual(await theirs(using, { callback }), 1)
  assert.strictEqual(await ours(using, { callback: ({ signal }) => callback(signal) }), 2)
  assert.deepStrictEqual(signals.map(signal => signal.aborted), [false, false])
})

test('a holder that takes longer than the time to live: renewed, but for redlock.lock', { skip, timeout: 60000 },
  async t => {
    const { redlock, once, locks } = await place(t)
    const [, lock] = [await redlock.lock('b', 500), await locks.hold('a')]
    const limited = await locks.hold('c', { maxHold: 500 })
    await sleep(2 * LEASE)
    await (await once.lock('b', 500)).unlock()
    assert.strictEqual(await locks.hold('a', { ifAvailable: true }), null)
    await lock.unlock()
    await (await locks.hold('c', { timeout: 0 })).unlock()
    assert.strictEqual(await codeOf(limited.unlock()), 'ERR_LOCK_LOST')
  })

test('redis-semaphore: acquire, tryAcquire, isAcquired and release', { skip, timeout: 60000 }, async t => {
  const { theirs, ours, newMutex } = await place(t)
  const mutex = newMutex()
  await theirs('await mutex.acquire()', { mutex })
  const lock = await ours('await mutex.acquire()')
  const holds = async () => [await theirs('mutex.isAcquired', { mutex }), await ours('mutex.isAcquired', { lock })]
  assert.deepStrictEqual(await holds(), [true, true])
  // Theirs waits: for this, a shorter time than by default.
  const start = performance.now()
  assert.strictEqual(await theirs('await mutex.tryAcquire()', { mutex: newMutex({ acquireTimeout: 300 }) }), false)
  assert.ok(performance.now() - start >= 250)
  assert.strictEqual(await ours('await mutex.tryAcquire()'), null)
  await theirs('await mutex.release()', { mutex })
  await ours('await mutex.release()', { lock })
  await (await ours('await mutex.tryAcquire()')).unlock()
})

test('the programs before and after the change count right', { skip, timeout: 60000 }, async t => {
  const { server, client } = await place(t)
  const project = await moving.project(t)
  const env = { REDIS_URL: server.url }
  for (const name of ['before', 'after']) {
    await client.set('total', 0)
    const ends = await Promise.all([1, 2].map(() => runNode(t, [path.join(project, `${name}.js`)], { env })))
    for (const { code, stderr } of ends) assert.deepStrictEqual([code, stderr], [0, ''])
    assert.strictEqual(await client.get('total'), '40', name)
  }
})

if (!skip) moving.finish()
