'use strict'
// oldest: none (there the plain entry installs)

// The effects of each entry point on the thread that loads it, and its exports.

const assert = require('assert')
const path = require('path')
const vm = require('vm')
const { test } = require('../harness')
const { folderWithPackage, packageWithoutLibrary } = require('../fixtures/entries/folders')
const programsBy = require('../fixtures/printed-value')
const { createRegistry } = require('../fixtures/registry')
const { runForJSON, runNode } = require('../fixtures/run-node')
const { unavailable } = require('../fixtures/shared-memory')

const pure = require('../../pure')

const MAJOR = Number(process.versions.node.split('.')[0])
const HOST_HAS_WAIT_ASYNC = MAJOR >= 16
const NO_HOST_WAIT_ASYNC = !HOST_HAS_WAIT_ASYNC && 'this Node has no waitAsync'
const HOST_HAS_WAKE = MAJOR < 12
/** Whether an exported `wait` is the host's: not where memory may be that of several processes. */
const EXPORTS_HOST = unavailable !== undefined
const root = path.join(__dirname, '..', '..')
const entryFile = (name) => path.join(root, name === 'index' ? '' : name, 'index.js')
const DESCRIBE = path.join(__dirname, '..', 'fixtures', 'entries', 'describe.js')
/** Whether each exported function is the installed one: `waitAsync` has a twin that takes a signal. */
const IN_PLACE = [true, true, false]
const EXPORTING = ['index', 'keep-alive', 'web-locks', 'pure', 'force']
const NAMES = Object.keys(pure)

/** Loads these entries one after the other in a new process; gives their effects. */
const load = (t, ...names) => runForJSON(t, [DESCRIBE, ...names.map(entryFile)])

const program = programsBy()

// Their effects.

const expectations = [
  {
    name: 'index',
    changes: !HOST_HAS_WAIT_ASYNC,
    engine: HOST_HAS_WAIT_ASYNC ? 'host' : 'addon',
    library: !HOST_HAS_WAIT_ASYNC,
    same: true
  },
  { name: 'force', changes: true, engine: 'addon', library: true, same: true },
  {
    name: 'keep-alive',
    changes: true,
    engine: HOST_HAS_WAIT_ASYNC ? 'host' : 'addon',
    library: !HOST_HAS_WAIT_ASYNC,
    same: true
  },
  { name: 'pure', changes: false, engine: 'addon', library: true, same: false }
]

for (const { name, changes, engine, library, same } of expectations) {
  test(`/${name} does to Atomics as documented, and changes nothing else`, async t => {
    const seen = await load(t, name)
    assert.strictEqual(seen.unchanged, !changes)
    assert.strictEqual(seen.engine, engine)
    assert.strictEqual(seen.libraryLoaded, library)
    // The exported wait and waitAsync reach other processes, and the latter takes a signal. And the host's notify
    // serves one queue, the exported one both.
    assert.deepStrictEqual(seen.same, [same && (engine === 'addon' || EXPORTS_HOST), same && engine === 'addon', false])
    assert.deepStrictEqual(seen.newGlobals, [])
    // Writable, not enumerable, configurable; waitAsync is the only new name.
    const shape = (name) => [name, true, false, true]
    assert.deepStrictEqual(seen.after, [
      shape('wait'),
      shape('notify'),
      HOST_HAS_WAIT_ASYNC || changes ? shape('waitAsync') : null,
      HOST_HAS_WAKE ? shape('wake') : null
    ])
  })

  test(`/${name}: its functions have the name and length of the standard, and are no constructors`, async t => {
    const { functions } = await load(t, name)
    assert.deepStrictEqual(functions, [
      ['wait', 4, false, false],
      ['notify', 3, false, false],
      ['waitAsync', 4, false, false]
    ])
  })

  test(`/${name}: exports the same names as the others`, async t => {
    const { exported } = await load(t, name)
    assert.deepStrictEqual(exported.slice().sort(), NAMES.slice().sort())
  })
}

test(
  'an entry that changes nothing loads neither the native library nor worker_threads',
  { skip: NO_HOST_WAIT_ASYNC },
  async t => {
    const [index, force] = [await load(t, 'index'), await load(t, 'force')]
    assert.deepStrictEqual([index.libraryLoaded, index.workersLoaded], [false, false])
    // The check would find them if they were loaded.
    assert.deepStrictEqual([force.libraryLoaded, force.workersLoaded], [true, true])
  }
)

test('preloaded by the name of the package', async t => {
  const folder = folderWithPackage(t)
  const ask = ['-p', 'JSON.stringify(Atomics.waitAsync[Symbol.for("atomics-waitasync")].engine)']
  for (const how of [{ cwd: folder }, { env: { NODE_PATH: path.join(folder, 'node_modules') } }]) {
    assert.strictEqual(await runForJSON(t, ['-r', 'atomics-waitasync/force', ...ask], how), 'addon')
  }
})

// Several in one thread.

test('after /force, the plain entry and /keep-alive change nothing and export the functions in place', async t => {
  for (const second of ['index', 'keep-alive']) {
    const { engine, same } = await load(t, 'force', second)
    assert.strictEqual(engine, 'addon')
    assert.deepStrictEqual(same, IN_PLACE)
  }
})

test('after /keep-alive, the plain entry exports the functions in place, but for a notify of both queues', async t => {
  const { engine, same } = await load(t, 'keep-alive', 'index')
  assert.strictEqual(engine, HOST_HAS_WAIT_ASYNC ? 'host' : 'addon')
  assert.deepStrictEqual(same, HOST_HAS_WAIT_ASYNC ? [EXPORTS_HOST, false, false] : IN_PLACE)
})

test('after the other entries, /force puts its own in place', async t => {
  const { engine, same } = await load(t, 'index', 'keep-alive', 'pure', 'force')
  assert.strictEqual(engine, 'addon')
  assert.deepStrictEqual(same, IN_PLACE)
})

test(
  "a waitAsync on the host's queue refuses a signal, and says where there is one; without a signal it is the host's",
  { skip: NO_HOST_WAIT_ASYNC },
  async t => {
    for (const name of ['index', 'keep-alive', 'web-locks']) {
      const source = `
      const hostWaitAsync = Atomics.waitAsync
      const { waitAsync } = require(${JSON.stringify(entryFile(name))})
      const array = new Int32Array(new SharedArrayBuffer(4))
      const message = (options) => {
        try { return waitAsync(array, 0, 0, 1000, options).value } catch (error) { return String(error) }
      }
      const signal = { aborted: true, addEventListener () {} }
      const pending = [
        waitAsync(array, 0, 0, 1000), waitAsync(array, 0, 0, 1000, {}), hostWaitAsync(array, 0, 0, 1000, { signal })
      ]
      const said = [message({ signal }), message({ timeout: 5 })]
      said.push(waitAsync(array, 0, 1, 0, { signal: undefined }).value)
      said.push(Atomics.notify(array, 0), hostWaitAsync === waitAsync, waitAsync.length)
      const all = Promise.all(pending.map(({ value }) => value))
      all.then(outcomes => { console.log(JSON.stringify([said, outcomes])) })`
      assert.deepStrictEqual(await runForJSON(t, ['-e', source]), [
        [
          "TypeError: waitAsync: a signal cannot cancel a wait in the host's queue, where this function waits: " +
          'those of atomics-waitasync/force and atomics-waitasync/pure take one',
          'TypeError: waitAsync: options may have signal, not "timeout"',
          'not-equal',
          3,
          false,
          4
        ],
        ['ok', 'ok', 'ok']
      ])
    }
  }
)

test(
  'after /force, every entry takes a signal; an install on an object and the plain entry before it do not',
  { skip: NO_HOST_WAIT_ASYNC },
  async t => {
    const source = `
    const entries = ['index', 'force', 'index', 'keep-alive', 'web-locks', 'pure'].map((name, n) => {
      const entry = require(${JSON.stringify(root)} + '/' + name)
      return n === 0 ? { waitAsync: entry.waitAsync } : entry
    })
    const target = {}
    entries[5].install({ target, force: true })
    const array = new Int32Array(new SharedArrayBuffer(4))
    const signal = { aborted: false, reason: 'aborted', addEventListener (_, listener) { this.listener = listener } }
    const tried = entries.concat([target, Atomics]).map(({ waitAsync }) => {
      try { return waitAsync(array, 0, 0, 1000, { signal }).value } catch (error) { return error.name }
    })
    signal.listener()
    entries[1].notify(array, 0)
    const settled = async (value) => { try { return await value } catch (reason) { return reason } }
    Promise.all(tried.map(settled)).then(outcomes => { console.log(JSON.stringify(outcomes)) })`
    // The plain entry chose its function when it was first used.
    assert.deepStrictEqual(await runForJSON(t, ['-e', source]), [
      'TypeError', 'aborted', 'TypeError', 'aborted', 'aborted', 'aborted', 'ok', 'ok'
    ])
  }
)

program('an entry that nobody uses makes no asynchronous resource after its load')(
  `
  const types = []
  process.on('exit', () => console.log(JSON.stringify(types)))
  for (const file of ${JSON.stringify(EXPORTING.map(entryFile))}) require(file)
  require('async_hooks').createHook({ init: (id, type) => { types.push(type) } }).enable()`
).gives([])

/** First uses: of the package, in a program and in its hook. */
const FIRST_USES = {
  'a lock': () => new api.AsyncLock().tryLock().unlock(), // eslint-disable-line no-undef
  'a lock, by a promise': () => new api.RwLock().executeLocked(() => {}), // eslint-disable-line no-undef
  'a queue': () => api.Queue.create({ capacity: 1, messageSize: 8 }).tryPut(1), // eslint-disable-line no-undef
  'a name': () => api.locks.request('a name', () => {}), // eslint-disable-line no-undef
  'a snapshot': () => api.snapshot(), // eslint-disable-line no-undef
  waitAsync: () => api.waitAsync(new Int32Array(new SharedArrayBuffer(4)), 0, 1), // eslint-disable-line no-undef
  'another entry': () => require(other) // eslint-disable-line no-undef
}
for (const name of ['index', 'pure']) {
  for (const first of Object.keys(FIRST_USES)) {
    program(`/${name}: a hook of async_hooks may use the package while ${first} loads its code`)(
      `
      const other = ${JSON.stringify(entryFile(name === 'force' ? 'web-locks' : 'force'))}
      const api = require(${JSON.stringify(entryFile(name))})
      const uses = [${Object.keys(FIRST_USES).map(use => FIRST_USES[use])}]
      let [isInside, calls] = [false, 0]
      const init = () => {
        if (isInside) return
        isInside = true
        calls++
        for (const use of uses) use()
        isInside = false
      }
      const hook = require('async_hooks').createHook({ init }).enable()
      uses[${Object.keys(FIRST_USES).indexOf(first)}]()
      hook.disable()
      // What the hook got is as good as ever.
      for (const use of uses) use()
      const token = new api.AsyncLock().tryLock()
      const { length } = api.snapshot().held.filter(({ kind }) => kind === 'AsyncLock')
      console.log(JSON.stringify([length, token.unlock()]))`
    ).gives([1, true])
  }
}

for (const name of EXPORTING) {
  program(`/${name}: fake functions of process, in place at the first use only, hold up nothing once they have gone`)(
    `
    const { Queue, AsyncLock } = require(${JSON.stringify(entryFile(name))})
    const { hrtime, nextTick } = process
    process.nextTick = () => {}
    process.hrtime = () => [0, 0]
    const [lock, queue] = [new AsyncLock(), Queue.create({ capacity: 1, messageSize: 8 })]
    lock.tryLock()
    lock.lockAsync()
    process.hrtime = hrtime
    process.nextTick = nextTick
    const log = []
    process.on('warning', ({ code }) => { log.push(code) })
    process.on('exit', () => console.log(JSON.stringify(log)))
    // It counts the time that is left.
    queue.takeAsync({ timeout: 5 }).catch(({ code }) => { log.push(code) })`
  ).gives(['ERR_TIMEOUT', 'ATOMICS_WAITASYNC_PENDING'])
}

program('all entries have one queue on their own functions')(
  `
  const [force, pure] = ['force', 'pure'].map((name) => require(${JSON.stringify(root)} + '/' + name))
  const array = new Int32Array(new SharedArrayBuffer(4))
  Atomics.waitAsync(array, 0, 0)
  pure.waitAsync(array, 0, 0)
  console.log(JSON.stringify([force.waiterCount(array, 0), pure.notify(array, 0, 1), Atomics.notify(array, 0)]))`
).gives([2, 1, 1])

test('the notify of every entry wakes the waiters of both queues, ours first, whatever is installed', async t => {
  const source = `
    const names = ${JSON.stringify(EXPORTING)}
    const later = (name) => require(${JSON.stringify(root)} + '/' + name)
    const pure = later('pure')
    const hostWaitAsync = Atomics.waitAsync
    const pending = []
    const lineUp = () => {
      const array = new Int32Array(new SharedArrayBuffer(4))
      if (hostWaitAsync) pending.push(hostWaitAsync(array, 0, 0).value)
      pending.push(pure.waitAsync(array, 0, 0).value)
      return array
    }
    const counted = []
    const count = ({ notify }) => {
      const array = lineUp()
      counted.push([notify(array, 0, 1), pure.waiterCount(array, 0), notify(array, 0), notify(array, 0)])
    }
    const apis = names.map(later)
    apis.forEach(count)
    apis[0].install({ force: true })
    apis.concat([Atomics]).forEach(count)
    const target = {}
    pure.uninstall()
    pure.install({ target })
    count(target)
    Promise.all(pending).then((outcomes) => console.log(JSON.stringify({ counted, outcomes })))`
  const { counted, outcomes } = await runForJSON(t, ['-e', source])
  const hosts = HOST_HAS_WAIT_ASYNC ? 1 : 0
  assert.deepStrictEqual(counted, counted.map(() => [1, 0, hosts, 0]))
  assert.strictEqual(outcomes.length, (1 + hosts) * counted.length)
})

test("the notify of the plain entry loads the library to reach a thread that waits in the package's queue", async t => {
  const source = `
    const { Worker } = require('worker_threads')
    const api = require(${JSON.stringify(root)})
    const array = new Int32Array(new SharedArrayBuffer(4))
    const worker = new Worker(\`
      const { workerData, parentPort } = require('worker_threads')
      const { wait } = require(${JSON.stringify(entryFile('pure').replace(/\\/g, '/'))})
      parentPort.postMessage(wait(workerData, 0, 0))\`, { eval: true, workerData: array })
    const isLoaded = () => Object.keys(require.cache).some((file) => file.endsWith('.node'))
    const before = [api.engine, isLoaded()]
    const notify = () => { if (api.notify(array, 0) === 0) setTimeout(notify, 1) }
    notify()
    worker.once('message', (outcome) => console.log(JSON.stringify([before, outcome, isLoaded()])))`
  const plain = HOST_HAS_WAIT_ASYNC ? ['host', false] : ['addon', true]
  assert.deepStrictEqual(await runForJSON(t, ['-e', source]), [plain, 'ok', true])
})

test('engine follows the functions in place', async t => {
  const source = `
    const api = require(${JSON.stringify(entryFile('index'))})
    const engines = [api.engine]
    api.uninstall()
    engines.push(api.engine)
    api.install({ force: true })
    engines.push(api.engine)
    Atomics.waitAsync = () => {}
    engines.push(api.engine)
    console.log(JSON.stringify(engines))`
  const engine = HOST_HAS_WAIT_ASYNC ? 'host' : 'addon'
  assert.deepStrictEqual(await runForJSON(t, ['-e', source]), [engine, engine, 'addon', 'host'])
})

// The arguments of ref and unref. Their effect on the event loop is tested with the queues.

test('ref and unref: true for a pending wait, false for every other promise', async () => {
  const array = new Int32Array(new SharedArrayBuffer(4))
  const { value: promise } = pure.waitAsync(array, 0, 0)
  for (const operation of [pure.unref, pure.ref, pure.ref, pure.unref, pure.unref, pure.ref])
    assert.strictEqual(operation(promise), true)
  pure.notify(array, 0)
  await promise
  const others = [promise, Promise.resolve(), new Promise(() => {}), vm.runInNewContext('Promise.resolve()')]
  for (const other of others) {
    assert.strictEqual(pure.unref(other), false)
    assert.strictEqual(pure.ref(other), false)
  }
})

test("ref and unref: false for a promise of the host's queue", { skip: NO_HOST_WAIT_ASYNC }, async () => {
  const plain = require('../..')
  const array = new Int32Array(new SharedArrayBuffer(4))
  const { value: promise } = plain.waitAsync(array, 0, 0)
  assert.strictEqual(plain.unref(promise), false)
  assert.strictEqual(plain.ref(promise), false)
  plain.notify(array, 0)
  assert.strictEqual(await promise, 'ok')
})

test('ref and unref: every entry knows the pending waits of the others', { skip: NO_HOST_WAIT_ASYNC }, async t => {
  const keepAlive = require('../../keep-alive')
  t.after(() => { keepAlive.uninstall() })
  const array = new Int32Array(new SharedArrayBuffer(4))
  const promises = [pure.waitAsync(array, 0, 0).value, keepAlive.waitAsync(array, 0, 0).value]
  for (const promise of promises) {
    for (const api of [pure, keepAlive, require('../..')]) assert.strictEqual(api.ref(promise), true)
  }
  pure.notify(array, 0)
  await Promise.all(promises)
})

test('ref and unref: pending waits of the package, although a library has replaced the global Promise', async t => {
  for (const name of ['pure', 'force', 'keep-alive']) {
    const source = `
      const Native = Promise
      global.Promise = class Foreign {
        constructor (executor) { this.inner = new Native(executor) }
        then (...args) { return new Foreign((resolve) => resolve(this.inner.then(...args))) }
      }
      const { AsyncLock, waitAsync, ref, unref } = require(${JSON.stringify(entryFile(name))})
      const array = new Int32Array(new SharedArrayBuffer(8))
      const lock = new AsyncLock(array.buffer, { byteOffset: 4 })
      lock.tryLock()
      const ours = [waitAsync(array, 0, 0).value, lock.lockAsync(), lock.executeLocked(() => {})]
      const promises = [...ours, new Promise(() => {})]
      console.log(JSON.stringify(promises.map((promise) => [ref(promise), unref(promise)])))`
    assert.deepStrictEqual(
      await runForJSON(t, ['-e', source]),
      [
        [true, true], [true, true], [true, true], [false, false]
      ],
      name
    )
  }
})

for (const name of ['ref', 'unref']) {
  test(`${name}: an argument that is no promise is refused by its name`, () => {
    for (const [argument, shown] of [
      [undefined, 'undefined'], [null, 'null'], [{ then () {} }, 'an object'], ['x', 'the string "x"'],
      [Promise, 'a function']
    ]) {
      assert.throws(
        () => pure[name](argument),
        error => {
          assert.ok(error instanceof TypeError)
          assert.strictEqual(error.message, `${name}: promise must be a Promise, not ${shown}`)
          return true
        }
      )
    }
  })
}

// Platforms and Nodes on which it cannot work.

test('without a native library, an entry that needs it says so when it is loaded, and changes nothing', async t => {
  const folder = packageWithoutLibrary(t)
  for (const { name, library } of expectations) {
    const source = `
      const before = Object.getOwnPropertyNames(Atomics).map((key) => Atomics[key])
      const { Worker } = require('worker_threads')
      let error
      try { require(${JSON.stringify(path.join(folder, name))}) } catch (e) { error = e }
      const after = Object.getOwnPropertyNames(Atomics).map((key) => Atomics[key])
      console.log(JSON.stringify({
        error: error && [error.name, error.code, error.message],
        unchanged: before.length === after.length && before.every((value, i) => value === after[i]) &&
          require('worker_threads').Worker === Worker && Object.getPrototypeOf(Worker) === require('events')
      }))`
    const { error, unchanged } = await runForJSON(t, ['-e', source])
    assert.strictEqual(error === undefined, !library, name)
    if (library) {
      assert.deepStrictEqual(error.slice(0, 2), ['Error', 'ERR_ATOMICS_WAITASYNC_NO_LIBRARY'])
      assert.ok(
        error[2].includes(folder) && error[2].includes(process.platform) && error[2].includes('npm run build'),
        error[2]
      )
      assert.ok(unchanged, name)
    }
  }
})

program('without a native library, /web-locks says so when it is loaded, and puts nothing in place')(
  t => `
  const before = Object.getOwnPropertyDescriptor(global, 'navigator')
  const { LockManager } = global
  let error
  try { require(${JSON.stringify(path.join(packageWithoutLibrary(t), 'web-locks'))}) } catch (e) { error = e }
  const after = Object.getOwnPropertyDescriptor(global, 'navigator')
  const isUnchanged = (before && before.get) === (after && after.get)
  console.log(JSON.stringify([error.code, isUnchanged, global.LockManager === LockManager]))`
).gives(['ERR_ATOMICS_WAITASYNC_NO_LIBRARY', true, true])

test(
  'without a native library, the exported notify still wakes the waiters of the host',
  { skip: NO_HOST_WAIT_ASYNC },
  async t => {
    const folder = packageWithoutLibrary(t)
    for (const name of ['index', 'keep-alive']) {
      const source = `
      const { notify, waitAsync } = require(${JSON.stringify(path.join(folder, name))})
      const array = new Int32Array(new SharedArrayBuffer(4))
      waitAsync(array, 0, 0)
      console.log(JSON.stringify([notify(array, 0), notify(array, 0)]))`
      assert.deepStrictEqual(await runForJSON(t, ['-e', source]), [1, 0])
    }
  }
)

program('a frozen Atomics is refused, and nothing is left of the attempt')(`
  Object.freeze(Atomics)
  const { Worker } = require('worker_threads')
  let error
  try { require(${JSON.stringify(entryFile('force'))}) } catch (e) { error = e }
  console.log(JSON.stringify([error.name, error.message.slice(0, 20), require('worker_threads').Worker === Worker,
    Object.getPrototypeOf(Worker) === require('events')]))`).gives(['TypeError', 'install: target must', true, true])

test('a program that only loads an entry ends at once, with code 0 and without output', async t => {
  for (const { name } of expectations) {
    const { code, stdout, stderr } = await runNode(t, [entryFile(name)])
    assert.deepStrictEqual([code, stdout, stderr.replace(/.*ExperimentalWarning.*\n/, '')], [0, '', ''])
  }
})

// In another realm, as test runners load modules.

test('evaluated in another realm, the package serves that one', async t => {
  const realm = vm.createContext({ process })
  const api = createRegistry(realm).require('force')
  t.after(() => { api.uninstall() })
  const {
    Atomics: theirs,
    TypeError,
    RangeError,
    Promise,
    Int32Array
  } = vm.runInContext('({ Atomics, TypeError, RangeError, Promise, Int32Array })', realm)
  assert.strictEqual(theirs.wait, api.wait)
  assert.notStrictEqual(Atomics.wait, api.wait)
  const array = new Int32Array(new SharedArrayBuffer(4))
  assert.throws(() => theirs.waitAsync(new Int32Array(4), 0, 0), TypeError)
  assert.throws(() => theirs.waitAsync(array, 1, 0), RangeError)
  assert.throws(() => api.install({ force: 1 }), TypeError)
  const { value: promise } = theirs.waitAsync(array, 0, 0)
  assert.ok(promise instanceof Promise)
  assert.strictEqual(pure.notify(array, 0), 1)
  assert.strictEqual(await promise, 'ok')
  // The install replaces the thread's Worker, of which there is only one.
  const worker = new (require('worker_threads').Worker)(
    'require("worker_threads").parentPort.postMessage(Atomics.wait[Symbol.for("atomics-waitasync")].engine)',
    { eval: true }
  )
  assert.strictEqual(await new global.Promise((resolve) => { worker.once('message', resolve) }), 'addon')
})
