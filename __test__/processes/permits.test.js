'use strict'
// nodes: >=16 (older ones lack what the engines need)

// Permits: so many holders of a name among processes, and what deaths, aborts and other numbers make of them.

const assert = require('assert')
const fs = require('fs')
const path = require('path')
const { test } = require('../harness')
const { packageCopy } = require('../fixtures/entries/folders')
const { FakeEngine } = require('../fixtures/fake-engine')
const { NO_SHARERS, scratchFolder, startMember, startMembers, suspend } = require('../fixtures/lock-processes')
const { noTable } = require('../fixtures/shared-memory')
const size = require('../fixtures/size')
const { files, memory, processLocks } = require('../../processes')

const ENGINES = noTable ? { files } : { files, memory }
const code = promise => promise.then(() => 'fulfilled', error => error.code || error.name)
const sleep = milliseconds => new Promise(resolve => setTimeout(resolve, milliseconds))
const fail = () => { throw new Error('on purpose') }

/** Enters a folder, which has a file for each permit that is held; gives the most that were there at once. */
const visit = async ({ fs, locks, sleep }, room, permits, rounds) => {
  let most = 0
  for (let n = 0; n < rounds; n++) {
    await locks.request('g', { permits }, async ({ permit }) => {
      const file = room + '/' + permit
      fs.writeFileSync(file, '', { flag: 'wx' })
      // Some stay until the room is full: on a slow machine they would hardly meet.
      for (let turns = 0; turns < 20 && fs.readdirSync(room).length < permits; turns++) await sleep(1)
      most = Math.max(most, fs.readdirSync(room).length)
      await sleep(2)
      fs.unlinkSync(file)
    })
  }
  return most
}

for (const [engine, durable] of [['files', false], ['files', true], ['memory', false]]) {
  if (ENGINES[engine] === undefined) continue
  const kind = durable ? ', flushed to the disk' : ''
  test(`${engine}: processes share so many permits, each of which one holder has${kind}`, {
    timeout: 120000
  }, async t => {
    const folder = scratchFolder(t)
    const room = scratchFolder(t)
    const members = await startMembers(t, folder, 3, { engine, durable })
    const rounds = size(20, 8)
    const visits = members.flatMap(member => [1, 2].map(() => member.run(visit, room, 2, rounds)))
    const most = await Promise.all(visits)
    assert.strictEqual(Math.max(...most), 2)
    assert.deepStrictEqual(fs.readdirSync(room), [])
  })
}

/**
 * Counts in a file for each permit, and has another one there: after a death, and never otherwise, that may be left.
 * Says how often it has counted.
 */
const countWith = ({ fs, locks }, room, permits, rounds, isLimited) => {
  let id = 0
  const once = async (permit, ownerDied) => {
    const [count, inside] = [`${room}/count ${permit}`, `${room}/inside ${permit}`]
    if (ownerDied) fs.rmSync(inside, { force: true })
    fs.writeFileSync(inside, '', { flag: 'wx' })
    const before = fs.existsSync(count) ? fs.readFileSync(count, 'utf8').length : 0
    await new Promise(resolve => setImmediate(resolve))
    fs.appendFileSync(count, '.')
    if (fs.readFileSync(count, 'utf8').length !== before + 1) throw new Error('two have counted')
    fs.unlinkSync(inside)
    fs.appendFileSync(`${room}/done by ${process.pid}`, '.')
  }
  const task = async () => {
    for (let n = 0; n < rounds; n++) {
      if (isLimited) await locks.request('g', { permits }, ({ permit, ownerDied }) => once(permit, ownerDied))
      else await once(++id % permits)
    }
  }
  return Promise.all([task(), task(), task()]).then(() => true)
}

/** Lets processes count, some of which are killed. Gives how many counts are there, and how many were said to be. */
async function countTogether (t, engine, isLimited, kills) {
  const [folder, room] = [scratchFolder(t), scratchFolder(t)]
  const start = () => startMember(t, folder, { engine })
  const begin = member => member.run(countWith, room, 3, 40, isLimited)
  const lasting = await Promise.all([start(), start()])
  const ends = lasting.map(begin)
  for (let n = 0; n < kills; n++) {
    const victim = await start()
    const end = begin(victim).catch(() => {})
    await sleep(Math.random() * 60)
    await Promise.all([victim.kill(), end])
  }
  await Promise.all(ends)
  // All permits are there again, and all marks are seen once.
  await Promise.all(lasting.map(begin))
  for (const { outside } of lasting) assert.deepStrictEqual(outside, [])
  const sizes = kind => fs.readdirSync(room).filter(name => name.startsWith(kind)).map(name =>
    fs.statSync(path.join(room, name)).size)
  const sum = numbers => numbers.reduce((all, number) => all + number, 0)
  assert.deepStrictEqual(sizes('inside'), [])
  return { counted: sum(sizes('count')), said: sum(sizes('done')) }
}

for (const engine of Object.keys(ENGINES)) {
  test(engine + ': kills at random: no permit has two holders, each death is told, no count is lost', {
    timeout: 120000
  }, async t => {
    const kills = size(12, 4)
    const { counted, said } = await countTogether(t, engine, true, kills)
    // Each of the three holders that were killed may have counted before it said so.
    assert.ok(counted >= said && counted <= said + 3 * kills, `${counted} counts, and ${said} said`)
    await assert.rejects(countTogether(t, engine, false, 0), /EEXIST|two have counted/)
  })
}

test('memory: each of four processes has its share of the permits; whoever is suspended keeps nobody waiting', {
  skip: noTable, timeout: 60000
}, async t => {
  const folder = scratchFolder(t)
  const members = await startMembers(t, folder, 5, { engine: 'memory' })
  const suspended = members.pop()
  const waiting = suspended.run(({ locks }) => {
    for (let n = 0; n < 50; n++) locks.request('g', { permits: 2 }, () => {})
  })
  const holds = [await members[0].hold('g', { permits: 2 }), await members[1].hold('g', { permits: 2 })]
  assert.deepStrictEqual(holds.map(({ ownerDied }) => ownerDied), [false, false])
  await waiting
  await suspend(suspended)
  await Promise.all([members[0].release('g'), members[1].release('g')])
  const counts = await Promise.all(members.map(member => member.run(async ({ locks }, milliseconds) => {
    let count = 0
    const until = Date.now() + milliseconds
    const task = async () => {
      while (Date.now() < until) await locks.request('g', { permits: 2 }, () => { count++ })
    }
    await Promise.all(Array.from({ length: 5 }, task))
    return count
  }, size(3000, 1000))))
  suspended.child.kill('SIGCONT')
  assert.ok(Math.min(...counts) > 0.1 * Math.max(...counts), String(counts))
  const last = processLocks(memory(folder)).request('g', { permits: 2, timeout: 10000 }, () => {})
  assert.strictEqual(await code(last), 'fulfilled')
})

test('another number, by another copy of the package: the same RangeError', async t => {
  const copy = require(path.join(packageCopy(t), 'processes'))
  for (const engine of Object.keys(ENGINES)) {
    const folder = scratchFolder(t)
    const held = await copy.processLocks(copy[engine](folder)).hold('g', { permits: 2 })
    const ways = [processLocks(ENGINES[engine](folder)), processLocks(copy[engine](folder)),
      copy.processLocks(ENGINES[engine](folder))]
    for (const locks of ways) {
      await assert.rejects(locks.request('g', { permits: 3 }, () => {}), {
        name: 'RangeError', message: 'The name "g" is held or awaited with permits: 2, and not with permits: 3'
      })
    }
    await held.unlock()
  }
})

test('a wait for a permit outlasts a moment without descriptors; an attempt says so', {
  skip: process.platform !== 'linux' && 'how few descriptors there may be was looked at on Linux only'
}, async t => {
  const member = await startMember(t, scratchFolder(t))
  await member.pass('a')
  const outcomes = await member.run(async ({ locks, fs, sleep }) => {
    const taken = []
    try {
      for (;;) taken.push(fs.openSync('/dev/null'))
    } catch ({ code }) {
      if (code !== 'EMFILE') return code
    }
    // Those that the library has kept, too.
    const holds = []
    try {
      for (;;) holds.push(await locks.hold(`name ${holds.length}`, { ifAvailable: true }))
    } catch ({ code }) {
      if (code !== 'ERR_LOCK_UNAVAILABLE') return code
    }
    const waiting = locks.request('g', { permits: 2 }, ({ permit }) => permit)
    const late = await locks.request('g', { permits: 2, timeout: 50 }, () => {}).catch(({ code }) => code)
    const now = await locks.request('g', { permits: 2, ifAvailable: true }, () => {}).catch(({ code }) => code)
    await sleep(50)
    for (const descriptor of taken) fs.closeSync(descriptor)
    return [await waiting, late, now]
  })
  assert.deepStrictEqual(outcomes, [0, 'ERR_TIMEOUT', 'ERR_LOCK_UNAVAILABLE'])
})

for (const engine of Object.keys(ENGINES)) {
  const locksIn = folder => processLocks(ENGINES[engine](folder))

  test(engine + ': kill -9: a dead holder\'s permit goes to the first in line, who alone is told', async t => {
    const folder = scratchFolder(t)
    const locks = locksIn(folder)
    const [one, two, next] = await startMembers(t, folder, 3, { engine })
    await one.hold('g', { permits: 2 })
    await two.hold('g', { permits: 2 })
    const take = ({ locks }) => locks.request('g', { permits: 2 }, ({ permit, ownerDied }) => ({ permit, ownerDied }))
    const waiting = next.run(take)
    await next.waits('g', 0)
    assert.strictEqual(await locks.request('g', { permits: 2, ifAvailable: true }, lock => lock), null)
    await two.kill()
    assert.deepStrictEqual(await waiting, { permit: 1, ownerDied: true })
    assert.deepStrictEqual(await next.run(take), { permit: 1, ownerDied: false })
    await one.kill()
    // The other one may be taken before the death is seen.
    const both = await next.run(async ({ locks }) => {
      const holds = [await locks.hold('g', { permits: 2 }), await locks.hold('g', { permits: 2 })]
      await Promise.all(holds.map(lock => lock.unlock()))
      return holds.map(({ permit, ownerDied }) => `${permit} ${ownerDied}`)
    })
    assert.deepStrictEqual(both.sort(), ['0 true', '1 false'])
    assert.deepStrictEqual(await next.run(take), { permit: 0, ownerDied: false })
  })

  test(engine + ': those that wait get permits in their order, whichever permit is free first', async t => {
    const locks = locksIn(scratchFolder(t))
    const holds = await Promise.all([0, 1].map(() => locks.hold('g', { permits: 2 })))
    const order = []
    const waits = []
    for (let n = 0; n < 4; n++) {
      waits.push(locks.request('g', { permits: 2 }, async ({ permit }) => order.push(`${n} ${permit}`)))
      await sleep(20)
    }
    await holds[1].unlock()
    while (order.length < 4) await sleep(1)
    assert.deepStrictEqual(order, ['0 1', '1 1', '2 1', '3 1'])
    await Promise.all([...waits, holds[0].unlock()])
  })

  test(engine + ': a wait for many permits has no warning of Node', async t => {
    const warnings = []
    const note = warning => warnings.push(String(warning))
    process.on('warning', note)
    t.after(() => process.removeListener('warning', note))
    const locks = locksIn(scratchFolder(t))
    const holds = await Promise.all(Array.from({ length: 12 }, () => locks.hold('g', { permits: 12 })))
    const next = locks.request('g', { permits: 12 }, ({ permit }) => permit)
    await sleep(50)
    await holds[7].unlock()
    assert.strictEqual(await next, 7)
    await Promise.all(holds.map(each => each.unlock()))
    assert.deepStrictEqual(warnings, [])
  })

  test(engine + ': another number, or none: a RangeError with both, until all is given back', async t => {
    const folder = scratchFolder(t)
    const member = await startMember(t, folder, { engine })
    const ours = locksIn(folder)
    const elsewhere = {
      request: (name, options) => member.run(({ locks }, ...args) => locks.request(...args, () => {}), name, options)
    }
    for (const locks of [ours, elsewhere]) {
      const rejects = (options, words) => assert.rejects(locks.request('g', options, () => {}), {
        name: 'RangeError', message: `The name "g" is held or awaited ${words}`
      })
      const held = await ours.hold('g', { permits: 2 })
      await rejects({ permits: 3 }, 'with permits: 2, and not with permits: 3')
      if (!NO_SHARERS) {
        for (const options of [{}, { ifAvailable: true }, { timeout: 0 }, { maxHold: 50 }]) {
          await rejects(options, 'with permits: 2, and not without permits')
        }
      }
      await held.unlock()
      const plain = await ours.hold('g')
      for (const options of [{ permits: 2 }, { permits: 2, timeout: 0 }]) {
        await rejects(options, 'without permits, and not with permits: 2')
      }
      await plain.unlock()
      assert.strictEqual(await code(locks.request('g', { permits: 3 }, () => {})), 'fulfilled')
      assert.strictEqual(await code(locks.request('g', {}, () => {})), 'fulfilled')
    }
    if (!NO_SHARERS) {
      const held = await ours.hold('g', { permits: 1 })
      assert.throws(() => ours.requestSync('g', { ifAvailable: true }, () => {}), /with permits: 1, and not without/)
      await held.unlock()
    }
  })

  test(engine + ': the mark of a death without permits outlives the use with them', async t => {
    const locks = locksIn(scratchFolder(t))
    await locks.request('g', lock => { lock.abandon() })
    assert.strictEqual(await locks.request('g', { permits: 2 }, ({ ownerDied }) => ownerDied), false)
    assert.strictEqual(await locks.request('g', ({ ownerDied }) => ownerDied), true)
  })

  test(engine + ': requests of one number begin at the same time in many processes: none is refused', async t => {
    const folder = scratchFolder(t)
    const members = await startMembers(t, folder, 3, { engine })
    for (let round = 0; round < 10; round++) {
      await Promise.all(members.map(member => member.run(({ locks }, name) => Promise.all([1, 2, 3].map(() =>
        locks.request(name, { permits: 4 }, () => {}))), 'g' + round)))
    }
  })

  test(engine + ': aborts and timeouts at any moment leave nothing held, and no marks', {
    timeout: 120000
  }, async t => {
    const folder = scratchFolder(t)
    const locks = locksIn(folder)
    const member = await startMember(t, folder, { engine })
    const holds = [await locks.hold('g', { permits: 2 })]
    await member.hold('g', { permits: 2 })
    for (let n = 0; n < size(60, 20); n++) {
      const controller = new AbortController()
      const asked = [{ signal: controller.signal }, { timeout: Math.random() * 4 }, { timeout: 0 }].map(options =>
        code(locks.request('g', { permits: 2, ...options }, fail)))
      await sleep(Math.random() * 4)
      controller.abort()
      const [aborted, ...late] = await Promise.all(asked)
      assert.ok([20, 'ABORT_ERR', 'AbortError'].includes(aborted), String(aborted))
      assert.deepStrictEqual(late, ['ERR_TIMEOUT', 'ERR_TIMEOUT'])
    }
    const next = locks.request('g', { permits: 2 }, ({ ownerDied, permit }) => [ownerDied, permit])
    await member.release('g')
    assert.deepStrictEqual(await next, [false, 1])
    await holds[0].unlock()
    assert.strictEqual(await locks.request('g', { timeout: 5000 }, ({ ownerDied }) => ownerDied), false)
    assert.deepStrictEqual(await locks.query(), { held: [], ...(process.platform === 'linux' && { pending: [] }) })
  })

  test(engine + ': hold: token and ownerDied are the permit\'s; query() has no other names; close() waits', async t => {
    const folder = scratchFolder(t)
    const locks = locksIn(folder)
    const [one, two] = [await locks.hold('g', { permits: 2 }), await locks.hold('g', { permits: 2 })]
    assert.deepStrictEqual([one.permit, two.permit, one.mode], [0, 1, 'exclusive'])
    const { held } = await locks.query()
    assert.ok(held.every(({ name }) => name === 'g'), JSON.stringify(held))
    assert.strictEqual(one.abandon(), true)
    await one.unlock()
    const again = await locks.hold('g', { permits: 2 })
    assert.deepStrictEqual([again.permit, again.ownerDied, again.token > one.token], [0, true, true])
    let isClosed = false
    const closed = locks.close().then(() => { isClosed = true })
    await sleep(20)
    assert.strictEqual(isClosed, false)
    await Promise.all([two.unlock(), again.unlock()])
    await closed
    const plain = await locksIn(folder).hold('g')
    assert.strictEqual(plain.permit, undefined)
    await plain.unlock()
  })

  test(engine + ': odd values of permits, and what cannot have them', async t => {
    const locks = locksIn(scratchFolder(t))
    const rejects = (options, expected) => assert.rejects(locks.request('g', options, () => {}), expected)
    for (const permits of [0, -1, 1.5, NaN, Infinity, 257]) {
      await rejects({ permits }, /^RangeError: request: permits must be an integer from 1 to 256, not /)
    }
    for (const permits of ['1', null, 1n]) await rejects({ permits }, /^TypeError: request: permits must be an /)
    await rejects({ permits: 1, mode: 'shared' }, /permits needs an exclusive lock/)
    await rejects({ permits: 1, repair () {} }, /^TypeError: request: permits cannot be combined with repair$/)
    await rejects({ permits: 1, maxHold: 5 }, /^TypeError: request: permits cannot be combined with maxHold$/)
    await assert.rejects(locks.requestAll(['g'], { permits: 1 }, () => {}), /options may have/)
    await assert.rejects(processLocks(new FakeEngine()).request('g', { permits: 1 }, () => {}), {
      name: 'NotSupportedError', message: 'request: fake has no permits'
    })
  })
}

test('an attempt does not wait for a process that is suspended in the midst of a request', async t => {
  const engine = files(scratchFolder(t))
  const locks = processLocks(engine)
  // As that process does: the lock in which numbers are compared.
  const door = engine.takeNow(engine.placeOf('g', 'exclusive', { permits: 2, part: [0, 0] }), undefined, true)
  assert.strictEqual(await locks.request('g', { permits: 2, ifAvailable: true }, lock => lock), null)
  assert.strictEqual(await code(locks.request('g', { permits: 2, timeout: 0 }, fail)), 'ERR_TIMEOUT')
  const controller = new AbortController()
  const aborted = locks.request('g', { permits: 2, ifAvailable: true, signal: controller.signal }, fail)
  const reason = new Error('no more')
  setTimeout(() => controller.abort(reason), 20)
  await assert.rejects(aborted, error => error === reason || error.name === 'AbortError')
  const next = locks.request('g', { permits: 2 }, ({ permit }) => permit)
  await door.release(false)
  assert.strictEqual(await next, 0)
})

test('a request without permits outlasts the moment in which a process with a permit ends', async t => {
  const engine = files(scratchFolder(t))
  // As that process has them: the number of permits, and the name.
  const held = [{ permits: 2, part: [1, 0] }, { permits: 2 }].map(asker =>
    engine.takeNow(engine.placeOf('g', 'shared', asker), undefined, true))
  const waiting = processLocks(engine).request('g', ({ ownerDied }) => ownerDied)
  for (const lock of held) await lock.release(false)
  assert.strictEqual(await waiting, false)
})

test('an attempt that waits for a process in the midst of a request, and is aborted, is over at once', async t => {
  const folder = scratchFolder(t)
  const engine = files(folder)
  const place = engine.placeOf('a', 'exclusive', { permits: 2, part: [0, 0] })
  const door = engine.takeNow(place, undefined, true)
  const settled = []
  const attempt = async (what, signal) => {
    const locks = processLocks(files(folder, { durable: true }))
    await locks.request('a', { permits: 2, ifAvailable: true, signal }, () => {}).catch(() => {})
    await locks.close()
    settled.push(what)
  }
  const controller = new AbortController()
  const all = [attempt('waits'), attempt('aborted', controller.signal)]
  await sleep(100)
  controller.abort()
  await Promise.all(all)
  assert.deepStrictEqual(settled, ['aborted', 'waits'])
  await door.release(false)
})
