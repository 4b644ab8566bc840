'use strict'

// The states of a Queue's waits, steps and messages: each transition of their tables is reached, and no other one. And
// what a program does within a step, where the package calls something that it has replaced.

const assert = require('assert')
const fs = require('fs')
const os = require('os')
const path = require('path')
const vm = require('vm')
const { test } = require('../harness')
const { Atomics, api } = require('../subject')
const { linesOf, randomFrom, startWorker, until } = require('../fixtures/queue-toolbox')
const { TinyController } = require('../fixtures/lock-toolbox')
const { needsChannels } = require('../fixtures/channels')
const { queueWith, waiting } = require('../fixtures/queue-messages')
const slowness = require('../fixtures/slowness')
const inside = require('../fixtures/inside')

const theList = inside('holding/the-list')
const { PUTTERS, PUT_LOCK, TAKE_LOCK } = inside('queue/layout')
const { QueueMemory } = inside('queue/memory')
const { QueueWaiter } = inside('queue/waits')

const make = (options, ...messages) => queueWith(Object.assign({ capacity: 4, messageSize: 64 }, options), ...messages)

/** Replaces a method until the test is over. */
function replace (t, object, name, method) {
  const original = object[name]
  object[name] = method(original)
  t.after(() => { object[name] = original })
}

// ——— Waits ———

const WAITS = {
  tries: ['tries', 'at events', 'at lock', 'over'],
  'at events': ['notified', 'tries', 'over'],
  notified: ['tries', 'at lock', 'over'],
  'at lock': ['had lock', 'over'],
  'had lock': ['tries', 'at lock', 'over'],
  over: []
}

test('promises that wait go through all states of the table, by its transitions, and leave nothing behind', async t => {
  const seen = new Set()
  replace(t, QueueWaiter.prototype, 'become', become => function (state) {
    const transition = `${this.state} → ${state}`
    assert.ok(WAITS[this.state].includes(state), transition)
    seen.add(transition)
    become.call(this, state)
  })
  const all = [].concat(...Object.keys(WAITS).map(from => WAITS[from].map(to => `${from} → ${to}`)))
  const entries = theList().length
  for (let seed = 1; seed < 5 || seen.size < all.length; seed++) {
    assert.ok(seed < 200, `not reached: ${all.filter(transition => !seen.has(transition))}`)
    await waitAtRandom(randomFrom(seed))
    assert.strictEqual(theList().length, entries)
  }
})

async function waitAtRandom (random) {
  const queue = make({ capacity: 1 + Math.floor(2 * random()) })
  const words = new Int32Array(queue.buffer)
  const locks = [PUT_LOCK, TAKE_LOCK]
  const waits = []
  const got = []
  let put = 0
  const wait = method => {
    const controller = new TinyController()
    const options = { signal: controller.signal, timeout: random() < 0.3 ? 3 * random() : undefined }
    waits.push({ controller, over: method(options).catch(({ name }) => name) })
  }
  const leave = lock => {
    Atomics.store(words, lock, 0)
    api.notify(words, lock, 1)
  }
  const actions = [
    () => wait(async options => { await queue.putAsync('m', options); put++ }),
    () => wait(async options => { got.push(await queue.takeAsync(options)) }),
    () => { if (queue.tryPut('m')) put++ },
    () => { const value = queue.tryTake(); if (value !== undefined) got.push(value) },
    () => { if (waits.length > 0) waits[Math.floor(random() * waits.length)].controller.abort() },
    // As if another thread were inside a step; and as if it left that, or another one came at once.
    () => { const lock = locks[random() < 0.5 ? 0 : 1]; Atomics.compareExchange(words, lock, 0, 1) },
    () => { const lock = locks[random() < 0.5 ? 0 : 1]; if (words[lock] === 1) leave(lock) },
    () => { for (const lock of locks) if (words[lock] === 1) api.notify(words, lock, 1) },
    () => new Promise(resolve => setTimeout(resolve, random() < 0.1 ? 4 : 0))
  ]
  for (let n = 0; n < 60; n++) await actions[Math.floor(random() * actions.length)]()
  for (const lock of locks) if (words[lock] === 1) leave(lock)
  let isOver = false
  const over = Promise.all(waits.map(({ over }) => over)).then(() => { isOver = true })
  // Promises that put or take go on, or give up.
  while (!isOver) {
    for (const { controller } of waits) controller.abort()
    await new Promise(resolve => setTimeout(resolve, 1))
  }
  await over
  assert.deepStrictEqual([queue.waiters, words[PUTTERS], queue.length], [0, 0, put - got.length])
}

test('clearAsync: ref and unref know its promise while another thread is inside a step', async () => {
  const queue = make({}, 1, 2)
  const words = new Int32Array(queue.buffer)
  Atomics.store(words, TAKE_LOCK, 1)
  const clear = queue.clearAsync()
  assert.deepStrictEqual([api.unref(clear), api.ref(clear)], [true, true])
  Atomics.store(words, TAKE_LOCK, 0)
  api.notify(words, TAKE_LOCK, 1)
  assert.strictEqual(await clear, 2)
  assert.deepStrictEqual([api.ref(clear), queue.waiters], [false, 0])
})

// ——— Messages ———

test('a taker finds messages of each kind, to use them and for good', async t => {
  const seen = new Set()
  replace(t, QueueMemory.prototype, 'pass', pass => function (kind, slot, head, toUse) {
    seen.add(`${kind} ${toUse}`)
    return pass.call(this, kind, slot, head, toUse)
  })
  for (let seed = 1; seed < 5 || seen.size < 6; seed++) {
    assert.ok(seed < 100, `only ${Array.from(seen)}`)
    const random = randomFrom(seed)
    const queue = make({ capacity: 3 })
    let last = 0
    const got = []
    for (let n = 0; n < 60; n++) {
      const choice = random()
      if (choice < 0.4) {
        if (queue.tryPut(last)) last++
      } else if (choice < 0.6) {
        const value = queue.tryTake()
        if (value !== undefined) got.push(value)
      } else if (queue.length > 0) {
        await queue.use((value, { putBack }) => {
          if (choice < 0.7) got.push(value)
          else putBack({ last: choice < 0.85 })
        })
      }
    }
    for (let value = queue.tryTake(); value !== undefined; value = queue.tryTake()) got.push(value)
    assert.deepStrictEqual(got.sort((a, b) => a - b), Array.from({ length: last }, (_, n) => n))
    assert.strictEqual(queue.inUse, 0)
  }
})

// ——— Steps ———

/** Notes the transitions of this thread's steps. */
function watchSteps (t) {
  const { queues } = theList()
  const seen = new Set()
  const watched = step => {
    let { memory } = step
    const stateOf = memory => memory === undefined ? 'no step' : 'inside'
    return Object.defineProperty(step, 'memory', {
      get: () => memory,
      set (next) {
        seen.add(`${stateOf(memory)} → ${stateOf(next)}`)
        memory = next
      }
    })
  }
  replace(t, queues, 'begun', begun => watched(Object.assign(Object.create(null), begun)))
  return seen
}

/** Runs a function that never ends, until a time limit of `vm` interrupts it. */
function interrupt (run) {
  global.run = run
  try {
    vm.runInThisContext('run()', { timeout: slowness * 20 })
  } catch (error) {
    assert.ok(/timed out/.test(error.message), error)
    return
  } finally {
    delete global.run
  }
  assert.fail('it ended')
}

test('steps that a time limit has interrupted are undone by the next one', t => {
  const seen = watchSteps(t)
  const other = make({}, 4, 5)
  // An interrupt of the package's own code.
  const puts = () => { for (;;) { other.tryPut(8); other.tryTake() } }
  const interruptInside = () => {
    for (let n = 0; n < 100 && theList().queues.begun.memory === undefined; n++) interrupt(puts)
    assert.notStrictEqual(theList().queues.begun.memory, undefined)
  }
  interruptInside()
  other.clear()
  for (let n = 0; n < other.capacity; n++) assert.ok(other.tryPut(n))
  assert.deepStrictEqual(other.tryTakeMany(9), [0, 1, 2, 3])
  assert.deepStrictEqual([other.inUse, theList().length], [0, 0])
  assert.deepStrictEqual(Array.from(seen).sort(), ['inside → no step', 'no step → inside'])
})

test('methods that a program puts into Buffer.prototype are not called within a step', t => {
  const queue = make({ format: 'json' })
  let calls = 0
  for (const name of ['utf8Write', 'utf8Slice', 'write', 'toString']) {
    replace(t, Buffer.prototype, name, original => function (...args) {
      calls++
      return original.apply(this, args)
    })
  }
  queue.tryPut('text')
  assert.strictEqual(queue.tryTake(), 'text')
  assert.strictEqual(calls, 0)
})

/** Puts in a thread in which every asynchronous resource uses another queue. */
const startPutter = (t, queue, other) => startWorker(t, [queue, other], ({ api, data, post, require, subscribe }) => {
  const [queue, other] = data.map(clone => new api.Queue(clone))
  let calls = 0
  subscribe('wait', () => {})
  require('async_hooks').createHook({ init () { if (calls++ < 50) other.tryTake() } }).enable()
  const put = () => {
    try {
      queue.put('more')
      return 'put'
    } catch ({ code }) {
      return code
    }
  }
  let outcome
  queue.useSync(() => {
    post('uses')
    while (queue.inUse < queue.capacity);
    outcome = put()
  })
  return [outcome, calls > 0]
})

test('a hook that uses a queue within a blocking put: the last of the users still gets ERR_DEADLOCK', needsChannels,
  async t => {
    const queue = make({ capacity: 2 }, 1, 2)
    const putters = [startPutter(t, queue, make()), startPutter(t, queue, make())]
    const outcomes = await Promise.all(putters.map(putter => putter.done()))
    assert.deepStrictEqual(outcomes.map(([outcome]) => outcome).sort(), ['ERR_DEADLOCK', 'put'])
    assert.ok(outcomes.every(([, isCalled]) => isCalled))
  })

test('a thread that blocks to put is counted, though Error.prepareStackTrace uses the queue meanwhile', async t => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'profile-'))
  const file = path.join(folder, 'waits.cpuprofile')
  t.after(() => {
    if (fs.existsSync(file)) fs.unlinkSync(file)
    fs.rmdirSync(folder)
  })
  const lines = await linesOf(t, async ({ api, say, startWorker, until, require }) => {
    const queue = api.Queue.create({ capacity: 1, messageSize: 64 })
    const used = new Int32Array(new SharedArrayBuffer(4))
    queue.tryPut('first')
    const worker = startWorker([queue, used], ({ api, data: [clone, used] }) => {
      const queue = new api.Queue(clone)
      Error.prepareStackTrace = error => {
        queue.tryPut('never')
        Atomics.add(used, 0, 1)
        return `${error}\n    at the program`
      }
      queue.put('second')
      delete Error.prepareStackTrace
      return queue.waiters
    })
    await until(() => Atomics.load(used, 0) > 0 && queue.waiters === 1, 'it has been used')
    const { PUTTERS } = require('../../lib/queue/layout')
    say(new Int32Array(queue.buffer)[PUTTERS])
    say(await queue.takeAsync())
    say(await worker.done())
    say(await queue.takeAsync())
    say(new Int32Array(queue.buffer)[PUTTERS])
  }, undefined, { env: { ATOMICS_WAITASYNC_PROFILE: file } })
  assert.deepStrictEqual(lines, ['1', 'first', '0', 'second', '0'])
})

test('a hook that puts within the first steps of a put that waits: the order stays, and nothing waits on', async t => {
  const queue = make({ capacity: 1 }, 'first')
  const puts = []
  let isJoining = false
  const signal = {
    aborted: false,
    addEventListener () {
      if (isJoining) return
      isJoining = true
      assert.strictEqual(queue.tryTake(), 'first')
      puts.push(queue.putAsync('second'))
    },
    removeEventListener () {}
  }
  const put = queue.putAsync('joins', { signal })
  assert.strictEqual(await queue.takeAsync(), 'joins')
  await put
  assert.strictEqual(await queue.takeAsync(), 'second')
  await Promise.all(puts)
  await until(() => queue.waiters === 0, 'nobody waits')
  assert.deepStrictEqual([queue.tryPut('free'), queue.length], [true, 1])
  await waiting(queue, 0)
})
