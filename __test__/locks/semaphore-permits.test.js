'use strict'

// Semaphore with `permits`: a limit, full from zero-filled memory, which nothing can raise. every-class/forms.test.js
// tests the behaviour that all classes share, locks/every-class/model.test.js what a plain model does.

const assert = require('assert')
const { MessageChannel } = require('worker_threads')
const { test } = require('../harness')
const { api } = require('../subject')
const { startMember, turns, untilWaiters, waiters, watch } = require('../fixtures/family-toolbox')
const { memory, rejection } = require('../fixtures/lock-toolbox')
const { sleep, startWorker, until } = require('../fixtures/queue-toolbox')

const { Semaphore, UnlockToken } = api
const MOST = 0x7fffffff
const HELD = { ownerDied: false, locked: true }

function setUp (permits) {
  const sab = memory(4)
  return { sab, limit: new Semaphore(sab, { permits }), word: new Int32Array(sab), permits }
}

const onLimit = (member, permits) => member.on('Semaphore', 0, { permits })

// ——— permits ———

test('zero-filled memory has all of its permits; the word counts those that are taken', async t => {
  const { sab, limit, word } = setUp(3)
  assert.deepStrictEqual([limit.available, limit.permits, word[0]], [3, 3, 0])
  const two = limit.tryHold(2)
  assert.ok(two instanceof UnlockToken)
  assert.deepStrictEqual([limit.available, word[0]], [1, 2])
  assert.strictEqual(limit.tryHold(2), null)
  const member = await startMember(t, sab)
  assert.deepStrictEqual(await onLimit(member, 3)('hold'), HELD)
  assert.deepStrictEqual([limit.available, word[0], limit.tryHold()], [0, 3, null])
  assert.deepStrictEqual([two.unlock(), two.locked, two.unlock()], [true, false, false])
  assert.strictEqual(await member.do('unlock', 'token'), true)
  assert.deepStrictEqual([limit.available, word[0]], [3, 0])
})

test('permits may be as many as the word can count, and as few as one', () => {
  const { limit, word } = setUp(MOST)
  const [all, one] = [limit.tryHold(MOST - 1), limit.tryHold()]
  assert.deepStrictEqual([word[0], limit.available, limit.tryHold()], [MOST, 0, null])
  all.unlock()
  one.unlock()
  assert.strictEqual(word[0], 0)
  const { limit: single } = setUp(1)
  const token = single.tryHold()
  assert.strictEqual(single.tryHold(), null)
  token.unlock()
  assert.strictEqual(single.available, 1)
})

test('nothing adds permits: what acquires or releases is a TypeError that names what holds', async t => {
  const { sab, limit, word } = setUp(3)
  const token = limit.tryHold(2)
  const member = await startMember(t, sab)
  const begin = name => `a Semaphore with \`permits\` has no ${name}(): `
  const calls = {
    acquire: [() => limit.acquire(), 'use hold() or useSync()'],
    acquireAsync: [() => limit.acquireAsync(), 'use holdAsync() or use()'],
    tryAcquire: [() => limit.tryAcquire(), 'use tryHold()'],
    release: [() => limit.release(), 'unlock() the token of hold(), or end the callback of use()']
  }
  for (const name of Object.keys(calls)) {
    const [call, instead] = calls[name]
    for (const error of [await rejection((async () => call())()), await rejection(onLimit(member, 3)(name))]) {
      assert.deepStrictEqual([error.name, error.message], ['TypeError', begin(name) + instead])
    }
    assert.deepStrictEqual([word[0], waiters(sab)], [2, 0])
  }
  assert.strictEqual(token.unlock(), true)
  assert.strictEqual(limit.available, 3)
})

// ——— the constructor, and clones ———

test('a clone carries the permits, and a different number beside it is an error', async () => {
  const { limit } = setUp(3)
  const { port1, port2 } = new MessageChannel()
  const received = new Promise(resolve => port2.once('message', resolve))
  port1.postMessage([limit, new Semaphore(memory(4))])
  const [clone, unlimited] = await received
  port1.close()
  assert.deepStrictEqual(Object.keys(clone).sort(), ['buffer', 'byteOffset', 'kind', 'permits'])
  assert.deepStrictEqual(Object.keys(unlimited).sort(), ['buffer', 'byteOffset', 'kind'])
  const token = limit.tryHold(2)
  for (const made of [new Semaphore(clone), new Semaphore(clone, { permits: 3 }), new Semaphore(limit)]) {
    assert.deepStrictEqual([made.permits, made.available, made.tryHold(2)], [3, 1, null])
  }
  token.unlock()
  for (const [given, has] of [[clone, 'the number 3'], [unlimited, 'undefined']]) {
    const message = `Semaphore: permits is the number 4, but the clone has ${has}: leave the option out`
    assert.throws(() => new Semaphore(given, { permits: 4 }), { name: 'TypeError', message })
  }
  assert.throws(() => new Semaphore(Object.assign({}, clone, { permits: 0 })), RangeError)
})

test('what a program writes into the property changes no limit', () => {
  const { limit } = setUp(1)
  limit.permits = 5
  const token = limit.tryHold()
  assert.deepStrictEqual([limit.available, limit.tryHold()], [0, null])
  token.unlock()
})

test('a snapshot tells who holds and who awaits permits of a limit, as of other permits', async t => {
  const { sab, limit } = setUp(3)
  const member = await startMember(t, sab)
  const token = limit.tryHold(2)
  const promise = limit.holdAsync(3)
  const blocked = onLimit(member, 3)('hold', 2)
  const seen = () => {
    const { held, waiting, cycles } = api.snapshot()
    assert.deepStrictEqual(cycles, [])
    const shown = ({ kind, mode, amount, threadId, blocked }) => [kind, mode, amount, threadId, blocked]
    return [held, waiting].map(entries => entries.filter(({ id }) => id === limit.id).map(shown))
  }
  await until(() => seen()[1].length === 2 && limit.waiters === 2)
  const entry = (amount, threadId, blocked) => ['Semaphore', 'permits', amount, threadId, blocked]
  assert.deepStrictEqual(seen(), [[entry(2, 0, false)], [entry(3, 0, false), entry(2, member.threadId, true)]])
  token.unlock()
  ;(await promise).unlock()
  await blocked
})

// ——— a thread that waits for itself ———

test('a thread that blocks for more than the others can give back gets an error', async t => {
  const { sab, word } = setUp(3)
  const [member, other] = await Promise.all([startMember(t, sab), startMember(t, sab)])
  await onLimit(member, 3)('hold as one')
  await onLimit(member, 3)('hold as two')
  for (const options of [undefined, { timeout: 1e6 }]) {
    const error = await rejection(onLimit(member, 3)('hold', 2, options))
    assert.strictEqual(error.code, 'ERR_DEADLOCK')
    const what = 'permits of a Semaphore, which this thread itself already holds'
    assert.strictEqual(error.message, `hold: would wait for ${what}`)
  }
  assert.deepStrictEqual([word[0], waiters(sab)], [2, 0])
  assert.strictEqual((await rejection(onLimit(member, 3)('hold', 2, { timeout: 0 }))).name, 'TimeoutError')
  await onLimit(other, 3)('hold as theirs')
  const third = onLimit(member, 3)('hold as three')
  await untilWaiters(sab, 0, 1)
  await other.do('unlock', 'theirs')
  assert.deepStrictEqual(await third, HELD)
})

test('of two threads that wait for each other through a limit, one gets an error, and the other goes on', async t => {
  const sab = memory(8)
  const limit = new Semaphore(sab, { permits: 3 })
  const [first, second] = await Promise.all([startMember(t, sab), startMember(t, sab)])
  const isOver = async (own, other) => {
    const outcomes = await Promise.race([own, other].map((promise, n) => promise.catch(error => ({ n, error }))))
    const { n, error: { code, message } } = outcomes
    assert.strictEqual(code, 'ERR_DEADLOCK')
    assert.ok(/^(hold|lock): none of these threads could go on:\n[^]*permits of a Semaphore/.test(message), message)
    return n
  }
  const onLock = member => member.on('AsyncLock', 4)

  // A lock, and so many permits, held one by one, that the other's do not fit beside them.
  await onLimit(first, 3)('hold as one')
  await onLimit(first, 3)('hold as two')
  await onLock(second)('lock as lock')
  const waits = [onLock(first)('lock as lock'), onLimit(second, 3)('hold as both', 2)]
  const loser = await isOver(...waits)
  for (const name of loser === 0 ? ['one', 'two'] : ['lock']) await [first, second][loser].do('unlock', name)
  assert.deepStrictEqual(await waits[1 - loser], HELD)
  const winner = [second, first][loser]
  for (const name of loser === 0 ? ['both', 'lock'] : ['lock', 'one', 'two']) await winner.do('unlock', name)
  assert.strictEqual(limit.available, 3)

  // Each wants more of what both have.
  await onLimit(first, 3)('hold as one')
  await onLimit(second, 3)('hold as one')
  const more = [first, second].map(member => onLimit(member, 3)('hold as more', 2))
  const next = await isOver(...more)
  await [first, second][next].do('unlock', 'one')
  assert.deepStrictEqual(await more[1 - next], HELD)
})

// ——— a program's writes into the word; views with different limits ———

for (const side of ['JavaScript', 'native']) {
  test(`${side}: whatever is in the word, no more than the limit is taken, and it stops nobody for good`, async () => {
    for (const value of [-0x80000000, -5, -1, 0, 1, 2, 3, MOST - 1, MOST]) {
      for (const [amount, permits] of [[1, 1], [1, 3], [3, 3], [1, MOST], [MOST, MOST]]) {
        const { limit, word } = setUp(permits)
        Atomics.store(word, 0, value)
        // A waiter in the line of the word, so that native code takes and gives back.
        const { value: plain } = side === 'native' ? api.waitAsync(word, 0, value) : {}
        const before = Math.max(value, 0)
        assert.strictEqual(limit.available, permits - before)
        const token = limit.tryHold(amount)
        assert.strictEqual(token !== null, before + amount <= permits, `${amount} of ${permits}, beside ${value}`)
        assert.strictEqual(word[0], token === null ? value : before + amount)
        if (token !== null) token.unlock()
        if (token !== null) assert.strictEqual(word[0], before)
        api.notify(word, 0)
        await plain
      }
    }
  })
}

test('if a program frees the word while permits are held, what comes back later raises no limit', () => {
  const { limit, word } = setUp(3)
  const two = limit.tryHold(2)
  Atomics.store(word, 0, 0)
  two.unlock()
  assert.strictEqual(limit.available, 3)
  assert.strictEqual(limit.tryHold(3).unlock(), true)
  assert.deepStrictEqual([limit.available, word[0]], [3, 0])
})

test('views with different limits: one word, one line, and each is judged by its own limit', async () => {
  const { sab, limit: low } = setUp(2)
  const high = new Semaphore(sab, { permits: 4 })
  const three = high.tryHold(3)
  assert.deepStrictEqual([low.available, high.available, low.tryHold()], [-1, 1, null])
  const lows = watch(low.holdAsync())
  const highs = watch(high.holdAsync())
  await turns()
  assert.deepStrictEqual([lows.state, highs.state, high.tryHold()], ['pending', 'pending', null], 'one line')
  three.unlock()
  await until(() => highs.state === 'fulfilled')
  assert.deepStrictEqual([lows.state, low.available, high.available], ['fulfilled', 0, 2])
  for (const { value } of [lows, highs]) value.unlock()
  assert.strictEqual(low.available, 2)
})

// ——— under load ———

test('at most as many callbacks run at a time as there are permits', { timeout: 60000 }, async t => {
  const PERMITS = 3
  const { sab, limit } = setUp(PERMITS)
  const running = new Int32Array(new SharedArrayBuffer(8))
  const work = async ({ api, sleep, data: { sab, running, count, blocks, permits } }) => {
    const limit = new api.Semaphore(sab, { permits })
    const enter = n => {
      const now = Atomics.add(running, 0, n) + n
      for (let most; (most = Atomics.load(running, 1)) < now;) Atomics.compareExchange(running, 1, most, now)
    }
    for (let n = 0; blocks && n < 2000; n++) {
      limit.useSync(1 + n % permits, () => {
        enter(1 + n % permits)
        Atomics.sub(running, 0, 1 + n % permits)
      })
    }
    await Promise.all(Array.from({ length: count }, (_, n) => limit.use(1 + n % permits, async () => {
      enter(1 + n % permits)
      await sleep(1)
      Atomics.sub(running, 0, 1 + n % permits)
    })))
  }
  const data = { sab, running, count: 40, permits: PERMITS }
  const workers = [true, false].map(blocks => startWorker(t, Object.assign({ blocks }, data), work))
  await work({ api, sleep, data })
  for (const worker of workers) await worker.done()
  assert.deepStrictEqual(Array.from(running), [0, PERMITS])
  assert.strictEqual(limit.available, PERMITS)
})
