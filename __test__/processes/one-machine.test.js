'use strict'
// nodes: >=16 (older ones lack what the engines need)

// What the engines of one machine have in common: locks of files, and in memory.

const assert = require('assert')
const fs = require('fs')
const path = require('path')
const { test } = require('../harness')
const { isWine, scratchFolder, startMember, startMembers } = require('../fixtures/lock-processes')
const { noTable } = require('../fixtures/shared-memory')
const size = require('../fixtures/size')

const ENGINES = noTable ? ['files'] : ['files', 'memory']
const LINUX = process.platform !== 'linux' && 'only Linux shows who waits'
const SIGNALS = process.platform === 'win32' && 'Windows has no such signals'
// `LockFileEx` goes on after `CancelSynchronousIo`.
const INTERRUPTS = isWine && 'Wine interrupts no thread that waits for a lock of a file'
const LINKS = process.platform === 'win32' && 'Windows gives few users the right to make links'
const sleep = milliseconds => new Promise(resolve => setTimeout(resolve, milliseconds))

/** Increments a number in a file, which nothing but the lock protects; gives what happened. */
const increment = async ({ locks, fs, require }, file, rounds, isLocked) => {
  const once = async () => {
    const number = Number(fs.readFileSync(file, 'utf8'))
    await new Promise(resolve => setImmediate(resolve))
    fs.writeFileSync(file, String(number + 1))
  }
  for (let n = 0; n < rounds; n++) await (isLocked ? locks.request('number', once) : once())
}

/** Counts in several processes of two threads each. Returns the number in the file. */
async function count (t, engine, isLocked, rounds) {
  const folder = scratchFolder(t)
  const file = path.join(folder, 'number')
  fs.writeFileSync(file, '0')
  const members = await startMembers(t, path.join(folder, 'locks'), 3, { engine })
  await Promise.all(members.map(async member => {
    // A second task of the same thread.
    await Promise.all([member.run(increment, file, rounds, isLocked), member.run(increment, file, rounds, isLocked)])
  }))
  return Number(fs.readFileSync(file, 'utf8')) - 6 * rounds
}

for (const engine of ENGINES) {
  const start = (t, folder) => startMember(t, folder, { engine })
  const startAll = (t, folder, number) => startMembers(t, folder, number, { engine })

  test(engine + ': one at a time: processes increment a number; without locks, some is lost', async t => {
    assert.strictEqual(await count(t, engine, true, 50), 0)
    // On a busy machine, processes may run one after the other.
    for (let rounds = 50; await count(t, engine, false, rounds) === 0; rounds *= 4) {
      assert.ok(rounds < 1e4, 'the control proves nothing')
    }
  })

  test(engine + ': tokens grow from process to process, and are no lower than the clock', async t => {
    const folder = scratchFolder(t)
    const members = await startAll(t, folder, 2)
    const before = Date.now() * 1000
    let last = before
    for (let n = 0; n < 6; n++) {
      const { token, ownerDied } = await members[n % 2].pass('a')
      assert.ok(token > last && ownerDied === false, `${token} after ${last}`)
      last = token
    }
    assert.ok(last < Date.now() * 1000 + 1e6)
  })

  test(engine + ': kill -9 of a holder: the next one has the lock soon, and is told, until one ends well', async t => {
    const folder = scratchFolder(t)
    const [holder, next] = await startAll(t, folder, 2)
    const held = await holder.hold('a')
    const waiting = next.run(({ locks }) => locks.request('a', ({ token, ownerDied }) => {
      throw new Error(`${token} ${ownerDied}`)
    }))
    await next.waits('a')
    await holder.kill()
    const [token, ownerDied] = (await waiting.catch(error => error)).message.split(' ')
    assert.ok(Number(token) > held.token)
    assert.strictEqual(ownerDied, 'true')
    assert.strictEqual((await next.pass('a')).ownerDied, true)
    assert.strictEqual((await next.pass('a')).ownerDied, false)
  })

  test(engine + ': killed at any moment: one inside at a time, deaths are seen', { timeout: 120000 }, async t => {
    const folder = scratchFolder(t)
    const file = path.join(folder, 'room')
    const killed = new Set()
    let visits = 0
    const problems = []
    fs.writeFileSync(file, ' 0')
    const visitor = async () => {
      const member = await start(t, path.join(folder, 'locks'))
      member.child.on('message', ({ visit }) => {
        if (visit === undefined) return
        const { inside, last, token, ownerDied } = visit
        visits++
        if (inside !== '' && !killed.has(Number(inside))) problems.push(`${inside} was inside, alive`)
        if ((inside !== '' || last === undefined) && !ownerDied) problems.push(`did not see the death of ${inside}`)
        if (!(token > Number(last || 0))) problems.push(`token ${token} after ${last}`)
      })
      member.run(async ({ locks, fs }, room) => {
        for (;;) {
          await locks.request('room', async ({ token, ownerDied }) => {
            const [inside, last] = fs.readFileSync(room, 'utf8').split(' ')
            fs.writeFileSync(room, `${process.pid} ${token}`)
            process.send({ visit: { inside, last, token, ownerDied } })
            await new Promise(resolve => setImmediate(resolve))
            const still = fs.readFileSync(room, 'utf8')
            if (still !== `${process.pid} ${token}`) process.send({ outside: 'another came in' })
            fs.writeFileSync(room, ` ${token}`)
          })
        }
      }, file)
      return member
    }
    const members = [await visitor(), await visitor()]
    for (let n = 0; n < size(40, 6); n++) {
      const successor = visitor()
      await sleep(Math.random() * 20)
      const [victim] = members.splice(n % 2, 1)
      killed.add(victim.pid)
      await victim.kill()
      assert.deepStrictEqual(victim.outside, [])
      members.push(await successor)
    }
    for (const before = visits; visits < before + 5;) await sleep(1)
    assert.deepStrictEqual(problems, [])
  })

  test(engine + ': a holder that stands still keeps its lock', { skip: SIGNALS }, async t => {
    const folder = scratchFolder(t)
    const [holder, next] = await startAll(t, folder, 2)
    const { token } = await holder.hold('a')
    holder.child.kill('SIGSTOP')
    assert.strictEqual(await next.pass('a', { ifAvailable: true }), null)
    const waiting = next.pass('a')
    await next.waits('a')
    assert.strictEqual(await next.pass('a', { ifAvailable: true }), null)
    holder.child.kill('SIGCONT')
    await holder.release('a')
    const after = await waiting
    assert.ok(after.token > token && after.ownerDied === false)
  })

  test(engine + ': who asks for a lock again and again leaves it to those that wait', async t => {
    const folder = scratchFolder(t)
    const [greedy, next] = await startAll(t, folder, 2)
    // It goes on until the other one has had the lock often enough.
    const loop = greedy.run(async ({ locks, kept }) => {
      while (!kept.isOver) await locks.request('a', () => new Promise(resolve => setTimeout(resolve, 1)))
    })
    for (let n = 0; n < 20; n++) await next.pass('a')
    await greedy.run(({ kept }) => { kept.isOver = true })
    await loop
  })

  test(engine + ': readers share a lock; a writer that waits goes before new ones', async t => {
    const folder = scratchFolder(t)
    const [one, other, writer, late] = await startAll(t, folder, 4)
    const shared = { mode: 'shared' }
    await Promise.all([one.hold('a', shared), other.hold('a', shared)])
    assert.strictEqual(await writer.pass('a', { ifAvailable: true }), null)
    const writing = writer.hold('a')
    await writer.waits('a')
    assert.strictEqual(await late.pass('a', { mode: 'shared', ifAvailable: true }), null)
    const reading = late.pass('a', shared)
    await late.waits('a')
    await Promise.all([one.release('a'), other.release('a')])
    const { token } = await writing
    await writer.release('a')
    assert.strictEqual((await reading).token, token)
  })

  test(engine + ': a writer that gives up lets new readers in', { skip: INTERRUPTS }, async t => {
    const folder = scratchFolder(t)
    const [reader, writer, late] = await startAll(t, folder, 3)
    const shared = { mode: 'shared' }
    await reader.hold('a', shared)
    const writing = writer.run(({ locks, kept }) => {
      kept.controller = new AbortController()
      return locks.request('a', { signal: kept.controller.signal }, () => {})
    })
    await writer.waits('a')
    await writer.run(({ kept }) => kept.controller.abort())
    assert.strictEqual((await writing.catch(error => error)).name, 'AbortError')
    await late.pass('a', shared)
    await reader.release('a')
    // Its thread is still there, and serves its next requests.
    assert.strictEqual((await writer.pass('a')).ownerDied, false)
  })

  test(engine + ': waits that time out or are aborted at any moment leave nothing behind', async t => {
    const folder = scratchFolder(t)
    const [holder, waiter, next] = await startAll(t, folder, 3)
    await holder.hold('a')
    const codes = await waiter.run(async ({ locks }) => {
      const all = []
      for (let n = 0; n < 100; n++) {
        all.push(locks.request('a', { timeout: Math.random() * 20 }, () => 'granted').catch(({ code }) => code))
      }
      return [...new Set(await Promise.all(all))]
    })
    assert.deepStrictEqual(codes, ['ERR_TIMEOUT'])
    const count = await waiter.run(async ({ locks, sleep }) => {
      // While the lock comes and goes.
      let granted = 0
      const turns = Array.from({ length: 60 }, async (_, n) => {
        await sleep(n)
        const controller = new AbortController()
        setTimeout(() => controller.abort(), Math.random() * 3)
        await locks.request('b', { signal: controller.signal }, () => { granted++ }).catch(() => {})
      })
      await Promise.all(turns)
      return granted
    })
    assert.ok(count >= 0)
    for (const name of ['a', 'b']) {
      const waiting = next.pass(name)
      if (name === 'a') await holder.release('a')
      assert.strictEqual((await waiting).ownerDied, false)
    }
    if (!LINUX) assert.deepStrictEqual(await next.run(({ locks }) => locks.query()), { held: [], pending: [] })
  })

  test(engine + ': more names are awaited than there are threads', { timeout: 120000 }, async t => {
    const folder = scratchFolder(t)
    const [holder, waiter] = await startAll(t, folder, 2)
    const NAMES = size(1100, 300)
    await holder.run(({ locks, kept }, names) => {
      kept.all = []
      return Promise.all(Array.from({ length: names }, async (_, n) => kept.all.push(await locks.hold(`name ${n}`))))
    }, NAMES)
    const waiting = waiter.run(({ locks }, names) => Promise.all(
      Array.from({ length: names }, (_, n) => locks.request(`name ${n}`, ({ ownerDied }) => ownerDied))
    ), NAMES)
    await sleep(200)
    await holder.run(({ kept }) => Promise.all(kept.all.map(lock => lock.unlock())))
    assert.deepStrictEqual([...new Set(await waiting)], [false])
    await waiter.run(({ locks }) => locks.close())
    waiter.child.disconnect()
    assert.deepStrictEqual(await waiter.ended, { code: 0, signal: null })
  })

  test(engine + ': two folders are apart; a folder by two ways is one', { skip: LINKS }, async t => {
    const folder = scratchFolder(t)
    const [one, other] = [path.join(folder, 'one'), path.join(folder, 'other')]
    const member = await start(t, one)
    const apart = await start(t, other)
    await member.hold('a')
    await apart.pass('a')
    fs.symlinkSync(one, path.join(folder, 'link'))
    const same = await start(t, path.join(folder, 'link'))
    assert.strictEqual(await same.pass('a', { ifAvailable: true }), null)
    const isFree = await member.run(({ api }, link, kind) =>
      api.processLocks(api[kind](link)).request('a', { ifAvailable: true }, lock => lock !== null),
    path.join(folder, 'link'), engine)
    assert.strictEqual(isFree, false)
  })

  test(engine + ': any string is a name', async t => {
    const folder = scratchFolder(t)
    const [one, other] = await startAll(t, folder, 2)
    const names = ['', ' ', '-', '\0', '../../etc/passwd', 'a/b', '__proto__', '\ud800', '\udc00', 'é', 'e\u0301',
      'x'.repeat(1e6), 'x'.repeat(1e6) + 'y']
    for (const name of names) await one.hold(name)
    assert.strictEqual(await other.pass(names[11], { ifAvailable: true }), null)
    for (const name of names) await one.release(name)
    await other.pass(names[11], { ifAvailable: true })
  })
}
