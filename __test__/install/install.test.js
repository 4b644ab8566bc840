'use strict'
// oldest: none (there the plain entry installs)

// install and uninstall: three functions that move as one, onto whatever can hold them, and back.

const assert = require('assert')
const vm = require('vm')
const { test } = require('../harness')
const { unavailable } = require('../fixtures/shared-memory')

const api = require('../../pure')

const MAJOR = Number(process.versions.node.split('.')[0])
const HOST_HAS_WAIT_ASYNC = MAJOR >= 16
const NO_HOST_WAIT_ASYNC = !HOST_HAS_WAIT_ASYNC && 'this Node has no waitAsync'
const MARK = Symbol.for('atomics-waitasync')
/** Whether an exported `wait` is the host's: not where memory may be that of several processes. */
const EXPORTS_HOST = unavailable !== undefined
const TRIO = ['wait', 'notify', 'waitAsync']

const snapshot = (object) => Reflect.ownKeys(object).map((key) => [key, Object.getOwnPropertyDescriptor(object, key)])
const engineOf = (fn) => fn[MARK] && fn[MARK].engine
const isOurs = (object) => TRIO.every((name) => engineOf(object[name]) === 'addon')
const words = (length = 1) => new Int32Array(new SharedArrayBuffer(4 * length))
/** Makes a stand-in for a host's Atomics, with or without some functions. */
const atomics = functions =>
  Object.assign(Object.create({}, { [Symbol.toStringTag]: { value: 'Atomics' } }), { load: Atomics.load }, functions)

// The properties that an install changes.

test('a plain object receives the three, and loses them again', async () => {
  const target = { other: 1 }
  assert.strictEqual(api.install({ target, force: true }), true)
  assert.deepStrictEqual(Reflect.ownKeys(target).sort(), ['notify', 'other', 'wait', 'waitAsync'])
  for (const name of TRIO) {
    const { writable, enumerable, configurable } = Object.getOwnPropertyDescriptor(target, name)
    assert.deepStrictEqual(
      { writable, enumerable, configurable },
      { writable: true, enumerable: false, configurable: true }
    )
  }
  const array = words()
  const { value } = target.waitAsync(array, 0, 0)
  assert.strictEqual(target.notify(array, 0), 1)
  assert.strictEqual(await value, 'ok')
  assert.strictEqual(api.uninstall(target), true)
  assert.deepStrictEqual(target, { other: 1 })
  assert.strictEqual(api.uninstall(target), false)
})

test("without force, a plain object receives the plain entry's functions, and the host's waitAsync", () => {
  const target = {}
  assert.strictEqual(api.install({ target }), true)
  if (HOST_HAS_WAIT_ASYNC) {
    const { wait, notify } = require('../..')
    assert.deepStrictEqual(
      TRIO.map(name => target[name]),
      [EXPORTS_HOST ? wait : Atomics.wait, notify, Atomics.waitAsync]
    )
  } else {
    assert.ok(isOurs(target))
  }
  assert.strictEqual(api.install({ target }), false)
  assert.strictEqual(api.uninstall(target), true)
  assert.deepStrictEqual(Reflect.ownKeys(target), [])
})

test('a function may be the target', () => {
  const target = () => {}
  assert.strictEqual(api.install({ target, force: true }), true)
  assert.ok(isOurs(target))
})

test('without force, a target that has a waitAsync is left alone', () => {
  for (const target of [{ waitAsync () {} }, atomics({ waitAsync () {}, wait () {} })]) {
    const before = snapshot(target)
    assert.strictEqual(api.install({ target }), false)
    assert.strictEqual(api.uninstall(target), false)
    assert.deepStrictEqual(snapshot(target), before)
  }
})

test('a target that has our own queue is not installed on twice', () => {
  const target = {}
  assert.strictEqual(api.install({ target, force: true }), true)
  const before = snapshot(target)
  for (const force of [true, false]) assert.strictEqual(api.install({ target, force }), false)
  assert.deepStrictEqual(snapshot(target), before)
  assert.strictEqual(api.uninstall(target), true)
  assert.strictEqual(api.uninstall(target), false)
})

test('uninstall restores accessors, attributes and inherited functions', () => {
  const target = Object.create({ notify: 'inherited' }, {
    wait: { get () { return 1 }, set () {}, enumerable: true, configurable: true },
    waitAsync: { value: 2, writable: false, enumerable: false, configurable: true }
  })
  const before = snapshot(target)
  assert.strictEqual(api.install({ target, force: true }), true)
  assert.ok(isOurs(target))
  assert.strictEqual(api.uninstall(target), true)
  assert.deepStrictEqual(snapshot(target), before)
  assert.strictEqual(target.notify, 'inherited')
})

test('wake, where it exists, is a function of its own that notifies; elsewhere none is added', async () => {
  const functions = { wait: Atomics.wait, notify: Atomics.notify, wake (typedArray, index) {} }
  const target = atomics(functions)
  assert.strictEqual(api.install({ target, force: true }), true)
  assert.notStrictEqual(target.wake, target.notify)
  assert.deepStrictEqual([target.wake.name, target.wake.length, 'prototype' in target.wake], ['wake', 2, false])
  assert.throws(() => new target.wake(), TypeError) // eslint-disable-line new-cap
  assert.deepStrictEqual(target.wake[MARK], { engine: 'addon', host: target.notify[MARK].host })
  assert.ok(isOurs(target))
  const array = words()
  const all = [0, 0].map(() => target.waitAsync(array, 0, 0).value)
  assert.strictEqual(target.wake(array, 0, 1), 1)
  assert.strictEqual(target.wake(array, 0), 1)
  assert.deepStrictEqual(await Promise.all(all), ['ok', 'ok'])
  assert.strictEqual(api.uninstall(target), true)
  assert.strictEqual(target.wake, functions.wake)
  const without = atomics({ wait: Atomics.wait, notify: Atomics.notify })
  assert.strictEqual(api.install({ target: without, force: true }), true)
  assert.ok(!('wake' in without))
})

test('a host with wake only: notify passes on to wake, and is removed again', () => {
  const calls = []
  const wake = (...args) => { calls.push(args); return 5 }
  const target = atomics({ wait: Atomics.wait, wake })
  assert.strictEqual(api.install({ target }), true)
  const array = words()
  target.waitAsync(array, 0, 0)
  calls.length = 0
  assert.strictEqual(target.notify(array, 0, 7), 6)
  assert.deepStrictEqual(calls, [[array, 0, 6]])
  assert.strictEqual(api.uninstall(target), true)
  assert.deepStrictEqual(TRIO.map((name) => name in target), [true, false, false])
  assert.strictEqual(target.wake, wake)
})

test("a mark on each function says its engine and the host's function", () => {
  const functions = { wait: () => 'not-equal', notify: () => 0, waitAsync: () => {} }
  const target = atomics(functions)
  assert.strictEqual(api.install({ target, force: true }), true)
  for (const name of TRIO) {
    const { value, ...attributes } = Object.getOwnPropertyDescriptor(target[name], MARK)
    assert.deepStrictEqual(attributes, { writable: false, enumerable: false, configurable: false })
    assert.strictEqual(value.engine, 'addon')
    assert.deepStrictEqual(Object.assign({}, value.host), Object.assign({ wake: undefined }, functions))
  }
})

// Targets that cannot be installed on.

/** Makes a proxy that lets `allowed` definitions pass and then refuses. */
function stubborn (target, allowed, refuse) {
  return new Proxy(target, {
    defineProperty (target, key, property) {
      if (allowed-- === 0) return refuse()
      return Reflect.defineProperty(target, key, property)
    }
  })
}

const unwilling = [
  ['frozen', () => Object.freeze(atomics({ wait: 1 }))],
  ['sealed', () => Object.seal(atomics({ wait: 1, notify: 2 }))],
  ['not extensible', () => Object.preventExtensions(atomics({ notify: 2 }))],
  ...TRIO.map(name => [
    `with a ${name} that is not configurable`,
    () => Object.defineProperty(atomics({ wait: 1, notify: 2 }), name, { value: 3, configurable: false })
  ]),
  ...[0, 1, 2].map(allowed => [
    `a proxy that refuses definition ${allowed}`,
    () => stubborn(atomics({ notify: 2 }), allowed, () => false)
  ]),
  ...[0, 1, 2].map(allowed => [
    `a proxy that throws at definition ${allowed}`,
    () =>
      stubborn(atomics({ notify: 2 }), allowed, () => {
        throw new Error('no')
      })
  ])
]

for (const [what, make] of unwilling) {
  test(`a target that is ${what}: a TypeError, and nothing is changed`, () => {
    const target = make()
    const before = snapshot(target)
    assert.throws(() => api.install({ target, force: true }), (error) => {
      assert.ok(error instanceof TypeError)
      assert.ok(/^install: target must let wait, notify, waitAsync be defined on it/.test(error.message), error.message)
      return true
    })
    assert.deepStrictEqual(snapshot(target), before)
    assert.strictEqual(api.uninstall(target), false)
  })
}

test('an install on a global object that is refused is refused because of its Atomics', () => {
  const target = { Atomics: Object.freeze(atomics({})) }
  assert.throws(
    () => api.install({ target, force: true }),
    /^TypeError: install: target must let .* its Atomics object/
  )
})

// Targets that cannot be uninstalled from.

test('if one function has been wrapped since, all are left alone', () => {
  for (const name of TRIO) {
    const target = { wait: 1 }
    api.install({ target, force: true })
    const ours = target[name]
    target[name] = (...args) => ours(...args)
    const before = snapshot(target)
    assert.strictEqual(api.uninstall(target), false)
    assert.deepStrictEqual(snapshot(target), before)
    target[name] = ours
    assert.strictEqual(api.uninstall(target), true)
    assert.strictEqual(target.wait, 1)
  }
})

test('functions that have been deleted since are not put back', () => {
  const target = { wait: 1 }
  api.install({ target, force: true })
  delete target.notify
  assert.strictEqual(api.uninstall(target), false)
  assert.ok(!('notify' in target))
})

test('a target that has been frozen since is left alone', () => {
  const target = { wait: 1 }
  api.install({ target, force: true })
  const before = snapshot(Object.freeze(target))
  assert.strictEqual(api.uninstall(target), false)
  assert.deepStrictEqual(snapshot(target), before)
})

test('a proxy that refuses one step of an uninstall keeps all functions', () => {
  for (const refused of [0, 1, 2]) {
    const inner = atomics({ wait: 1, notify: 2, waitAsync: 3 })
    let step = -Infinity
    const target = new Proxy(inner, {
      defineProperty: (...args) => step++ !== refused && Reflect.defineProperty(...args)
    })
    assert.strictEqual(api.install({ target, force: true }), true)
    const before = snapshot(inner)
    step = 0
    assert.strictEqual(api.uninstall(target), false)
    assert.deepStrictEqual(snapshot(inner), before)
    assert.strictEqual(api.uninstall(target), true)
  }
})

// Several.

test('installs are undone in the order in which they were made, the last first', { skip: NO_HOST_WAIT_ASYNC }, t => {
  const keepAlive = require('../../keep-alive')
  t.after(() => { keepAlive.uninstall() })
  const target = atomics({
    wait: Atomics.wait,
    notify: Atomics.notify,
    waitAsync: Atomics.waitAsync[MARK].host.waitAsync
  })
  const before = snapshot(target)
  assert.strictEqual(keepAlive.install({ target }), true)
  assert.strictEqual(engineOf(target.waitAsync), 'host')
  assert.strictEqual(keepAlive.install({ target }), false)
  const between = snapshot(target)
  assert.strictEqual(api.install({ target }), false)
  assert.strictEqual(api.install({ target, force: true }), true)
  assert.ok(isOurs(target))
  assert.strictEqual(keepAlive.install({ target }), false)
  assert.strictEqual(api.uninstall(target), true)
  assert.deepStrictEqual(snapshot(target), between)
  assert.strictEqual(keepAlive.uninstall(target), true)
  assert.deepStrictEqual(snapshot(target), before)
})

test("an install over another copy's, or a wrapper of it, still passes the rest of a count on to the host only", () => {
  let notified = 0
  const target = atomics({ wait: Atomics.wait, notify: () => { notified++; return 0 }, waitAsync () {} })
  api.install({ target, force: true })
  const { notify, wait } = target
  target.wait = (...args) => wait(...args)
  assert.strictEqual(api.install({ target, force: true }), true)
  notified = 0
  assert.strictEqual(target.notify(words(), 0), 0)
  assert.strictEqual(notified, 1)
  assert.deepStrictEqual(target.notify[MARK].host, notify[MARK].host)
})

// Other realms.

const realms = [
  ['its global object', context => vm.runInContext('this', context)],
  ['the sandbox that stands for it', context => context],
  ['its Atomics object', context => vm.runInContext('Atomics', context)],
  [
    'its global object, though it forbids code from strings',
    context => vm.runInContext('this', context),
    { codeGeneration: { strings: false, wasm: true } }
  ]
]

for (const [what, targetOf, options] of realms) {
  test(`another realm, by ${what}: errors and promises are of that realm`, async () => {
    const context = vm.createContext({}, options)
    const theirs = vm.runInContext(
      '({ Atomics, TypeError, RangeError, Promise, Int32Array, SharedArrayBuffer })',
      context
    )
    const target = targetOf(context)
    const [before, theirsBefore] = [snapshot(Atomics), snapshot(theirs.Atomics)]
    const host = theirs.Atomics.notify
    assert.strictEqual(api.install({ target, force: true }), true)
    assert.deepStrictEqual(snapshot(Atomics), before)
    assert.ok(isOurs(theirs.Atomics))
    assert.throws(() => theirs.Atomics.wait(1, 0, 0), theirs.TypeError)
    assert.throws(() => theirs.Atomics.wait(words(), 1, 0), theirs.RangeError)
    const array = new theirs.Int32Array(new theirs.SharedArrayBuffer(4))
    const { value } = theirs.Atomics.waitAsync(array, 0, 0)
    assert.ok(value instanceof theirs.Promise)
    assert.strictEqual(api.notify(array, 0), 1)
    assert.strictEqual(await value, 'ok')
    assert.strictEqual(theirs.Atomics.notify[MARK].host.notify, host)
    assert.strictEqual(api.uninstall(target), true)
    assert.deepStrictEqual(snapshot(theirs.Atomics), theirsBefore)
  })
}

// Options.

const wrong = [
  [null, 'options must be an object, not null'],
  [1, 'options must be an object, not the number 1'],
  [() => {}, 'options must be an object, not a function'],
  [{ forced: true }, 'options may have target, force, workers and contexts, not "forced"'],
  [{ force: 1 }, 'options.force must be a boolean, not the number 1'],
  [{ force: null }, 'options.force must be a boolean, not null'],
  [{ workers: 'no' }, 'options.workers must be a boolean, not the string "no"'],
  [{ contexts: 1 }, 'options.contexts must be a boolean, not the number 1'],
  [{ target: null }, 'target must be a global object, an Atomics object or another object, not null'],
  [{ target: 'x' }, 'target must be a global object, an Atomics object or another object, not the string "x"']
]

for (const [options, message] of wrong) {
  test(`wrong options: ${message}`, () => {
    const before = snapshot(Atomics)
    assert.throws(() => api.install(options), (error) => {
      assert.ok(error instanceof TypeError)
      assert.strictEqual(error.message, 'install: ' + message)
      return true
    })
    assert.deepStrictEqual(snapshot(Atomics), before)
  })
}

test('uninstall names its argument, too', () => {
  assert.throws(() => api.uninstall(3), /^TypeError: uninstall: target must be .*, not the number 3$/)
  assert.strictEqual(api.uninstall({}), false)
})

test('each option is read once, and one that throws changes nothing', () => {
  const target = {}
  const log = []
  const options = (failing) => ({
    get target () { log.push('target'); if (failing === 'target') throw new RangeError('mine'); return target },
    get force () { log.push('force'); if (failing === 'force') throw new RangeError('mine'); return true },
    get workers () { log.push('workers'); if (failing === 'workers') throw new RangeError('mine'); return undefined },
    get contexts () { log.push('contexts'); if (failing === 'contexts') throw new RangeError('mine'); return undefined }
  })
  for (const failing of ['target', 'force', 'workers', 'contexts'])
    assert.throws(() => api.install(options(failing)), RangeError)
  assert.deepStrictEqual(Reflect.ownKeys(target), [])
  log.length = 0
  assert.strictEqual(api.install(options()), true)
  assert.deepStrictEqual(log, ['target', 'force', 'workers', 'contexts'])
})

// The global Atomics.

test('installed and uninstalled on the global object, Atomics is as it was', () => {
  const before = snapshot(Atomics)
  for (const target of [undefined, global, Atomics]) {
    assert.strictEqual(api.install({ target, force: true }), true)
    assert.ok(isOurs(Atomics))
    if (MAJOR < 12) {
      const [, hosts] = before.find(([name]) => name === 'wake')
      const wake = Object.getOwnPropertyDescriptor(Atomics, 'wake')
      assert.deepStrictEqual(Object.assign({}, wake, { value: hosts.value }), hosts)
      assert.deepStrictEqual([wake.value.name, wake.value.length], ['wake', hosts.value.length])
      assert.notStrictEqual(wake.value, hosts.value)
      assert.notStrictEqual(wake.value, Atomics.notify)
    }
    // The same object by another name.
    assert.strictEqual(api.uninstall(target === Atomics ? undefined : Atomics), true)
    assert.deepStrictEqual(snapshot(Atomics), before)
  }
})
