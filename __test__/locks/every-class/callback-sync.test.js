'use strict'

// executeLockedSync, executeSharedSync and useSync: they block, run a callback and give back what they held, however it ends. forms.test.js
// tests the behaviour that all forms share.

const assert = require('assert')
const { test } = require('../../harness')
const { api } = require('../../subject')
const { newLock } = require('../../fixtures/lock-toolbox')
const { now, startWorker, until } = require('../../fixtures/queue-toolbox')
const size = require('../../fixtures/size')

/** The forms: the class, how many arguments come before the callback, the asynchronous form that the errors name. */
const FORMS = [
  { Class: 'AsyncLock', form: 'executeLockedSync', before: [], twin: 'executeLocked()' },
  { Class: 'RwLock', form: 'executeLockedSync', before: [], twin: 'executeLocked()' },
  { Class: 'RwLock', form: 'executeSharedSync', before: [], twin: 'executeShared()' },
  { Class: 'Semaphore', form: 'useSync', before: [1], twin: 'use()' }
]

/** The thing of a form, with one permit if it has permits, and whether it is free. */
function setUp (Class) {
  const thing = new api[Class](newLock().sab)
  if (Class === 'Semaphore') thing.release(1)
  const word = new Int32Array(thing.buffer)
  const free = Class === 'Semaphore' ? 1 : 0
  return { thing, word, isFree: () => Atomics.load(word, 0) === free }
}

/** Runs `body(thing, run, scope)` in a worker; `run(callback, options)` is the form, `isFree()` whether what it takes is free. */
function inWorker (t, { Class, form, before }, thing, body, data) {
  return startWorker(t, `scope => {
    const { clone, Class, form, before } = scope.data
    const thing = new scope.api[Class](clone)
    const word = new Int32Array(thing.buffer)
    const isFree = () => Atomics.load(word, 0) === (Class === 'Semaphore' ? 1 : 0)
    const run = (callback, options) => thing[form](...before, callback, options)
    return (${body})({ thing, run, isFree, scope, data: scope.data.data })
  }`, { clone: thing, Class, form, before, data })
}

for (const of of FORMS) {
  const { Class, form, before, twin } = of
  const name = `${Class}.${form}`

  test(`${name}: the callback gets the token, the caller its result; nothing is held after it`, async t => {
    const { thing, isFree } = setUp(Class)
    const results = await inWorker(t, of, thing, ({ run, isFree, scope: { api } }) => {
      const results = []
      for (const value of [1, undefined, null, 'text', { then: 'no function' }]) {
        results.push(run((token, ...rest) => {
          results.push([token instanceof api.UnlockToken, token.locked, token.ownerDied, rest.length, isFree()].join())
          return value
        }))
        results.push(isFree())
      }
      const same = {}
      results.push(run(() => same, { timeout: 5 }) === same, run(() => run, {}) === run)
      return results
    }).done()
    const each = (value) => ['true,true,false,0,false', value, true]
    assert.deepStrictEqual(results, [].concat(each(1), each(undefined), each(null), each('text'), each({ then: 'no function' }), [true, true]))
    assert.ok(isFree())
  })

  test(`${name}: an error of the callback is the caller's, and nothing is held when it arrives`, async t => {
    const { thing, isFree } = setUp(Class)
    assert.deepStrictEqual(await inWorker(t, of, thing, ({ run, isFree }) => {
      const outcomes = []
      for (const thrown of [new Error('mine'), undefined, null, 'text']) {
        try {
          run(() => { throw thrown })
          outcomes.push('returned')
        } catch (error) {
          outcomes.push(error === thrown && isFree())
        }
      }
      return outcomes
    }).done(), [true, true, true, true])
    assert.ok(isFree())
  })

  test(`${name}: a promise, or anything with a then, is a TypeError that comes after the release`, async t => {
    const { thing, isFree } = setUp(Class)
    const outcomes = await inWorker(t, of, thing, ({ run, isFree }) => {
      const outcomes = []
      const thenables = [async () => 5, () => new Promise(() => {}), () => ({ then () {} }), () => Object.assign(() => {}, { then () {} })]
      for (const callback of thenables) {
        try {
          run(callback)
          outcomes.push('returned')
        } catch (error) {
          outcomes.push(`${error.name} ${isFree()} ${error.message}`)
        }
      }
      try {
        run(() => ({ get then () { throw new RangeError(`read while free: ${isFree()}`) } }))
      } catch (error) {
        outcomes.push(error.message)
      }
      return outcomes
    }).done()
    const expected = `TypeError true ${form}: callback must not return a promise, which a blocked thread cannot await: use ${twin}`
    assert.deepStrictEqual(outcomes, [expected, expected, expected, expected, 'read while free: true'])
    assert.ok(isFree())
  })

  test(`${name}: a wrong callback is refused before anything is taken`, async t => {
    const { thing, isFree } = setUp(Class)
    assert.deepStrictEqual(await inWorker(t, of, thing, ({ run }) => [undefined, null, {}, 5].map(callback => {
      try {
        return run(callback)
      } catch (error) {
        return `${error.name}: ${error.message}`
      }
    })).done(), ['undefined', 'null', 'an object', 'the number 5'].map(what => `TypeError: ${form}: callback must be a function, not ${what}`))
    assert.ok(isFree())
  })

  test(`${name}: on main it is a TypeError that names ${twin}, also where it would not wait`, () => {
    const { thing, isFree } = setUp(Class)
    for (const args of [[...before, () => assert.fail('it ran')], [...before, () => assert.fail('it ran'), { timeout: 0 }], []]) {
      assert.throws(() => thing[form](...args), error => error instanceof TypeError && error.message === `${form} would block the main thread: use ${twin}`)
    }
    assert.ok(isFree())
  })

  test(`${name}: the token gives back early, once; what comes then is not given back again`, async t => {
    const { thing, isFree } = setUp(Class)
    assert.deepStrictEqual(await inWorker(t, of, thing, ({ run, isFree }) => {
      const seen = []
      let next
      run((token) => {
        seen.push(token.unlock(), isFree(), token.unlock(), token.locked)
        // Another hold of the same thing, which the end of the outer callback must not touch.
        run((inner) => { next = inner; seen.push(inner.locked, token.locked) })
        seen.push(next.locked)
      })
      return seen.concat(isFree())
    }).done(), [true, true, false, false, true, false, false, true])
    assert.ok(isFree())
  })

  for (const how of ['terminate', 'exit']) {
    test(`${name}: a thread that dies in the callback (${how}) gives back what it holds`, async t => {
      const { thing, isFree } = setUp(Class)
      const worker = inWorker(t, of, thing, ({ run, scope: { post }, data: how }) => run(() => {
        post('in')
        if (how === 'exit') process.exit(3)
        for (;;);
      }), how)
      worker.done().catch(() => {})
      await worker.next()
      const next = Class === 'AsyncLock' ? thing.lockAsync() : Class === 'RwLock' ? thing.lockAsync() : thing.holdAsync()
      worker.terminate()
      await worker.exited
      const token = await next
      assert.strictEqual(token.ownerDied, form === 'executeLockedSync')
      assert.strictEqual(token.unlock(), true)
      assert.ok(isFree())
    })
  }

  test(`${name}: waits for a promise's holder, and times out with nothing taken`, async t => {
    const { thing, isFree } = setUp(Class)
    const hold = () => Class === 'Semaphore' ? thing.tryHold() : thing.tryLock()
    const token = hold()
    const worker = inWorker(t, of, thing, ({ run, scope: { post } }) => {
      try {
        run(() => 'in vain', { timeout: 5 })
      } catch (error) {
        post('late')
        return [error.name, error.code, run(() => 'served')]
      }
    })
    await worker.next()
    await until(() => thing.waiters === 1)
    token.unlock()
    assert.deepStrictEqual(await worker.done(), ['TimeoutError', 'ERR_TIMEOUT', 'served'])
    assert.ok(isFree())
  })
}

test('executeLockedSync within itself is ERR_DEADLOCK, and the outer one goes on', async t => {
  for (const Class of ['AsyncLock', 'RwLock']) {
    const { thing, isFree } = setUp(Class)
    assert.deepStrictEqual(await inWorker(t, { Class, form: 'executeLockedSync', before: [] }, thing, ({ thing, run }) => run((token) => {
      try {
        run(() => {})
      } catch (error) {
        return [error.code, token.locked, thing.locked]
      }
    })).done(), ['ERR_DEADLOCK', true, true], Class)
    assert.ok(isFree())
  }
})

test('useSync within itself takes further permits: another thread may release them', async t => {
  const { thing, isFree } = setUp('Semaphore')
  const worker = inWorker(t, FORMS[3], thing, ({ run }) => run(() => run(() => 'both')))
  await until(() => thing.waiters === 1)
  thing.release(1)
  assert.strictEqual(await worker.done(), 'both')
  assert.strictEqual(thing.available, 2)
  assert.ok(!isFree())
})

test('executeLockedSync of a RwLock: the callback may downgrade, and the reader\'s token ends with it', async t => {
  const { thing, isFree } = setUp('RwLock')
  assert.deepStrictEqual(await inWorker(t, FORMS[1], thing, ({ thing, run }) => {
    const reader = run(token => token.downgrade())
    return [thing.locked, thing.readers, reader.locked, reader.unlock(), thing.readers]
  }).done(), [false, 0, false, false, 0])
  assert.ok(isFree())
})

test('executeLockedSync: a Condition waits with the token, and a promise that it was not awaited for rejects', async t => {
  const { thing: lock, isFree } = setUp('AsyncLock')
  const condition = new api.Condition(new SharedArrayBuffer(4))
  const worker = inWorker(t, FORMS[0], lock, async ({ run, isFree, scope: { api }, data }) => {
    const condition = new api.Condition(data)
    const waited = run(token => condition.wait(token))
    let forgotten
    run(token => { forgotten = condition.waitAsync(token) })
    return [waited, await forgotten.catch(error => error.code), isFree()]
  }, condition)
  await until(() => condition.waiters === 1)
  await lock.executeLocked(() => { condition.notify() })
  assert.deepStrictEqual(await worker.done(), [true, 'ERR_NOT_LOCKED', true])
  assert.ok(isFree())
})

test('a token whose unlock was replaced is released nevertheless', async t => {
  const { thing, isFree } = setUp('AsyncLock')
  assert.deepStrictEqual(await inWorker(t, FORMS[0], thing, ({ run, isFree, scope: { api } }) => {
    const { unlock } = api.UnlockToken.prototype
    const outcomes = []
    run(token => { token.unlock = () => { throw new Error('the replacement was called') } })
    outcomes.push(isFree())
    run(token => Object.freeze(token) && undefined)
    outcomes.push(isFree())
    api.UnlockToken.prototype.unlock = () => { throw new Error('the replacement was called') }
    run(() => {})
    outcomes.push(isFree())
    api.UnlockToken.prototype.unlock = unlock
    return outcomes
  }).done(), [true, true, true])
  assert.ok(isFree())
})

test('a storm: writers and readers, threads that block and main that awaits; no update is lost and none is seen half done', { timeout: 120000 }, async t => {
  const ROUNDS = size(20000, 4000)
  const { thing, isFree } = setUp('RwLock')
  const pair = new Int32Array(new SharedArrayBuffer(8))
  const workers = [0, 1].map(() => inWorker(t, FORMS[1], thing, ({ thing, data: { pair, rounds } }) => {
    let seen = 0
    for (let n = 0; n < rounds; n++) {
      thing.executeLockedSync(() => { pair[0]++; pair[1]++ })
      seen += thing.executeSharedSync(() => pair[0] === pair[1] ? 0 : 1)
    }
    return seen
  }, { pair, rounds: ROUNDS }))
  for (let n = 0; n < ROUNDS / 10; n++) await thing.executeLocked(() => { pair[0]++; pair[1]++ })
  for (const worker of workers) assert.strictEqual(await worker.done(), 0, 'half an update was seen')
  assert.deepStrictEqual(Array.from(pair), [2.1 * ROUNDS, 2.1 * ROUNDS])
  assert.ok(isFree())
  assert.strictEqual(thing.waiters, 0)
})

test('a storm of threads that are terminated in useSync and hold: no permit is lost, and none is there twice', { timeout: 120000 }, async t => {
  const PERMITS = 3
  const { thing: semaphore } = setUp('Semaphore')
  semaphore.release(PERMITS - 1)
  const inUse = new Int32Array(new SharedArrayBuffer(4))
  const steady = startWorker(t, ({ api, post, data: { semaphore: clone, stop, most } }) => {
    const semaphore = new api.Semaphore(clone)
    post('runs')
    let served = 0
    while (Atomics.load(stop, 0) === 0) {
      semaphore.useSync(1 + served % most, (token) => {
        if (!token.locked || semaphore.available > most) throw new Error('more permits than there are')
        served++
      })
    }
    return served
  }, { semaphore, stop: inUse, most: PERMITS })
  await steady.next()
  const end = now() + size(3000, 700)
  let deaths = 0
  while (now() < end || deaths < 4) {
    const victims = [0, 1].map(n => {
      const victim = startWorker(t, async ({ api, post, data: { semaphore: clone, n } }) => {
        const semaphore = new api.Semaphore(clone)
        post('runs')
        for (let round = 0; ; round++) {
          if (n === 0) {
            semaphore.useSync(1 + round % 3, () => {})
            const token = semaphore.hold(1 + round % 2)
            const more = semaphore.tryHold()
            if (more !== null) more.unlock()
            token.unlock()
          } else {
            const token = await semaphore.holdAsync(1 + round % 3)
            if (round % 5 === 0) await null
            token.unlock()
          }
        }
      }, { semaphore, n })
      victim.done().catch(() => {})
      return victim
    })
    for (const victim of victims) await victim.next()
    for (let turns = deaths % 4; turns > 0; turns--) await new Promise(resolve => setImmediate(resolve))
    await Promise.all(victims.map(victim => victim.terminate()))
    deaths += victims.length
    // All of them, or it times out.
    const token = await semaphore.holdAsync(PERMITS, { timeout: 20000 })
    assert.strictEqual(semaphore.available, 0)
    assert.strictEqual(token.unlock(), true)
  }
  Atomics.store(inUse, 0, 1)
  assert.ok(await steady.done() > 0)
  assert.deepStrictEqual([semaphore.available, semaphore.waiters], [PERMITS, 0])
})
