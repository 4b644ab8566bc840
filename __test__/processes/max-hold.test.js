'use strict'
// nodes: >=16 (older ones lack what the engines need)

// Limits of holds: what a busy thread, a batch, a slow delivery, a repair and odd arguments make of them. The engines
// of servers have checks of their own (__test__/engines/checks.js).

const assert = require('assert')
const { spawnSync } = require('child_process')
const path = require('path')
const { test } = require('../harness')
const { FakeEngine } = require('../fixtures/fake-engine')
const inside = require('../fixtures/inside')
const { ENTRY, scratchFolder, startMember, startMembers, suspend } = require('../fixtures/lock-processes')
const { runForJSON } = require('../fixtures/run-node')
const { noTable } = require('../fixtures/shared-memory')
const slowness = require('../fixtures/slowness')
const { files, memory, processLocks } = require('../../processes')

const sleep = milliseconds => new Promise(resolve => setTimeout(resolve, milliseconds))
const ENGINES = noTable ? { files } : { files, memory }
const code = promise => promise.then(() => 'fulfilled', error => error.code || error.name)
const never = () => new Promise(() => {})

/** Blocks this thread while another process takes the lock of a name. Gives what that one was told. */
function takenMeanwhile (engine, folder, name) {
  const program = `const { processLocks, ${engine} } = require(${JSON.stringify(ENTRY)})
    const locks = processLocks(${engine}(${JSON.stringify(folder)}))
    locks.request(${JSON.stringify(name)}, { timeout: ${20000 * slowness} }, ({ token, ownerDied }) => {
      console.log(JSON.stringify({ token, ownerDied }))
    })`
  return JSON.parse(spawnSync(process.execPath, ['-e', program], { encoding: 'utf8' }).stdout)
}

const WAYS = [['files', false], ['files', true], ['memory', false]]
for (const [engine, durable] of WAYS.filter(([engine]) => ENGINES[engine] !== undefined)) {
  const which = durable ? ' that is flushed' : ''
  test(`${engine}: a busy thread loses the lock${which} after maxHold, and learns of it`, async t => {
    const folder = scratchFolder(t)
    const locks = processLocks(ENGINES[engine](folder, { durable }))
    let lock
    const lost = locks.request('a', { maxHold: 50 * slowness }, given => {
      lock = given
      assert.strictEqual(lock.isLost, false)
      const next = takenMeanwhile(engine, folder, 'a')
      assert.ok(next.token > lock.token && next.ownerDied)
      assert.strictEqual(lock.isLost, true)
    })
    const error = await lost.catch(reason => reason)
    assert.strictEqual(error.code, 'ERR_LOCK_LOST')
    assert.ok(/time is over/.test(error.cause.message), error.cause.message)
    assert.deepStrictEqual([lock.signal.aborted, lock.isLost], [true, true])
    // The next holder's mark is its own.
    assert.strictEqual(await locks.request('a', ({ ownerDied }) => ownerDied), false)
  })
}

for (const engine of Object.keys(ENGINES)) {
  const locksIn = folder => processLocks(ENGINES[engine](folder))

  test(engine + ': maxHold counts from the grant, also while that has not been delivered to a busy thread', async t => {
    const folder = scratchFolder(t)
    const locks = locksIn(folder)
    const member = await startMember(t, folder, { engine })
    await member.hold('a')
    const lost = code(locks.request('a', { maxHold: 50 }, () => assert.fail('it begins without the lock')))
    await member.run(async ({ locks, sleep }, pause) => {
      for (;;) {
        const { pending } = await locks.query('a')
        // Where nothing shows who waits, a pause has to be enough.
        if (pending === undefined) return sleep(pause)
        if (pending.length > 0) return
        await sleep(2)
      }
    }, 100 * slowness)
    const released = member.release('a')
    assert.strictEqual(takenMeanwhile(engine, folder, 'a').ownerDied, true)
    await released
    assert.strictEqual(await lost, 'ERR_LOCK_LOST')
  })

  test(engine + ': hold with maxHold: unlock() says that it was lost; in time, nobody hears of a limit', async t => {
    const folder = scratchFolder(t)
    const locks = locksIn(folder)
    const member = await startMember(t, folder, { engine })
    const lock = await locks.hold('a', { maxHold: 100 * slowness })
    const next = await member.pass('a')
    assert.ok(next.ownerDied && next.token > lock.token)
    await new Promise(resolve => lock.signal.aborted ? resolve() : lock.signal.addEventListener('abort', resolve))
    for (let n = 0; n < 2; n++) assert.strictEqual(await code(lock.unlock()), 'ERR_LOCK_LOST')
    for (let n = 0; n < 3; n++) await (await locks.hold('a', { maxHold: 60000 })).unlock()
    // One attempt has a limit, too.
    const maxHold = 20 * slowness
    assert.strictEqual(await code(locks.request('a', { maxHold, timeout: 0 }, never)), 'ERR_LOCK_LOST')
    assert.strictEqual(await locks.request('a', { maxHold, ifAvailable: true }, ({ ownerDied }) => ownerDied), true)
    assert.strictEqual((await member.pass('a')).ownerDied, false)
  })

  test(engine + ': the cause of a loss by maxHold is no lease, also where a timer fires a moment early', async t => {
    const locks = locksIn(scratchFolder(t))
    const causes = await Promise.all(Array.from({ length: 90 }, (_, n) =>
      locks.request(String(n), { maxHold: 200 + n / 7 }, never).catch(({ cause }) => cause.message)))
    assert.deepStrictEqual(causes.filter(cause => /lease/.test(cause)), [])
  })

  test(engine + ': many limits end in their order', async t => {
    const locks = locksIn(scratchFolder(t))
    const ended = []
    const times = [160, 40, 120, 80]
    await Promise.all(times.map(time => {
      const request = locks.request(String(time), { maxHold: time * slowness }, never)
      return code(request).then(() => ended.push(time))
    }))
    assert.deepStrictEqual(ended, [40, 80, 120, 160])
  })

  test(engine + ': the end of a limit settles what is pending, though nothing else keeps the process', async t => {
    const folder = scratchFolder(t)
    const program = `(async () => {
      const warnings = []
      process.on('warning', ({ code }) => warnings.push(code))
      const { processLocks, ${engine} } = require(${JSON.stringify(ENTRY)})
      const locks = processLocks(${engine}(${JSON.stringify(folder)}))
      const ends = []
      const maxHold = ${40 * slowness}
      await locks.request('a', { maxHold }, () => new Promise(() => {})).catch(({ code }) => ends.push(code))
      const lost = await locks.hold('a', { maxHold })
      const next = await locks.hold('a', { maxHold })
      const all = await locks.holdAll(['a', 'b'])
      ends.push(lost.isLost, next.isLost, next.token > lost.token, all.ownerDied)
      await all.unlock()
      console.log(JSON.stringify([...ends, ...warnings]))
    })()`
    assert.deepStrictEqual(await runForJSON(t, ['-e', program]), ['ERR_LOCK_LOST', true, true, true, true])
  })

  test(engine + ': a request with maxHold has a lock of its own, before a batch, behind it and within', async t => {
    const locks = processLocks(ENGINES[engine](scratchFolder(t)), { batchTime: 50 * slowness })
    const tokenOf = options => locks.request('a', options, async ({ token }) => token)
    const tokens = await Promise.all([
      tokenOf({}), tokenOf({}), tokenOf({ maxHold: 5000 }), tokenOf({ maxHold: 5000 }), tokenOf({}), tokenOf({})
    ])
    const [first, second, ...others] = tokens
    assert.strictEqual(first, second)
    const own = others.slice(0, 2)
    for (const token of own) assert.strictEqual(tokens.filter(each => each === token).length, 1)
  })

  test(engine + ': a repair is part of the hold; a loss during it leaves the mark, and no callback runs', async t => {
    const locks = locksIn(scratchFolder(t))
    await locks.request('a', lock => { lock.abandon() })
    const request = locks.request('a', { maxHold: 40, repair: never }, () => assert.fail('it runs'))
    assert.strictEqual(await code(request), 'ERR_LOCK_LOST')
    assert.strictEqual(await locks.request('a', ({ ownerDied }) => ownerDied), true)
  })

  test(engine + ': odd values of maxHold, and what cannot have it', async t => {
    const folder = scratchFolder(t)
    const locks = locksIn(folder)
    const rejects = (options, expected) => assert.rejects(locks.request('a', options, () => {}), expected)
    for (const maxHold of [0, 0.5, -1, NaN, Infinity, 2 ** 31]) {
      const message = /^RangeError: request: maxHold must be a number of milliseconds from 1 to 2147483647, not /
      await rejects({ maxHold }, message)
    }
    for (const maxHold of ['1', null, 1n, {}]) {
      await rejects({ maxHold }, /^TypeError: request: maxHold must be a number of milliseconds from 1 to /)
    }
    await rejects({ maxHold: 1, mode: 'shared' }, /maxHold needs an exclusive lock/)
    await assert.rejects(locks.requestAll(['a'], { maxHold: 1 }, () => {}), /options may have/)
    assert.throws(() => locks.requestSync('a', { maxHold: 1, ifAvailable: true }, () => {}), /options may have/)
    const fake = new FakeEngine()
    for (const form of ['request', 'hold']) {
      await assert.rejects(processLocks(fake)[form]('a', { maxHold: 1 }, () => {}), {
        name: 'NotSupportedError', message: `${form}: fake has no maxHold`
      })
    }
    assert.strictEqual(fake.acquired, 0)
    // A proxy hands on what it is asked for.
    const wrapped = new Proxy(ENGINES[engine](path.join(folder, 'more')), {
      get: (target, key) => typeof target[key] === 'function' ? target[key].bind(target) : target[key]
    })
    assert.strictEqual(await code(processLocks(wrapped).request('a', { maxHold: 20 }, never)), 'ERR_LOCK_LOST')
  })
}

test('memory: a suspended holder loses the lock to whoever waits, and gives back nothing of theirs', {
  skip: noTable, timeout: 60000
}, async t => {
  const folder = scratchFolder(t)
  const [holder, first, second] = await startMembers(t, folder, 3, { engine: 'memory' })
  const before = await holder.hold('a')
  // One that waits before the grant, and one behind it.
  const waits = [first.hold('a')]
  await first.waits('a')
  await holder.run(async ({ kept, locks }) => {
    await kept.a.unlock()
    // The first in line is let by: the lock is the suspended one's in the end.
    kept.limited = await locks.hold('b', { maxHold: 300 })
  })
  const { token } = await waits[0]
  assert.ok(token > before.token)
  await suspend(holder)
  const taken = second.hold('b')
  const next = await taken
  assert.strictEqual(next.ownerDied, true)
  // The next holder has it although the late one goes on, and unlocks.
  holder.child.kill('SIGCONT')
  const late = await holder.run(({ kept: { limited } }) =>
    limited.unlock().catch(({ code }) => [code, limited.isLost, limited.signal.aborted, limited.token]))
  assert.deepStrictEqual(late.slice(0, 3), ['ERR_LOCK_LOST', true, true])
  assert.ok(late[3] < next.token)
  assert.strictEqual(await first.pass('b', { ifAvailable: true }), null)
  await second.release('b')
  assert.strictEqual((await first.pass('b')).ownerDied, false)
})

test('memory: the limit of a holder that is killed, of one that is awaited, and of one whose name is gone', {
  skip: noTable, timeout: 60000
}, async t => {
  const folder = scratchFolder(t)
  const locks = processLocks(memory(folder), { batch: 1 })
  const member = await startMember(t, folder, { engine: 'memory' })
  // It dies before its time is over.
  await member.hold('a', { maxHold: 60000 })
  const waiting = locks.request('a', ({ ownerDied }) => ownerDied)
  await member.run(async ({ locks, sleep }) => {
    while ((await locks.query('a')).pending.length === 0) await sleep(2)
  })
  await member.kill()
  assert.strictEqual(await waiting, true)
  // Nobody waits: the holder's own process ends the hold, and the entry may get other names.
  const lost = await locks.hold('a', { maxHold: 20 })
  while (!lost.signal.aborted) await sleep(5)
  assert.strictEqual(await locks.request('a', ({ ownerDied }) => ownerDied), true)
  for (let n = 0; n < 10240; n++) await locks.request(`name ${n}`, () => {})
  assert.strictEqual(await code(lost.unlock()), 'ERR_LOCK_LOST')
  const again = await locks.hold('a')
  assert.ok(!again.ownerDied && again.token > lost.token)
  await again.unlock()
})

test('a thread that stands still while it learns how long a hold lasts does not hold it longer', async () => {
  const { LocalEngine, LocalGrant } = inside('processes/built-in-engine')
  const { steady, wall } = inside('processes/engines/server-lease').now()
  const left = () => 60000 - Math.min(inside('util/intrinsics').now() - steady, Date.now() - wall)
  class Engine extends LocalEngine {
    placeOf () { return {} }
    takeNow () {
      const remaining = () => {
        const known = left()
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 50)
        return known
      }
      return Object.assign(new LocalGrant(), { token: 1, ownerDied: false, remaining, releaseNow: () => true })
    }
  }
  const grant = await new Engine().acquire('a', 'exclusive', new AbortController().signal, { maxHold: 60000 })
  const told = grant.remaining()
  assert.ok(told <= left() + 10, `${told} ${left()}`)
  await grant.release(false)
})
