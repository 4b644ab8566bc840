'use strict'

// Holds of every kind: their tokens, the callbacks that run with them, and the order in which they are had.

const assert = require('assert')
const { test } = require('../harness')
const { api } = require('../subject')
const { HOLDS, newHold } = require('../fixtures/holds')
const { startMember, turns, untilWaiters, watch } = require('../fixtures/family-toolbox')
const { memory, rejection } = require('../fixtures/lock-toolbox')
const { sleep, startWorker, until } = require('../fixtures/queue-toolbox')

const { UnlockToken } = api
const DISPOSES = typeof Symbol.dispose === 'symbol'

for (const kind of HOLDS) {
  const { label, name, options, args, tries, runs } = kind

  // ——— tokens ———

  test(`${label}: a token gives back once, and does nothing to the next holder`, () => {
    const { take, isFree } = newHold(kind)
    const token = take()
    assert.ok(token instanceof UnlockToken)
    assert.strictEqual(typeof token.downgrade, label === 'RwLock, exclusive' ? 'function' : 'undefined')
    assert.deepStrictEqual([token.locked, token.ownerDied, isFree()], [true, false, false])
    assert.deepStrictEqual([token.unlock(), token.locked, token.unlock(), isFree()], [true, false, false, true])
    const next = take()
    assert.deepStrictEqual([token.unlock(), token.locked, next.locked, isFree()], [false, false, true, false])
    assert.deepStrictEqual([next.unlock(), isFree()], [true, true])
  })

  test(`${label}: a method without its token says how to call it`, () => {
    const { take, isFree } = newHold(kind)
    const token = take()
    const { abandon, unlock } = token
    const message = /^this method must be called on a token: \(\) => token\.unlock\(\)$/
    for (const method of [abandon, unlock]) assert.throws(() => method(), { name: 'TypeError', message })
    assert.deepStrictEqual([token.unlock(), isFree()], [true, true])
  })

  test(`${label}: the end of \`using\` gives back, once`, { skip: !DISPOSES && 'no Symbol.dispose here' }, () => {
    const { take, isFree } = newHold(kind)
    const token = take()
    assert.deepStrictEqual([token[Symbol.dispose](), token.locked, isFree()], [undefined, false, true])
    const next = take()
    token[Symbol.dispose]()
    assert.strictEqual(next.unlock(), true)
    assert.deepStrictEqual(Object.keys(UnlockToken.prototype), [])
  })

  test(`${label}: two instances on one word are one thing, and neighbours are not`, async () => {
    const sab = memory(8)
    const [one, twin, other] = [0, 0, 4].map(byteOffset => new api[name](sab, Object.assign({ byteOffset }, options)))
    if (name === 'Semaphore' && options.permits === undefined) one.release(6)
    const shown = ({ locked, readers, available }) => [locked, readers, available]
    const free = shown(other)
    const token = one[tries](...args)
    assert.deepStrictEqual(shown(twin), shown(one))
    assert.deepStrictEqual(shown(other), free)
    const claim = twin[kind.all.awaits](...kind.all.args)
    assert.deepStrictEqual([one.waiters, twin.waiters, other.waiters], [1, 1, 0])
    token.unlock()
    const next = await claim
    assert.deepStrictEqual([one[tries](...args), one.waiters], [null, 0])
    next.unlock()
  })

  // ——— callbacks ———

  test(`${label}: ${runs} runs its callback with a token, at once if it can, and gives its result`, async () => {
    const { run, isFree } = newHold(kind)
    let seen
    const promise = run((...given) => {
      seen = given.concat(given[0] instanceof UnlockToken, given[0].locked)
      return 7
    })
    assert.deepStrictEqual(seen.slice(1), [true, true])
    assert.ok(promise instanceof Promise)
    assert.strictEqual(await promise, 7)
    assert.deepStrictEqual([seen[0].locked, isFree()], [false, true])
    assert.strictEqual(await run(async () => { await turns(1); return isFree() }), false)
    assert.strictEqual(await run(() => ({ then: resolve => setImmediate(resolve, 9) })), 9)
    assert.ok(isFree())
  })

  test(`${label}: ${runs} gives back after an error and after a rejection`, async () => {
    const { run, isFree } = newHold(kind)
    for (const error of [new Error('mine'), undefined]) {
      const fails = [() => { throw error }, async () => { await turns(1); throw error }, () => Promise.reject(error)]
      for (const callback of fails) {
        assert.strictEqual(await rejection(run(callback)), error)
        assert.ok(isFree())
      }
    }
    assert.strictEqual(await run(() => 'goes on'), 'goes on')
  })

  test(`${label}: the callback of ${runs} may give back early; what is taken meanwhile stays`, async () => {
    const { run, take, isFree } = newHold(kind)
    let next
    await run(async token => {
      assert.deepStrictEqual([token.unlock(), isFree(), token.unlock(), token.locked], [true, true, false, false])
      next = take()
      await turns(1)
    })
    assert.strictEqual(next.locked, true)
    assert.deepStrictEqual([next.unlock(), isFree()], [true, true])
  })

  test(`${label}: the callback of ${runs} must be a function`, async () => {
    const { run, isFree } = newHold(kind)
    const wrong = [
      [undefined, 'undefined'], [null, 'null'], [5, 'the number 5'], [{}, 'an object'], ['', 'the string ""']
    ]
    for (const [callback, what] of wrong) {
      const { name, message } = await rejection(run(callback))
      assert.deepStrictEqual([name, message], ['TypeError', `${runs}: callback must be a function, not ${what}`])
    }
    assert.ok(isFree())
  })
}

// ——— the order ———

/** Whose line is strict: whoever comes first is served first. */
const STRICT = HOLDS.filter(({ name }) => name !== 'AsyncLock')

for (const kind of STRICT.filter(({ label }) => label !== 'RwLock, shared')) {
  test(`${kind.label}: blocked threads and promises are served in the order they came`, async t => {
    const { sab, on, waitForAll, isFree } = newHold(kind)
    const { blocks, awaits, args } = kind.all
    const members = await Promise.all([0, 1].map(() => startMember(t, sab)))
    const held = await waitForAll()
    const order = []
    const claims = [
      () => on(members[0])(blocks, ...args).then(() => () => members[0].do('unlock', 'token')),
      () => waitForAll().then(token => () => token.unlock()),
      () => on(members[1])(awaits, ...args).then(() => () => members[1].do('unlock', 'token')),
      () => waitForAll().then(token => () => token.unlock())
    ]
    const ends = []
    for (const [n, claim] of claims.entries()) {
      ends.push(claim().then(end => { order.push(n); return end }))
      await untilWaiters(sab, 0, n + 1)
    }
    held.unlock()
    for (const [n, end] of ends.entries()) {
      const giveBack = await end
      await turns()
      assert.deepStrictEqual(order, claims.map((_, n) => n).slice(0, n + 1))
      await giveBack()
    }
    assert.ok(isFree())
  })
}

for (const kind of STRICT.filter(({ most }) => most > 1)) {
  const { label, tries, blocks, args, all } = kind

  test(`${label}: who wants all is not overtaken, though there is room for others`, async t => {
    const { sab, on, run, take, wait, isFree } = newHold(kind)
    const [first, second] = await Promise.all([startMember(t, sab), startMember(t, sab)])
    const held = [take(), take(), take()]
    const large = watch(on(first)(`${all.blocks} as all`, ...all.args))
    await untilWaiters(sab, 0, 1)
    assert.strictEqual(await on(second)(tries, ...args), null)
    assert.strictEqual((await rejection(on(second)(blocks, ...args, { timeout: 2 }))).name, 'TimeoutError')
    const small = [watch(on(second)(blocks, ...args)), watch(wait())]
    await untilWaiters(sab, 0, 3)
    small.push(watch(run(() => {})))
    for (const token of held) {
      assert.strictEqual(take(), null)
      for (const timeout of [0, 2]) assert.strictEqual((await rejection(wait({ timeout }))).name, 'TimeoutError')
      assert.strictEqual(large.state, 'pending')
      token.unlock()
    }
    await until(() => large.state === 'fulfilled')
    await turns()
    assert.ok(small.every(({ state }) => state === 'pending'))
    await first.do('unlock', 'all')
    await until(() => small.every(({ state }) => state === 'fulfilled'))
    await second.do('unlock', 'token')
    small[1].value.unlock()
    assert.ok(isFree())
  })
}

for (const kind of STRICT) {
  test(`${kind.label}: others that follow each other without a gap starve nobody`, { timeout: 60000 }, async t => {
    const { sab, thing, waitForAll, isFree } = newHold(kind)
    const stop = new Int32Array(new SharedArrayBuffer(4))
    const late = { timeout: 20000 }
    const follow = ({ api, post, data: { sab, stop, kind } }) => {
      const { name, options, most, tries, blocks, args } = kind
      const thing = new api[name](sab, options)
      let token = thing[blocks](...args)
      post('runs')
      while (Atomics.load(stop, 0) === 0) {
        // Where holds fit beside each other, it takes its next one, if it gets it, before it gives back the last.
        const next = most > 1 ? thing[tries](...args) : null
        token.unlock()
        token = next || thing[blocks](...args)
      }
      token.unlock()
    }
    const workers = [0, 1].map(() => startWorker(t, { sab, stop, kind }, follow))
    for (const worker of workers) await worker.next()
    for (let n = 0; n < 20; n++) {
      const token = await (kind.isExclusive ? thing.lockSharedAsync(late) : waitForAll(late))
      if (n % 4 === 0) await sleep(1)
      token.unlock()
    }
    Atomics.store(stop, 0, 1)
    for (const worker of workers) await worker.done()
    assert.ok(isFree())
  })
}
