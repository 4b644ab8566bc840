'use strict'
// oldest: force (there AbortController, FinalizationRegistry and class fields are missing)

// The behaviour that all classes share, tested on every form that waits: see fixtures/every-class.js.

const assert = require('assert')
const vm = require('vm')
const { test } = require('../../harness')
const { FORMS, allocate, assertIntact, classOf, classes, thingsIn } = require('../../fixtures/every-class')
const { startMember, turns, untilWaiters, waiters, watch } = require('../../fixtures/family-toolbox')
const { TinyController, rejection } = require('../../fixtures/lock-toolbox')
const { now, runChild, until } = require('../../fixtures/queue-toolbox')
const slowness = require('../../fixtures/slowness')

const NAMES = Object.keys(classes)
const AT = 12
const AWAITING = FORMS.filter(({ blocks }) => !blocks)

/** The state of the object as main sees it. */
const stateOf = ({ word, lock }) => [Atomics.load(word, 0), lock.locked, waiters(word.buffer, AT)]

/** Something of class `name` whose forms wait, and what lets one go on. */
function occupied (name) {
  const it = thingsIn(allocate(), name)
  const letGo = classes[name].occupy(it)
  return { it, letGo }
}

/** How a form ends, as told by threads, too: 'served', 'late' or an error's name. */
const outcome = (promise) => promise.catch(error => error.name)

/** How a form says that the time is over. */
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
    for (const buffer of [undefined, null, 0, 'sab', {}, [], new ArrayBuffer(4), new Int32Array(1), new Int32Array(new SharedArrayBuffer(4))]) {
      assert.throws(() => make(buffer), (error) => {
        assert.ok(error instanceof TypeError, String(error))
        assert.ok(error.message.startsWith(`${Class.name}: buffer must be a SharedArrayBuffer, or the clone of an instance, not `), error.message)
        return true
      })
    }
  })

  test(`${name}: an offset at which no word lies is refused, with the range that there is`, () => {
    const sab = new SharedArrayBuffer(12)
    for (const byteOffset of [null, '4', 1.5, NaN, Infinity, {}, true]) {
      assert.throws(() => make(sab, { byteOffset }), (error) => {
        assert.ok(error instanceof TypeError, `${String(byteOffset)}: ${error}`)
        assert.ok(error.message.startsWith(`${Class.name}: byteOffset must be an integer, not `), error.message)
        return true
      })
    }
    for (const byteOffset of [-4, 1, 2, 3, 9, 10, 12, 16, 2 ** 40]) {
      assert.throws(() => make(sab, { byteOffset }), (error) => {
        assert.ok(error instanceof RangeError, `${byteOffset}: ${error}`)
        assert.ok(error.message.startsWith(`${Class.name}: byteOffset must be a multiple of 4 from 0 to 8`), error.message)
        assert.ok(error.message.includes(String(byteOffset)), error.message)
        return true
      })
    }
    for (const size of [0, 3]) {
      const message = `${Class.name}: buffer is too small: ${size} bytes, 4 needed`
      assert.throws(() => make(new SharedArrayBuffer(size)), error => error instanceof RangeError && error.message === message)
    }
    for (const wrong of [4, '4', null]) assert.throws(() => new Class(sab, wrong), TypeError)
  })

  test(`${name} works in a buffer of another realm`, async () => {
    const it = thingsIn(vm.runInNewContext(`new SharedArrayBuffer(${allocate().byteLength})`), name)
    const letGo = classes[name].occupy(it)
    const form = AWAITING.find(each => each.name === name)
    const result = form.run(it, undefined)
    await untilWaiters(it.sab, AT, 1)
    letGo()
    assert.strictEqual(await result, 'served')
  })
}

const growable = typeof SharedArrayBuffer.prototype.grow === 'function'
test('a buffer may grow while a waiter is in it', { skip: !growable && 'no growable SharedArrayBuffer here' }, async () => {
  for (const { name, run, label } of AWAITING) {
    const size = allocate().byteLength
    const it = thingsIn(new SharedArrayBuffer(size, { maxByteLength: 1 << 20 }), name)
    const letGo = classes[name].occupy(it)
    const result = run(it, undefined)
    await untilWaiters(it.sab, AT, 1)
    it.sab.grow(1 << 20)
    letGo()
    assert.strictEqual(await result, 'served', label)
    assert.ok(it.thing instanceof classOf(name))
    const far = new (classOf(name))(it.sab, Object.assign({ byteOffset: (1 << 20) - 4 }, classes[name].options))
    assert.strictEqual(far.byteOffset, (1 << 20) - 4)
  }
})

// ——— arguments ———

test('a wrong option is a TypeError that names it, and changes nothing', async () => {
  const wrong = [
    [null, /options must be an object, not null/],
    [5, /options must be an object, not the number 5/],
    ['now', /options must be an object, not the string "now"/],
    [{ signal: null }, /signal must be an AbortSignal/],
    [{ signal: {} }, /signal must be an AbortSignal/],
    [{ signal: { aborted: false } }, /signal must be an AbortSignal/],
    [{ signal: 'abort' }, /signal must be an AbortSignal/],
    [{ signal: { addEventListener () {} } }, /signal must be an AbortSignal/],
    [{ timeout: Symbol('s') }, /./]
  ]
  for (const { name, form, run, label } of AWAITING) {
    const { it } = occupied(name)
    const before = stateOf(it)
    for (const [options, pattern] of wrong) {
      const error = await rejection(run(it, options))
      assert.ok(error instanceof TypeError, `${label}: ${error}`)
      assert.ok(pattern.test(error.message), `${label}: ${error.message}`)
      if (pattern.source !== '.') assert.ok(error.message.startsWith(`${form}: `), error.message)
      assert.deepStrictEqual(stateOf(it), before, label)
    }
    const thrown = new Error('from a getter')
    assert.strictEqual(await rejection(run(it, { get timeout () { throw thrown } })), thrown)
    assert.deepStrictEqual(stateOf(it), before, label)
    assertIntact(it.sab)
  }
})

test('main must not block, and the error names the method to call instead', () => {
  for (const { name, form, twin, blocks, run, label } of FORMS) {
    if (!blocks) continue
    const { it } = occupied(name)
    const before = stateOf(it)
    for (const options of [undefined, { timeout: 10 }, { timeout: 0 }]) {
      assert.throws(() => run(it, options), (error) => {
        assert.ok(error instanceof TypeError, `${label}: ${error}`)
        assert.strictEqual(error.message, `${form} would block the main thread: use ${twin}`)
        return true
      })
    }
    assert.deepStrictEqual(stateOf(it), before, label)
  }
})

test('a form that blocks refuses a signal, and names wrong options', async t => {
  for (const name of NAMES) {
    const { it } = occupied(name)
    const member = await startMember(t, it.sab)
    const before = stateOf(it)
    for (const { form, blocks, label } of FORMS.filter(each => each.name === name)) {
      if (!blocks) continue
      for (const [options, pattern] of [
        [{ signal: {} }, /blocks and takes no signal: use the asynchronous form/],
        [null, /options must be an object, not null/],
        [7, /options must be an object, not the number 7/]
      ]) {
        const error = await rejection(member.do('form', name, form, options))
        assert.strictEqual(error.name, 'TypeError', label)
        assert.ok(pattern.test(error.message), error.message)
        assert.ok(error.message.startsWith(form), error.message)
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
    for (const { form, blocks, run, label } of FORMS.filter(each => each.name === name)) {
      for (const options of [undefined, {}, { timeout: undefined }, { timeout: Infinity }, { timeout: 1e6 }]) {
        const letGo = classes[name].occupy(it)
        const result = member.do('form', name, form, options)
        await untilWaiters(sab, AT, 1)
        letGo()
        assert.strictEqual(await result, 'served', label)
        if (blocks) continue
        const again = classes[name].occupy(it)
        const own = run(it, options)
        await untilWaiters(sab, AT, 1)
        again()
        assert.strictEqual(await own, 'served', label)
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
    for (const { form, blocks, run, label } of FORMS.filter(each => each.name === name)) {
      for (const timeout of [0, -3, -Infinity, 0.3, 1.7, 7.5]) {
        const { outcome: theirs, elapsed } = await member.do('timeForm', name, form, { timeout })
        assert.strictEqual(theirs, late(name), `${label} in a thread`)
        assert.ok(elapsed >= Number(timeout), `${label}: ${timeout} ms were over after ${elapsed} ms`)
        assert.deepStrictEqual(stateOf(it), before, label)
        if (blocks) continue
        const start = now()
        const ours = await outcome(run(it, { timeout }))
        const waited = now() - start
        assert.strictEqual(ours, late(name), label)
        assert.ok(waited >= Number(timeout), `${label}: ${timeout} ms were over after ${waited} ms`)
        assert.deepStrictEqual(stateOf(it), before, label)
      }
    }
    assertIntact(it.sab)
  }))
})

test('a TimeoutError is an Error with a code, and says how long it was', async t => {
  for (const { name, form, label } of FORMS) {
    if (name === 'Condition') continue
    const { it } = occupied(name)
    const member = await startMember(t, it.sab)
    const error = await rejection(member.do('form', name, form, { timeout: 2.5 }))
    assert.strictEqual(error.name, 'TimeoutError', label)
    assert.strictEqual(error.code, 'ERR_TIMEOUT', label)
    assert.strictEqual(error.isError, true, label)
    assert.ok(error.message.startsWith('Timed out after 2.5 ms waiting for '), error.message)
    await member.terminate()
  }
})

test('an abort rejects with the signal\'s reason, or an AbortError, at once', async () => {
  const reasons = [undefined, new Error('enough'), 'enough', null, 0, false]
  for (const { name, run, label } of AWAITING) {
    for (const reason of reasons) {
      for (const removes of [true, false]) {
        const { it } = occupied(name)
        const before = stateOf(it)
        const controller = new TinyController({ reason, removes })
        const result = rejection(run(it, { signal: controller.signal }))
        await turns(1)
        assert.strictEqual(waiters(it.sab, AT), 1, label)
        controller.abort()
        assert.strictEqual(waiters(it.sab, AT), 0, label)
        const error = await result
        if (reason === undefined) {
          assert.ok(error instanceof Error, label)
          assert.strictEqual(error.name, 'AbortError', label)
          assert.strictEqual(error.code, 'ABORT_ERR', label)
        } else {
          assert.strictEqual(error, reason, label)
        }
        assert.deepStrictEqual(stateOf(it), before, label)
        if (removes) assert.strictEqual(controller.listeners.size, 0, label)
        // Some signals without removeEventListener call a listener twice.
        for (const listener of controller.listeners) listener()
        assert.deepStrictEqual(stateOf(it), before, label)
        assertIntact(it.sab)
      }
    }
  }
})

const hasController = typeof AbortController === 'function'
test('the host\'s AbortController works as a signal', { skip: !hasController && 'no AbortController here' }, async () => {
  for (const { name, run, label } of AWAITING) {
    const { it } = occupied(name)
    const controller = new AbortController()
    const result = rejection(run(it, { signal: controller.signal }))
    await turns(1)
    controller.abort()
    const error = await result
    assert.strictEqual(error.name, 'AbortError', label)
    assert.ok('reason' in controller.signal ? error === controller.signal.reason : error.code === 'ABORT_ERR', label)
    assert.strictEqual((await rejection(run(it, { signal: controller.signal }))).name, 'AbortError', label)
    assert.strictEqual(waiters(it.sab, AT), 0, label)
  }
})

test('a signal that is aborted already: nothing is taken and no wait begins, also where it would end at once', async () => {
  for (const { name, run, label } of AWAITING) {
    for (const free of [false, true]) {
      const { it, letGo } = occupied(name)
      if (free && name !== 'Condition' && name !== 'Barrier') letGo()
      const before = stateOf(it)
      const controller = new TinyController({ reason: 'before' })
      controller.abort()
      const watched = watch(run(it, { signal: controller.signal }))
      await turns()
      assert.deepStrictEqual(watched, { state: 'rejected', value: 'before' }, `${label}${free ? ', free' : ''}`)
      assert.deepStrictEqual(stateOf(it), before, label)
      assert.strictEqual(controller.listeners.size, 0, label)
    }
  }
})

test('an abort after the wait was served changes nothing, and no listener is left', async () => {
  for (const { name, run, label } of AWAITING) {
    const { it, letGo } = occupied(name)
    const controller = new TinyController({ reason: 'too late' })
    const result = run(it, { signal: controller.signal, timeout: 1e6 })
    await turns(1)
    assert.strictEqual(controller.listeners.size, 1, label)
    letGo()
    assert.strictEqual(await result, 'served', label)
    assert.strictEqual(controller.listeners.size, 0, label)
    controller.abort()
    await turns(1)
    assert.strictEqual(waiters(it.sab, AT), 0, label)
  }
})

test('a timeout leaves no listener behind', async () => {
  for (const { name, run, label } of AWAITING) {
    const { it } = occupied(name)
    const controller = new TinyController()
    assert.strictEqual(await outcome(run(it, { signal: controller.signal, timeout: 1 })), late(name), label)
    assert.strictEqual(controller.listeners.size, 0, label)
  }
})

test('a signal whose addEventListener throws: the promise rejects, and leaves no waiter', async () => {
  for (const { name, run, label } of AWAITING) {
    const { it, letGo } = occupied(name)
    const before = stateOf(it)
    const failure = new Error('no listeners here')
    const signal = { aborted: false, addEventListener () { throw failure } }
    assert.strictEqual(await rejection(run(it, { signal })), failure, label)
    assert.deepStrictEqual(stateOf(it), before, label)
    const next = run(it)
    await turns(1)
    letGo()
    assert.strictEqual(await next, 'served', label)
  }
})

// A thread releases while main is busy; then main gives up. A grant that was made by then is not lost: the next waiter is served.
test('giving up at the moment of being served: a waiter that is not served leaves its turn to the next', { timeout: 90000 }, async t => {
  for (const { name, form, run, label } of AWAITING) {
    if (name === 'Barrier' || name === 'Latch') continue
    for (const how of ['abort', 'timeout']) {
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
      const releases = {
        AsyncLock: () => holder.do('unlock', 'token'),
        RwLock: () => holder.do('unlock', 'token'),
        Semaphore: () => onIt('release', 1),
        'Semaphore with permits': () => holder.do('unlock', 'token'),
        Condition: () => onIt('notify', 1)
      }
      const released = releases[name]()
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
  const result = await runChild(t, async ({ api, startWorker, say, require }) => {
    const { allocate, classes, thingsIn } = require('./every-class')
    // An idle thread with the package, whose handle does not hold this loop.
    const worker = startWorker(async ({ receive, post, api }) => {
      new api.Semaphore(new SharedArrayBuffer(4)).release()
      post('ready')
      await receive()
    })
    await worker.next()
    worker.worker.unref()
    for (const name of Object.keys(classes)) {
      const it = thingsIn(allocate(), name)
      for (const form of Object.keys(classes[name].forms)) {
        if (classes[name].forms[form].twin !== undefined) continue
        const letGo = classes[name].occupy(it)
        const result = classes[name].forms[form].run(it)
        setTimeout(letGo, 20).unref()
        say(`${name} ${form} ${await result}`)
      }
    }
    say('over')
    worker.worker.ref()
    worker.worker.postMessage('end')
  }, null)
  assert.strictEqual(result.stderr, '')
  assert.strictEqual(result.code, 0)
  assert.strictEqual(result.lines[result.lines.length - 1], 'over', result.lines.join('\n'))
})
