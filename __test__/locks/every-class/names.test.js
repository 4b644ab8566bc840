'use strict'

// Names and ids of locks, and what a TimeoutError says.

const assert = require('assert')
const { inspect } = require('util')
const { test } = require('../../harness')
const { api, api: { AsyncLock, RwLock, Semaphore, locks, snapshot } } = require('../../subject')
const { NAMES, bytesOf, optionsOf } = require('../../fixtures/every-class')
const { memory, rejection } = require('../../fixtures/lock-toolbox')
const { run } = require('../../fixtures/programs')
const { MAJOR, startWorker } = require('../../fixtures/queue-toolbox')

const needsStacks = { skip: MAJOR < 14 && 'this Node has no asynchronous stacks' }

/** Makes memory for two. */
const twice = (kind) => memory(2 * bytesOf(kind))

const make = (kind, sab, options) => new api[kind](sab, Object.assign({}, optionsOf(kind), options))

/** Each class but Condition, which times out without an error: what waits for an instance, and its noun in messages. */
const CLASSES = {
  AsyncLock: [(lock, options) => lock.lockAsync(options), 'an AsyncLock'],
  RwLock: [(lock, options) => lock.lockAsync(options), 'an RwLock (exclusive)'],
  Semaphore: [(semaphore, options) => semaphore.acquireAsync(1, options), 'permits of a Semaphore'],
  Barrier: [(barrier, options) => barrier.waitAsync(options), 'the other parties of a Barrier'],
  Latch: [(latch, options) => latch.waitAsync(options), 'a Latch'],
  Queue: [(queue, options) => queue.takeAsync(options), 'a message of a Queue']
}

assert.deepStrictEqual(Object.keys(CLASSES).concat('Condition').sort(), NAMES.slice().sort())

/** Returns a noun of a named instance: without its article, and with the name behind its kind. */
const withName = (noun, kind) => noun.replace(new RegExp(`an? ${kind}`), `${kind} "the name"`)

for (const kind of NAMES) {
  const create = (sab, options) => make(kind, sab, options)

  test(`${kind}: the last name given stands, for all instances on its bytes and for no others`, () => {
    const sab = twice(kind)
    const first = create(sab)
    assert.strictEqual(first.name, '')
    const named = create(sab, { name: 'the name' })
    assert.deepStrictEqual([first.name, named.name, create(sab).name], ['the name', 'the name', 'the name'])
    const shown = inspect(first, { breakLength: Infinity, compact: true })
    assert.ok(shown.startsWith(`${kind} { name: 'the name', `), shown)
    const other = create(sab, { byteOffset: sab.byteLength / 2 })
    assert.strictEqual(other.name, '')
    assert.ok(!inspect(other).includes('name'), inspect(other))
    const longest = 'é\n"' + '\ud83d\ude00'.repeat(126)
    create(sab, { name: longest })
    assert.strictEqual(first.name, longest)
  })

  test(`${kind}: an id is a positive integer, that of its bytes in every thread`, async t => {
    const sab = twice(kind)
    const [one, same, other] = [create(sab), create(sab), create(sab, { byteOffset: sab.byteLength / 2 })]
    assert.ok(Number.isSafeInteger(one.id) && one.id > 0, String(one.id))
    assert.strictEqual(same.id, one.id)
    assert.notStrictEqual(other.id, one.id)
    create(sab, { name: 'the name' })
    const thread = startWorker(t, { kind, sab, further: optionsOf(kind) }, ({ api, data: { kind, sab, further } }) => {
      const { id, name } = new api[kind](sab, further)
      new api[kind](sab, Object.assign({ name: 'that of the worker' }, further)) // eslint-disable-line no-new
      return { id, name }
    })
    assert.deepStrictEqual(await thread.done(), { id: one.id, name: 'the name' })
    assert.strictEqual(one.name, 'that of the worker')
  })

  test(`${kind}: a name must be a string of 1 to 256 characters, and leaves nothing if it is not`, () => {
    const sab = twice(kind)
    for (const name of [null, 1, Symbol('x'), {}, new String('x')]) { // eslint-disable-line no-new-wrappers
      assert.throws(() => create(sab, { name }), new RegExp(`^TypeError: ${kind}: name must be a string, not `))
    }
    for (const name of ['', 'x'.repeat(257)]) {
      const message = `${kind}: name must have from 1 to 256 characters, not ${name.length}`
      assert.throws(() => create(sab, { name }), { name: 'RangeError', message })
    }
    assert.strictEqual(create(sab, { name: undefined }).name, '')
    assert.strictEqual(create(sab, { name: 'x'.repeat(256) }).name.length, 256)
  })
}

/** Checks that a rejection's stack begins with the function that awaits it. */
async function assertHasCaller (call) {
  async function theFunctionThatAwaits () {
    await call()
  }
  const { name, stack } = await rejection(theFunctionThatAwaits())
  assert.strictEqual(name, 'TimeoutError')
  assert.ok(stack.split('\n')[1].includes('at async theFunctionThatAwaits'), stack)
}

for (const kind of Object.keys(CLASSES)) {
  const [wait, noun] = CLASSES[kind]
  const hold = (thing) => kind.endsWith('Lock') && thing.tryLock()

  for (const given of [undefined, 'the name']) {
    const says = given === undefined ? 'says the kind' : 'has the name'
    test(`${kind}: a TimeoutError ${says}, the id and the holder, and snapshots have the same`, async () => {
      const instance = make(kind, twice(kind), { name: given })
      const token = hold(instance)
      const pending = wait(instance, { timeout: 50 })
      const { waiting } = snapshot()
      const error = await rejection(pending)
      const entry = waiting.find(({ id }) => id === instance.id)
      assert.deepStrictEqual([entry.kind, entry.name], [kind, given])
      const what = given === undefined ? noun : withName(noun, kind)
      assert.strictEqual(error.message, `Timed out after 50 ms waiting for ${what}${token ? ', held by thread 0' : ''}`)
      const { name, code, kind: itsKind, id, holder } = error
      const expected = ['TimeoutError', 'ERR_TIMEOUT', kind, instance.id, token ? 0 : null]
      assert.deepStrictEqual([name, code, itsKind, id, holder], expected)
    })
  }

  test(`${kind}: the stack of an awaited TimeoutError has the function that awaits`, needsStacks, async () => {
    const instance = make(kind, twice(kind))
    hold(instance)
    await assertHasCaller(() => wait(instance, { timeout: 5 }))
  })
}

test('the stack of the TimeoutError of a thread that blocked has the function that called', async t => {
  const held = new AsyncLock(memory(4))
  held.tryLock()
  const stacks = await startWorker(t, held, ({ api, data }) => {
    const { AsyncLock, Semaphore, Barrier, Latch } = api
    const options = { timeout: 1 }
    const waits = [
      () => new AsyncLock(data).lock(options), () => new Semaphore().acquire(1, options),
      () => Barrier.create({ parties: 2 }).wait(options), () => Latch.create({ count: 1 }).wait(options)
    ]
    return waits.map(wait => {
      try {
        return (function theFunctionThatBlocks () { return wait() })()
      } catch ({ stack }) {
        return stack
      }
    })
  }).done()
  held.unlock()
  assert.strictEqual(stacks.length, 4)
  for (const stack of stacks) assert.ok(/^TimeoutError: [^]*theFunctionThatBlocks/.test(stack), stack)
})

for (const form of ['executeLocked', 'executeShared', 'use', 'request']) {
  test(`the stack of the TimeoutError of ${form} has the function that awaits`, needsStacks, async () => {
    const fail = () => assert.fail('it ran')
    const options = { timeout: 5 }
    const lock = new RwLock(memory(4))
    const token = lock.tryLock()
    let release
    locks.request('a name', () => new Promise(resolve => { release = resolve }))
    const calls = {
      executeLocked: () => lock.executeLocked(fail, options),
      executeShared: () => lock.executeShared(fail, options),
      use: () => new Semaphore(memory(4)).use(1, fail, options),
      request: () => locks.request('a name', options, fail)
    }
    await assertHasCaller(calls[form])
    token.unlock()
    release()
  })
}

test('a TimeoutError names a thread that holds the lock: blocked, awaited, and by name', async t => {
  const lock = new AsyncLock(memory(4), { name: 'the name' })
  const holding = startWorker(t, lock, async ({ api: { AsyncLock, locks }, data, post, receive }) => {
    new AsyncLock(data).tryLock()
    locks.request('a name', async () => {
      post('held')
      await receive()
    })
    await receive()
  })
  const { threadId } = holding.worker
  await holding.next()
  const { id } = snapshot().held.find(({ name }) => name === 'a name')
  /** Returns the expected message of a wait for lock or name. */
  const expected = (isName, timeout) => {
    const noun = isName ? 'the lock named "a name"' : 'AsyncLock "the name"'
    const message = `Timed out after ${timeout} ms waiting for ${noun}, held by thread ${threadId}`
    return { message, kind: isName ? 'named' : 'AsyncLock', id: isName ? id : lock.id, holder: threadId }
  }
  const facts = ({ message, kind, id, holder }) => ({ message, kind, id, holder })
  for (const timeout of [0, 5]) {
    const waits = [lock.lockAsync({ timeout }), locks.request('a name', { timeout }, () => {})]
    const errors = await Promise.all(waits.map(rejection))
    assert.deepStrictEqual(errors.map(facts), [expected(false, timeout), expected(true, timeout)])
  }
  const waiting = startWorker(t, lock, ({ api: { AsyncLock, locks }, data }) => {
    const byName = timeout => locks.requestSync('a name', { timeout }, () => {})
    return [() => new AsyncLock(data).lock({ timeout: 5 }), () => byName(5), () => byName(0)].map(call => {
      try {
        return call()
      } catch ({ message, kind, id, holder }) {
        return { message, kind, id, holder }
      }
    })
  })
  assert.deepStrictEqual(await waiting.done(), [expected(false, 5), expected(true, 5), expected(true, 0)])
})

test('a lock with the name of a named lock is another one', async () => {
  const lock = new AsyncLock(memory(4), { name: 'both' })
  const token = lock.tryLock()
  await locks.request('both', { ifAvailable: true }, async granted => {
    assert.notStrictEqual(granted, null)
    const held = snapshot().held.filter(({ name }) => name === 'both')
    assert.deepStrictEqual(held.map(({ kind }) => kind).sort(), ['AsyncLock', 'named'])
  })
  token.unlock()
})

test('a name is a sequence of any 16-bit units, the same everywhere; so is that of a named lock', async t => {
  for (const name of ['\ud800', 'a\udc00b', '\udc00\ud800', '\ud83d\ude00', 'x\0y', '\ufffd', '\ud800'.repeat(256)]) {
    const lock = new AsyncLock(memory(4), { name })
    const token = lock.tryLock()
    const seen = snapshot().held.find(({ id }) => id === lock.id).name
    const there = await startWorker(t, { lock, name }, ({ api, data: { lock, name } }) => {
      const mine = new api.AsyncLock(lock)
      return [mine.name === name, mine.name]
    }).done()
    assert.deepStrictEqual([lock.name, seen, there], [name, name, [true, name]])
    const error = await rejection(lock.lockAsync({ timeout: 1 }))
    if (name.length < 40) assert.ok(error.message.includes(`AsyncLock ${JSON.stringify(name)}, held by`), error.message)
    token.unlock()
    await locks.request(name, async granted => {
      const { held } = await locks.query()
      const { name: inSnapshot } = snapshot().held.find(({ kind }) => kind === 'named')
      assert.deepStrictEqual([granted.name, inSnapshot, held.map(({ name }) => name)], [name, name, [name]])
      // Another one, not the same after a conversion.
      const longer = name + '\ud801'
      assert.strictEqual(await locks.request(longer, { ifAvailable: true }, other => other.name), longer)
    })
  }
})

test('ERR_DEADLOCK has the names, in its message and its cycle', async t => {
  const both = new Int32Array(memory(4))
  const locks = ['first', 'second'].map(name => new AsyncLock(memory(4), { name }))
  const orders = [locks, locks.slice().reverse()].map(order => [both, ...order])
  const threads = orders.map(order => startWorker(t, order, ({ api, data: [both, ...order] }) => {
    const [mine, other] = order.map(lock => new api.AsyncLock(lock))
    const token = mine.lock()
    Atomics.add(both, 0, 1)
    while (Atomics.load(both, 0) < 2);
    try {
      other.lock().unlock()
      return null
    } catch ({ message, kind, id, cycle }) {
      const names = cycle.map(({ holds, waitsFor }) => `${holds.name},${waitsFor.name}`)
      return { message, isOther: kind === 'AsyncLock' && id === other.id, names }
    } finally {
      token.unlock()
    }
  }))
  const [found] = (await Promise.all(threads.map(thread => thread.done()))).filter(Boolean)
  assert.ok(/waiting for AsyncLock "(first|second)", held for .* by thread \d+/.test(found.message), found.message)
  assert.deepStrictEqual([found.isOther, found.names.sort()], [true, ['first,second', 'second,first']])
})

test('ERR_DEADLOCK of a thread with itself has the name, the kind and the id of what it would wait for', async t => {
  const errors = await startWorker(t, null, async ({ api: { AsyncLock, Condition, RwLock, locks } }) => {
    const [lock, other, rwLock, condition] = [AsyncLock, AsyncLock, RwLock, Condition].map((Class, n) => (
      Class.create({ name: 'abcd'[n] })))
    const errors = []
    const refused = (id, form) => {
      try {
        form()
        errors.push('nothing')
      } catch (error) {
        errors.push(`${error.code} ${error.kind} ${id === undefined || error.id === id} ${error.message}`)
      }
    }
    const token = lock.lock()
    refused(lock.id, () => lock.lock())
    refused(lock.id, () => lock.lockIfAvailable(5))
    refused(lock.id, () => lock.executeLockedSync(() => {}))
    const awaited = lock.lockAsync()
    refused(lock.id, () => condition.wait(token))
    token.unlock()
    ;(await awaited).unlock()
    rwLock.executeSharedSync(() => {
      refused(rwLock.id, () => rwLock.lock())
      refused(rwLock.id, () => rwLock.executeLockedSync(() => {}))
    })
    rwLock.executeLockedSync(() => refused(rwLock.id, () => rwLock.lockShared()))
    // As code on the bare word does it: nobody is known to hold it.
    Atomics.store(other.i32a, 0, 1)
    const awaitedToo = other.lockAsync()
    refused(other.id, () => other.lock())
    other.unlock()
    ;(await awaitedToo).unlock()
    locks.requestSync('e', ({ name }) => refused(undefined, () => locks.requestSync(name, () => {})))
    return errors
  }).done()
  const of = (caller, kind, noun, does = 'holds') => (
    `ERR_DEADLOCK ${kind} true ${caller}: would wait for ${noun}, which this thread itself already ${does}`)
  assert.deepStrictEqual(errors, [
    of('lock', 'AsyncLock', 'AsyncLock "a"'),
    of('lockIfAvailable', 'AsyncLock', 'AsyncLock "a"'),
    of('executeLockedSync', 'AsyncLock', 'AsyncLock "a"'),
    of('wait', 'AsyncLock', 'AsyncLock "a"', 'awaits'),
    of('lock', 'RwLock', 'RwLock "c" (exclusive)'),
    of('executeLockedSync', 'RwLock', 'RwLock "c" (exclusive)'),
    of('lockShared', 'RwLock', 'RwLock "c" (shared)'),
    of('lock', 'AsyncLock', 'AsyncLock "b"', 'awaits'),
    of('requestSync', 'named', 'the lock named "e"')
  ])
})

const needsWeakRef = { skip: typeof WeakRef === 'undefined' && 'this Node has no weak references', timeout: 60000 }
test('a name goes with its memory', needsWeakRef, async t => {
  const execArgv = ['--expose-gc']
  const { code, lines, stderr } = await run(t, { execArgv }, async ({ api: { AsyncLock }, say, sleep }) => {
    const create = options => new AsyncLock(new SharedArrayBuffer(4096), options)
    const named = () => {
      for (let n = 0; n < 200; n++) create({ name: `number ${n}` })
    }
    named()
    const ids = new Set()
    // Until addresses of those memories have come again.
    let stale = 0
    let made = 0
    for (let pass = 0; pass < 50; pass++) {
      global.gc()
      await sleep(2)
      for (let n = 0; n < 200; n++) {
        const lock = create()
        if (lock.name !== '') stale++
        if (ids.has(lock.id)) made++
        ids.add(lock.id)
      }
    }
    say(stale)
    say(made > 0)
  })
  assert.deepStrictEqual([code, lines], [0, ['0', 'true']], stderr)
})

test('no text of an error has a character that a terminal obeys, or shows nowhere', async () => {
  const hidden = [...Array(0xffff).keys()].map(code => String.fromCharCode(code)).filter(character =>
    // eslint-disable-next-line no-control-regex -- it finds them
    /[\0-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/.test(character))
  const shown = text => JSON.parse(/"(?:[^"\\]|\\.)*"/.exec(text)[0])
  for (let n = 0; n < hidden.length; n += 8) {
    const name = hidden.slice(n, n + 8).join('é')
    const lock = AsyncLock.create({ name })
    lock.tryLock()
    const messages = [
      (await rejection(lock.lockAsync({ timeout: 0 }))).message,
      (await rejection(Promise.resolve().then(() => new AsyncLock(name)))).message,
      (await rejection(Promise.resolve().then(() => new AsyncLock(lock.buffer, { [name]: 1 })))).message
    ]
    for (const message of messages) {
      for (const character of hidden) assert.ok(!message.includes(character), JSON.stringify(message))
      // The others are as they were.
      assert.strictEqual(shown(message), name)
    }
  }
})
