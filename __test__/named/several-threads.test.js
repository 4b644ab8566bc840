'use strict'
// oldest: force (there DOMException is missing)

// Several names in one request, among threads: the forms that block, deadlocks, deaths.

const assert = require('assert')
const { testLocks } = require('../fixtures/named-locks')
const { sleep, startWorker, words } = require('../fixtures/queue-toolbox')
const { api } = require('../subject')

const { locks } = api

const never = () => { throw new Error('the callback was called') }
const listed = async (part) => (await locks.query())[part].map(({ name }) => name).sort().join()
const held = () => listed('held')
const untilPending = async (names) => { while (await listed('pending') !== names) await sleep(1) }
const untilHeld = async (names) => { while (await held() !== names) await sleep(1) }
const toldOf = (name) => locks.request(name, ({ ownerDied }) => ownerDied)

/** Runs the body in a worker, as `startWorker` does, and tells what it returns. */
const inWorker = (t, body, data) => startWorker(t, data, body).done()

testLocks('on the main thread the forms that block are TypeErrors that name their twins', async () => {
  assert.throws(() => locks.requestAllSync(['a'], never), {
    name: 'TypeError', message: 'requestAllSync would block the main thread: use requestAll()'
  })
  for (const options of [undefined, { ifAvailable: true }]) {
    assert.throws(() => locks.holdAll(['a'], options), {
      name: 'TypeError', message: 'holdAll would block the main thread: use holdAllAsync()'
    })
  }
})

testLocks('requestAllSync and holdAll: as their twins, with the lock or a token', async t => {
  const told = await inWorker(t, ({ api: { UnlockToken, locks, snapshot } }) => {
    const held = () => snapshot().held.map(({ name }) => name).sort().join()
    const told = []
    told.push(locks.requestAllSync(['b', 'a', 'b'], lock => [lock.names.join(), lock.name, lock.mode, held()]))
    told.push(locks.requestAllSync(new Set(['a']), { mode: 'shared', timeout: 5 }, lock => lock.mode))
    const token = locks.holdAll(['b', 'a'])
    told.push([token instanceof UnlockToken, token.names.join(), token.locked, held()])
    told.push([locks.holdAll(['c', 'b'], { ifAvailable: true }), held()])
    told.push(locks.requestAllSync(['c', 'b'], { ifAvailable: true }, lock => [lock, held()]))
    told.push([token.unlock(), token.unlock(), token.locked, held()])
    locks.hold('b').abandon()
    told.push(locks.requestAllSync(['a', 'b'], { repair: ({ ownerDied }) => { told.push(ownerDied) } }, lock => (
      lock.ownerDied)))
    return told
  })
  assert.deepStrictEqual(told, [
    ['a,b', undefined, 'exclusive', 'a,b'], 'shared', [true, 'a,b', true, 'a,b'], [null, 'a,b'], [null, 'a,b'],
    [true, false, false, ''], true, false
  ])
})

testLocks('the forms that block: wrong arguments, and what a callback must not do', async t => {
  const told = await inWorker(t, ({ api: { locks, snapshot } }) => {
    const never = () => { throw new Error('the callback was called') }
    const told = []
    const fails = (form, ...args) => {
      try {
        locks[form](...args)
        told.push('no error')
      } catch ({ name, message }) {
        told.push(name + ' ' + message)
      }
    }
    fails('requestAllSync', 'ab', never)
    fails('requestAllSync', [], never)
    fails('requestAllSync', ['-a'], never)
    fails('requestAllSync', ['a'])
    fails('requestAllSync', ['a'], { steal: true }, never)
    fails('requestAllSync', ['a'], { steal: false, signal: undefined }, () => {})
    fails('requestAllSync', ['a'], { signal: {} }, never)
    fails('requestAllSync', ['a'], { repair: async () => {} }, never)
    fails('requestAllSync', ['a', 'b'], async () => {})
    fails('requestAllSync', ['a', 'b'], () => Promise.resolve())
    fails('requestAllSync', ['a', 'b'], () => { throw new Error('on purpose') })
    fails('holdAll', ['a'], { repair () {} })
    fails('holdAll', ['a'], { signal: {} })
    fails('holdAll', ['a'], { steal: true })
    fails('holdAll')
    return [told, snapshot().held.length]
  })
  const promised = 'TypeError requestAllSync: callback must not return a promise, ' +
    'which a blocked thread cannot await: use requestAll()'
  assert.deepStrictEqual(told, [[
    'TypeError requestAllSync: names must be an array, or another iterable, of names, not the string "ab"',
    'RangeError requestAllSync: names must have at least one name, and has none',
    'NotSupportedError requestAllSync: name must not begin with "-", as the string "-a" does',
    'TypeError requestAllSync: names and callback are required, but there is 1 argument',
    'NotSupportedError requestAllSync: several names cannot be stolen together: steal them one by one',
    'no error',
    'TypeError requestAllSync blocks, and has no signal: use requestAll()',
    'TypeError requestAllSync: repair must not return a promise, which a blocked thread cannot await: use requestAll()',
    promised,
    promised,
    'Error on purpose',
    'TypeError holdAll: options may have ifAvailable, mode and timeout, not "repair"',
    'TypeError holdAll blocks, and has no signal: use holdAllAsync()',
    'NotSupportedError holdAll: several names cannot be stolen together: steal them one by one',
    'TypeError holdAll: names are required, but there are 0 arguments'
  ], 0])
})

testLocks('no two holders of a name, no update lost, no deadlock: any forms and lists of several threads', async t => {
  const NAMES = ['a', 'b', 'c', 'd', 'e']
  const TURNS = 150
  const [counts, inside] = [words(5), words(5)]
  const body = async ({ api: { locks }, data: { NAMES, TURNS, counts, inside, sync } }) => {
    const enter = ({ names }) => {
      const indexes = names.map(name => NAMES.indexOf(name))
      if (indexes.some(index => Atomics.add(inside, index, 1) !== 0)) throw new Error('two holders')
      const values = indexes.map(index => counts[index])
      for (let n = 0; n < 200; n++);
      indexes.forEach((index, n) => { counts[index] = values[n] + 1 })
      indexes.forEach(index => Atomics.sub(inside, index, 1))
    }
    for (let n = 0; n < TURNS; n++) {
      const names = [NAMES[(3 * n) % 5], NAMES[n % 5], NAMES[(n + 2) % 5]]
      if (n % 2 === 0) {
        if (sync) locks.requestAllSync(names, enter)
        else await locks.requestAll(names, async lock => { await undefined; enter(lock) })
      } else {
        const token = sync ? locks.holdAll(names) : await locks.holdAllAsync(names)
        enter(token)
        if (!token.unlock()) throw new Error('it was not held')
      }
    }
  }
  const given = { NAMES, TURNS, counts, inside }
  const threads = [true, true, false, false].map(sync => startWorker(t, Object.assign({ sync }, given), body))
  await body({ api, data: Object.assign({ sync: false }, given) })
  await Promise.all(threads.map(thread => thread.done()))
  let sum = 0
  for (let n = 0; n < TURNS; n++) sum += new Set([(3 * n) % 5, n % 5, (n + 2) % 5]).size
  assert.strictEqual(counts.reduce((total, count) => total + count), 5 * sum)
})

testLocks('a thread blocks for one after the other, under one deadline', async t => {
  const others = ['b', 'c'].map(name => locks.tryHold(name))
  const blocked = startWorker(t, ({ api: { locks } }) => locks.requestAllSync(['c', 'b', 'a'], lock => lock.names))
  await untilPending('b')
  assert.strictEqual(await held(), 'a,b,c')
  others[0].unlock()
  await untilPending('c')
  others[1].unlock()
  assert.deepStrictEqual(await blocked.done(), ['a', 'b', 'c'])

  const other = locks.tryHold('b')
  const told = await inWorker(t, ({ api: { locks, snapshot } }) => [0, 5].map(timeout => {
    try {
      return locks.holdAll(['a', 'b', 'c'], { timeout })
    } catch ({ code, message }) {
      return [code, message, snapshot().held.length]
    }
  }))
  assert.deepStrictEqual(told, [0, 5].map(timeout => (
    ['ERR_TIMEOUT', `Timed out after ${timeout} ms waiting for the lock named "b", held by thread 0`, 1])))
  other.unlock()
})

testLocks('one is stolen while the thread blocks for the next: an AbortError, and all are given back', async t => {
  for (const form of ['requestAllSync', 'holdAll']) {
    const other = locks.tryHold('c')
    const blocked = startWorker(t, { form }, ({ api: { locks, snapshot }, data: { form } }) => {
      try {
        return locks[form](['a', 'b', 'c'], ...form === 'requestAllSync' ? [() => 'called'] : [])
      } catch ({ name, message }) {
        return [name, message, snapshot().held.length]
      }
    })
    await untilPending('c')
    await locks.request('a', { steal: true }, () => {})
    other.unlock()
    assert.deepStrictEqual(await blocked.done(),
      ['AbortError', 'The lock named "a" was stolen by another request', 0])
    assert.deepStrictEqual([await toldOf('b'), await toldOf('c')], [false, false])
  }
})

testLocks('one is stolen while a synchronous callback runs: it sees that, and the call throws at its end', async t => {
  const flag = words(1)
  const robbed = startWorker(t, { flag }, ({ api: { locks }, data: { flag }, post }) => {
    try {
      return locks.requestAllSync(['a', 'b'], lock => {
        post('held')
        while (Atomics.load(flag, 0) === 0);
        post([lock.stolen, lock.abandon()])
      })
    } catch ({ name, message }) {
      return [name, message]
    }
  })
  await robbed.next()
  await locks.request('b', { steal: true }, () => {})
  assert.strictEqual(await held(), 'a')
  flag[0] = 1
  assert.deepStrictEqual(await robbed.next(), [true, false])
  assert.deepStrictEqual(await robbed.done(), ['AbortError', 'The lock named "b" was stolen by another request'])
  assert.strictEqual(await toldOf('a'), true)
})

// ——— deadlocks ———

testLocks('a thread that blocks for a name that it holds or awaits itself: ERR_DEADLOCK, and none is held', async t => {
  const told = await inWorker(t, async ({ api: { locks, snapshot } }) => {
    const codeOf = (call) => {
      try {
        return call()
      } catch ({ code, message }) {
        return [code, message, snapshot().held.map(({ name }) => name).sort().join()]
      }
    }
    const told = [locks.requestAllSync(['a', 'b'], () => codeOf(() => locks.requestAllSync(['0', 'b'], () => {})))]
    const token = locks.holdAll(['b', 'c'])
    told.push(codeOf(() => locks.holdAll(['a', 'c'])))
    const waiting = locks.requestAll(['a', 'b'], () => 'granted')
    told.push(codeOf(() => locks.requestAllSync(['0', 'a'], () => {})))
    token.unlock()
    return told.concat([await waiting])
  })
  const text = (name) => `would wait for the lock named "${name}", which this thread itself already holds`
  assert.deepStrictEqual(told, [
    ['ERR_DEADLOCK', 'requestAllSync: ' + text('b'), 'a,b'],
    ['ERR_DEADLOCK', 'holdAll: ' + text('c'), 'b,c'],
    ['ERR_DEADLOCK', 'requestAllSync: ' + text('a'), 'a,b,c'],
    'granted'
  ])
})

testLocks('a nested request closes a cycle of blocked threads: ERR_DEADLOCK, and the other goes on', async t => {
  const flag = words(1)
  const one = startWorker(t, { flag }, ({ api: { locks }, data: { flag }, post }) => {
    return locks.requestAllSync(['b', 'c'], () => {
      post('held')
      while (Atomics.load(flag, 0) === 0);
      try {
        return locks.requestSync('a', () => 'granted')
      } catch ({ code, cycle }) {
        return [code, cycle.length]
      }
    })
  })
  await one.next()
  const two = inWorker(t, ({ api: { locks } }) => {
    try {
      return locks.requestAllSync(['a', 'c'], () => 'granted')
    } catch ({ code, cycle }) {
      return [code, cycle.length]
    }
  })
  await untilPending('c')
  flag[0] = 1
  const told = await Promise.all([one.done(), two])
  // Whichever sees the cycle first.
  assert.deepStrictEqual(told.map(String).sort(), ['ERR_DEADLOCK,2', 'granted'])
})

// ——— deaths ———

for (const sync of [false, true]) {
  const form = sync ? 'holdAll' : 'holdAllAsync'
  testLocks(`${form}: the thread ends while it holds them: each next holder is told, of a share nobody`, async t => {
    for (const mode of ['exclusive', 'shared']) {
      const victim = startWorker(t, { mode, sync }, async ({ api: { locks }, data: { mode, sync }, keep, post }) => {
        keep(sync ? locks.holdAll(['a', 'b'], { mode }) : await locks.holdAllAsync(['a', 'b'], { mode }))
        post('held')
        return new Promise(() => {})
      })
      victim.done().catch(() => {})
      await victim.next()
      const waiting = locks.requestAll(['b', 'c'], ({ ownerDied }) => ownerDied)
      await victim.terminate()
      const died = mode === 'exclusive'
      assert.deepStrictEqual([await waiting, await toldOf('a'), await toldOf('b')], [died, died, false])
    }
  })

  testLocks(`${form}: the thread ends between two of them: it holds none and awaits none`, async t => {
    const other = locks.tryHold('b')
    const victim = startWorker(t, { sync }, ({ api: { locks }, data: { sync }, post }) => {
      post('ready')
      return sync ? locks.holdAll(['a', 'b', 'c']) : locks.holdAllAsync(['a', 'b', 'c'])
    })
    victim.done().catch(() => {})
    await victim.next()
    await untilPending('b')
    const waiting = locks.requestAll(['a', 'c'], ({ ownerDied }) => ownerDied)
    await victim.terminate()
    assert.deepStrictEqual([await waiting, await held()], [true, 'b'])
    await untilPending('')
    assert.deepStrictEqual([other.unlock(), await toldOf('b')], [true, false])
  })
}

testLocks('the robbed thread hears of it by itself, and gives the others back', async t => {
  const robbed = startWorker(t, async ({ api: { locks }, post }) => {
    const alive = setInterval(() => {}, 1000)
    post('ready')
    try {
      return await locks.requestAll(['a', 'b', 'c'], () => new Promise(() => {}))
    } catch ({ name, message }) {
      return [name, message]
    } finally {
      clearInterval(alive)
    }
  })
  await robbed.next()
  await untilHeld('a,b,c')
  const waiting = toldOf('c')
  await locks.request('a', { steal: true }, () => {})
  assert.deepStrictEqual([await waiting, await robbed.done()],
    [true, ['AbortError', 'The lock named "a" was stolen by another request']])
  assert.strictEqual(await toldOf('b'), true)
})

testLocks('one is stolen and the next is granted before their thread hears of either: no callback', async t => {
  const flags = words(3)
  const worker = startWorker(t, { flags }, async ({ api: { locks }, data: { flags } }) => {
    const token = locks.hold('b')
    Atomics.store(flags, 0, 1)
    while (Atomics.load(flags, 1) === 0);
    const thief = await locks.holdAsync('a', { steal: true })
    token.unlock()
    Atomics.store(flags, 2, 1)
    return [thief.tookOver, thief.unlock()]
  })
  while (Atomics.load(flags, 0) === 0) await sleep(1)
  let calls = 0
  const other = locks.tryHold('c')
  const request = locks.requestAll(['a', 'b', 'c'], () => { calls++ }).catch(({ message }) => message)
  // This thread's event loop stands still until both have happened.
  Atomics.store(flags, 1, 1)
  while (Atomics.load(flags, 2) === 0);
  assert.deepStrictEqual([await request, calls], ['The lock named "a" was stolen by another request', 0])
  assert.deepStrictEqual([await worker.done(), await listed('pending'), other.unlock()], [[true, true], '', true])
})

testLocks('two requests for lists that overlap, of two threads: the later one is not told of a steal', async t => {
  const other = locks.tryHold('c')
  const worker = startWorker(t, ({ api: { locks } }) => (
    locks.requestAll(['a', 'c'], lock => lock.stolen).catch(({ message }) => message)))
  await untilPending('c')
  const here = locks.requestAll(['b', 'c'], lock => lock.stolen)
  await untilPending('c,c')
  await locks.request('a', { steal: true }, () => {})
  assert.ok((await worker.done()).includes('"a" was stolen'))
  other.unlock()
  assert.strictEqual(await here, false)
})
