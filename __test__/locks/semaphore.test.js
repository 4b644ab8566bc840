'use strict'

// Semaphore: permits. every-class/forms.test.js tests the behaviour that all classes share.

const assert = require('assert')
const util = require('util')
const { test } = require('../harness')
const { Atomics, api } = require('../subject')
const { startMember, turns, untilWaiters, waiters, watch } = require('../fixtures/family-toolbox')
const { TinyController, rejection } = require('../fixtures/lock-toolbox')
const { TURNS_ONCE_MORE, busy, now, randomFrom, sleep, startWorker, until } = require('../fixtures/queue-toolbox')

const { Semaphore, UnlockToken } = api
const MOST = 0x7fffffff

function setUp (permits = 0) {
  const sab = new SharedArrayBuffer(4)
  const semaphore = new Semaphore(sab)
  if (permits > 0) semaphore.release(permits)
  return { sab, semaphore, word: new Int32Array(sab) }
}

const onSemaphore = (member) => member.on('Semaphore')

// ——— permits ———

test('zero-filled memory has no permits; release adds them, and the word is their number', () => {
  const { semaphore, word } = setUp()
  assert.strictEqual(semaphore.available, 0)
  assert.strictEqual(semaphore.tryAcquire(), false)
  assert.strictEqual(semaphore.release(), undefined)
  assert.strictEqual(semaphore.available, 1)
  semaphore.release(4)
  assert.strictEqual(semaphore.available, 5)
  assert.strictEqual(word[0], 5)
  assert.strictEqual(semaphore.tryAcquire(6), false)
  assert.strictEqual(semaphore.tryAcquire(2), true)
  assert.strictEqual(semaphore.available, 3)
  assert.strictEqual(semaphore.tryAcquire(), true)
  assert.strictEqual(semaphore.tryAcquire(3), false)
  assert.strictEqual(semaphore.tryAcquire(2), true)
  assert.strictEqual(semaphore.available, 0)
  Atomics.store(word, 0, 3)
  assert.strictEqual(semaphore.tryAcquire(3), true)
})

test('two instances on one word are one semaphore, and neighbours are not', async () => {
  const sab = new SharedArrayBuffer(8)
  const [a, b, c] = [0, 0, 4].map(byteOffset => new Semaphore(sab, { byteOffset }))
  a.release(2)
  assert.deepStrictEqual([a.available, b.available, c.available], [2, 2, 0])
  assert.strictEqual(b.tryAcquire(2), true)
  const result = a.acquireAsync()
  c.release()
  assert.strictEqual(waiters(sab), 1)
  b.release()
  await result
  assert.deepStrictEqual([a.available, c.available], [0, 1])
})

test('acquire takes free permits without waiting: blocking, awaiting, using', async t => {
  const { sab, semaphore } = setUp(10)
  const member = await startMember(t, sab)
  assert.strictEqual(await onSemaphore(member)('acquire'), undefined)
  assert.strictEqual(await onSemaphore(member)('acquire', 2), undefined)
  assert.strictEqual(await onSemaphore(member)('acquire', 1, { timeout: 0 }), undefined)
  assert.strictEqual(await onSemaphore(member)('tryAcquire', 1), true)
  assert.strictEqual(await semaphore.acquireAsync(), undefined)
  assert.strictEqual(await semaphore.acquireAsync(2, { timeout: 0 }), undefined)
  assert.strictEqual(semaphore.available, 2)
  assert.strictEqual(await semaphore.use(2, () => semaphore.available, { timeout: 0 }), 0)
  assert.strictEqual(semaphore.available, 2)
  const promise = semaphore.acquireAsync(2)
  assert.strictEqual(semaphore.available, 0, 'taken at once')
  await promise
})

test('any thread may release: a semaphore is also a signal', async t => {
  const { sab, semaphore } = setUp()
  const member = await startMember(t, sab)
  const result = onSemaphore(member)('acquire', 3)
  await untilWaiters(sab, 0, 1)
  for (let n = 0; n < 2; n++) {
    semaphore.release()
    await turns()
    assert.strictEqual(semaphore.available, n + 1, 'not enough yet')
  }
  semaphore.release()
  await result
  assert.strictEqual(semaphore.available, 0)
  await member.terminate()
  assert.strictEqual(semaphore.available, 0, 'what was acquired belongs to nobody')
})

// ——— arguments ———

test('the error of a wrong number of permits says which are allowed, and nothing changes', async t => {
  const { sab, semaphore } = setUp(5)
  const calls = {
    tryAcquire: n => semaphore.tryAcquire(n),
    release: n => semaphore.release(n),
    acquireAsync: n => semaphore.acquireAsync(n),
    use: n => semaphore.use(n, () => assert.fail('it ran'))
  }
  for (const name of Object.keys(calls)) {
    const call = async n => calls[name](n)
    for (const [n, what] of [[null, 'null'], ['1', 'the string "1"'], [1.5, 'the number 1.5'], [NaN, 'the number NaN'], [Infinity, 'the number Infinity']]) {
      const error = await rejection(call(n))
      assert.ok(error instanceof TypeError, `${name}: ${error}`)
      assert.strictEqual(error.message, `${name}: n must be an integer, not ${what}`)
    }
    for (const n of [0, -1, MOST + 1, -0]) {
      const error = await rejection(call(n))
      assert.ok(error instanceof RangeError, `${name}: ${error}`)
      assert.strictEqual(error.message, `${name}: n must be from 1 to ${MOST}, not the number ${Object.is(n, -0) ? '-0' : n}`)
    }
    assert.strictEqual(semaphore.available, 5)
  }
  for (const callback of [undefined, null, {}, 5]) {
    const error = await rejection(semaphore.use(1, callback))
    assert.ok(error instanceof TypeError)
    assert.ok(/^use: callback must be a function, not /.test(error.message), error.message)
  }
  const member = await startMember(t, sab)
  for (const [n, name] of [['x', 'TypeError'], [0, 'RangeError']]) {
    const error = await rejection(onSemaphore(member)('acquire', n))
    assert.strictEqual(error.name, name)
    assert.ok(error.message.startsWith('acquire: n must be '), error.message)
  }
  assert.strictEqual(semaphore.available, 5)
  assert.strictEqual(waiters(sab), 0)
})

test('more permits than the word can hold are a RangeError, and change nothing', async () => {
  const { sab, semaphore } = setUp(MOST)
  assert.strictEqual(semaphore.available, MOST)
  for (const n of [1, 2, MOST]) {
    assert.throws(() => semaphore.release(n), (error) => {
      assert.ok(error instanceof RangeError)
      assert.strictEqual(error.message, `release: ${n} more permits would exceed ${MOST}`)
      return true
    })
    assert.strictEqual(semaphore.available, MOST)
  }
  assert.strictEqual(semaphore.tryAcquire(MOST), true)
  const result = semaphore.acquireAsync(MOST)
  assert.strictEqual(waiters(sab), 1)
  semaphore.release(MOST - 1)
  semaphore.release(1)
  await result
  assert.strictEqual(semaphore.available, 0)
})

// ——— the order ———

test('blocked threads and promises are served in the order they came', async t => {
  const { sab, semaphore } = setUp()
  const members = await Promise.all([0, 1].map(() => startMember(t, sab)))
  const order = []
  const all = []
  const lineUp = async (name, promise) => {
    all.push(promise.then(() => order.push(name)))
    await untilWaiters(sab, 0, all.length)
  }
  await lineUp('thread 0', onSemaphore(members[0])('acquire'))
  await lineUp('main 0', semaphore.acquireAsync())
  await lineUp('thread 1', onSemaphore(members[1])('acquireAsync'))
  await lineUp('main 1', semaphore.use(1, () => {}))
  for (const promise of all) {
    semaphore.release()
    await promise
    await turns()
  }
  assert.deepStrictEqual(order, ['thread 0', 'main 0', 'thread 1', 'main 1'])
  assert.strictEqual(semaphore.available, 1)
})

test('acquire(5) is not overtaken by acquire(1), not even where one permit is free', async t => {
  const { sab, semaphore } = setUp()
  const members = await Promise.all([0, 1].map(() => startMember(t, sab)))
  const large = watch(onSemaphore(members[0])('acquire', 5))
  await untilWaiters(sab, 0, 1)
  const small = [watch(semaphore.acquireAsync(1))]
  const blocked = watch(onSemaphore(members[1])('acquire', 1))
  await untilWaiters(sab, 0, 3)
  small.push(watch(semaphore.use(1, () => {})))
  for (let n = 1; n <= 4; n++) {
    semaphore.release()
    assert.strictEqual(semaphore.tryAcquire(), false, 'nobody overtakes')
    assert.strictEqual((await rejection(semaphore.acquireAsync(1, { timeout: 0 }))).name, 'TimeoutError')
    assert.strictEqual((await rejection(semaphore.acquireAsync(1, { timeout: 2 }))).name, 'TimeoutError')
    await turns()
    assert.strictEqual(semaphore.available, n)
    assert.strictEqual(waiters(sab), 4)
  }
  semaphore.release()
  await until(() => large.state === 'fulfilled')
  await turns()
  for (const each of [...small, blocked]) assert.strictEqual(each.state, 'pending')
  semaphore.release(3)
  await until(() => [...small, blocked].every(each => each.state === 'fulfilled'))
  assert.strictEqual(semaphore.available, 1)
})

test('one release serves as many as it is enough for, and no more', async t => {
  const { sab, semaphore } = setUp()
  const member = await startMember(t, sab)
  const watched = [2, 1, 3].map(n => watch(semaphore.acquireAsync(n)))
  const blocked = watch(onSemaphore(member)('acquire', 2))
  await untilWaiters(sab, 0, 4)
  const last = watch(semaphore.acquireAsync(1))
  semaphore.release(5)
  assert.strictEqual(waiters(sab), 3)
  assert.strictEqual(semaphore.available, 2)
  await until(() => watched[1].state === 'fulfilled')
  await turns()
  assert.deepStrictEqual(watched.map(each => each.state), ['fulfilled', 'fulfilled', 'pending'])
  semaphore.release(3)
  await until(() => watched[2].state === 'fulfilled')
  await until(() => blocked.state === 'fulfilled')
  await turns()
  assert.strictEqual(last.state, 'pending')
  assert.strictEqual(semaphore.available, 0)
  semaphore.release()
  await until(() => last.state === 'fulfilled')
})

for (const how of ['an abort', 'a timeout', 'its thread\'s death']) {
  test(`when the first gives up (${how}), its permits serve the next ones`, async t => {
    const { sab, semaphore } = setUp(3)
    const members = await Promise.all([0, 1].map(() => startMember(t, sab)))
    const controller = new TinyController()
    let first
    if (how === 'an abort') first = semaphore.acquireAsync(5, { signal: controller.signal })
    else if (how === 'a timeout') first = semaphore.acquireAsync(5, { timeout: 300 })
    else first = onSemaphore(members[0])('acquire', 5)
    const giving = watch(first)
    await untilWaiters(sab, 0, 1)
    const blocked = onSemaphore(members[1])('acquire', 1)
    // On a busy machine the time may be over by now.
    await until(() => waiters(sab) === 2 || giving.state !== 'pending')
    const awaited = semaphore.acquireAsync(1)
    const tooLarge = watch(semaphore.acquireAsync(2))
    await turns()
    if (how === 'an abort') controller.abort()
    if (how.endsWith('death')) await members[0].terminate()
    await blocked
    await awaited
    await turns()
    assert.strictEqual(tooLarge.state, 'pending')
    assert.strictEqual(semaphore.available, 1)
    semaphore.release()
    await until(() => tooLarge.state === 'fulfilled')
    assert.strictEqual(semaphore.available, 0)
  })
}

test('a large request is served although small ones keep coming', async t => {
  const { sab, semaphore } = setUp(4)
  const stop = new Int32Array(new SharedArrayBuffer(4))
  const workers = [0, 1, 2].map(() => startWorker(t, ({ api, post, data: { sab, stop } }) => {
    const semaphore = new api.Semaphore(sab)
    while (Atomics.load(stop, 0) === 0) {
      semaphore.acquire(1)
      semaphore.release(1)
      if (post !== null) post('runs')
      post = null
    }
  }, { sab, stop }))
  for (const worker of workers) await worker.next()
  for (let n = 0; n < 30; n++) {
    await semaphore.acquireAsync(4, { timeout: 20000 })
    assert.strictEqual(semaphore.available, 0)
    semaphore.release(4)
  }
  Atomics.store(stop, 0, 1)
  for (const worker of workers) await worker.done()
  assert.strictEqual(semaphore.available, 4)
})

test('under load without timeouts a single permit excludes, and every claim is served', { timeout: 120000 }, async t => {
  const COUNT = 60000
  const { sab, semaphore } = setUp(1)
  const counter = new Int32Array(new SharedArrayBuffer(4))
  const workers = [0, 1, 2].map(me => startWorker(t, async ({ api, data: { sab, counter, count, me } }) => {
    const semaphore = new api.Semaphore(sab)
    const raise = () => { counter[0]++ }
    if (me === 2) {
      for (let n = 0; n < count / 10; n++) await semaphore.use(1, raise)
      return
    }
    for (let n = 0; n < count; n++) {
      semaphore.acquire()
      raise()
      semaphore.release()
    }
  }, { sab, counter, count: COUNT, me }))
  for (const worker of workers) await worker.done()
  assert.strictEqual(counter[0], 2.1 * COUNT)
  assert.deepStrictEqual([semaphore.available, waiters(sab)], [1, 0])
})

// ——— use ———

test('use gives the callback\'s result, and gives the permits back however it ends', async () => {
  const { semaphore } = setUp(3)
  const error = new Error('mine')
  assert.strictEqual(await semaphore.use(2, () => semaphore.available), 1)
  assert.strictEqual(await semaphore.use(3, async () => { await sleep(1); return semaphore.available }), 0)
  assert.strictEqual(semaphore.available, 3)
  assert.strictEqual(await rejection(semaphore.use(1, () => { throw error })), error)
  assert.strictEqual(await rejection(semaphore.use(1, async () => { await sleep(1); throw error })), error)
  assert.strictEqual(semaphore.available, 3)
})

test('use: the token gives the permits back early, once', async () => {
  const { semaphore } = setUp(3)
  await semaphore.use(2, async (token) => {
    assert.ok(token instanceof UnlockToken)
    assert.strictEqual(token.locked, true)
    assert.strictEqual(token.ownerDied, false)
    assert.strictEqual(semaphore.available, 1)
    assert.strictEqual(token.unlock(), true)
    assert.strictEqual(semaphore.available, 3)
    assert.strictEqual(token.unlock(), false)
    assert.strictEqual(token.locked, false)
    await sleep(1)
    assert.strictEqual(semaphore.tryAcquire(3), true)
  })
  assert.strictEqual(semaphore.available, 0, 'nothing is given back twice')
})

const disposes = typeof Symbol.dispose === 'symbol'
test('use: a token is disposable', { skip: !disposes && 'no Symbol.dispose here' }, async () => {
  const { semaphore } = setUp(3)
  await semaphore.use(2, (token) => {
    token[Symbol.dispose]()
    assert.strictEqual(semaphore.available, 3)
  })
  assert.strictEqual(semaphore.available, 3)
})

test('at most as many callbacks run at a time as there are permits: main and threads', async t => {
  const LIMIT = 3
  const { sab, semaphore } = setUp(LIMIT)
  const running = new Int32Array(new SharedArrayBuffer(8))
  const work = async ({ api, sleep, data: { sab, running, count } }) => {
    const semaphore = new api.Semaphore(sab)
    await Promise.all(Array.from({ length: count }, () => semaphore.use(1, async () => {
      const now = Atomics.add(running, 0, 1) + 1
      for (let most = Atomics.load(running, 1); most < now; most = Atomics.load(running, 1)) Atomics.compareExchange(running, 1, most, now)
      await sleep(1)
      Atomics.sub(running, 0, 1)
    })))
  }
  const workers = [0, 1].map(() => startWorker(t, work, { sab, running, count: 40 }))
  await work({ api, sleep, data: { sab, running, count: 40 } })
  for (const worker of workers) await worker.done()
  assert.deepStrictEqual(Array.from(running), [0, LIMIT])
  assert.strictEqual(semaphore.available, LIMIT)
})

test('a thread that holds permits may wait for more: there is no owner to wait for itself', async t => {
  const { sab, semaphore } = setUp(1)
  const member = await startMember(t, sab)
  await onSemaphore(member)('acquire')
  const more = onSemaphore(member)('acquire')
  await untilWaiters(sab, 0, 1)
  semaphore.release()
  await more
})

// ——— a thread that dies ———

test('the permits of use come back when the thread dies, in every way', async t => {
  const { sab, semaphore } = setUp(5)
  for (const die of [member => member.terminate(), member => { member.do('exit', 3) }, member => { member.do('throwLater') }]) {
    const member = await startMember(t, sab)
    onSemaphore(member)('use', 2, { tell: 1, holdUntil: 2 }).catch(() => {})
    onSemaphore(member)('use', 1, { tell: 3, holdUntil: 2 }).catch(() => {})
    await member.untilSet(1)
    await member.untilSet(3)
    assert.strictEqual(await onSemaphore(member)('tryAcquire', 1), true)
    assert.strictEqual(semaphore.available, 1)
    const waiting = semaphore.acquireAsync(3)
    assert.strictEqual(waiters(sab), 1)
    die(member)
    await waiting
    await member.exited
    // Five less the one that was merely acquired, less these three.
    assert.strictEqual(semaphore.available, 1)
    semaphore.release(4)
    assert.strictEqual(semaphore.available, 5)
  }
})

test('permits of a dead thread serve a blocked thread, too; no holder is told of the death', async t => {
  const { sab, semaphore } = setUp(2)
  const [victim, member] = await Promise.all([startMember(t, sab), startMember(t, sab)])
  onSemaphore(victim)('use', 2, { tell: 1, holdUntil: 2 })
  await victim.untilSet(1)
  const blocked = onSemaphore(member)('acquire', 2)
  await untilWaiters(sab, 0, 1)
  await victim.terminate()
  await blocked
  semaphore.release(2)
  await semaphore.use(1, token => assert.strictEqual(token.ownerDied, false))
  assert.strictEqual(semaphore.available, 2)
})

for (const [form, args, skip] of [['use', [2, { tell: 3, holdUntil: 4 }], false], ['acquireAsync', [2], TURNS_ONCE_MORE]]) {
  test(`${form}: permits that were granted to a thread that dies before its promise settles come back`, { skip }, async t => {
    const { sab, semaphore } = setUp()
    const victim = await startMember(t, sab)
    victim.do('beginAndBeBusy', 'call', ['Semaphore', 0, {}, form, args], 1, 2)
    await victim.untilSet(1)
    assert.strictEqual(waiters(sab), 1)
    semaphore.release(2)
    assert.strictEqual(waiters(sab), 0, 'granted')
    assert.strictEqual(semaphore.available, 0)
    await victim.terminate()
    assert.strictEqual(victim.isSet(0), false)
    assert.strictEqual(semaphore.available, 2)
    assert.strictEqual(victim.isSet(3), false)
  })
}

test('threads that die while they wait take nothing along, whenever that is', { timeout: 60000 }, async t => {
  const seed = 3
  const random = randomFrom(seed)
  const { sab, semaphore } = setUp(2)
  const survivor = startWorker(t, ({ api, data: { sab, stop } }) => {
    const semaphore = new api.Semaphore(sab)
    while (Atomics.load(stop, 0) === 0) {
      semaphore.acquire(1)
      semaphore.release(1)
    }
  }, { sab, stop: new Int32Array(new SharedArrayBuffer(4)) })
  const stop = new Int32Array(new SharedArrayBuffer(4))
  const end = now() + 600
  for (let round = 0; now() < end || round < 3; round++) {
    const victim = startWorker(t, async ({ api, post, data: { sab } }) => {
      const semaphore = new api.Semaphore(sab)
      post('begins')
      for (;;) await semaphore.use(2, () => {})
    }, { sab })
    victim.done().catch(() => {})
    await victim.next()
    busy(random() * 3)
    await victim.terminate()
    // The survivor may have one at any moment.
    await semaphore.acquireAsync(2, { timeout: 20000 })
    semaphore.release(2)
  }
  Atomics.store(stop, 0, 1)
  await survivor.terminate()
})

// ——— giving up ———

test('a timeout or an abort that meets the grant loses no permit', { timeout: 60000 }, async t => {
  const seed = 21
  const random = randomFrom(seed)
  const { sab, semaphore } = setUp(3)
  const stop = new Int32Array(new SharedArrayBuffer(4))
  const workers = [0, 1].map(n => startWorker(t, ({ api, post, randomFrom, data: { sab, stop, seed } }) => {
    const random = randomFrom(seed)
    const semaphore = new api.Semaphore(sab)
    post('begins')
    const counts = { served: 0, late: 0 }
    while (Atomics.load(stop, 0) === 0) {
      const n = 1 + Math.floor(random() * 3)
      try {
        semaphore.acquire(n, { timeout: random() * 2 })
        counts.served++
        semaphore.release(n)
      } catch (error) {
        if (error.name !== 'TimeoutError') throw error
        counts.late++
      }
    }
    return counts
  }, { sab, stop, seed: seed + n }))
  for (const worker of workers) await worker.next()
  const counts = { served: 0, late: 0, aborted: 0 }
  const end = now() + 500
  while (now() < end || counts.served === 0 || counts.late + counts.aborted === 0) {
    await Promise.all(Array.from({ length: 5 }, async () => {
      const n = 1 + Math.floor(random() * 3)
      const controller = new TinyController({ reason: 'abort' })
      const result = semaphore.acquireAsync(n, { timeout: random() * 4, signal: controller.signal })
      if (random() < 0.5) setTimeout(controller.abort, random() * 3)
      try {
        await result
        counts.served++
        if (random() < 0.3) await turns(1)
        semaphore.release(n)
      } catch (error) {
        if (error === 'abort') counts.aborted++
        else if (error.name === 'TimeoutError') counts.late++
        else throw error
      }
    }))
  }
  Atomics.store(stop, 0, 1)
  for (const worker of workers) assert.ok((await worker.done()).served > 0)
  assert.strictEqual(semaphore.available, 3, `seed ${seed}, ${JSON.stringify(counts)}`)
  assert.strictEqual(waiters(sab), 0)
})

// ——— the rest ———

test('util.inspect tells the numbers of permits and of waiters', async () => {
  const { semaphore } = setUp(2)
  assert.strictEqual(util.inspect(semaphore), 'Semaphore { available: 2, waiters: 0 }')
  const result = semaphore.acquireAsync(3)
  assert.strictEqual(util.inspect(semaphore), 'Semaphore { available: 2, waiters: 1 }')
  semaphore.release()
  await result
  class Mine extends Semaphore {}
  assert.strictEqual(util.inspect(new Mine(new SharedArrayBuffer(4))), 'Mine { available: 0, waiters: 0 }')
})

test('ten thousand may wait, and are served in order', { timeout: 60000 }, async () => {
  const { sab, semaphore } = setUp()
  const COUNT = 10000
  let next = 0
  const all = Array.from({ length: COUNT }, (_, n) => semaphore.acquireAsync(1 + n % 3).then(() => assert.strictEqual(n, next++)))
  assert.strictEqual(waiters(sab), COUNT)
  let needed = 0
  for (let n = 0; n < COUNT; n++) needed += 1 + n % 3
  while (needed > 0) {
    const some = Math.min(needed, 997)
    semaphore.release(some)
    needed -= some
    await turns(1)
  }
  await Promise.all(all)
  assert.strictEqual(semaphore.available, 0)
})
