'use strict'

// subjects: export, force

// The short way of a free lock (lib/holding/robust-list.js): where it is open, and what comes in its midst.
// ends/free-lock-deaths.test.js has threads that end there.

const assert = require('assert')
const { createHook } = require('async_hooks')
const { spawnSync } = require('child_process')
const fs = require('fs')
const os = require('os')
const path = require('path')
const vm = require('vm')
const { test } = require('../harness')
const { Atomics, api } = require('../subject')
const { needsChannels, subscribe } = require('../fixtures/channels')
const inside = require('../fixtures/inside')
const { memory, rejection } = require('../fixtures/lock-toolbox')
const { MAJOR, sleep } = require('../fixtures/queue-toolbox')
const { runForJSON } = require('../fixtures/run-node')
const withoutCounters = require('../fixtures/without-counters')

const { AsyncLock, RwLock, Semaphore, waiterCount } = api

// ——— the engine ———

/** The functions of both halves that are to be part of a loop around them. */
const HALVES = ['lock', 'takeFree', 'unlock', 'releaseLast']
const LOOP = require.resolve('../fixtures/free-lock-loop')
const PURE = require.resolve('../../pure')
/** Returns those that V8 makes part of the loop together. It tells a file: a pipe may lose some of that. */
function inlined (t, flags) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'inlined-'))
  const file = path.join(folder, 'trace')
  t.after(() => {
    fs.unlinkSync(file)
    fs.rmdirSync(folder)
  })
  const output = fs.openSync(file, 'w')
  const stdio = ['ignore', output, 'inherit']
  const all = ['--trace-turbo-inlining', '--no-concurrent-recompilation', ...flags, LOOP]
  const { status } = spawnSync(process.execPath, all, { stdio })
  fs.closeSync(output)
  assert.strictEqual(status, 0)
  // Each compilation has an address of its own for the loop.
  const loops = new Map()
  const row = /^Inlining .*SharedFunctionInfo (\w+)>.* into (\w+) .*SharedFunctionInfo freeLockLoop>/gm
  for (const [, name, loop] of fs.readFileSync(file, 'utf8').matchAll(row)) {
    loops.set(loop, (loops.get(loop) || new Set()).add(name))
  }
  const found = Array.from(loops.values(), names => HALVES.filter(name => names.has(name)))
  return found.reduce((most, names) => names.length > most.length ? names : most, [])
}

const traces = { skip: MAJOR < 20 && 'this Node tells of what it inlines otherwise' }

test('V8 makes both halves of a free lock part of the loop around them', traces, t => {
  assert.deepStrictEqual(inlined(t, []), HALVES)
})

test('… which a smaller budget than that of V8 would not allow: so the test can fail', traces, t => {
  const found = inlined(t, ['--max-inlined-bytecode-size-cumulative=500'])
  assert.ok(found.length < HALVES.length, found.join())
})

// ——— the list's memory ———

const list = () => inside('holding/the-list')()
/** Whether the list is in its first memory; and what that has past the end. */
const state = () => {
  const { serials } = inside('holding/entries').first
  return [list().serials === serials, Array.from(serials).slice(list().length).filter(Boolean)]
}

/** Lets the list come back to the first memory, which it does once it has been empty for long. */
function comeBack () {
  const lock = new AsyncLock()
  for (let n = 0; n < 5000; n++) lock.tryLock().unlock()
  assert.deepStrictEqual([list().length, ...state()], [0, true, []])
}

test('more holds than the first memory has room for, and fewer again: each token is live until it is unlocked', () => {
  const sab = memory(4 * 200)
  const locks = Array.from({ length: 200 }, (_, n) => new AsyncLock(sab, { byteOffset: 4 * n }))
  locks[0].tryLock().unlock()
  assert.deepStrictEqual(state(), [true, []])
  for (const count of [62, 63, 64, 65, 200]) {
    for (const latestFirst of [true, false]) {
      const tokens = locks.slice(0, count).map(lock => lock.tryLock())
      assert.strictEqual(state()[0], count < 64)
      assert.ok(tokens.every(token => token.locked))
      if (latestFirst) tokens.reverse()
      for (const token of tokens) assert.deepStrictEqual([token.unlock(), token.unlock()], [true, false])
      assert.ok(locks.every(lock => !lock.locked))
      comeBack()
      assert.ok(!tokens.some(token => token.locked))
    }
  }
})

test('a list that has moved to a larger memory finds nothing in the first one', () => {
  const sab = memory(4 * 100)
  const locks = Array.from({ length: 100 }, (_, n) => new AsyncLock(sab, { byteOffset: 4 * n }))
  const tokens = locks.map(lock => lock.tryLock())
  assert.strictEqual(state()[0], false)
  // The latest first, and some others in between.
  const indexes = Array.from(tokens, (_, n) => n)
  for (const n of [...indexes.slice(40).reverse(), 5, 39, 0, ...indexes.slice(0, 40)]) {
    const wasHeld = tokens[n].locked
    if (wasHeld) locks[n].unlock()
    assert.deepStrictEqual([locks[n].locked, tokens[n].locked, tokens[n].unlock()], [false, false, false], `lock ${n}`)
  }
  comeBack()
})

test('a list that moves where hardly any stack is left leaves no number behind', async t => {
  // In a fresh process: there the code that moves the list has not been compiled.
  const held = await runForJSON(t, ['-e', `
    const { AsyncLock } = require(${JSON.stringify(PURE)})
    const locks = Array.from({ length: 64 }, () => new AsyncLock(new SharedArrayBuffer(4)))
    const tokens = locks.slice(0, 63).map(lock => lock.tryLock())
    let last
    const dive = () => {
      try {
        dive()
      } catch (_) {
        if (last === undefined) last = locks[63].tryLock()
      }
    }
    dive()
    last.unlock()
    for (const lock of locks.slice(0, 63).reverse()) lock.unlock()
    console.log(JSON.stringify([last, ...tokens].filter(token => token.locked).length))`])
  assert.strictEqual(held, 0)
})

test('a hook that runs a callback while another form finds the short way closed takes nothing from it', async () => {
  const [closed, open] = [new AsyncLock(memory(4), { repair () {} }), new AsyncLock()]
  const [calls, promises] = [[], []]
  let isArmed = true
  const promiseResolve = () => {
    if (!isArmed) return
    isArmed = false
    promises.push(open.executeLocked(() => { calls.push('inner') }))
  }
  open.tryLock().unlock()
  const hook = createHook({ init () {}, promiseResolve }).enable()
  const outer = closed.executeLocked(() => calls.push('outer') && 'value')
  hook.disable()
  assert.strictEqual(await outer, 'value')
  await Promise.all(promises)
  assert.deepStrictEqual(calls.sort(), ['inner', 'outer'])
})

test('words of locks that many holds had can be collected', () => {
  const { first } = inside('holding/entries')
  const tokens = Array.from({ length: 100 }, () => new AsyncLock().tryLock())
  assert.deepStrictEqual(Array.from({ length: 64 }, (_, n) => first.held[n]).filter(Boolean), [])
  for (const token of tokens) token.unlock()
  comeBack()
})

// ——— observers ———

test('holds that begin and end as a subscriber comes and goes', needsChannels, t => {
  const locks = Array.from({ length: 3 }, () => new AsyncLock())
  const before = locks[0].tryLock()
  const { messages, stop } = subscribe(t, 'hold')
  const within = locks[1].tryLock()
  before.unlock()
  assert.deepStrictEqual(messages, [])
  stop()
  const after = locks[2].tryLock()
  within.unlock()
  after.unlock()
  // Who has unsubscribed hears nothing; and nothing of it is left for later.
  assert.deepStrictEqual([locks.map(lock => lock.locked), messages], [[false, false, false], []])
  const { messages: more } = subscribe(t, 'hold')
  locks[0].tryLock()
  locks[0].unlock()
  assert.strictEqual(more.length, 1)
})

test('a subscriber that comes within a callback hears nothing of its hold', needsChannels, async t => {
  const lock = new AsyncLock()
  let heard
  await lock.executeLocked(() => { heard = subscribe(t, 'hold').messages })
  assert.deepStrictEqual([heard, lock.locked], [[], false])
  await lock.executeLocked(() => {})
  assert.strictEqual(heard.length, 1)
})

// ——— what a program may replace ———

test('a getter in the place of `Atomics.notify` may use locks', async t => {
  const { notify } = global.Atomics
  const [lock, other] = [new AsyncLock(), new AsyncLock()]
  t.after(() => Object.defineProperty(global.Atomics, 'notify', { value: notify, writable: true, configurable: true }))
  const token = lock.tryLock()
  let taken
  let calls = 0
  Object.defineProperty(global.Atomics, 'notify', {
    configurable: true,
    get () {
      if (++calls === 1) taken = other.tryLock()
      return notify
    }
  })
  token.unlock()
  assert.deepStrictEqual([lock.locked, token.locked, other.locked, taken.locked], [false, false, true, true])
  assert.strictEqual(taken.unlock(), true)
  assert.ok(calls > 1)
})

test('a callback form whose lock another thread takes in its midst waits for that, and can be unref\'d', async t => {
  const calls = await runForJSON(t, ['-e', `
    const { compareExchange } = Atomics
    let isTaken = false
    Atomics.compareExchange = (array, index, expected, value) => {
      if (isTaken) compareExchange(array, index, 0, 1)
      isTaken = false
      return compareExchange(array, index, expected, value)
    }
    const { AsyncLock, unref } = require(${JSON.stringify(PURE)})
    const lock = new AsyncLock()
    lock.tryLock().unlock()
    const calls = []
    isTaken = true
    const promise = lock.executeLocked(({ locked }) => { calls.push(locked) })
    calls.push(lock.waiters, unref(promise))
    // Whoever has taken it knows only the bare word.
    lock.unlock()
    promise.then(() => lock.executeLocked(() => 'free')).then(value => {
      calls.push(value, lock.locked)
      console.log(JSON.stringify(calls))
    })
    setTimeout(() => {}, 100)`])
  assert.deepStrictEqual(calls, [1, true, true, 'free', false])
})

// ——— instances ———

test('a proxy of a lock, an object that inherits from one, and a subclass', async () => {
  const lock = new AsyncLock()
  const proxy = new Proxy(lock, {})
  proxy.tryLock()
  assert.strictEqual(lock.locked, true)
  proxy.unlock()
  assert.strictEqual(await proxy.executeLocked(({ locked }) => locked), true)
  const heir = Object.create(lock)
  heir.tryLock().unlock()
  class Named extends AsyncLock {}
  const named = new Named()
  named.tryLock()
  named.unlock()
  assert.deepStrictEqual([lock.locked, named.locked], [false, false])
  for (const value of [{}, null, undefined, 1, new Proxy({}, {}), AsyncLock.prototype]) {
    assert.throws(() => AsyncLock.prototype.tryLock.call(value), TypeError)
    assert.throws(() => AsyncLock.prototype.unlock.call(value), TypeError)
    assert.ok(await rejection(AsyncLock.prototype.executeLocked.call(value, () => {})) instanceof TypeError)
  }
})

test('a token of a share or of permits, and one of a lock behind others, take no short way', () => {
  const [rw, semaphore, lock] = [new RwLock(), new Semaphore(memory(4), { permits: 2 }), new AsyncLock()]
  const tokens = [rw.tryLockShared(), lock.tryLock(), semaphore.tryHold(2), rw.tryLockShared()]
  for (const token of tokens) {
    assert.deepStrictEqual([token.unlock(), token.locked, token.unlock()], [true, false, false])
  }
  assert.deepStrictEqual([rw.readers, semaphore.available, lock.locked], [0, 2, false])
  // The latest of two, the earlier of which stays.
  const [first, second, one, other] = [rw, rw, semaphore, semaphore].map(thing => (thing.tryLockShared || thing.tryHold)
    .call(thing))
  assert.deepStrictEqual([other.unlock(), semaphore.available, one.unlock(), semaphore.available], [true, 1, true, 2])
  assert.deepStrictEqual([second.unlock(), rw.readers, first.unlock(), rw.readers], [true, 1, true, 0])
})

test('a stale token releases no later hold; nor does one that other code has written into', () => {
  const lock = new AsyncLock()
  const stale = lock.tryLock()
  const copy = Object.assign(Object.create(Object.getPrototypeOf(stale)), stale)
  for (const key of Object.getOwnPropertySymbols(stale)) copy[key] = stale[key]
  stale.unlock()
  const token = lock.tryLock()
  assert.deepStrictEqual([stale.unlock(), copy.unlock(), token.locked], [false, false, true])
  for (const value of [undefined, 0, NaN, -1, 'x', {}]) {
    for (const key of Object.getOwnPropertySymbols(copy)) copy[key] = value
    assert.strictEqual(copy.unlock(), false)
  }
  assert.strictEqual(token.unlock(), true)
  const frozen = Object.freeze(lock.tryLock())
  assert.deepStrictEqual([frozen.unlock(), frozen.unlock(), lock.locked], [true, false, false])
})

// ——— callbacks ———

test('a callback under a free lock: its result, its errors, and what it does with its token', async () => {
  const lock = new AsyncLock()
  const promise = lock.executeLocked(() => lock.locked)
  assert.strictEqual(lock.locked, false)
  assert.strictEqual(await promise, true)
  const later = async token => {
    await sleep(1)
    return token.locked
  }
  assert.strictEqual(await lock.executeLocked(later), true)
  const errors = [() => { throw new Error('on purpose') }, async () => { throw new Error('on purpose') }]
  for (const callback of errors) {
    const failed = rejection(lock.executeLocked(callback))
    assert.strictEqual((await failed).message, 'on purpose')
    assert.strictEqual(lock.locked, false)
  }
  let other
  await lock.executeLocked(token => {
    token.unlock()
    other = lock.tryLock()
  })
  assert.deepStrictEqual([lock.locked, other.unlock()], [true, true])
  await lock.executeLocked(token => { Object.freeze(token) })
  assert.strictEqual(await lock.executeLocked(() => lock.lockAsync({ timeout: 0 }).catch(({ name }) => name)),
    'TimeoutError')
  lock.tryLock().abandon()
  const told = []
  await rejection(lock.executeLocked(({ ownerDied }) => {
    told.push(ownerDied)
    throw new Error('not repaired')
  }))
  await lock.executeLocked(({ ownerDied }) => { told.push(ownerDied) })
  await lock.executeLocked(({ ownerDied }) => { told.push(ownerDied) })
  assert.deepStrictEqual(told, [true, true, false])
})

test('at the end of the stack a callback form, a lock and a token do all or nothing', async () => {
  const [lock, other] = [new AsyncLock(), new AsyncLock()]
  const counts = { ran: 0, not: 0 }
  for (let padding = 0; padding < 6; padding++) {
    const promises = []
    const down = (...args) => {
      try {
        down(...args)
      } catch (_) {}
      let isRun = false
      const ends = error => {
        if (!(error instanceof RangeError)) throw error
        counts.not++
      }
      try {
        promises.push(lock.executeLocked(() => { isRun = true }).then(() => {
          assert.ok(isRun)
          counts.ran++
        }, ends))
        other.tryLock()
        other.unlock()
      } catch (error) {
        ends(error)
      }
    }
    down(...new Array(padding).fill(0))
    await Promise.all(promises)
    // A lock whose `unlock` had no stack left is still held, and says so.
    if (other.locked) other.unlock()
    assert.deepStrictEqual([list().length, waiterCount(lock.i32a, 0)], [0, 0])
  }
  assert.ok(counts.ran > 0 && counts.not > 0, JSON.stringify(counts))
})

test('a time limit of `vm` that is over at any moment leaves a lock free or held, and the list in order', async () => {
  const lock = new AsyncLock()
  const step = () => {
    lock.tryLock().unlock()
    lock.executeLocked(() => {})
    lock.tryLock()
    lock.unlock()
  }
  const steps = () => { for (let n = 0; n < 50; n++) step() }
  for (let n = 0; n < 40; n++) steps()
  let interrupted = 0
  for (let round = 0; round < 60; round++) {
    try {
      vm.runInNewContext('for (;;) steps()', { steps }, { timeout: 1 + round % 3 })
    } catch (error) {
      assert.ok(/timed out/.test(error.message), error.stack)
      interrupted++
    }
    if (lock.locked) lock.unlock()
    assert.deepStrictEqual([lock.locked, list().length], [false, 0])
    await undefined
  }
  assert.strictEqual(interrupted, 60)
  assert.strictEqual(Atomics.load(lock.i32a, 0), 0)
})

test('the short way is open where it is looked for here', { skip: withoutCounters.skip || withoutCounters }, () => {
  const lock = new AsyncLock()
  const [word, { UnlockToken }] = [inside('holding/view-word').wordOf(lock), inside('holding/hold')]
  const token = new UnlockToken()
  assert.deepStrictEqual([list().takeFree(word, token), token.locked, list().releaseLast(word)], [true, true, true])
  assert.deepStrictEqual([lock.locked, list().releaseLast(word)], [false, false])
})
