'use strict'
// oldest: none (there the plain entry installs)

// An install reaches the contexts that `vm` makes afterwards, changes nothing else about them, and is taken away again.

const assert = require('assert')
const Module = require('module')
const vm = require('vm')
const { test } = require('../harness')
const programsBy = require('../fixtures/printed-value')
const { runForJSON, runNode } = require('../fixtures/run-node')

const api = require('../../pure')

const [MAJOR] = process.versions.node.split('.').map(Number)
const NO_HOST_WAIT_ASYNC = MAJOR < 16 && 'this Node has no waitAsync'
const NO_MODULES = MAJOR < 14 && 'this Node has no ES modules without a flag'
const MARK = Symbol.for('atomics-waitasync')
const TRIO = ['wait', 'notify', 'waitAsync']
const FORCE = require.resolve('../../force')
const KEEP_ALIVE = require.resolve('../../keep-alive')

const engineOf = (fn) => fn[MARK] && fn[MARK].engine
const isOurs = (atomics) => TRIO.every((name) => engineOf(atomics[name]) === 'addon')
const snapshot = (object) => Reflect.ownKeys(object).map((key) => [key, Object.getOwnPropertyDescriptor(object, key)])
const PARTS = '({ Atomics, TypeError, RangeError, Promise, Int32Array, SharedArrayBuffer })'
const inside = (context) => vm.runInContext(PARTS, context)

function installed (t, options) {
  assert.strictEqual(api.install(Object.assign({ force: true }, options)), true)
  t.after(() => { api.uninstall() })
}

const program = programsBy()
const afterForce = programsBy((t, source) => runForJSON(t, ['-r', FORCE, '-e', source]))

const ways = [
  ['createContext()', () => inside(vm.createContext())],
  ['createContext of a sandbox', () => inside(vm.createContext({ other: 1 }))],
  ['createContext of a frozen sandbox', () => inside(vm.createContext(Object.freeze({})))],
  ['createContext of a sandbox without a prototype', () => inside(vm.createContext(Object.create(null)))],
  ['createContext of a proxy', () => inside(vm.createContext(new Proxy({}, {})))],
  [
    'createContext that forbids code from strings',
    () => inside(vm.createContext({}, { codeGeneration: { strings: false, wasm: false } }))
  ],
  [
    'createContext of a sandbox with other intrinsics',
    () => inside(vm.createContext({ Array: undefined, Object: 1, Reflect: null, Function: 2 }))
  ],
  [
    'createContext with a queue of its own for microtasks',
    () => inside(vm.createContext({}, { microtaskMode: 'afterEvaluate' }))
  ],
  ['runInNewContext()', () => vm.runInNewContext(PARTS)],
  [
    'runInNewContext with a sandbox',
    () => vm.runInNewContext(PARTS, {}, { contextName: 'x', contextCodeGeneration: { strings: false } })
  ],
  ["a script's runInNewContext()", () => new vm.Script(PARTS).runInNewContext()],
  [
    "a script's runInNewContext with a sandbox",
    () => new vm.Script(PARTS).runInNewContext({ other: 1 }, { contextName: 'x' })
  ],
  ...(vm.constants && vm.constants.DONT_CONTEXTIFY
    ? [
        ['createContext(DONT_CONTEXTIFY)', () => inside(vm.createContext(vm.constants.DONT_CONTEXTIFY))],
        ['runInNewContext with DONT_CONTEXTIFY', () => vm.runInNewContext(PARTS, vm.constants.DONT_CONTEXTIFY)],
        [
          "a script's runInNewContext with DONT_CONTEXTIFY",
          () => new vm.Script(PARTS).runInNewContext(vm.constants.DONT_CONTEXTIFY)
        ]
      ]
    : [])
]

for (const [what, make] of ways) {
  test(`${what}: has ours, of that realm`, async t => {
    installed(t)
    const theirs = make()
    assert.ok(isOurs(theirs.Atomics))
    assert.notStrictEqual(theirs.Atomics, Atomics)
    assert.throws(() => theirs.Atomics.wait(1, 0, 0), theirs.TypeError)
    assert.throws(() => theirs.Atomics.notify(new Int32Array(new SharedArrayBuffer(4)), 1), theirs.RangeError)
    const array = new theirs.Int32Array(new theirs.SharedArrayBuffer(4))
    const { value } = theirs.Atomics.waitAsync(array, 0, 0)
    assert.ok(value instanceof theirs.Promise)
    assert.strictEqual(Atomics.notify(array, 0), 1)
    if (!/microtasks/.test(what)) assert.strictEqual(await value, 'ok')
  })

  test(`${what}: has the host's after an uninstall of its own`, () => {
    const pristine = snapshot(make().Atomics).map(([key]) => key)
    assert.strictEqual(api.install({ force: true }), true)
    const { Atomics: theirs } = make()
    const host = theirs.notify[MARK].host
    assert.strictEqual(api.uninstall(), true)
    assert.ok(isOurs(theirs))
    assert.strictEqual(api.uninstall(theirs), true)
    assert.deepStrictEqual(snapshot(theirs).map(([key]) => key), pristine)
    for (const name of TRIO) assert.strictEqual(theirs[name], host[name])
  })
}

test('contexts that were there before, and plain installs, are left alone', t => {
  const before = vm.createContext({})
  api.install({ target: {}, force: true })
  assert.ok(!isOurs(inside(vm.createContext({})).Atomics))
  installed(t)
  assert.ok(!isOurs(inside(before).Atomics))
})

test('contexts: false leaves contexts and vm alone', t => {
  const before = [snapshot(vm), snapshot(vm.Script.prototype)]
  installed(t, { contexts: false })
  assert.ok(!isOurs(vm.runInNewContext('Atomics')))
  assert.deepStrictEqual([snapshot(vm), snapshot(vm.Script.prototype)], before)
})

test('an uninstall leaves vm as it was; a new install reaches contexts again', t => {
  const before = [snapshot(vm), snapshot(vm.Script.prototype)]
  for (let n = 0; n < 2; n++) {
    assert.strictEqual(api.install({ force: true }), true)
    assert.ok(isOurs(vm.runInNewContext('Atomics')))
    assert.strictEqual(api.uninstall(), true)
    assert.ok(!isOurs(vm.runInNewContext('Atomics')))
    assert.deepStrictEqual([snapshot(vm), snapshot(vm.Script.prototype)], before)
  }
})

test('an install by the user in a context is not taken away with ours', { skip: NO_HOST_WAIT_ASYNC }, () => {
  const keepAlive = require('../../keep-alive')
  const context = vm.createContext()
  assert.strictEqual(engineOf(inside(context).Atomics.waitAsync), 'host')
  assert.strictEqual(api.install({ target: context, force: true }), true)
  assert.strictEqual(keepAlive.uninstall(), true)
  assert.ok(isOurs(inside(context).Atomics))
  assert.strictEqual(api.uninstall(context), true)
})

test('a wrapper that other code has put around vm stays, and makes contexts without ours after an uninstall', t => {
  api.install({ force: true })
  const { createContext } = vm
  const wrapper = (...args) => createContext(...args)
  vm.createContext = wrapper
  api.uninstall()
  const mine = vm.createContext
  t.after(() => { vm.createContext = createContext })
  assert.strictEqual(mine, wrapper)
  assert.ok(!isOurs(inside(vm.createContext({})).Atomics))
})

// The view of a user of vm.

/** Returns the outcome of a call, without our frames. */
function outcomeOf (call) {
  try {
    return { value: call() }
  } catch (error) {
    return { name: error.name, code: error.code, message: error.message }
  }
}

const wrongCalls = [
  () => vm.createContext(1),
  () => vm.createContext(null),
  () => vm.createContext({}, 1),
  () => vm.createContext({}, { name: 1 }),
  () => vm.runInNewContext('x y'),
  () => vm.runInNewContext('throw new TypeError(1)'),
  () => vm.runInNewContext('1', 1),
  () => vm.runInNewContext('1', {}, { contextName: 1 }),
  () => new vm.Script('1').runInNewContext({}, { contextName: 1 }),
  () => new vm.Script('1').runInNewContext({}, { timeout: 'x' }),
  () => new vm.Script('for (;;);').runInNewContext({}, { timeout: 5 }),
  () => new vm.Script('undefinedName').runInNewContext(),
  () => vm.Script.prototype.runInNewContext.call({}),
  () => vm.Script.prototype.runInNewContext.call(undefined)
]

test('errors are those of vm, and a script is left as it was', t => {
  const expected = wrongCalls.map(outcomeOf)
  assert.ok(expected.every(({ name }) => name !== undefined))
  installed(t)
  assert.deepStrictEqual(wrongCalls.map(outcomeOf), expected)
  const script = new vm.Script('this.x')
  assert.strictEqual(script.runInNewContext({ x: 5 }), 5)
  outcomeOf(() => script.runInNewContext({}, { contextName: 1 }))
  outcomeOf(() => script.runInNewContext({}, { timeout: 'x' }))
  assert.deepStrictEqual(Reflect.ownKeys(script).filter((key) => key === 'runInContext'), [])
})

test('the functions look like those of vm', t => {
  const look = () => [vm.createContext, vm.Script.prototype.runInNewContext].map(({ name, length }) => [name, length])
  const expected = look()
  const attributes = () => [[vm, 'createContext'], [vm.Script.prototype, 'runInNewContext']]
    .map(([object, name]) => Object.assign({}, Object.getOwnPropertyDescriptor(object, name), { value: 0 }))
  const before = attributes()
  installed(t)
  assert.deepStrictEqual(look(), expected)
  assert.deepStrictEqual(attributes(), before)
})

test('a sandbox that hides Atomics has none, and is not changed', t => {
  installed(t)
  for (const Atomics of [undefined, null, 1, { load () {} }]) {
    const sandbox = { Atomics }
    const before = [snapshot(sandbox), snapshot(Object(Atomics))]
    const context = vm.createContext(sandbox)
    assert.strictEqual(vm.runInContext('Atomics', context), Atomics)
    assert.deepStrictEqual([snapshot(sandbox), snapshot(Object(Atomics))], before)
  }
})

test('a sandbox that passes on our Atomics keeps it', t => {
  installed(t)
  const before = snapshot(Atomics)
  assert.strictEqual(vm.runInNewContext('Atomics', { Atomics }), Atomics)
  assert.deepStrictEqual(snapshot(Atomics), before)
})

test('where Atomics cannot be replaced, the context is made nevertheless, and a warning says so once', async t => {
  const { code, stdout, stderr } = await runNode(t, ['-r', FORCE, '-e', `
    const vm = require('vm')
    const say = (value) => { console.log(value) }
    const named = Object.create({ [Symbol.toStringTag]: 'Atomics' })
    const frozen = Object.freeze(Object.assign(named, { load: Atomics.load }))
    say(vm.runInNewContext('1 + 1', { Atomics: frozen }))
    say(vm.runInContext('1 + 2', vm.createContext({ get Atomics () { throw new Error('mine') } })))
    say(Object.freeze(new vm.Script('1 + 3')).runInNewContext())`])
  assert.strictEqual(stdout, '2\n3\n4\n', stderr)
  assert.strictEqual(code, 0)
  assert.strictEqual(stderr.split('ATOMICS_WAITASYNC_CONTEXT').length - 1, 1, stderr)
})

test('`import { createContext }` gives what is in place', { skip: NO_MODULES }, async t => {
  const source = `
    import { createContext, runInContext } from 'vm'
    const notify = runInContext('Atomics.notify', createContext())
    console.log(JSON.stringify(notify[Symbol.for('atomics-waitasync')].engine))`
  const seen = await runForJSON(t, ['-r', FORCE, '--input-type=module', '-e', source])
  assert.strictEqual(seen, 'addon')
})

// Why: one queue for a context, its thread, and the Workers that they start.

afterForce('a context notifies a Worker that its thread has started, and the other way round')(
  `
  const vm = require('vm')
  const { Worker } = require('worker_threads')
  const words = new Int32Array(new SharedArrayBuffer(8))
  const context = vm.createContext({ words })
  const worker = new Worker(\`
    const { parentPort, workerData: words } = require('worker_threads')
    parentPort.postMessage(Atomics.wait(words, 0, 0, 20000))
    while (Atomics.notify(words, 1) === 0);\`, { eval: true, workerData: words })
  const heard = new Promise((resolve) => { worker.on('message', resolve) })
  const waits = vm.runInContext('Atomics.waitAsync(words, 1, 0)', context).value
  Promise.all([heard, waits]).then((outcomes) => { console.log(JSON.stringify(outcomes)) })
  const timer = setInterval(() => {
    if (vm.runInContext('Atomics.notify(words, 0)', context) === 1) clearInterval(timer)
  }, 5)`
).gives(['ok', 'ok'])

afterForce('contexts of a Worker have it')(`
  const { Worker } = require('worker_threads')
  new Worker(\`
    const mark = Symbol.for('atomics-waitasync')
    const { engine } = require('vm').runInNewContext('Atomics.notify')[mark]
    require('worker_threads').parentPort.postMessage(engine)\`, { eval: true })
    .on('message', (engine) => { console.log(JSON.stringify(engine)) })`).gives('addon')

test('/keep-alive: a wait in a context holds the event loop', { skip: NO_HOST_WAIT_ASYNC }, async t => {
  const seen = await runForJSON(t, [
    '-r',
    KEEP_ALIVE,
    '-e',
    `
    const words = new Int32Array(new SharedArrayBuffer(8))
    const { value } = require('vm').runInNewContext('Atomics.waitAsync(words, 1, 0, 100)', { words })
    value.then((outcome) => { console.log(JSON.stringify(outcome)) })`
  ])
  assert.strictEqual(seen, 'timed-out')
})

program(
  'the plain entry, where the host has waitAsync, leaves vm alone',
  NO_HOST_WAIT_ASYNC
)(
  `
  const vm = require('vm')
  const before = [vm.createContext, vm.Script.prototype.runInNewContext]
  require(${JSON.stringify(require.resolve('../..'))})
  console.log(JSON.stringify(before[0] === vm.createContext && before[1] === vm.Script.prototype.runInNewContext))`
).gives(true)

test('contexts are collected', { skip: MAJOR < 18 && 'old Node keeps contexts anyway' }, async t => {
  const seen = await runForJSON(t, ['--expose-gc', '-r', FORCE, '-e', `
    const vm = require('vm')
    const refs = []
    const make = () => { for (let n = 0; n < 200; n++) refs.push(new WeakRef(vm.runInNewContext('Atomics'))) }
    make()
    setTimeout(() => {
      gc()
      setTimeout(() => {
        gc()
        console.log(refs.filter((ref) => ref.deref() !== undefined).length)
      }, 10)
    }, 10)`])
  assert.ok(seen <= 5, `${seen} of 200 are left`)
})

test(
  'the REPL has one queue with its thread',
  { skip: typeof Module.syncBuiltinESMExports !== 'function' && 'old Node' },
  t => {
    installed(t)
    const repl = require('repl')
    const { PassThrough } = require('stream')
    const server = repl.start({ input: new PassThrough(), output: new PassThrough(), useGlobal: false })
    const { context } = server
    server.close()
    assert.ok(isOurs(vm.runInContext('Atomics', context)))
  }
)

for (const when of ['before', 'after']) {
  program(`vm.Script replaced by a subclass ${when} the install: new contexts are reached`)(
    `
    const vm = require('vm')
    const patch = () => { vm.Script = class extends vm.Script {} }
    if (${when === 'before'}) patch()
    require(${JSON.stringify(FORCE)})
    if (${when === 'after'}) patch()
    const has = (notify) => Symbol.for('atomics-waitasync') in notify
    const all = [vm.runInNewContext('Atomics.notify'), new vm.Script('Atomics.notify').runInNewContext()]
    console.log(JSON.stringify(all.map(has)))`
  ).gives([true, true])
}

program('vm is frozen before the load: the entry warns, and reaches what can be reached')(`
  const vm = require('vm')
  Object.freeze(vm)
  process.on('warning', ({ code }) => {
    console.log(JSON.stringify([code, Symbol.for('atomics-waitasync') in vm.runInNewContext('Atomics.notify')]))
  })
  require(${JSON.stringify(FORCE)})`).gives(['ATOMICS_WAITASYNC_CONTEXT', true])
