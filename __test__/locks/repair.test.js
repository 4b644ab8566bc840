'use strict'

// Callback forms with a repair: what a dead holder may have left half changed is repaired first, or stays marked.

const assert = require('assert')
const vm = require('vm')
const { MessageChannel } = require('worker_threads')
const { Repairing } = require('../../lib/holding/run')
const { test } = require('../harness')
const { api } = require('../subject')
const { TinyController, memory, rejection } = require('../fixtures/lock-toolbox')
const { MAJOR, busy, now, startWorker, until, words } = require('../fixtures/queue-toolbox')
const { FORMS, newThing, subjectOf } = require('../fixtures/repair-forms')

const { AsyncLock, Condition, RwLock, Semaphore, locks, unref, ref } = api

const fail = () => { throw new Error('on purpose') }

/** Writes a thread's function: it runs `body({ form, thing, subject, scope, data, fail })`. */
const inThread = (body) => `scope => {
  const { form, thing, data } = scope.data
  const { subjectOf } = scope.require('./repair-forms')
  return (${body})({ form, thing, subject: subjectOf(form, thing), scope, data, fail: ${fail} })
}`

/** Runs one such function after the other, in a thread. */
async function serveBodies (scope) {
  const { compile } = scope.require('./queue-toolbox')
  for (;;) {
    const { source, data } = await scope.receive()
    try {
      scope.post({ value: await compile(source)(Object.assign({}, scope, { data })) })
    } catch ({ message }) {
      scope.post({ message })
    }
  }
}

/** The thread of `blockingThere`, unless it has something to do. It holds the event loop only then. */
let idle

/** Runs such a body in a thread that all tests share. */
async function blockingThere (body, data) {
  const thread = idle || startWorker(null, serveBodies)
  idle = undefined
  thread.worker.ref()
  thread.worker.postMessage({ source: inThread(body), data })
  const { value, message } = await thread.next()
  thread.worker.unref()
  idle = thread
  if (message !== undefined) throw new Error(message)
  return value
}

/**
 * Tests each wanted form with a new lock or name. `there(body, data)` runs such a body where the form may run: in a
 * thread if it blocks, and otherwise here. `start(body, data)`: in a thread of its own.
 */
function testForms (name, wanted, body) {
  if (body === undefined) return testForms(name, () => true, wanted)
  for (const form of FORMS.filter(wanted)) {
    test(`${form.label}: ${name}`, { timeout: 60000 }, t => {
      const thing = newThing(form)
      const subject = subjectOf(form, thing)
      const start = (body, data) => startWorker(t, { form, thing, data }, inThread(body))
      const here = async (body, data) => body({ form, thing, subject, data, fail })
      const there = (body, data) => form.blocks ? blockingThere(body, { form, thing, data }) : here(body, data)
      return body({ form, subject, there, start })
    })
  }
}

const exclusive = ({ shared }) => !shared
const awaiting = ({ blocks }) => !blocks
const blocking = ({ blocks }) => blocks
const sharing = ({ shared }) => shared
const sharingName = ({ kind, shared }) => kind === 'named' && shared
const awaitingShare = form => awaiting(form) && sharing(form)

// ——— the repair ———

testForms('a death is repaired, exclusively, before the callback; nobody sees it', async ({ form, subject, there }) => {
  await subject.mark()
  const log = await there(async ({ form, subject }) => {
    const log = []
    let given
    const repair = (token, ...rest) => {
      given = token
      log.push('repair', token.ownerDied, rest.length)
      if (form.blocks) return
      return subject.isAlone().then(isAlone => log.push(isAlone))
    }
    for (let n = 0; n < 2; n++) {
      const callback = token => {
        log.push('callback', token.ownerDied, form.shared || n > 0 || token === given)
        return 'result'
      }
      log.push((await subject.outcome(callback, { repair })).value)
    }
    return log
  })
  const repaired = form.blocks ? ['repair', true, 0] : ['repair', true, 0, true]
  const after = ['callback', false, true, 'result']
  assert.deepStrictEqual(log, repaired.concat(after, after))
  assert.ok(await subject.isFree())
  assert.strictEqual(await subject.told(), false)
})

testForms('without a death nothing is repaired; repair: undefined is none', async ({ form, subject, there }) => {
  await subject.mark()
  const values = await there(async ({ form, subject, fail }) => {
    const values = [(await subject.outcome(({ ownerDied }) => ownerDied, { repair: undefined })).value]
    // A reader's orderly end leaves the mark.
    if (form.shared) await subject.told()
    values.push((await subject.outcome(() => 'not repaired', { repair: fail })).value)
    return values
  })
  assert.deepStrictEqual(values, [true, 'not repaired'])
})

testForms('a repair that fails: its error, no callback; the next sees the death', async ({ form, there }) => {
  const log = await there(async ({ form, subject, fail }) => {
    const log = []
    const rejects = [async () => fail(), () => Promise.reject(new Error('on purpose'))]
    for (const repair of form.blocks ? [fail] : [fail, ...rejects]) {
      const repaired = () => subject.run(({ ownerDied }) => ownerDied, { repair: () => {} })
      for (const next of [subject.told, repaired]) {
        await subject.mark()
        const { error } = await subject.outcome(() => log.push('callback'), { repair })
        log.push(error.message, await subject.isFree(), await next(), await subject.told())
      }
    }
    return log
  })
  const each = ['on purpose', true, true, false, 'on purpose', true, false, false]
  assert.deepStrictEqual(log, [].concat(...new Array(form.blocks ? 1 : 3).fill(each)))
})

testForms('a repair that gives a promise is a TypeError; the next sees it', blocking, async ({ form, there }) => {
  const outcomes = await there(async ({ subject, fail }) => {
    const outcomes = []
    for (const repair of [() => ({ then () {} }), () => Promise.reject(new Error('on purpose'))]) {
      await subject.mark()
      const { error } = await subject.outcome(() => { outcomes.push('callback') }, { repair })
      outcomes.push(`${error.name}: ${error.message}`, await subject.isFree(), await subject.told())
      outcomes.push(await subject.told())
    }
    return outcomes
  })
  const { method } = form
  const twin = method.replace('Sync', '()')
  const message = `${method}: repair must not return a promise, which a blocked thread cannot await: use ${twin}`
  const each = [`TypeError: ${message}`, true, true, false]
  assert.deepStrictEqual(outcomes, each.concat(each))
})

testForms('an async function is refused as a repair before anything begins', blocking, async ({ form, there }) => {
  const { log, error } = await there(async ({ subject }) => {
    const log = []
    const note = () => { log.push('callback') }
    const repair = async () => { log.push('repair') }
    // Also where no death is to be repaired.
    const free = await subject.outcome(note, { repair })
    await subject.mark()
    const { error: { name, message } } = await subject.outcome(note, { repair })
    log.push(free.error.message === message, await subject.isFree(), await subject.told(), await subject.told())
    return { log, error: `${name}: ${message}` }
  })
  const { method } = form
  const twin = method.replace('Sync', '()')
  const why = 'which a blocked thread cannot await'
  assert.strictEqual(error, `TypeError: ${method}: repair must not return a promise, ${why}: use ${twin}`)
  assert.deepStrictEqual(log, [true, true, true, false])
})

/** Acts with the lock of a form before its time. */
const EARLY = {
  AsyncLock: ['unlock', 'abandon', 'lock'], RwLock: ['unlock', 'abandon', 'downgrade', 'release'], named: ['abandon']
}

testForms('a repair that gives its lock back is an error; the next sees the death', async ({ form, there }) => {
  const ways = EARLY[form.kind]
  const outcomes = await there(async ({ subject, data: ways }) => {
    const outcomes = []
    for (const way of ways) {
      await subject.mark()
      const repair = token => {
        if (way === 'lock') subject.lock.unlock()
        else if (way === 'release') token.downgrade().unlock()
        else token[way]()
      }
      const { error } = await subject.outcome(() => { outcomes.push('callback') }, { repair })
      outcomes.push([way, error.code, await subject.isFree(), await subject.told(), await subject.told()])
    }
    return outcomes
  }, ways)
  assert.deepStrictEqual(outcomes, ways.map(way => [way, 'ERR_NOT_LOCKED', true, true, false]))
})

testForms('a thread that ends while it repairs leaves the mark', async ({ form, subject, start }) => {
  await subject.mark()
  const repairs = words(1)
  for (const ending of ['terminate', 'exit']) {
    const thread = start(async ({ form, subject, data: { ending, repairs } }) => {
      await subject.run(() => { Atomics.store(repairs, 0, 100) }, {
        repair () {
          Atomics.add(repairs, 0, 1)
          if (ending === 'exit') process.exit()
          if (form.blocks) for (;;);
          return new Promise(() => {})
        }
      })
    }, { ending, repairs })
    await until(() => Atomics.load(repairs, 0) > 0, 'it repairs')
    if (ending === 'terminate') await thread.terminate()
    else await thread.exited
    assert.strictEqual(Atomics.exchange(repairs, 0, 0), 1)
  }
  assert.ok(await subject.isFree())
  assert.deepStrictEqual([await subject.told(), await subject.told()], [true, false])
})

testForms('a time limit of vm within a repair is an error like others', async ({ subject, there }) => {
  await subject.mark()
  const message = await there(async ({ subject }) => {
    const repair = () => subject.vm.runInNewContext('for (;;);', {}, { timeout: 20 })
    const { error } = await subject.outcome(() => {}, { repair })
    return error.message
  })
  assert.ok(/timed out/.test(message), message)
  assert.deepStrictEqual([await subject.isFree(), await subject.told()], [true, true])
})

test('a repair that waits for a Condition: others are told meanwhile, and it goes on with the lock', async () => {
  for (const Class of [AsyncLock, RwLock]) {
    const lock = new Class(memory(4))
    const condition = new Condition(memory(4))
    lock.tryLock().abandon()
    const run = lock.executeLocked(({ ownerDied }) => ownerDied, { repair: token => condition.waitAsync(token) })
    await until(() => condition.waiters === 1 && !lock.locked, 'it waits')
    const other = lock.tryLock()
    assert.strictEqual(other.ownerDied, true)
    other.abandon()
    condition.notify()
    assert.strictEqual(await run, false)
    assert.strictEqual(lock.tryLock().ownerDied, false)
  }
})

test('a repair that does not await its wait for a Condition has given the lock back', async () => {
  const lock = new AsyncLock(memory(4))
  const condition = new Condition(memory(4))
  lock.tryLock().abandon()
  let wait
  const run = lock.executeLocked(fail, { repair: token => { wait = rejection(condition.waitAsync(token)) } })
  assert.strictEqual((await rejection(run)).code, 'ERR_NOT_LOCKED')
  assert.strictEqual((await wait).code, 'ERR_NOT_LOCKED')
  assert.strictEqual(lock.tryLock().ownerDied, true)
})

// ——— an error in the callback ———

testForms('a callback that fails leaves the mark, if it has a repair', exclusive, async ({ form, there }) => {
  const results = await there(async ({ form, subject, fail }) => {
    const results = []
    for (const isMarked of [false, true]) {
      // An async function would be refused before it is called.
      for (const callback of form.blocks ? [fail, () => Promise.resolve()] : [fail, async () => fail()]) {
        if (isMarked) await subject.mark()
        const { error } = await subject.outcome(callback, { repair: () => { results.push('repaired') } })
        results.push(error.name, await subject.told(), await subject.told())
      }
    }
    return results
  })
  const second = form.blocks ? 'TypeError' : 'Error'
  const unmarked = ['Error', true, false, second, true, false]
  assert.deepStrictEqual(results, unmarked.concat('repaired', 'Error', true, false, 'repaired', second, true, false))
})

testForms('no mark of a callback that fails as a reader, without a repair, or unlocked', async ({ form, there }) => {
  const early = exclusive(form) ? { AsyncLock: ['unlock'], RwLock: ['unlock', 'downgrade'], named: [] }[form.kind] : []
  const first = [form.shared ? 'a reader' : 'no repair', false]
  const cases = [first].concat(...early.map(way => [[way, false], [way, true]]))
  const results = await there(async ({ subject, data: cases, fail }) => {
    const results = []
    for (const [way, isMarked] of cases) {
      if (isMarked) await subject.mark()
      const callback = token => {
        if (way in token) token[way]()
        fail()
      }
      await subject.outcome(callback, way === 'no repair' ? {} : { repair: isMarked ? () => {} : fail })
      results.push([way, await subject.isFree(), await subject.told()])
    }
    return results
  }, cases)
  assert.deepStrictEqual(results, cases.map(([way]) => [way, true, false]))
})

// ——— waits ———

testForms('a reader that is to repair, or a writer, times out: the mark stays', async ({ form, subject, there }) => {
  await subject.mark()
  const release = await subject.hold(form.shared ? 'shared' : 'exclusive')
  const error = await there(async ({ subject, fail }) => {
    const { name, message } = (await subject.outcome(fail, { timeout: 30, repair: fail })).error
    return { name, message }
  })
  assert.strictEqual(error.name, 'TimeoutError')
  assert.ok(error.message.startsWith('Timed out after 30 ms'), error.message)
  await release()
  assert.strictEqual(await subject.told(), form.shared)
})

testForms('an abort while it waits: the reason, and the mark stays', awaiting, async ({ form, subject }) => {
  await subject.mark()
  const release = await subject.hold(form.shared ? 'shared' : 'exclusive')
  const controller = new TinyController({ reason: new Error('aborted') })
  const run = rejection(subject.run(fail, { signal: controller.signal, repair: fail }))
  // A reader has had its share.
  for (let n = 0; n < 5; n++) await new Promise(setImmediate)
  controller.abort()
  assert.strictEqual((await run).message, 'aborted')
  await release()
  assert.strictEqual(await subject.told(), form.shared)
})

testForms('an abort in a repair: a writer goes on, a reader waits no more', awaiting, async ({ form, subject }) => {
  await subject.mark()
  const controller = new TinyController({ reason: new Error('aborted') })
  const run = subject.outcome(() => 'done', { signal: controller.signal, repair: () => controller.abort() })
  assert.deepStrictEqual(await run, form.shared ? { error: controller.signal.reason } : { value: 'done' })
  assert.deepStrictEqual([await subject.isFree(), await subject.told()], [true, false])
})

testForms('with a timeout of 0 a reader repairs if no wait is needed', sharing, async ({ form, subject, there }) => {
  await subject.mark()
  const options = form.kind === 'named' ? { ifAvailable: true } : { timeout: 0 }
  const value = await there(async ({ subject, data: options }) => {
    return (await subject.outcome(({ ownerDied }) => ownerDied, Object.assign({ repair: () => {} }, options))).value
  }, options)
  assert.deepStrictEqual([value, await subject.told()], [false, false])
})

testForms('ifAvailable: null for a reader that would wait to repair', sharingName, async ({ subject, there }) => {
  await subject.mark()
  const release = await subject.hold('shared')
  const value = await there(async ({ subject, fail }) => {
    return (await subject.outcome(lock => lock === null, { ifAvailable: true, repair: fail })).value
  })
  assert.strictEqual(value, true)
  await release()
  assert.strictEqual(await subject.told(), true)
})

test('the timeout is that of all waits together; repairing does not count', async () => {
  const nothing = () => {}
  const methods = { end: nothing, noteDeath: nothing, repaired: nothing, given: undefined }
  const hold = (isShared) => Object.assign({ isShared, token: { ownerDied: true } }, methods)
  for (const blocks of [false, true]) {
    let repairing = 0
    const left = []
    const acquire = (isShared, timeout) => {
      left.push(timeout)
      busy(20)
      return Object.assign(hold(isShared), { token: { ownerDied: !isShared } })
    }
    const repair = () => {
      const since = now()
      busy(100)
      repairing += now() - since
    }
    const start = now()
    const call = new Repairing({ timeout: 10000, repair }, 'test', acquire)
    if (blocks) call.soundSync(hold(true), '')
    else await call.sound(hold(true))
    const rest = call.left
    const waited = now() - start - repairing
    assert.strictEqual(left.length, 2)
    assert.ok(left[0] <= 10000 && left[1] <= left[0] - 20, left.join())
    assert.ok(rest >= 10000 - waited - 1, `${rest} ms of 10000 are left after ${waited} ms`)
    assert.ok(rest <= left[1] - 20, left.join())
  }
})

testForms('unref applies to each wait of a reader', awaitingShare, async ({ subject }) => {
  await subject.mark()
  const release = await subject.hold('shared')
  const run = subject.begin(() => 'done', { repair: () => {} })
  for (let n = 0; n < 5; n++) await new Promise(setImmediate)
  assert.strictEqual(unref(run), true)
  assert.strictEqual(ref(run), true)
  await release()
  assert.strictEqual(await run, 'done')
  assert.strictEqual(unref(run), false)
})

// ——— many readers ———

testForms('fifty readers at once: one repairs, and then all read together', awaitingShare, async ({ subject }) => {
  const READERS = 50
  await subject.mark()
  let repairs = 0
  let inside = 0
  let isFull
  const full = new Promise(resolve => { isFull = resolve })
  const read = async ({ ownerDied }) => {
    if (++inside === READERS) isFull()
    await full
    return ownerDied
  }
  const repair = async () => {
    repairs++
    await new Promise(setImmediate)
  }
  const runs = []
  for (let n = 0; n < READERS; n++) runs.push(subject.run(read, { repair }))
  assert.deepStrictEqual(await Promise.all(runs), new Array(READERS).fill(false))
  assert.deepStrictEqual([repairs, inside, await subject.isFree(), await subject.told()], [1, READERS, true, false])
})

testForms('readers in many threads: one repairs, and all read', sharing, async ({ subject, start }) => {
  const READERS = 4
  await subject.mark()
  const counts = words(2)
  const threads = []
  for (let n = 0; n < READERS; n++) {
    threads.push(start(({ subject, data: { counts, READERS } }) => {
      Atomics.add(counts, 0, 1)
      while (Atomics.load(counts, 0) < READERS);
      return subject.run(({ ownerDied }) => ownerDied, { repair: () => { Atomics.add(counts, 1, 1) } })
    }, { counts, READERS }).done())
  }
  assert.deepStrictEqual(await Promise.all(threads), new Array(READERS).fill(false))
  assert.deepStrictEqual([Array.from(counts), await subject.told()], [[READERS, 1], false])
})

testForms('a reader repairs again if a writer dies before it has its share', awaitingShare, async ({ subject }) => {
  await subject.mark()
  let repairs = 0
  let next
  const run = subject.run(({ ownerDied }) => ownerDied, {
    repair () {
      // A writer waits behind it, and dies before the reader has its share again.
      if (++repairs === 1) next = subject.write(lock => { lock.abandon() })
    }
  })
  assert.deepStrictEqual([await run, repairs], [false, 2])
  await next
})

// ——— names that are stolen ———

test('a name that is stolen while it is repaired: an AbortError, no callback; the thief repairs', async () => {
  await locks.request('stolen repair', lock => { lock.abandon() })
  for (const mode of ['exclusive', 'shared']) {
    let goOn
    let begun
    const hasBegun = new Promise(resolve => { begun = resolve })
    const repaired = new Promise(resolve => { goOn = resolve })
    const repair = () => { begun(); return repaired }
    const loser = rejection(locks.request('stolen repair', { mode, repair }, fail))
    await hasBegun
    const seen = []
    const again = { steal: true, repair: () => { seen.push('repaired') } }
    const thief = locks.request('stolen repair', again, lock => { seen.push(lock.tookOver, lock.ownerDied) })
    assert.strictEqual((await loser).name, 'AbortError')
    await thief
    assert.deepStrictEqual(seen, ['repaired', true, false])
    await locks.request('stolen repair', lock => { assert.strictEqual(lock.ownerDied, false); lock.abandon() })
    goOn()
    await new Promise(setImmediate)
  }
  assert.strictEqual(await locks.request('stolen repair', lock => lock.ownerDied), true)
})

test('a name that is stolen after its repair: the thief took over, and repairs nothing', async () => {
  await locks.request('stolen later', lock => { lock.abandon() })
  let begun
  const hasBegun = new Promise(resolve => { begun = resolve })
  const forEver = () => { begun(); return new Promise(() => {}) }
  const loser = rejection(locks.request('stolen later', { repair: () => {} }, forEver))
  await hasBegun
  const seen = ({ tookOver, ownerDied }) => [tookOver, ownerDied]
  const thief = locks.request('stolen later', { steal: true, repair: fail }, seen)
  assert.deepStrictEqual(await thief, [true, false])
  assert.strictEqual((await loser).name, 'AbortError')
})

test('a request that is aborted before its callback begins leaves no mark of its own', async () => {
  const controller = new TinyController({ reason: new Error('aborted') })
  const request = rejection(locks.request('not begun', { signal: controller.signal, repair: fail }, fail))
  controller.abort()
  assert.strictEqual((await request).message, 'aborted')
  assert.strictEqual(await locks.request('not begun', lock => lock.ownerDied), false)
})

// ——— options ———

testForms('options are read in their order, once; a repair must be a function', async ({ form, subject, there }) => {
  const seen = await there(async ({ form, subject }) => {
    const log = []
    const options = {}
    for (const name of ['ifAvailable', 'mode', 'repair', 'signal', 'steal', 'timeout']) {
      if (form.kind !== 'named' && !['repair', 'signal', 'timeout'].includes(name)) continue
      if (form.blocks && ['signal', 'steal'].includes(name)) continue
      const get = () => { log.push(name); return name === 'mode' && form.shared ? 'shared' : undefined }
      Object.defineProperty(options, name, { enumerable: true, get })
    }
    // As they are, not copied.
    if (form.kind === 'named') await subject.locks[form.method]('options', options, () => {})
    else await subject.begin(() => {}, options)
    const errors = []
    for (const repair of [null, 5, 'repair', {}]) errors.push((await subject.outcome(() => {}, { repair })).error)
    return { log, errors: errors.map(({ name, message }) => `${name}: ${message}`) }
  })
  const named = ['ifAvailable', 'mode', 'repair', 'signal', 'steal', 'timeout']
  const order = form.kind === 'named' ? named : ['timeout', 'signal', 'repair']
  assert.deepStrictEqual(seen.log, order.filter(name => !form.blocks || !['signal', 'steal'].includes(name)))
  assert.deepStrictEqual(seen.errors, ['null', 'the number 5', 'the string "repair"', 'an object']
    .map(given => `TypeError: ${form.method}: repair must be a function, not ${given}`))
})

test('forms that protect nothing, or give a token, take no repair', async () => {
  const lock = new AsyncLock()
  const semaphore = new Semaphore()
  semaphore.release()
  const repair = fail
  const calls = [lock.lockAsync({ repair }), semaphore.use(1, fail, { repair }), semaphore.holdAsync(1, { repair })]
  for (const error of await Promise.all(calls.map(rejection))) {
    assert.ok(error instanceof TypeError)
    assert.ok(error.message.endsWith('options may have timeout and signal, not "repair"'), error.message)
  }
})

for (const Class of [AsyncLock, RwLock]) {
  test(`${Class.name}: a repair of the instance is that of its callback forms, if the call has none`, async () => {
    const log = []
    const lock = Class.create({ name: 'with a repair', repair: token => { log.push('of the instance', token.locked) } })
    lock.tryLock().abandon()
    await lock.executeLocked(() => {})
    lock.tryLock().abandon()
    await lock.executeLocked(() => {}, { timeout: 10000 })
    lock.tryLock().abandon()
    await lock.executeLocked(() => {}, { repair: () => { log.push('of the call') } })
    if (Class === RwLock) {
      lock.tryLock().abandon()
      await lock.executeShared(() => {})
    } else {
      log.push('of the instance', true)
    }
    const ofIt = ['of the instance', true]
    assert.deepStrictEqual(log, [...ofIt, ...ofIt, 'of the call', ...ofIt])
    await rejection(lock.executeLocked(fail))
    const { port1, port2 } = new MessageChannel()
    const clone = await new Promise(resolve => { port2.once('message', resolve); port1.postMessage(lock) })
    port1.close()
    assert.deepStrictEqual(Object.keys(clone).sort(), Object.keys(lock).sort())
    const other = new Class(clone)
    assert.strictEqual(await other.executeLocked(({ ownerDied }) => ownerDied), true)
    lock.tryLock().abandon()
    assert.strictEqual(await new Class(clone, { repair: () => {} }).executeLocked(({ ownerDied }) => ownerDied), false)
  })

  test(`${Class.name}: a repair that is no function is a TypeError of the constructor, which names nothing`, () => {
    const buffer = memory(4)
    for (const repair of [null, 5, {}]) {
      const message = new RegExp(`^${Class.name}: repair must be a function, not `)
      assert.throws(() => new Class(buffer, { name: 'named', repair }), { name: 'TypeError', message })
    }
    assert.throws(() => new Class(undefined, { repair: fail }), TypeError)
    assert.strictEqual(new Class(buffer, { repair: undefined }).name, '')
  })
}

// ——— the word ———

test('the word of an AsyncLock that is repaired holds LOCKED or UNLOCKED, as ever', async () => {
  const lock = new AsyncLock(memory(4))
  const seen = []
  const look = () => seen.push(lock.i32a[0])
  lock.tryLock().abandon()
  look()
  await rejection(lock.executeLocked(fail, { repair: async () => { look(); await undefined; look(); fail() } }))
  look()
  await lock.executeLocked(look, { repair: look })
  look()
  assert.deepStrictEqual(seen, [0, 1, 1, 0, 1, 1, 0])
})

test('a repair that freezes its token, and one of another realm, are as good as any', async () => {
  const lock = new AsyncLock(memory(4))
  lock.tryLock().abandon()
  const freezes = token => { Object.freeze(token) }
  assert.strictEqual(await lock.executeLocked(token => token.locked, { repair: freezes }), true)
  assert.strictEqual(await lock.executeLocked(({ ownerDied }) => ownerDied), false)
  lock.tryLock().abandon()
  const repair = vm.runInNewContext('() => { throw new TypeError("of another realm") }')
  const error = await rejection(lock.executeLocked(fail, { repair }))
  assert.strictEqual(error.message, 'of another realm')
  assert.strictEqual(lock.tryLock().ownerDied, true)
})

// ——— surroundings ———

/** Whether Node itself survives an end of the stack. */
const standing = () => MAJOR >= 12

testForms('a repair is called in the asynchronous context of its call', awaitingShare, async ({ subject }) => {
  const { AsyncLocalStorage } = require('async_hooks')
  if (AsyncLocalStorage === undefined) return
  const storage = new AsyncLocalStorage()
  const seen = []
  for (const waits of [false, true]) {
    await subject.mark()
    const release = waits ? await subject.hold('shared') : () => {}
    const repair = () => { seen.push(storage.getStore()) }
    const run = storage.run(`waits: ${waits}`, () => subject.begin(() => {}, { repair }))
    await new Promise(setImmediate)
    await release()
    await run
  }
  assert.deepStrictEqual(seen, ['waits: false', 'waits: true'])
})

testForms('near the end of the stack: an error, and the next sees it; or both run', standing, async ({ start }) => {
  const outcomes = await start(async ({ form, scope: { require } }) => {
    const { newThing, subjectOf } = require('./repair-forms')
    const tries = []
    for (let n = 0; n < 800; n++) {
      const subject = subjectOf(form, newThing(form))
      await subject.mark()
      tries.push({ subject, repaired: false, called: false, promise: undefined, error: undefined })
    }
    let left = tries.length
    const attempt = one => {
      const repair = () => {
        one.repaired = true
      }
      one.promise = one.subject.begin(
        () => {
          one.called = true
        },
        { repair }
      )
    }
    const dive = (...padding) => {
      try {
        dive(...padding)
      } catch (_) {}
      if (left === 0) return
      left--
      try {
        attempt(tries[left])
      } catch (error) {
        tries[left].error = error
      }
    }
    dive(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)
    const counts = { done: 0, thrown: 0 }
    for (const one of tries) {
      try {
        await one.promise
      } catch (error) {
        one.error = error
      }
      if (one.error !== undefined && !(one.error instanceof RangeError)) throw one.error
      if (!(await one.subject.isFree())) throw new Error('it is still held')
      const told = await one.subject.told()
      // A reader may have repaired, and not have had stack for reading.
      const isRight = one.error === undefined ? !told && one.called : told || (one.repaired && form.shared)
      if (!isRight) throw new Error(`told: ${told}, ${one.error}`)
      counts[one.error === undefined ? 'done' : 'thrown']++
    }
    return counts
  }).done()
  assert.ok(outcomes.done > 0 && outcomes.thrown > 0, JSON.stringify(outcomes))
})
