'use strict'

// Names and ids of locks, and what a TimeoutError says.

const assert = require('assert')
const { inspect } = require('util')
const { test } = require('../../harness')
const { api, api: { AsyncLock, RwLock, Semaphore, locks, snapshot } } = require('../../subject')
const { NAMES, bytesOf, optionsOf } = require('../../fixtures/every-class')
const { memory, rejection } = require('../../fixtures/lock-toolbox')
const { runChild, startWorker, until } = require('../../fixtures/queue-toolbox')

const MAJOR = parseInt(process.versions.node, 10)

/** Memory for two. */
const twice = (kind) => memory(2 * bytesOf(kind))

const make = (kind, sab, options) => new api[kind](sab, Object.assign({}, optionsOf(kind), options))

/** Each class but Condition, which times out without an error: what waits for an instance, and its `noun` in messages, without a name and with one. */
const CLASSES = {
  AsyncLock: {
    hold: lock => lock.tryLock(),
    wait: (lock, options) => lock.lockAsync(options),
    noun: ['an AsyncLock', 'AsyncLock "the name"']
  },
  RwLock: {
    hold: lock => lock.tryLock(),
    wait: (lock, options) => lock.lockAsync(options),
    noun: ['an RwLock (exclusive)', 'RwLock "the name" (exclusive)']
  },
  Semaphore: {
    wait: (semaphore, options) => semaphore.acquireAsync(1, options),
    noun: ['permits of a Semaphore', 'permits of Semaphore "the name"']
  },
  Barrier: {
    wait: (barrier, options) => barrier.waitAsync(options),
    noun: ['the other parties of a Barrier', 'the other parties of Barrier "the name"']
  },
  Latch: {
    wait: (latch, options) => latch.waitAsync(options),
    noun: ['a Latch', 'Latch "the name"']
  },
  Queue: {
    wait: (queue, options) => queue.takeAsync(options),
    noun: ['a message of a Queue', 'a message of Queue "the name"']
  }
}

for (const kind of NAMES) {
  const create = (sab, options) => make(kind, sab, options)

  test(`${kind}: the last name given stands, for all instances on its bytes and for no others`, () => {
    const sab = twice(kind)
    const first = create(sab)
    assert.strictEqual(first.name, '')
    const named = create(sab, { name: 'the name' })
    assert.deepStrictEqual([first.name, named.name, create(sab).name], ['the name', 'the name', 'the name'])
    assert.ok(inspect(first, { breakLength: Infinity, compact: true }).startsWith(`${kind} { name: 'the name', `), inspect(first))
    const other = create(sab, { byteOffset: sab.byteLength / 2 })
    assert.strictEqual(other.name, '')
    assert.ok(!inspect(other).includes('name'), inspect(other))
    create(sab, { name: 'é\n"' + '\ud83d\ude00'.repeat(126) })
    assert.strictEqual(first.name, 'é\n"' + '\ud83d\ude00'.repeat(126))
  })

  test(`${kind}: an id is a positive integer, that of its bytes in every thread`, async t => {
    const sab = twice(kind)
    const [one, same, other] = [create(sab), create(sab), create(sab, { byteOffset: sab.byteLength / 2 })]
    assert.ok(Number.isSafeInteger(one.id) && one.id > 0, String(one.id))
    assert.strictEqual(same.id, one.id)
    assert.notStrictEqual(other.id, one.id)
    create(sab, { name: 'the name' })
    const worker = startWorker(t, ({ api, data: { kind, sab, further } }) => {
      const { id, name } = new api[kind](sab, further)
      new api[kind](sab, Object.assign({ name: 'that of the worker' }, further)) // eslint-disable-line no-new
      return { id, name }
    }, { kind, sab, further: optionsOf(kind) })
    assert.deepStrictEqual(await worker.done(), { id: one.id, name: 'the name' })
    assert.strictEqual(one.name, 'that of the worker')
  })

  test(`${kind}: a name must be a string of 1 to 256 characters, and leaves nothing if it is not`, () => {
    const sab = twice(kind)
    for (const name of [null, 1, Symbol('x'), {}, new String('x')]) { // eslint-disable-line no-new-wrappers
      assert.throws(() => create(sab, { name }), error => error instanceof TypeError && error.message.startsWith(`${kind}: name must be a string, not `))
    }
    for (const name of ['', 'x'.repeat(257)]) {
      assert.throws(() => create(sab, { name }), error => error instanceof RangeError && error.message === `${kind}: name must have from 1 to 256 characters, not ${name.length}`)
    }
    assert.strictEqual(create(sab, { name: undefined }).name, '')
    assert.strictEqual(create(sab, { name: 'x'.repeat(256) }).name.length, 256)
  })
}

/** The first frame of an error's stack is that of an async function, and none of the package's. */
function assertBeginsWith (stack, name) {
  assert.ok(stack.split('\n')[1].includes(`at async ${name}`), stack)
}

for (const kind of Object.keys(CLASSES)) {
  const { hold = () => {}, wait, noun } = CLASSES[kind]
  const create = (sab, options) => make(kind, sab, options)

  for (const named of [false, true]) {
    test(`${kind}: a TimeoutError ${named ? 'has the name' : 'says the kind'}, the id and the holder, and snapshots have the same`, async () => {
      const instance = create(twice(kind), named ? { name: 'the name' } : undefined)
      const held = hold(instance)
      const pending = wait(instance, { timeout: 50 })
      const { waiting } = snapshot()
      const error = await rejection(pending)
      const entry = waiting.find(({ id }) => id === instance.id)
      assert.strictEqual(entry.kind, kind)
      assert.strictEqual(entry.name, named ? 'the name' : undefined)
      const by = held === undefined ? '' : ', held by thread 0'
      assert.strictEqual(error.message, `Timed out after 50 ms waiting for ${noun[named ? 1 : 0]}${by}`)
      const { name, code, kind: itsKind, id, holder } = error
      assert.deepStrictEqual({ name, code, kind: itsKind, id, holder }, { name: 'TimeoutError', code: 'ERR_TIMEOUT', kind, id: instance.id, holder: held === undefined ? null : 0 })
    })
  }

  test(`${kind}: the stack of an awaited TimeoutError has the function that awaits`, { skip: MAJOR < 14 && 'this Node has no asynchronous stacks' }, async () => {
    const instance = create(twice(kind))
    hold(instance)
    async function theFunctionThatAwaits () {
      await wait(instance, { timeout: 5 })
    }
    const { stack } = await rejection(theFunctionThatAwaits())
    assertBeginsWith(stack, 'theFunctionThatAwaits')
  })
}

test('the stack of the TimeoutError of a thread that blocked has the function that called', async t => {
  const sab = memory(16)
  const held = new AsyncLock(sab).tryLock()
  const stacks = await startWorker(t, ({ api, data: buffer }) => {
    const stacks = []
    for (const wait of [
      () => new api.AsyncLock(buffer).lock({ timeout: 1 }),
      () => new api.Semaphore(buffer, { byteOffset: 4 }).acquire(1, { timeout: 1 }),
      () => new api.Barrier(buffer, { byteOffset: 8, parties: 2 }).wait({ timeout: 1 }),
      () => new api.Latch(buffer, { byteOffset: 12, count: 1 }).wait({ timeout: 1 })
    ]) {
      try {
        (function theFunctionThatBlocks () { wait() })()
      } catch ({ stack }) {
        stacks.push(stack)
      }
    }
    return stacks
  }, sab).done()
  held.unlock()
  assert.strictEqual(stacks.length, 4)
  for (const stack of stacks) assert.ok(/^TimeoutError: [^]*theFunctionThatBlocks/.test(stack), stack)
})

for (const form of ['executeLocked', 'executeShared', 'use', 'request']) {
  test(`the stack of the TimeoutError of ${form} has the function that awaits`, { skip: MAJOR < 14 && 'this Node has no asynchronous stacks' }, async () => {
    const fail = () => assert.fail('it ran')
    const options = { timeout: 5 }
    const lock = new RwLock(memory(4))
    const token = lock.tryLock()
    let release
    locks.request('a name', () => new Promise(resolve => { release = resolve }))
    const call = {
      executeLocked: () => lock.executeLocked(fail, options),
      executeShared: () => lock.executeShared(fail, options),
      use: () => new Semaphore(memory(4)).use(1, fail, options),
      request: () => locks.request('a name', options, fail)
    }[form]
    async function theFunctionThatAwaits () {
      await call()
    }
    const { name, stack } = await rejection(theFunctionThatAwaits())
    assert.strictEqual(name, 'TimeoutError')
    assertBeginsWith(stack, 'theFunctionThatAwaits')
    token.unlock()
    release()
  })
}

test('a TimeoutError names a thread that holds the lock: blocked, awaited, and by name', async t => {
  const sab = memory(8)
  const lock = new AsyncLock(sab, { name: 'the name' })
  const holder = startWorker(t, async ({ api: { AsyncLock, locks }, data, post, receive }) => {
    new AsyncLock(data).tryLock()
    locks.request('a name', async () => {
      post('held')
      await receive()
    })
    await receive()
  }, sab)
  const { threadId } = holder.worker
  await holder.next()
  const expected = `waiting for AsyncLock "the name", held by thread ${threadId}`
  for (const timeout of [0, 5]) {
    const { message, holder } = await rejection(lock.lockAsync({ timeout }))
    assert.deepStrictEqual([message, holder], [`Timed out after ${timeout} ms ${expected}`, threadId])
    const error = await rejection(locks.request('a name', { timeout }, () => {}))
    assert.deepStrictEqual([error.message, error.kind, error.holder], [`Timed out after ${timeout} ms waiting for the lock named "a name", held by thread ${threadId}`, 'named', threadId])
  }
  const waiter = startWorker(t, ({ api: { AsyncLock, locks }, data }) => {
    const errors = []
    for (const call of [() => new AsyncLock(data).lock({ timeout: 5 }), () => locks.requestSync('a name', { timeout: 5 }, () => {}), () => locks.requestSync('a name', { timeout: 0 }, () => {})]) {
      try {
        call()
      } catch ({ message, kind, id, holder }) {
        errors.push({ message, kind, id, holder })
      }
    }
    return errors
  }, sab)
  const [blocked, named, atOnce] = await waiter.done()
  assert.deepStrictEqual(blocked, { message: `Timed out after 5 ms ${expected}`, kind: 'AsyncLock', id: lock.id, holder: threadId })
  const { id } = snapshot().held.find(({ name }) => name === 'a name')
  assert.deepStrictEqual(named, { message: `Timed out after 5 ms waiting for the lock named "a name", held by thread ${threadId}`, kind: 'named', id, holder: threadId })
  assert.deepStrictEqual([atOnce.kind, atOnce.id, atOnce.holder], ['named', id, threadId])
})

test('a lock with the name of a named lock is another one', async () => {
  const lock = new AsyncLock(memory(4), { name: 'both' })
  const token = lock.tryLock()
  await locks.request('both', { ifAvailable: true }, async granted => {
    assert.notStrictEqual(granted, null)
    assert.deepStrictEqual(snapshot().held.filter(({ name }) => name === 'both').map(({ kind }) => kind).sort(), ['AsyncLock', 'named'])
  })
  token.unlock()
})

test('a name is a sequence of any 16-bit units, the same in every thread and snapshot; so is the name of a named lock', async t => {
  for (const name of ['\ud800', 'a\udc00b', '\udc00\ud800', '\ud83d\ude00', 'x\0y', '\ufffd', '\ud800'.repeat(256)]) {
    const lock = new AsyncLock(memory(4), { name })
    const token = lock.tryLock()
    const seen = snapshot().held.find(({ id }) => id === lock.id).name
    const there = startWorker(t, ({ api, data: { lock, name } }) => {
      const mine = new api.AsyncLock(lock)
      return [mine.name === name, mine.name]
    }, { lock, name })
    assert.deepStrictEqual([lock.name, seen, await there.done()], [name, name, [true, name]])
    const error = await rejection(lock.lockAsync({ timeout: 1 }))
    if (name.length < 40) assert.ok(error.message.includes(`AsyncLock ${JSON.stringify(name)}, held by`), error.message)
    token.unlock()
    await locks.request(name, async granted => {
      const { held } = await locks.query()
      const { name: inSnapshot } = snapshot().held.find(({ kind }) => kind === 'named')
      assert.deepStrictEqual([granted.name, inSnapshot, held.map(({ name }) => name)], [name, name, [name]])
      // Another one, not the same after a conversion.
      assert.strictEqual(await locks.request(name + '\ud801', { ifAvailable: true }, other => other.name), name + '\ud801')
    })
  }
})

test('ERR_DEADLOCK has the names, in its message and its cycle', async t => {
  const sab = memory(12)
  new AsyncLock(sab, { name: 'first' }) // eslint-disable-line no-new
  new AsyncLock(sab, { byteOffset: 4, name: 'second' }) // eslint-disable-line no-new
  const workers = [[0, 4], [4, 0]].map(offsets => startWorker(t, ({ api: { AsyncLock }, data: { sab, offsets }, wait }) => {
    const [mine, other] = offsets.map(byteOffset => new AsyncLock(sab, { byteOffset }))
    const both = new Int32Array(sab, 8, 1)
    const token = mine.lock()
    Atomics.add(both, 0, 1)
    while (Atomics.load(both, 0) < 2);
    try {
      other.lock().unlock()
      return null
    } catch ({ message, kind, id, cycle }) {
      return { message, isOther: kind === 'AsyncLock' && id === other.id, names: cycle.map(({ holds, waitsFor }) => [holds.name, waitsFor.name]) }
    } finally {
      token.unlock()
    }
  }, { sab, offsets }))
  const [found] = (await Promise.all(workers.map(worker => worker.done()))).filter(Boolean)
  assert.ok(/waits for AsyncLock "(first|second)" that thread \d+ holds/.test(found.message), found.message)
  assert.strictEqual(found.isOther, true)
  assert.deepStrictEqual(found.names.map(names => names.join()).sort(), ['first,second', 'second,first'])
})

test('ERR_DEADLOCK of a thread with itself has the name, the kind and the id of what it would wait for', async t => {
  const errors = await startWorker(t, async ({ api: { AsyncLock, Condition, RwLock, locks } }) => {
    const make = (Class, name) => new Class(new SharedArrayBuffer(4), { name })
    const [lock, other, rwLock, condition] = [make(AsyncLock, 'a'), make(AsyncLock, 'b'), make(RwLock, 'c'), make(Condition, 'd')]
    const errors = []
    const refused = (id, form) => {
      try {
        form()
        errors.push('nothing')
      } catch (error) {
        errors.push([error.code, error.kind, error.id === id, error.message])
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
    errors[errors.length - 1].splice(2, 1)
    return errors
  }).done()
  const of = (caller, kind, noun, does = 'holds') => ['ERR_DEADLOCK', kind, true, `${caller}: would wait for ${noun}, which this thread itself already ${does}`]
  assert.deepStrictEqual(errors, [
    of('lock', 'AsyncLock', 'AsyncLock "a"'),
    of('lockIfAvailable', 'AsyncLock', 'AsyncLock "a"'),
    of('executeLockedSync', 'AsyncLock', 'AsyncLock "a"'),
    of('wait', 'AsyncLock', 'AsyncLock "a"', 'awaits'),
    of('lock', 'RwLock', 'RwLock "c" (exclusive)'),
    of('executeLockedSync', 'RwLock', 'RwLock "c" (exclusive)'),
    of('lockShared', 'RwLock', 'RwLock "c" (shared)'),
    of('lock', 'AsyncLock', 'AsyncLock "b"', 'awaits'),
    of('requestSync', 'named', 'the lock named "e"').filter(value => value !== true)
  ])
})

test('the warning of what is pending has the name', async t => {
  const { stderr, code } = await runChild(t, ({ api: { AsyncLock, Condition, Latch } }) => {
    const sab = new SharedArrayBuffer(12)
    const lock = new AsyncLock(sab, { name: 'the lock' })
    lock.tryLock()
    lock.lockAsync()
    new Latch(sab, { byteOffset: 4, count: 1, name: 'the latch' }).waitAsync()
    const other = new AsyncLock(new SharedArrayBuffer(4))
    new Condition(sab, { byteOffset: 8, name: 'the condition' }).waitAsync(other.tryLock())
  })
  assert.strictEqual(code, 0)
  for (const text of ['waits for AsyncLock "the lock" is', 'waits for Latch "the latch" is', 'waits for Condition "the condition" is']) assert.ok(stderr.includes(text), stderr)
})

test('a name goes with its memory', { skip: typeof WeakRef === 'undefined' && 'this Node has no weak references', timeout: 60000 }, async t => {
  const { code, lines, stderr } = await runChild(t, async ({ api: { AsyncLock }, say, sleep }) => {
    const named = () => { for (let n = 0; n < 200; n++) new AsyncLock(new SharedArrayBuffer(4096), { name: `number ${n}` }) } // eslint-disable-line no-new
    named()
    const ids = new Set()
    // Until addresses of those memories have come again.
    let stale = 0
    let made = 0
    for (let pass = 0; pass < 50; pass++) {
      global.gc()
      await sleep(2)
      for (let n = 0; n < 200; n++) {
        const lock = new AsyncLock(new SharedArrayBuffer(4096))
        if (lock.name !== '') stale++
        if (ids.has(lock.id)) made++
        ids.add(lock.id)
      }
    }
    say(stale)
    say(made > 0)
  }, undefined, { execArgv: ['--expose-gc'] })
  assert.deepStrictEqual([code, lines], [0, ['0', 'true']], stderr)
})

test('the channels have the name', { skip: MAJOR < 16 && 'this Node has no diagnostics_channel' }, async t => {
  const { channel } = require('diagnostics_channel')
  const messages = []
  const listener = (message) => { messages.push(message) }
  const wait = channel('atomics-waitasync:wait')
  wait.subscribe(listener)
  t.after(() => wait.unsubscribe(listener))
  const lock = new AsyncLock(memory(4), { name: 'the name' })
  const token = lock.tryLock()
  const next = lock.lockAsync()
  token.unlock()
  ;(await next).unlock()
  await until(() => messages.some(({ id }) => id === lock.id), 'the wait is told')
  const { kind, name } = messages.find(({ id }) => id === lock.id)
  assert.deepStrictEqual({ kind, name }, { kind: 'AsyncLock', name: 'the name' })
})
