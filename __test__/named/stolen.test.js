'use strict'

// Locks by name that are abandoned or stolen: who learns of it, when, and by what.

const assert = require('assert')
const { rejection } = require('../fixtures/lock-toolbox')
const { holding: hold, startHolder, testLocks } = require('../fixtures/named-locks')
const { startWorker, until, words } = require('../fixtures/queue-toolbox')
const { api } = require('../subject')

const { Lock, locks, snapshot } = api
const HAS_SIGNALS = typeof AbortController === 'function'

const fail = () => { throw new Error('on purpose') }
const toldOf = (name, mode = 'exclusive') => locks.request(name, { mode }, ({ ownerDied }) => ownerDied)
const steal = (name, callback = () => {}) => locks.request(name, { steal: true }, callback)

/** Runs the body in a worker, as `startWorker` does. */
const inWorker = (t, body, data) => startWorker(t, data, body).done()

// ——— abandon ———

testLocks('abandon(): when the callback ends, the next exclusive holder sees it, and readers before it', async () => {
  for (const end of [() => 'done', async () => 'done']) {
    assert.strictEqual(await locks.request('x', lock => {
      assert.deepStrictEqual([lock.abandon(), lock.abandon()], [true, true])
      assert.strictEqual(lock.ownerDied, false)
      return end()
    }), 'done')
    assert.deepStrictEqual([await toldOf('x', 'shared'), await toldOf('x'), await toldOf('x')], [true, true, false])
  }
})

testLocks('abandon() before an error: that error, and the next holder sees the death', async () => {
  for (const end of [fail, async () => fail()]) {
    const promise = locks.request('x', lock => {
      lock.abandon()
      return end()
    })
    assert.strictEqual((await rejection(promise)).message, 'on purpose')
    assert.deepStrictEqual([await toldOf('x'), await toldOf('x')], [true, false])
  }
})

testLocks('abandon() releases nothing before the callback ends; who waits in line is told', async () => {
  const held = await hold('x')
  assert.strictEqual(held.lock.abandon(), true)
  const next = toldOf('x')
  assert.strictEqual(await locks.request('x', { ifAvailable: true }, lock => lock), null)
  held.release()
  assert.strictEqual(await next, true)
})

testLocks('abandon() of a lock that is not held any more is false, and tells nobody', async () => {
  let late
  await locks.request('x', lock => { late = lock })
  assert.strictEqual(late.abandon(), false)
  const robbed = await hold('x')
  const thief = steal('x', () => robbed.lock.abandon())
  assert.strictEqual((await rejection(robbed.promise)).name, 'AbortError')
  assert.strictEqual(await thief, false)
  assert.strictEqual(await toldOf('x'), false)
})

testLocks('abandon() before a steal: the thief sees it, and those who steal from it; its repair runs', async () => {
  const told = ({ tookOver, ownerDied }) => [tookOver, ownerDied]
  const robbed = await hold('x')
  assert.strictEqual(robbed.lock.abandon(), true)
  const first = await hold('x', { steal: true })
  assert.deepStrictEqual(told(first.lock), [true, true])
  assert.strictEqual(robbed.lock.abandon(), false)
  assert.deepStrictEqual(await steal('x', told), [true, true])
  for (const { promise } of [robbed, first]) assert.strictEqual((await rejection(promise)).name, 'AbortError')
  assert.strictEqual(await toldOf('x'), false)

  const again = await hold('x')
  again.lock.abandon()
  const repairs = []
  const repair = lock => { repairs.push(told(lock)) }
  assert.deepStrictEqual(await locks.request('x', { steal: true, repair }, told), [true, false])
  assert.deepStrictEqual(repairs, [[true, true]])
  assert.strictEqual((await rejection(again.promise)).name, 'AbortError')
  assert.strictEqual(await toldOf('x'), false)
})

testLocks('abandon() in another thread, and then a steal: the thief sees it, though that thread goes on', async t => {
  const holder = startWorker(t, ({ api: { locks }, post }) => locks.request('x', async lock => {
    post(lock.abandon())
    await new Promise(resolve => {
      const timer = setInterval(() => {
        if (!lock.stolen) return
        clearInterval(timer)
        resolve()
      }, 1)
    })
    post(lock.abandon())
  }).catch(({ name }) => name))
  assert.strictEqual(await holder.next(), true)
  assert.deepStrictEqual(await steal('x', ({ tookOver, ownerDied }) => [tookOver, ownerDied]), [true, true])
  assert.strictEqual(await holder.next(), false)
  assert.strictEqual(await holder.done(), 'AbortError')
  assert.strictEqual(await toldOf('x'), false)
})

testLocks('abandon() of a share is a TypeError, and tells nobody', async () => {
  let late
  await locks.request('x', { mode: 'shared' }, lock => {
    late = lock
    assert.throws(() => lock.abandon(), { name: 'TypeError', message: /exclusively/ })
  })
  assert.strictEqual(late.abandon(), false)
  assert.strictEqual(await toldOf('x'), false)
})

testLocks('requestSync: abandon() tells the next holder, also before an error, and before a promise', async t => {
  const tell = await inWorker(t, ({ api: { locks } }) => {
    const told = () => locks.requestSync('x', ({ ownerDied }) => ownerDied)
    const tell = []
    for (const end of [() => {}, () => { throw new Error('on purpose') }, async () => {}]) {
      try {
        locks.requestSync('x', lock => { lock.abandon(); return end() })
      } catch (_) {}
      tell.push(told(), told())
    }
    locks.requestSync('x', { mode: 'shared' }, lock => {
      try {
        lock.abandon()
      } catch (error) {
        tell.push(error.name)
      }
    })
    return tell
  })
  assert.deepStrictEqual(tell, [true, false, true, false, true, false, 'TypeError'])
})

// ——— tookOver ———

testLocks('tookOver: stolen from a living reader or writer; not from nobody, nor after a death', async t => {
  const tookOver = (name, options) => locks.request(name, options, lock => lock.tookOver)
  assert.strictEqual(await tookOver('x', {}), false)
  assert.strictEqual(await tookOver('x', { mode: 'shared' }), false)
  assert.strictEqual(await tookOver('x', { steal: true }), false)
  for (const mode of ['shared', 'exclusive']) {
    const held = await hold('x', { mode })
    const pending = tookOver('x', {})
    assert.strictEqual(await tookOver('x', { steal: true }), true)
    assert.strictEqual(await pending, false)
    assert.strictEqual((await rejection(held.promise)).name, 'AbortError')
  }
  const holder = await startHolder(t)
  await holder.ask()
  await holder.thread.terminate()
  assert.deepStrictEqual(await steal('x', ({ tookOver, ownerDied }) => [tookOver, ownerDied]), [false, true])
})

testLocks('tookOver: from another thread, too; and one that took over and fails tells nobody', async t => {
  const holder = await startHolder(t)
  await holder.ask()
  const failing = steal('x', lock => lock.tookOver === true ? fail() : 'took nothing over')
  assert.strictEqual((await rejection(failing)).message, 'on purpose')
  assert.strictEqual((await holder.next()).error, 'AbortError')
  assert.strictEqual(await toldOf('x'), false)
})

// ——— stolen and signal ———

testLocks('stolen: false while it is held and after its release; true from the moment when it was stolen', async () => {
  const held = await hold('x')
  assert.strictEqual(held.lock.stolen, false)
  const thief = hold('x', { steal: true })
  assert.strictEqual(held.lock.stolen, true)
  const { lock, release, promise } = await thief
  assert.deepStrictEqual([held.lock.stolen, lock.stolen], [true, false])
  assert.deepStrictEqual(snapshot().held.map(({ kind, name }) => [kind, name]), [['named', 'x']])
  assert.strictEqual((await rejection(held.promise)).name, 'AbortError')
  held.release()
  release()
  await promise
  assert.deepStrictEqual([held.lock.stolen, lock.stolen], [true, false])
})

testLocks('stolen while the callback begins, which asks and then awaits for ever: the request rejects', async () => {
  let lost
  const promise = locks.request('x', lock => {
    lost = steal('x')
    assert.strictEqual(lock.stolen, true)
    return new Promise(() => {})
  })
  assert.strictEqual((await rejection(promise)).name, 'AbortError')
  await lost
})

testLocks('stolen: of a callback that has ended before its thread heard of it', async () => {
  let late
  let lost
  const promise = locks.request('x', lock => {
    late = lock
    lost = steal('x')
  })
  assert.strictEqual((await rejection(promise)).name, 'AbortError')
  assert.strictEqual(late.stolen, true)
  if (HAS_SIGNALS) assert.strictEqual(late.signal.aborted, true)
  await lost
})

testLocks('a thread that never returns to its event loop learns of a steal by stolen, and by the signal', async t => {
  const flag = words(1)
  for (const asked of HAS_SIGNALS ? ['stolen', 'signal'] : ['stolen']) {
    for (const form of ['request', 'requestSync']) {
      Atomics.store(flag, 0, 0)
      const thread = startWorker(t, { flag, asked, form }, async ({ api: { locks }, Atomics, data }) => {
        const { flag, asked, form } = data
        try {
          await locks[form]('x', lock => {
            Atomics.store(flag, 0, 1)
            while (asked === 'stolen' ? !lock.stolen : !lock.signal.aborted);
            Atomics.store(flag, 0, 2)
          })
        } catch (error) {
          return error.name
        }
      })
      await until(() => Atomics.load(flag, 0) === 1, 'the callback runs')
      await steal('x')
      await until(() => Atomics.load(flag, 0) === 2, 'it has heard of the steal')
      assert.strictEqual(await thread.done(), 'AbortError')
    }
  }
})

if (HAS_SIGNALS) {
  testLocks('signal: an AbortSignal, the same each time, that aborts when the lock is stolen, once', async () => {
    const held = await hold('x')
    const { signal } = held.lock
    assert.ok(signal instanceof AbortSignal)
    assert.strictEqual(held.lock.signal, signal)
    let aborts = 0
    const aborted = new Promise(resolve => signal.addEventListener('abort', () => { aborts++; resolve() }))
    assert.strictEqual(signal.aborted, false)
    await steal('x')
    await aborted
    assert.strictEqual(signal.aborted, true)
    if ('reason' in signal) assert.strictEqual(signal.reason.name, 'AbortError')
    assert.strictEqual((await rejection(held.promise)).name, 'AbortError')
    held.release()
    await new Promise(resolve => setImmediate(resolve))
    assert.strictEqual(aborts, 1)
  })

  testLocks('signal: first asked for after the steal, it is aborted; after an orderly end, it is not', async () => {
    const held = await hold('x')
    const thief = await hold('x', { steal: true })
    await rejection(held.promise)
    assert.strictEqual(held.lock.signal.aborted, true)
    thief.release()
    await thief.promise
    await steal('x')
    assert.strictEqual(thief.lock.signal.aborted, false)
  })

  testLocks('signal: a listener that requests the name disturbs nobody', async () => {
    const held = await hold('x')
    let again
    held.lock.signal.addEventListener('abort', () => { again = toldOf('x') })
    const other = await hold('y')
    await Promise.all([steal('x'), steal('y')])
    assert.strictEqual((await rejection(held.promise)).name, 'AbortError')
    assert.strictEqual((await rejection(other.promise)).name, 'AbortError')
    assert.strictEqual(await again, false)
  })
} else {
  testLocks('signal: undefined where there is no AbortController', () =>
    locks.request('x', lock => assert.strictEqual(lock.signal, undefined)))
}

testLocks('called on another object, the members of Lock throw a TypeError', () => locks.request('x', lock => {
  const { abandon } = Lock.prototype
  const illegal = { name: 'TypeError', message: /illegal invocation/ }
  for (const other of [undefined, null, {}, Lock.prototype]) {
    assert.throws(() => abandon.call(other), illegal)
    for (const name of ['tookOver', 'stolen', 'signal']) {
      const { get } = Object.getOwnPropertyDescriptor(Lock.prototype, name)
      assert.throws(() => get.call(other), illegal)
    }
  }
  assert.strictEqual(abandon.call(lock), true)
}).then(() => toldOf('x')))
