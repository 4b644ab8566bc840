'use strict'
// nodes: >=16 (older ones lack what the engines need)
// subjects: force

// AsyncLock, RwLock, Semaphore with permits and Latch on memory of several processes.

const assert = require('assert')
const path = require('path')
const { Worker } = require('worker_threads')
const { test } = require('../harness')
const { api } = require('../subject')
const { runForJSON, runNode } = require('../fixtures/run-node')
const { unavailable } = require('../fixtures/shared-memory')
const { startProcesses, until } = require('../fixtures/shared-memory-process')

const { AsyncLock, Barrier, Condition, Latch, Queue, RwLock, Semaphore } = api
const LENGTH = 4096

const start = (t, count) => startProcesses(t, LENGTH, count)

// ——— In other processes, or their Workers ———

/** Takes a hold, by the form of this name, and keeps it. Its result is what the token says of the last holder. */
async function take ({ api, memory, kept }, kind, form, args = [], options = undefined) {
  kept.instance = new api[kind](memory, options || undefined)
  kept.token = await kept.instance[form](...args)
  return kept.token === null ? null : kept.token.ownerDied
}
const giveBack = ({ kept }) => kept.token.unlock()
const inWorker = ({ inWorker }, source, ...args) => inWorker(source, ...args)

/**
 * Adds to a word without an atomic operation, in main and in a Worker: from when all `threads` have begun, until the
 * time is over for one of them. Returns how often.
 */
async function count (world, kind, milliseconds, threads) {
  const loop = async ({ api, memory, words }, kind, milliseconds, threads, blocks) => {
    const [BEGUN, OVER] = [20, 21]
    const { byteOffset, permits, form } = {
      AsyncLock: { form: 'lock' }, RwLock: { form: 'lock', byteOffset: 4 },
      Semaphore: { form: 'hold', byteOffset: 8, permits: 1 }, none: {}
    }[kind]
    const options = permits === undefined ? { byteOffset } : { byteOffset, permits }
    const lock = kind !== 'none' && new api[kind](memory, options)
    Atomics.add(words, BEGUN, 1)
    while (Atomics.load(words, BEGUN) < threads) await new Promise(setImmediate)
    const end = Date.now() + milliseconds
    let mine = 0
    for (; Date.now() < end && Atomics.load(words, OVER) === 0; mine++) {
      const token = !lock ? undefined : blocks ? lock[form]() : await lock[form + 'Async']()
      const value = words[16]
      for (let n = 0; n < 100; n++);
      words[16] = value + 1
      if (token !== undefined) token.unlock()
    }
    Atomics.store(words, OVER, 1)
    return mine
  }
  const blocking = world.inWorker(`(world, ...args) => (${loop})(world, ...args, true)`, kind, milliseconds,
    threads)
  const awaiting = loop(world, kind, milliseconds, threads, false)
  return await blocking + await awaiting
}

for (const kind of ['AsyncLock', 'RwLock', 'Semaphore']) {
  test(`${kind}: threads of several processes count without a loss, and none of these starves`, async t => {
    if (unavailable) return t.skip(unavailable)
    const { words, processes } = await start(t, 3)
    const counts = await Promise.all(processes.map(other => other.run(count, kind, 1500, 6)))
    assert.strictEqual(counts.reduce((sum, each) => sum + each, 0), words[16])
    assert.ok(Math.min(...counts) > 0.5 * Math.max(...counts), `shares: ${counts}`)
  })
}

/** Runs the three in Workers, for a second; each returns a number. */
const together = (memory, ...fns) => Promise.all(fns.map(fn => {
  const source = `const { parentPort, workerData: { memory } } = require('worker_threads')
    const { AsyncLock, notify } = require(${JSON.stringify(path.join(__dirname, '..', '..'))})
    const [lock, words, end] = [new AsyncLock(memory), new Int32Array(memory), Date.now() + 1000]
    const add = () => {
      const value = words[16]
      for (let n = 0; n < 20; n++);
      words[16] = value + 1
    }
    let done = 0
    while (Date.now() < end) for (let n = 0; n < 100; n++) done += (${fn})({ lock, words, add, notify })
    parentPort.postMessage(done)`
  return new Promise((resolve, reject) =>
    new Worker(source, { eval: true, workerData: { memory } }).on('message', resolve).on('error', reject))
}))
const byLock = ({ lock, add }) => {
  const token = lock.tryLock()
  if (token === null) return 0
  add()
  token.unlock()
  return 1
}

test('a view that detects re-entry refuses a nested request for memory of several processes', async t => {
  if (unavailable) return t.skip(unavailable)
  const { memory } = await start(t, 0)
  const lock = new AsyncLock(memory, { detectReentry: true })
  await assert.rejects(lock.executeLocked(() => lock.executeLocked(() => {})), { code: 'ERR_DEADLOCK' })
  assert.strictEqual(lock.locked, false)
})

test('threads that lock the bare word count without a loss beside those that use the class', async t => {
  if (unavailable) return t.skip(unavailable)
  const { memory, words } = await start(t, 0)
  const counts = await together(memory, byLock, byLock, ({ words, add, notify }) => {
    if (Atomics.compareExchange(words, 0, 0, 1) !== 0) return 0
    add()
    Atomics.store(words, 0, 0)
    notify(words, 0, 1)
    return 1
  })
  assert.ok(counts.every(each => each > 0), `counts: ${counts}`)
  assert.strictEqual(counts.reduce((sum, each) => sum + each, 0), words[16])
})

test('a claim is told when code of another process that uses the bare word notifies there', async t => {
  if (unavailable) return t.skip(unavailable)
  const { memory, words, processes: [other] } = await start(t, 1)
  const lock = new AsyncLock(memory)
  const take = isBare => other.run(async ({ api, memory, words, kept }, isBare) => {
    if (!isBare) kept.token = await new api.AsyncLock(memory).lockAsync()
    else while (Atomics.compareExchange(words, 0, 0, 1) !== 0);
  }, isBare)
  const free = ({ api, words, kept }, isBare) => {
    if (!isBare) return kept.token.unlock()
    Atomics.store(words, 0, 0)
    api.notify(words, 0, 1)
  }
  const times = { true: 0, false: 0 }
  for (let round = 0; round < 20; round++) {
    for (const isBare of [true, false]) {
      await take(isBare)
      const claim = lock.lockAsync()
      const begin = Date.now()
      await other.run(free, isBare)
      const token = await claim
      times[isBare] += Date.now() - begin
      token.unlock()
    }
  }
  // By looks at the word alone it would be fifty milliseconds each time.
  assert.ok(times.true < 3 * times.false + 200, `with the bare word ${times.true} ms, by the class ${times.false} ms`)
  assert.strictEqual(words[0], 0)
})

test('a thread that does not hold the lock never frees it', async t => {
  if (unavailable) return t.skip(unavailable)
  const { memory } = await start(t, 0)
  const counts = await together(memory, byLock, byLock, ({ lock }) => {
    try {
      lock.unlock()
      return 1
    } catch (_) {
      return 0
    }
  })
  assert.strictEqual(counts[2], 0)
})

test('an unlock wakes those who wait at the word without a claim, in any process', async t => {
  if (unavailable) return t.skip(unavailable)
  const { memory, words, processes: [other] } = await start(t, 1)
  const lock = new AsyncLock(memory)
  for (const wait of [
    () => {
      words[20] = 1
      return api.waitAsync(words, 0, 1).value
    },
    () => other.run(({ api, words }) => {
      const { value } = api.waitAsync(words, 0, 1)
      words[20] = 1
      return value
    })
  ]) {
    words[20] = 0
    const token = lock.tryLock()
    const waited = wait()
    await until(() => words[20] === 1)
    token.unlock()
    assert.strictEqual(await waited, 'ok')
  }
})

test('without a lock they lose some', async t => {
  if (unavailable) return t.skip(unavailable)
  const { words, processes } = await start(t, 3)
  const counts = await Promise.all(processes.map(other => other.run(count, 'none', 500, 6)))
  assert.ok(counts.reduce((sum, each) => sum + each, 0) > words[16])
})

for (const [kind, form, options] of [
  ['AsyncLock', 'lockAsync'], ['RwLock', 'lockAsync'], ['RwLock', 'lockSharedAsync'],
  ['Semaphore', 'holdAsync', { permits: 1 }]
]) {
  const isExclusive = kind !== 'Semaphore' && form === 'lockAsync'

  test(`${kind}: ${form} waits for another process, which gives back, or dies`, async t => {
    if (unavailable) return t.skip(unavailable)
    const { memory, words, processes: [holder, victim] } = await start(t, 2)
    const wanted = kind === 'Semaphore' ? 'holdAsync' : 'lockAsync'
    const instance = new api[kind](memory, options)
    assert.strictEqual(await holder.run(take, kind, form, [], options), false)
    const next = instance[wanted]()
    const late = kind === 'Semaphore' ? instance.holdAsync(1, { timeout: 10 }) : instance[wanted]({ timeout: 10 })
    await assert.rejects(late, { name: 'TimeoutError' })
    await holder.run(giveBack)
    const token = await next
    assert.strictEqual(token.ownerDied, false)
    const claim = victim.run(take, kind, form, [], options)
    token.unlock()
    await claim
    const heir = instance[wanted]()
    await victim.kill()
    assert.strictEqual((await heir).ownerDied, isExclusive)
    ;(await heir).unlock()
    assert.strictEqual((await instance[wanted]()).ownerDied, false)
    assert.notStrictEqual(words[0], 0)
  })

  test(`${kind}: after a ${form} whose process died, the next taker of a free word learns of it`, async t => {
    if (unavailable) return t.skip(unavailable)
    const { memory, words, processes: [victim, other] } = await start(t, 2)
    assert.ok(memory)
    await victim.run(take, kind, form, [], options)
    assert.notStrictEqual(words[0], 0)
    await victim.kill()
    await until(() => words[0] === 0)
    const wanted = kind === 'Semaphore' ? 'holdAsync' : 'lockAsync'
    assert.strictEqual(await other.run(take, kind, wanted, [], options), isExclusive)
  })

  test(`${kind}: after a ${form} whose thread died, the next holder in another process learns of it`, async t => {
    if (unavailable) return t.skip(unavailable)
    const { memory, words, processes: [victim] } = await start(t, 1)
    const wanted = kind === 'Semaphore' ? 'holdAsync' : 'lockAsync'
    for (const waits of [false, true]) {
      await victim.run(inWorker, `(world) => (${take})(world, '${kind}', '${form}', [], ${JSON.stringify(options)})`)
      const instance = new api[kind](memory, options)
      const early = waits ? instance[wanted]() : undefined
      await victim.run(({ endWorker }) => endWorker())
      if (!waits) await until(() => words[0] === 0)
      const token = await (early || instance[wanted]())
      assert.strictEqual(token.ownerDied, isExclusive)
      token.unlock()
    }
  })
}

test('a thread blocks for a process: with a timeout, and until that gives back', async t => {
  if (unavailable) return t.skip(unavailable)
  const { processes: [holder, other] } = await start(t, 2)
  await holder.run(take, 'AsyncLock', 'lockAsync')
  await assert.rejects(other.run(inWorker, `(world) => (${take})(world, 'AsyncLock', 'lock', [{ timeout: 10 }])`),
    { name: 'TimeoutError' })
  const claim = other.run(inWorker, `(world) => (${take})(world, 'AsyncLock', 'lock')`)
  await holder.run(giveBack)
  assert.strictEqual(await claim, false)
})

test('readers of several processes are inside together, and a waiting writer stops new ones', async t => {
  if (unavailable) return t.skip(unavailable)
  const { memory, words, processes: [first, second] } = await start(t, 2)
  await first.run(take, 'RwLock', 'lockSharedAsync')
  await second.run(take, 'RwLock', 'lockSharedAsync')
  assert.strictEqual(words[0], 2)
  const lock = new RwLock(memory)
  let isWriting = false
  const writer = lock.lockAsync().then(token => { isWriting = true; return token })
  await first.run(giveBack)
  await new Promise(resolve => setTimeout(resolve, 20))
  assert.strictEqual(isWriting, false)
  await second.run(giveBack)
  const token = await writer
  assert.strictEqual(words[0], -1)
  const reader = first.run(take, 'RwLock', 'lockSharedAsync')
  const shared = token.downgrade()
  assert.strictEqual(await reader, false)
  assert.strictEqual(words[0], 2)
  shared.unlock()
  await first.run(giveBack)
  assert.strictEqual(words[0], 0)
})

test('permits: no more than there are, and those of the dead come back', async t => {
  if (unavailable) return t.skip(unavailable)
  const { memory, words, processes } = await start(t, 2)
  const semaphore = new Semaphore(memory, { permits: 5 })
  for (const other of processes) await other.run(take, 'Semaphore', 'tryHold', [2], { permits: 5 })
  assert.strictEqual(semaphore.available, 1)
  assert.strictEqual(semaphore.tryHold(2), null)
  const all = semaphore.holdAsync(5)
  await processes[0].kill()
  await until(() => words[0] === 2)
  await processes[1].kill()
  ;(await all).unlock()
  assert.strictEqual(semaphore.available, 5)
})

test('a latch opens for all, and stays open when its processes have ended', async t => {
  if (unavailable) return t.skip(unavailable)
  const { memory, processes: [first, second] } = await start(t, 2)
  const latch = new Latch(memory, { count: 3 })
  const opening = latch.waitAsync()
  const elsewhere = second.run(inWorker, '({ api, memory }) => { new api.Latch(memory, { count: 3 }).wait() }')
  await first.run(({ api, memory }) => new api.Latch(memory, { count: 3 }).countDown(2))
  await first.kill()
  assert.strictEqual(latch.remaining, 1)
  latch.countDown()
  await Promise.all([opening, elsewhere])
})

test('an abort, and tryLock, as among threads', async t => {
  if (unavailable) return t.skip(unavailable)
  const { memory, processes: [holder, other] } = await start(t, 2)
  await holder.run(take, 'AsyncLock', 'lockAsync')
  const lock = new AsyncLock(memory)
  assert.strictEqual(lock.tryLock(), null)
  assert.strictEqual(lock.locked, true)
  const controller = new AbortController()
  const aborted = lock.lockAsync({ signal: controller.signal })
  controller.abort()
  await assert.rejects(aborted, { name: 'AbortError' })
  const claim = other.run(take, 'AsyncLock', 'lockAsync')
  await holder.run(giveBack)
  assert.strictEqual(await claim, false)
})

test('owner names the process that has a lock, and so does who waits in vain, or unlocks it', async t => {
  if (unavailable) return t.skip(unavailable)
  const { threadId } = require('worker_threads')
  const { memory, processes: [other] } = await start(t, 1)
  for (const kind of ['AsyncLock', 'RwLock']) {
    const lock = new api[kind](memory)
    assert.strictEqual(lock.owner, null)
    const token = await lock.lockAsync()
    assert.deepStrictEqual(lock.owner, { pid: process.pid, threadId })
    assert.deepStrictEqual(await other.run(({ api, memory }, kind) => {
      const { holder, owner } = new api[kind](memory)
      return { holder, owner }
    }, kind), { holder: null, owner: { pid: process.pid, threadId: null } })
    token.unlock()
    await other.run(take, kind, 'lockAsync')
    await assert.rejects(lock.lockAsync({ timeout: 1 }), ({ message, holder, owner }) => {
      assert.deepStrictEqual({ holder, owner }, { holder: null, owner: { pid: other.pid, threadId: null } })
      return message.includes(`held by process ${other.pid}`)
    })
    if (kind === 'AsyncLock') assert.throws(() => lock.unlock(), new RegExp(`held by process ${other.pid}`))
    assert.deepStrictEqual(lock.owner, { pid: other.pid, threadId: null })
    await other.run(giveBack)
  }
  const own = new AsyncLock()
  await own.lockAsync()
  assert.deepStrictEqual(own.owner, { pid: process.pid, threadId })
})

test('a report of a stall names the process that has the lock', async t => {
  if (unavailable) return t.skip(unavailable)
  const { file, processes: [holder] } = await start(t, 1)
  await holder.run(take, 'AsyncLock', 'lockAsync')
  const { stderr } = await runNode(t, ['-e', `
    const { AsyncLock } = require(${JSON.stringify(path.join(__dirname, '..', '..'))})
    const { sharedMemory } = require(${JSON.stringify(path.join(__dirname, '..', '..', 'processes'))})
    new AsyncLock(sharedMemory(${JSON.stringify(file)}, ${LENGTH})).lockAsync()
    process.on('warning', () => process.exit())`], { env: { ATOMICS_WAITASYNC_STALL: '10' } })
  assert.match(stderr, new RegExp(`waiting for an AsyncLock, held by process ${holder.pid}`))
})

test('a snapshot names the process for which a claim waits, and no cycle through it', async t => {
  if (unavailable) return t.skip(unavailable)
  const { memory, processes: [other] } = await start(t, 1)
  const [mine, theirs] = [0, 4].map(byteOffset => new AsyncLock(memory, { byteOffset }))
  const token = mine.tryLock()
  await other.run(async ({ api, memory, kept }) => {
    kept.token = await new api.AsyncLock(memory, { byteOffset: 4 }).lockAsync()
    kept.claim = new api.AsyncLock(memory).lockAsync()
  })
  const claims = [theirs.lockAsync(), mine.lockAsync()]
  const state = api.snapshot()
  assert.deepStrictEqual(state.waiting.map(({ id, awaits }) => [id, awaits]).sort(), [
    [theirs.id, `process ${other.pid}`], [mine.id, undefined]
  ].sort())
  assert.deepStrictEqual(state.cycles, [])
  assert.ok(api.formatSnapshot(state).includes(`it waits for process ${other.pid}, which has the lock`))
  await other.kill()
  token.unlock()
  for (const claim of claims) (await claim).unlock()
})

test('repair runs with a hold whose last process died, and once it has ended well nobody else does', async t => {
  if (unavailable) return t.skip(unavailable)
  const { memory, words, processes: [victim] } = await start(t, 1)
  await victim.run(take, 'AsyncLock', 'lockAsync')
  await victim.kill()
  await until(() => words[0] === 0)
  let repairs = 0
  const lock = new AsyncLock(memory, { repair: () => { repairs++ } })
  await assert.rejects(new AsyncLock(memory, { repair: () => { throw new Error('not yet') } })
    .executeLocked(() => {}), /not yet/)
  for (let n = 0; n < 2; n++) await lock.executeLocked(() => {})
  assert.strictEqual(repairs, 1)
})

test('the classes that do not work there say so at once, and name those that do', async t => {
  if (unavailable) return t.skip(unavailable)
  const { memory } = await start(t, 0)
  for (const make of [
    () => new Condition(memory), () => new Barrier(memory, { parties: 2 }), () => new Semaphore(memory),
    () => new Queue(memory, { capacity: 2, messageSize: 8 })
  ]) {
    assert.throws(make, error => error instanceof TypeError && error.code === 'ERR_SHARED_MEMORY_CLASS' &&
      /AsyncLock, RwLock, Semaphore with permits, and Latch/.test(error.message))
  }
})

test('a pending claim keeps its process alive, without a warning', async t => {
  if (unavailable) return t.skip(unavailable)
  const { file, memory, words } = await start(t, 0)
  const token = new AsyncLock(memory).tryLock()
  const held = runForJSON(t, ['-e', `
    const { AsyncLock } = require(${JSON.stringify(path.join(__dirname, '..', '..'))})
    const { sharedMemory } = require(${JSON.stringify(path.join(__dirname, '..', '..', 'processes'))})
    const memory = sharedMemory(${JSON.stringify(file)}, ${LENGTH})
    let end = 'unsettled', warned = false
    process.on('warning', () => { warned = true })
    new AsyncLock(memory).lockAsync().then(() => { end = 'locked' })
    new Int32Array(memory)[8] = 1
    process.on('exit', () => console.log(JSON.stringify([end, warned])))`])
  await until(() => words[8] === 1)
  await new Promise(resolve => setTimeout(resolve, 50))
  token.unlock()
  assert.deepStrictEqual(await held, ['locked', false])
})
