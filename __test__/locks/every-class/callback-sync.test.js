'use strict'

// executeLockedSync, executeSharedSync and useSync: they block, run a callback and give back what they held, however it
// ends. forms.test.js tests the behaviour that all forms share.

const assert = require('assert')
const { test } = require('../../harness')
const { api } = require('../../subject')
const { turns } = require('../../fixtures/family-toolbox')
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
const [ofLock, ofWriter, , ofPermits] = FORMS

/** Makes the thing of a form, and asks whether it is free. If it has permits, it has one. */
function setUp ({ Class }) {
  const thing = new api[Class](newLock().sab)
  if (Class === 'Semaphore') thing.release(1)
  const word = new Int32Array(thing.buffer)
  const free = Class === 'Semaphore' ? 1 : 0
  return { thing, word, isFree: () => Atomics.load(word, 0) === free }
}

/**
 * Runs `body({ thing, run, isFree, scope, data, outcome })` in a thread; `run(callback, options)` is the form,
 * `isFree()` whether what it takes is free, `outcome(call)` the error that a call throws, as text, with its code.
 */
function inThread (t, { Class, form, before }, thing, body, data) {
  return startWorker(t, { clone: thing, Class, form, before, data }, `scope => {
    const { clone, Class, form, before, data } = scope.data
    const thing = new scope.api[Class](clone)
    const word = new Int32Array(thing.buffer)
    const isFree = () => Atomics.load(word, 0) === (Class === 'Semaphore' ? 1 : 0)
    const run = (callback, options) => thing[form](...before, callback, options)
    const outcome = (call) => {
      try {
        return call()
      } catch (error) {
        return [error.name, error.code, error.message].filter(Boolean).join(': ')
      }
    }
    return (${body})({ thing, run, isFree, scope, data, outcome })
  }`)
}

/** The acts of threads with each form, and their outcomes. The thing is free after each. */
const PROGRAMS = {
  'the callback gets the token, the caller its result; nothing is held after it': [
    ({ run, isFree, scope: { api } }) => {
      const results = [1, undefined, null, 'text', { then: 'no function' }].map(value => {
        let seen
        const result = run((token, ...rest) => {
          seen = `${token instanceof api.UnlockToken} ${token.locked} ${token.ownerDied} ${rest.length} ${isFree()}`
          return value
        })
        return [seen, result, isFree()]
      })
      const same = {}
      return [...results, run(() => same, { timeout: 5 }) === same, run(() => run, {}) === run]
    },
    () => {
      const each = value => ['true true false 0 false', value, true]
      return [each(1), each(undefined), each(null), each('text'), each({ then: 'no function' }), true, true]
    }
  ],

  "an error of the callback is the caller's, and nothing is held when it arrives": [
    ({ run, isFree }) => {
      return [new Error('mine'), undefined, null, 'text'].map(thrown => {
        try {
          return run(() => {
            throw thrown
          })
        } catch (error) {
          return error === thrown && isFree()
        }
      })
    },
    () => [true, true, true, true]
  ],

  'a promise, or anything with a then, is a TypeError that comes after the release': [
    ({ run, isFree, outcome }) => {
      const then = () => {}
      const thenables = [
        async () => 5, () => new Promise(() => {}), () => ({ then }), () => Object.assign(() => {}, { then })
      ]
      const reading = {
        get then () {
          throw new RangeError(`read while free: ${isFree()}`)
        }
      }
      return [...thenables, () => reading].map(callback => [outcome(() => run(callback)), isFree()])
    },
    ({ form, twin }) => {
      const must = 'callback must not return a promise, which a blocked thread cannot await'
      const refused = [`TypeError: ${form}: ${must}: use ${twin}`, true]
      return [refused, refused, refused, refused, ['RangeError: read while free: true', true]]
    }
  ],

  'an async function is refused before it begins': [
    ({ run, isFree, outcome }) => {
      const begun = []
      const refused = outcome(() => run(async () => { begun.push(isFree()) }))
      return [refused, begun, isFree()]
    },
    ({ form, twin }) => {
      const must = 'callback must not return a promise, which a blocked thread cannot await'
      return [`TypeError: ${form}: ${must}: use ${twin}`, [], true]
    }
  ],

  'a wrong callback is refused before anything is taken': [
    ({ run, outcome }) => [undefined, null, {}, 5].map(callback => outcome(() => run(callback))),
    ({ form }) =>
      ['undefined', 'null', 'an object', 'the number 5'].map(
        what => `TypeError: ${form}: callback must be a function, not ${what}`
      )
  ],

  'the token gives back early, once; what comes then is not given back again': [
    ({ run, isFree }) => {
      const seen = []
      let next
      run(token => {
        seen.push(token.unlock(), isFree(), token.unlock(), token.locked)
        // Another hold of the same thing, which the end of the outer callback must not touch.
        run(inner => {
          next = inner
          seen.push(inner.locked, token.locked)
        })
        seen.push(next.locked)
      })
      return seen.concat(isFree())
    },
    () => [true, true, false, false, true, false, false, true]
  ]
}

for (const of of FORMS) {
  const { Class, form, before, twin } = of
  const name = `${Class}.${form}`

  for (const what of Object.keys(PROGRAMS)) {
    test(`${name}: ${what}`, async t => {
      const { thing, isFree } = setUp(of)
      const [program, expected] = PROGRAMS[what]
      assert.deepStrictEqual(await inThread(t, of, thing, program).done(), expected(of))
      assert.ok(isFree())
    })
  }

  test(`${name}: on main it is a TypeError that names ${twin}, also where it would not wait`, () => {
    const { thing, isFree } = setUp(of)
    const callback = () => assert.fail('it ran')
    const error = { name: 'TypeError', message: `${form} would block the main thread: use ${twin}` }
    for (const args of [[...before, callback], [...before, callback, { timeout: 0 }], []]) {
      assert.throws(() => thing[form](...args), error)
    }
    assert.ok(isFree())
  })

  for (const how of ['terminate', 'exit']) {
    test(`${name}: a thread that dies in the callback (${how}) gives back what it holds`, async t => {
      const { thing, isFree } = setUp(of)
      const thread = inThread(t, of, thing, ({ run, scope: { post }, data: how }) => run(() => {
        post('in')
        if (how === 'exit') process.exit(3)
        for (;;);
      }), how)
      await thread.next()
      const next = Class === 'Semaphore' ? thing.holdAsync() : thing.lockAsync()
      thread.terminate()
      await thread.exited
      const token = await next
      assert.strictEqual(token.ownerDied, form === 'executeLockedSync')
      assert.strictEqual(token.unlock(), true)
      assert.ok(isFree())
    })
  }

  test(`${name}: waits for a promise's holder, and times out with nothing taken`, async t => {
    const { thing, isFree } = setUp(of)
    const token = Class === 'Semaphore' ? thing.tryHold() : thing.tryLock()
    const thread = inThread(t, of, thing, ({ run, scope: { post }, outcome }) => {
      const late = outcome(() => run(() => 'in vain', { timeout: 5 }))
      post(late.split(': ').slice(0, 2).join())
      return run(() => 'served')
    })
    assert.strictEqual(await thread.next(), 'TimeoutError,ERR_TIMEOUT')
    await until(() => thing.waiters === 1)
    token.unlock()
    assert.strictEqual(await thread.done(), 'served')
    assert.ok(isFree())
  })
}

test('executeLockedSync within itself is ERR_DEADLOCK, and the outer one goes on', async t => {
  for (const of of [ofLock, ofWriter]) {
    const { thing, isFree } = setUp(of)
    const thread = inThread(t, of, thing, ({ thing, run, outcome }) => run(token => (
      [outcome(() => run(() => {})).split(': ')[1], token.locked, thing.locked])))
    assert.deepStrictEqual(await thread.done(), ['ERR_DEADLOCK', true, true], of.Class)
    assert.ok(isFree())
  }
})

test('useSync within itself takes further permits: another thread may release them', async t => {
  const { thing, isFree } = setUp(ofPermits)
  const thread = inThread(t, ofPermits, thing, ({ run }) => run(() => run(() => 'both')))
  await until(() => thing.waiters === 1)
  thing.release(1)
  assert.strictEqual(await thread.done(), 'both')
  assert.strictEqual(thing.available, 2)
  assert.ok(!isFree())
})

test('executeLockedSync of a RwLock: the callback may downgrade, and the reader\'s token ends with it', async t => {
  const { thing, isFree } = setUp(ofWriter)
  const thread = inThread(t, ofWriter, thing, ({ thing, run }) => {
    const reader = run(token => token.downgrade())
    return [thing.locked, thing.readers, reader.locked, reader.unlock(), thing.readers]
  })
  assert.deepStrictEqual(await thread.done(), [false, 0, false, false, 0])
  assert.ok(isFree())
})

test('executeLockedSync: a Condition waits with the token; a promise that it is not awaited for rejects', async t => {
  const { thing: lock, isFree } = setUp(ofLock)
  const condition = new api.Condition(newLock().sab)
  const program = async ({ run, isFree, scope: { api }, data }) => {
    const condition = new api.Condition(data)
    const waited = run(token => condition.wait(token))
    let forgotten
    run(token => { forgotten = condition.waitAsync(token) })
    return [waited, await forgotten.catch(error => error.code), isFree()]
  }
  const thread = inThread(t, ofLock, lock, program, condition)
  await until(() => condition.waiters === 1)
  await lock.executeLocked(() => { condition.notify() })
  assert.deepStrictEqual(await thread.done(), [true, 'ERR_NOT_LOCKED', true])
  assert.ok(isFree())
})

test('a token whose unlock was replaced is released nevertheless', async t => {
  const { thing, isFree } = setUp(ofLock)
  const thread = inThread(t, ofLock, thing, ({ run, isFree, scope: { api } }) => {
    const { prototype } = api.UnlockToken
    const { unlock } = prototype
    const fail = () => { throw new Error('the replacement was called') }
    const replaces = [
      token => { token.unlock = fail },
      token => { Object.freeze(token) },
      () => { prototype.unlock = fail }
    ]
    const outcomes = replaces.map(callback => {
      run(callback)
      return isFree()
    })
    prototype.unlock = unlock
    return outcomes
  })
  assert.deepStrictEqual(await thread.done(), [true, true, true])
  assert.ok(isFree())
})

test('a storm of writers and readers: no update is lost and none is seen half done', { timeout: 120000 }, async t => {
  const ROUNDS = size(20000, 4000)
  const { thing, isFree } = setUp(ofWriter)
  const pair = new Int32Array(new SharedArrayBuffer(8))
  const threads = [0, 1].map(() => startWorker(t, { thing, pair, rounds: ROUNDS }, ({ api, data }) => {
    const { pair, rounds } = data
    const thing = new api.RwLock(data.thing)
    let seen = 0
    for (let n = 0; n < rounds; n++) {
      thing.executeLockedSync(() => { pair[0]++; pair[1]++ })
      seen += thing.executeSharedSync(() => pair[0] === pair[1] ? 0 : 1)
    }
    return seen
  }))
  for (let n = 0; n < ROUNDS / 10; n++) await thing.executeLocked(() => { pair[0]++; pair[1]++ })
  for (const thread of threads) assert.strictEqual(await thread.done(), 0, 'half an update was seen')
  assert.deepStrictEqual(Array.from(pair), [2.1 * ROUNDS, 2.1 * ROUNDS])
  assert.ok(isFree())
  assert.strictEqual(thing.waiters, 0)
})

test('a storm of deaths in useSync and hold loses and doubles no permit', { timeout: 120000 }, async t => {
  const PERMITS = 3
  const { thing: semaphore } = setUp(ofPermits)
  semaphore.release(PERMITS - 1)
  const stop = new Int32Array(new SharedArrayBuffer(4))
  const steady = startWorker(t, { semaphore, stop, most: PERMITS }, ({ api, data: { stop, most, ...data }, post }) => {
    const semaphore = new api.Semaphore(data.semaphore)
    post('runs')
    let served = 0
    while (Atomics.load(stop, 0) === 0) {
      semaphore.useSync(1 + (served % most), token => {
        if (!token.locked || semaphore.available > most) throw new Error('more permits than there are')
        served++
      })
    }
    return served
  })
  await steady.next()
  const blocking = ({ api, post, data }) => {
    const semaphore = new api.Semaphore(data)
    post('runs')
    for (let round = 0; ; round++) {
      semaphore.useSync(1 + (round % 3), () => {})
      const token = semaphore.hold(1 + (round % 2))
      const more = semaphore.tryHold()
      if (more !== null) more.unlock()
      token.unlock()
    }
  }
  const awaiting = async ({ api, post, data }) => {
    const semaphore = new api.Semaphore(data)
    post('runs')
    for (let round = 0; ; round++) {
      const token = await semaphore.holdAsync(1 + (round % 3))
      if (round % 5 === 0) await null
      token.unlock()
    }
  }
  const end = now() + size(3000, 700)
  let deaths = 0
  while (now() < end || deaths < 4) {
    const victims = [blocking, awaiting].map(program => startWorker(t, semaphore, program))
    for (const victim of victims) await victim.next()
    await turns(deaths % 4)
    await Promise.all(victims.map(victim => victim.terminate()))
    deaths += victims.length
    // All of them, or it times out.
    const token = await semaphore.holdAsync(PERMITS, { timeout: 20000 })
    assert.strictEqual(semaphore.available, 0)
    assert.strictEqual(token.unlock(), true)
  }
  Atomics.store(stop, 0, 1)
  assert.ok((await steady.done()) > 0)
  assert.deepStrictEqual([semaphore.available, semaphore.waiters], [PERMITS, 0])
})
