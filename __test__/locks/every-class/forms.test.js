'use strict'

// The behaviour that all classes share, tested on every form that waits: see fixtures/every-class.js.

const assert = require('assert')
const vm = require('vm')
const { test } = require('../../harness')
const { FORMS, allocate, assertIntact, classOf, classes, thingsIn } = require('../../fixtures/every-class')
const { startMember, turns, untilWaiters, waiters, watch } = require('../../fixtures/family-toolbox')
const { TinyController, rejection } = require('../../fixtures/lock-toolbox')
const { run: runProgram } = require('../../fixtures/programs')
const { now, until } = require('../../fixtures/queue-toolbox')
const size = require('../../fixtures/size')
const slowness = require('../../fixtures/slowness')

const NAMES = Object.keys(classes)
const AT = 12
const AWAITING = FORMS.filter(({ blocks }) => !blocks)

/** Returns the state of the object as main sees it. */
const stateOf = ({ word, lock }) => [Atomics.load(word, 0), lock.locked, waiters(word.buffer, AT)]

/** Occupies a thing of class `name`, so that its forms wait. Gives a function that lets one go on. */
function occupied (name) {
  const it = thingsIn(allocate(), name)
  const letGo = classes[name].occupy(it)
  return { it, letGo }
}

/**
 * Checks each form on something of its own that it waits for. `check` gets what the form is; `it`; `begin(options)`,
 * which is its `run` on main; `letGo`; and `unchanged()`, which throws if the state of `it` is not as it was.
 */
async function withEach (forms, check) {
  for (const form of forms) {
    const { it, letGo } = occupied(form.name)
    const before = stateOf(it)
    const unchanged = () => assert.deepStrictEqual(stateOf(it), before, form.label)
    await check(Object.assign({ it, letGo, unchanged, begin: options => form.run(it, options) }, form))
    assertIntact(it.sab)
  }
}

const ofClass = (name) => FORMS.filter(form => form.name === name)

/** Returns how a form ends, as told by threads, too: 'served', 'late' or an error's name. */
const outcome = (promise) => promise.catch(error => error.name)

/** Returns how a form says that the time is over. */
const late = (name) => name === 'Condition' ? 'late' : 'TimeoutError'

// ——— what they are ———

for (const name of NAMES) {
  const Class = classOf(name)
  const { options } = classes[name]
  const make = (buffer, more) => new Class(buffer, Object.assign({}, options, more))

  test(`${name} is a view of four bytes at an offset`, () => {
    assert.strictEqual(Class.byteLength, 4)
    assert.throws(() => { Class.byteLength = 8 }, TypeError)
    const sab = new SharedArrayBuffer(12)
    const thing = make(sab, { byteOffset: 8 })
    assert.strictEqual(thing.buffer, sab)
    assert.strictEqual(thing.byteOffset, 8)
    assert.strictEqual(make(sab).byteOffset, 0)
    assert.strictEqual(make(sab, { byteOffset: undefined }).byteOffset, 0)
    assert.deepStrictEqual(Array.from(new Int32Array(sab)), [0, 0, 0], 'a constructor writes nothing')
    assert.throws(() => Class(sab, options), TypeError)
  })

  test(`${name}: an argument that is no SharedArrayBuffer is refused by name`, () => {
    const expected = new RegExp(
      `^TypeError: ${Class.name}: buffer must be a SharedArrayBuffer, or the clone of an instance, not `
    )
    const sab = new SharedArrayBuffer(4)
    for (const buffer of [
      undefined, null, 0, 'sab', {}, [], new ArrayBuffer(4), new Int32Array(1), new Int32Array(sab)
    ]) {
      assert.throws(() => make(buffer), expected)
    }
  })

  test(`${name}: an offset at which no word lies is refused, with the range that there is`, () => {
    const sab = new SharedArrayBuffer(12)
    const no = new RegExp(`^TypeError: ${Class.name}: byteOffset must be an integer, not `)
    for (const byteOffset of [null, '4', 1.5, NaN, Infinity, {}, true])
      assert.throws(() => make(sab, { byteOffset }), no)
    for (const byteOffset of [-4, 1, 2, 3, 9, 10, 12, 16, 2 ** 40]) {
      const message = new RegExp(`^${Class.name}: byteOffset must be a multiple of 4 from 0 to 8.*${byteOffset}`)
      assert.throws(() => make(sab, { byteOffset }), { name: 'RangeError', message })
    }
    for (const size of [0, 3]) {
      const message = `${Class.name}: buffer is too small: ${size} bytes, 4 needed`
      assert.throws(() => make(new SharedArrayBuffer(size)), { name: 'RangeError', message })
    }
    for (const wrong of [4, '4', null]) assert.throws(() => new Class(sab, wrong), TypeError)
  })

  test(`${name} works in a buffer of another realm`, async () => {
    const it = thingsIn(vm.runInNewContext(`new SharedArrayBuffer(${allocate().byteLength})`), name)
    const letGo = classes[name].occupy(it)
    const result = AWAITING.find(each => each.name === name).run(it, undefined)
    await untilWaiters(it.sab, AT, 1)
    letGo()
    assert.strictEqual(await result, 'served')
  })
}

test('what people write first is refused with the call that they mean', () => {
  const { AsyncLock, Barrier, Latch, Queue, RwLock, Semaphore } = require('../../subject').api
  const queue = { capacity: 4, messageSize: 64 }
  const trapped = Object.defineProperty({}, 'permits', { get: () => assert.fail('a getter was called') })
  const meant = [
    [() => new Semaphore(3), 'Semaphore.create({ permits: 3 })'],
    [() => new Semaphore({ permits: 3 }), 'Semaphore.create({ permits: 3 })'],
    [() => new Semaphore(null, { permits: 3, byteOffset: 8 }), 'Semaphore.create({ permits: 3 })'],
    [() => new Semaphore(trapped), 'Semaphore.create({ permits })'],
    [() => new Barrier(3), 'Barrier.create({ parties: 3 })'],
    [() => new Barrier(), 'Barrier.create({ parties })'],
    [() => new Latch({ count: 2, name: 'start' }), 'Latch.create({ count: 2, name: "start" })'],
    [() => new Latch({}, { count: 2 }), 'Latch.create({ count: 2 })'],
    [() => new Queue(), 'Queue.create({ capacity, messageSize })'],
    [() => new Queue(16), 'Queue.create({ capacity: 16, messageSize })'],
    [() => new Queue(Object.assign({ format: 'json' }, queue)),
      'Queue.create({ capacity: 4, messageSize: 64, format: "json" })'],
    [() => new AsyncLock({ name: 'users' }), 'AsyncLock.create({ name: "users" })'],
    [() => new RwLock(1), 'RwLock.create()']
  ]
  for (const [call, text] of meant) {
    const sentence = `: ${text} makes one in memory of its own`
    assert.throws(call, ({ name, message }) => name === 'TypeError' && message.endsWith(sentence), text)
  }
})

const growable = typeof SharedArrayBuffer.prototype.grow === 'function'
const needsGrowable = { skip: !growable && 'no growable SharedArrayBuffer here' }
test('a buffer may grow while a waiter is in it', needsGrowable, async () => {
  const maxByteLength = 1 << 20
  for (const { name, run, label } of AWAITING) {
    const it = thingsIn(new SharedArrayBuffer(allocate().byteLength, { maxByteLength }), name)
    const letGo = classes[name].occupy(it)
    const result = run(it, undefined)
    await untilWaiters(it.sab, AT, 1)
    it.sab.grow(maxByteLength)
    letGo()
    assert.strictEqual(await result, 'served', label)
    const byteOffset = maxByteLength - 4
    const far = new (classOf(name))(it.sab, Object.assign({ byteOffset }, classes[name].options))
    assert.strictEqual(far.byteOffset, byteOffset)
  }
})

// ——— arguments ———

test('a wrong signal, or an option that throws, is an error that says so, and changes nothing', async () => {
  const signals = [null, {}, { aborted: false }, 'abort', { addEventListener () {} }]
  await withEach(AWAITING, async ({ form, begin, unchanged, label }) => {
    const fails = async (options, message) => {
      const error = await rejection(begin(options))
      assert.ok(error instanceof TypeError, `${label}: ${error}`)
      assert.ok(error.message.startsWith(message), `${label}: ${error.message}`)
      unchanged()
    }
    await fails(null, `${form}: options must be an object, not null`)
    await fails(5, `${form}: options must be an object, not the number 5`)
    await fails('now', `${form}: options must be an object, not the string "now"`)
    for (const signal of signals) await fails({ signal }, `${form}: signal must be an AbortSignal`)
    await fails({ timeout: Symbol('s') }, '')
    const thrown = new Error('from a getter')
    assert.strictEqual(await rejection(begin({ get timeout () { throw thrown } })), thrown)
    unchanged()
  })
})

test('main must not block, and the error names the method to call instead', () => (
  withEach(FORMS.filter(({ blocks }) => blocks), ({ form, twin, begin, unchanged }) => {
    const error = { name: 'TypeError', message: `${form} would block the main thread: use ${twin}` }
    for (const options of [undefined, { timeout: 10 }, { timeout: 0 }]) assert.throws(() => begin(options), error)
    unchanged()
  })
))

test('a form that blocks refuses a signal, and names wrong options', async t => {
  for (const name of NAMES) {
    const { it } = occupied(name)
    const member = await startMember(t, it.sab)
    const before = stateOf(it)
    for (const { form, label } of ofClass(name).filter(({ blocks }) => blocks)) {
      for (const [options, message] of [
        [{ signal: {} }, 'blocks and takes no signal: use the asynchronous form'],
        [null, 'options must be an object, not null'],
        [7, 'options must be an object, not the number 7']
      ]) {
        const error = await rejection(member.do('form', name, form, options))
        assert.strictEqual(error.name, 'TypeError', label)
        assert.ok(error.message.startsWith(form) && error.message.includes(message), error.message)
      }
    }
    assert.deepStrictEqual(stateOf(it), before)
    await member.terminate()
  }
})

// ——— being served ———

for (const name of NAMES) {
  test(`${name}: every form waits until it is served, in threads and on main`, async t => {
    const sab = allocate()
    const it = thingsIn(sab, name)
    const member = await startMember(t, sab)
    for (const { form, blocks, run, label } of ofClass(name)) {
      const begins = [options => member.do('form', name, form, options), options => run(it, options)].slice(
        0,
        blocks ? 1 : 2
      )
      for (const options of [undefined, {}, { timeout: undefined }, { timeout: Infinity }, { timeout: 1e6 }]) {
        for (const begin of begins) {
          const letGo = classes[name].occupy(it)
          const result = begin(options)
          await untilWaiters(sab, AT, 1)
          letGo()
          assert.strictEqual(await result, 'served', label)
        }
      }
    }
    assert.strictEqual(waiters(sab, AT), 0)
    assert.strictEqual(it.lock.locked, false)
    assertIntact(sab)
  })
}

// ——— giving up ———

test('a timeout is never early, leaves no waiter, and changes nothing', async t => {
  await Promise.all(NAMES.map(async name => {
    const { it } = occupied(name)
    const before = stateOf(it)
    const member = await startMember(t, it.sab)
    for (const { form, blocks, run, label } of ofClass(name)) {
      const times = async (options) => {
        const start = now()
        const ours = await outcome(run(it, options))
        return { outcome: ours, elapsed: now() - start }
      }
      const measures = [options => member.do('timeForm', name, form, options), times].slice(0, blocks ? 1 : 2)
      for (const timeout of [0, -3, -Infinity, 0.3, 1.7, 7.5]) {
        for (const measure of measures) {
          const { outcome, elapsed } = await measure({ timeout })
          assert.strictEqual(outcome, late(name), label)
          assert.ok(elapsed >= timeout, `${label}: ${timeout} ms were over after ${elapsed} ms`)
          assert.deepStrictEqual(stateOf(it), before, label)
        }
      }
    }
    assertIntact(it.sab)
  }))
})

test('a TimeoutError is an Error with a code, and says how long it was', async t => {
  for (const name of NAMES.filter(name => name !== 'Condition')) {
    const member = await startMember(t, occupied(name).it.sab)
    for (const { form, label } of ofClass(name)) {
      const {
        name: errorName,
        code,
        isError,
        message
      } = await rejection(member.do('form', name, form, { timeout: 2.5 }))
      assert.deepStrictEqual([errorName, code, isError], ['TimeoutError', 'ERR_TIMEOUT', true], label)
      assert.ok(message.startsWith('Timed out after 2.5 ms waiting for '), message)
    }
    await member.terminate()
  }
})

const isAbortError = error => error instanceof Error && error.name === 'AbortError' && error.code === 'ABORT_ERR'
for (const reason of [undefined, new Error('enough'), 'enough', null, 0, false]) {
  const says = reason === undefined ? 'an AbortError' : `its reason, ${String(reason)}`
  test(`an abort rejects with ${says}, at once`, async () => {
    for (const removes of [true, false]) {
      await withEach(AWAITING, async ({ it, begin, unchanged, label }) => {
        const controller = new TinyController({ reason, removes })
        const result = rejection(begin({ signal: controller.signal }))
        await turns(1)
        assert.strictEqual(waiters(it.sab, AT), 1, label)
        controller.abort()
        assert.strictEqual(waiters(it.sab, AT), 0, label)
        const error = await result
        if (reason === undefined) assert.ok(isAbortError(error), label)
        else assert.strictEqual(error, reason, label)
        unchanged()
        if (removes) assert.strictEqual(controller.listeners.size, 0, label)
        // Some signals without removeEventListener call a listener twice.
        for (const listener of controller.listeners) listener()
        unchanged()
      })
    }
  })
}

const needsController = { skip: typeof AbortController !== 'function' && 'no AbortController here' }
test('the host\'s AbortController works as a signal', needsController, () => (
  withEach(AWAITING, async ({ it, begin, label }) => {
    const controller = new AbortController()
    const options = { signal: controller.signal }
    const result = rejection(begin(options))
    await turns(1)
    controller.abort()
    const error = await result
    assert.strictEqual(error.name, 'AbortError', label)
    assert.ok('reason' in options.signal ? error === options.signal.reason : error.code === 'ABORT_ERR', label)
    assert.strictEqual((await rejection(begin(options))).name, 'AbortError', label)
    assert.strictEqual(waiters(it.sab, AT), 0, label)
  })
))

test('a signal that is aborted already: nothing is taken, and no wait begins', async () => {
  for (const free of [false, true]) {
    await withEach(AWAITING, async ({ name, it, letGo, begin, label }) => {
      if (free && name !== 'Condition' && name !== 'Barrier') letGo()
      const before = stateOf(it)
      const controller = new TinyController({ reason: 'before' })
      controller.abort()
      const watched = watch(begin({ signal: controller.signal }))
      await turns()
      assert.deepStrictEqual(watched, { state: 'rejected', value: 'before' }, `${label}${free ? ', free' : ''}`)
      assert.deepStrictEqual([stateOf(it), controller.listeners.size], [before, 0], label)
    })
  }
})

test('an abort after the wait was served changes nothing, and no listener is left', () => (
  withEach(AWAITING, async ({ it, letGo, begin, label }) => {
    const controller = new TinyController({ reason: 'too late' })
    const result = begin({ signal: controller.signal, timeout: 1e6 })
    await turns(1)
    assert.strictEqual(controller.listeners.size, 1, label)
    letGo()
    assert.strictEqual(await result, 'served', label)
    assert.strictEqual(controller.listeners.size, 0, label)
    controller.abort()
    await turns(1)
    assert.strictEqual(waiters(it.sab, AT), 0, label)
  })
))

test('a timeout leaves no listener behind', () => withEach(AWAITING, async ({ name, begin, label }) => {
  const controller = new TinyController()
  assert.strictEqual(await outcome(begin({ signal: controller.signal, timeout: 1 })), late(name), label)
  assert.strictEqual(controller.listeners.size, 0, label)
}))

test('a signal whose addEventListener throws: the promise rejects, and leaves no waiter', () => (
  withEach(AWAITING, async ({ letGo, begin, unchanged, label }) => {
    const failure = new Error('no listeners here')
    const signal = { aborted: false, addEventListener () { throw failure } }
    assert.strictEqual(await rejection(begin({ signal })), failure, label)
    unchanged()
    const next = begin()
    await turns(1)
    letGo()
    assert.strictEqual(await next, 'served', label)
  })
))

// A thread releases while main is busy; then main gives up. A grant that was made by then is not lost: the next waiter
// is served.
test('giving up when just served: a waiter that is not leaves its turn to the next', { timeout: 90000 }, async t => {
  for (const [place, { name, form, run, label }] of AWAITING.entries()) {
    if (name === 'Barrier' || name === 'Latch') continue
    for (const how of ['abort', 'timeout'].filter((_, n) => size.has(2, n + place))) {
      const sab = allocate()
      const it = thingsIn(sab, name)
      const [holder, next] = await Promise.all([startMember(t, sab), startMember(t, sab)])
      const { of, options: further } = classes[name]
      const onIt = holder.on(of || name, AT, further)
      if (name.endsWith('Lock')) await onIt('tryLock')
      if (of !== undefined) await onIt('tryHold')
      const controller = new TinyController({ reason: 'abort' })
      const options = how === 'abort' ? { signal: controller.signal } : { timeout: 60 }
      const start = now()
      const first = run(it, options).then(value => value, error => error.name || error)
      const watched = watch(first)
      await turns(1)
      // On a busy machine the time of the first may be over by now. The second is in the line in any case.
      await until(() => waiters(sab, AT) === 1 || watched.state !== 'pending', 'the first waits')
      const second = next.do('form', name, form)
      await until(() => waiters(sab, AT) === (watched.state === 'pending' ? 2 : 1), 'the second waits')
      if (name === 'Condition') Atomics.store(it.ready, 0, 1)
      const seen = () => `${Atomics.load(it.word, 0)} ${waiters(sab, AT)}`
      const before = seen()
      // From here on this loop does not turn until it is too late.
      const releases = { Semaphore: () => onIt('release', 1), Condition: () => onIt('notify', 1) }
      const released = (releases[name] || (() => holder.do('unlock', 'token')))()
      if (how === 'abort') {
        while (seen() === before && now() - start < slowness * 20000);
        controller.abort()
      } else {
        while (now() - start < 80);
      }
      await released
      const result = await first
      if (result === 'served') {
        // The first gives a lock or a permit back to the next waiter, but not a notification.
        if (name === 'Condition') {
          const isLeft = waiters(sab, AT) === 1
          assert.strictEqual(it.thing.notify(1), isLeft ? 1 : 0, label)
          // Unless its time was over before the notification, and its predicate was true by then.
          assert.ok(isLeft || (form === 'waitForAsync' && how === 'timeout'), label)
        }
      } else {
        assert.ok(['abort', 'TimeoutError', 'late'].includes(result), `${label}: ${result}`)
      }
      assert.strictEqual(await second, 'served', `${label}, ${how}, after the first was ${result}`)
      assert.strictEqual(waiters(sab, AT), 0, label)
      assert.strictEqual(it.lock.locked, false, label)
      assertIntact(sab)
      await Promise.all([holder.terminate(), next.terminate()])
    }
  }
})

// ——— the event loop ———

test('a pending promise holds the event loop while another thread can still settle it', async t => {
  const { stderr, code, lines } = await runProgram(t, async ({ startWorker, say, require }) => {
    const { FORMS, allocate, classes, thingsIn } = require('./every-class')
    // An idle thread with the package, whose handle does not hold this loop.
    const worker = startWorker(async ({ receive, post, api }) => {
      new api.Semaphore().release()
      post('ready')
      await receive()
    })
    await worker.next()
    worker.worker.unref()
    for (const { name, label, run } of FORMS.filter(({ blocks }) => !blocks)) {
      const it = thingsIn(allocate(), name)
      const letGo = classes[name].occupy(it)
      const result = run(it)
      setTimeout(letGo, 20).unref()
      say(`${label} ${await result}`)
    }
    say('over')
    worker.worker.ref()
    worker.worker.postMessage('end')
  })
  assert.deepStrictEqual([stderr, code], ['', 0])
  assert.deepStrictEqual(lines, AWAITING.map(({ label }) => `${label} served`).concat('over'))
})
