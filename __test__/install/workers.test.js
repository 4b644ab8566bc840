'use strict'
// timeout: 400

// Workers of a thread with an install have it too, and are otherwise the same as without.

const assert = require('assert')
const fs = require('fs')
const path = require('path')
const { pathToFileURL } = require('url')
const vm = require('vm')
const threads = require('worker_threads')
const { test } = require('../harness')
const programsBy = require('../fixtures/printed-value')
const { BASE_FLAGS, runForJSON, runNode } = require('../fixtures/run-node')
const size = require('../fixtures/size')

const api = require('../../pure')

const MAJOR = Number(process.versions.node.split('.')[0])
const root = path.join(__dirname, '..', '..')
const fixture = (name) => path.join(__dirname, '..', 'fixtures', 'workers', name)
const entryFile = (name) => path.join(root, name)
const COMPARE = fixture('compare.js')
const SAY_WORLD = fixture('say-world.js')
const PRELOAD = fixture('preload.js')

/** Installs for the length of a test. */
function installed (t, options = { force: true }) {
  assert.strictEqual(api.install(options), true)
  t.after(() => { api.uninstall() })
}

/** Returns the last message of a worker, once it has ended. */
function messageOf (worker) {
  return new Promise((resolve, reject) => {
    let message
    worker.on('message', (value) => { message = value })
    worker.on('error', reject)
    worker.on('exit', () => { resolve(message) })
  })
}

const startAndHear = (...args) => messageOf(new threads.Worker(...args))

const program = programsBy()

// The world of workers, with and without an install.

/** The ways to which flags and environment of the parent could make a difference. */
const SOME_WAYS = size(
  '^(a file|an ES module|source text|an empty environment|a shared environment|no flags|flags of its own|' +
  'a worker in a worker( with flags)?)$',
  '^(a file|source text|no flags|a worker in a worker with flags)$'
)

const parents = [
  { name: 'without flags', flags: [], ways: '', least: 27 },
  { name: 'with flags and preloads', flags: ['--no-deprecation', '-r', PRELOAD] },
  {
    name: 'with flags that a Worker refuses',
    flags: ['--expose-gc', '--no-deprecation', '--max-old-space-size=300', '--stack-trace-limit=20', '--title=a, b']
  },
  {
    name: 'with flags from NODE_OPTIONS',
    flags: ['--trace-warnings'],
    env: { NODE_OPTIONS: `--no-deprecation -r ${PRELOAD}` }
  },
  {
    name: 'that has deleted NODE_OPTIONS since',
    flags: [],
    env: { NODE_OPTIONS: '--no-deprecation', FORGET_NODE_OPTIONS: '1' }
  },
  {
    name: 'that preloads the plain entry',
    flags: ['--no-deprecation', '-r', entryFile('index')],
    skip: MAJOR < 16 && 'there it is an install'
  },
  { name: 'that is source text', flags: ['--no-deprecation', '-e', `require(${JSON.stringify(COMPARE)})`], script: [] },
  {
    name: 'with preloads that are modules',
    flags: ['--import', pathToFileURL(fixture('preload.mjs')).href],
    skip: MAJOR < 20 && 'this Node has no --import'
  },
  {
    name: 'with a loader',
    flags: ['--no-warnings', '--experimental-loader', pathToFileURL(fixture('loader.mjs')).href],
    skip: MAJOR < 16 && 'loaders of this Node have another form'
  }
]

for (const { name, flags, env, script = [COMPARE], ways: WAYS = SOME_WAYS, least = size(8, 4), skip } of parents) {
  test(
    `the workers of a parent ${name} are the same as without an install, but have it`,
    { timeout: 120000, skip },
    async t => {
      const ways = await runForJSON(t, [...flags, ...script], { env: Object.assign({ WAYS }, env) })
      assert.ok(Object.keys(ways).length >= least)
      const problems = []
      for (const way of Object.keys(ways)) {
        const { plain, ...others } = ways[way]
        for (const other of Object.keys(others)) {
          if (isKnownLimit(way)) continue
          const heard = others[other]
          try {
            assert.deepStrictEqual(withoutEngine(heard), withoutEngine(plain))
            if (plain.message && plain.message.engine !== undefined) assert.strictEqual(heard.message.engine, 'addon')
          } catch (error) {
            problems.push(`${way}, ${other}: ${error.message}`)
          }
        }
      }
      assert.deepStrictEqual(problems, [])
    }
  )
}

/**
 * Whether it is known: text that is no script may be TypeScript, so it gets a call of ours in front; its error shows
 * that.
 */
const isKnownLimit = (way) => way === 'source text that does not compile' && Boolean(process.features.typescript)

function withoutEngine (value) {
  return JSON.parse(JSON.stringify(value, (key, value) => key === 'engine' ? undefined : value))
}

// Waits and notifications between main and workers.

const WAKE_MAIN = `
  const { workerData } = require('worker_threads')
  while (Atomics.notify(workerData, 0) === 0);`

test('a plain Atomics.notify in a worker settles a waitAsync of main', async t => {
  installed(t)
  const array = new Int32Array(new SharedArrayBuffer(4))
  const { value } = Atomics.waitAsync(array, 0, 0)
  const ended = startAndHear(WAKE_MAIN, { eval: true, workerData: array })
  assert.strictEqual(await value, 'ok')
  await ended
})

test('a plain Atomics.notify of main wakes the wait and the waitAsync of workers in workers', async t => {
  installed(t)
  const array = new Int32Array(new SharedArrayBuffer(8))
  const inner = `
    const { workerData } = require('worker_threads')
    Atomics.waitAsync(workerData, 0, 0).value.then(() => { Atomics.add(workerData, 1, 1) })
    Atomics.wait(workerData, 0, 0)
    Atomics.add(workerData, 1, 1)`
  const ended = startAndHear(
    `
    const { Worker, workerData } = require('worker_threads')
    for (let i = 0; i < 2; i++) new Worker(${JSON.stringify(inner)}, { eval: true, workerData })`,
    { eval: true, workerData: array }
  )
  while (api.waiterCount(array, 0) < 4) await new Promise((resolve) => setTimeout(resolve, 1))
  assert.strictEqual(Atomics.notify(array, 0), 4)
  await ended
  assert.strictEqual(array[1], 4)
})

// The install and Worker.

test('the Worker of an install is a Worker', async t => {
  const { Worker: HostWorker } = threads
  installed(t)
  const { Worker } = threads
  const worker = new Worker(SAY_WORLD)
  for (const each of [Worker, HostWorker]) {
    assert.ok(worker instanceof each)
    assert.strictEqual(each.name, 'Worker')
    assert.strictEqual(each.prototype, Object.getPrototypeOf(worker))
    assert.strictEqual(Object.getPrototypeOf(each).defaultMaxListeners, 10)
  }
  assert.deepStrictEqual(Reflect.ownKeys(Worker), Reflect.ownKeys(HostWorker))
  assert.strictEqual((await messageOf(worker)).engine, 'addon')
  assert.throws(() => Worker(SAY_WORLD), TypeError)
})

test('subclasses, older and newer than the install, construct their own', async t => {
  const subclass = (Worker) => class Mine extends Worker {
    constructor (...args) {
      super(...args)
      this.target = new.target
    }

    mine () { return this }
  }
  const Older = subclass(threads.Worker)
  installed(t)
  for (const Class of [Older, subclass(threads.Worker), subclass(Older)]) {
    const worker = new Class(SAY_WORLD)
    assert.strictEqual(worker.target, Class)
    assert.strictEqual(worker.constructor, Class)
    assert.strictEqual(worker.mine(), worker)
    assert.strictEqual((await messageOf(worker)).engine, 'addon')
  }
})

test('a class that another package has put in place of Worker before the install is kept', async t => {
  const { Worker: HostWorker } = threads
  class Theirs extends HostWorker {}
  threads.Worker = Theirs
  t.after(() => { threads.Worker = HostWorker })
  installed(t)
  const worker = new threads.Worker(SAY_WORLD)
  assert.ok(worker instanceof Theirs)
  assert.strictEqual((await messageOf(worker)).engine, 'addon')
  assert.strictEqual(api.uninstall(), true)
  assert.strictEqual(threads.Worker, Theirs)
})

test('a class that another package put in place of Worker since the install outlives an uninstall', async t => {
  const { Worker: HostWorker } = threads
  installed(t)
  class Theirs extends threads.Worker {}
  threads.Worker = Theirs
  t.after(() => { threads.Worker = HostWorker })
  assert.strictEqual((await startAndHear(SAY_WORLD)).engine, 'addon')
  assert.strictEqual(api.uninstall(), true)
  assert.strictEqual(threads.Worker, Theirs)
  assert.notStrictEqual((await startAndHear(SAY_WORLD)).engine, 'addon')
})

test('workers: false leaves Worker and its workers alone', async t => {
  const { Worker: HostWorker } = threads
  const Parent = Object.getPrototypeOf(HostWorker)
  installed(t, { force: true, workers: false })
  assert.strictEqual(threads.Worker, HostWorker)
  assert.strictEqual(Object.getPrototypeOf(HostWorker), Parent)
  assert.notStrictEqual((await startAndHear(SAY_WORLD)).engine, 'addon')
})

test('uninstall puts everything back, and workers started afterwards are without', async t => {
  const { Worker: HostWorker } = threads
  const Parent = Object.getPrototypeOf(HostWorker)
  const { postMessage } = threads.MessagePort.prototype
  installed(t)
  const { Worker } = threads
  const during = new Worker(SAY_WORLD)
  assert.strictEqual(api.uninstall(), true)
  assert.strictEqual(threads.Worker, HostWorker)
  assert.strictEqual(Object.getPrototypeOf(HostWorker), Parent)
  assert.strictEqual(threads.MessagePort.prototype.postMessage, postMessage)
  assert.strictEqual((await messageOf(during)).engine, 'addon')
  for (const Class of [HostWorker, Worker]) {
    assert.notStrictEqual((await messageOf(new Class(SAY_WORLD))).engine, 'addon')
  }
})

test('an install on another object than the global Atomics does not reach workers', async t => {
  const { Worker: HostWorker } = threads
  assert.strictEqual(api.install({ target: {}, force: true }), true)
  assert.strictEqual(api.install({ target: vm.createContext({}), force: true }), true)
  assert.strictEqual(threads.Worker, HostWorker)
  assert.notStrictEqual((await startAndHear(SAY_WORLD)).engine, 'addon')
})

// Options.

const refused = [
  ['no script', []],
  ['a script that is no string', [3]],
  ['a relative path without a dot', ['worker.js']],
  ['options that are null', [SAY_WORLD, null]],
  ['source text that is no string', [3, { eval: true }]],
  ['execArgv that is no array', [SAY_WORLD, { execArgv: 'x' }]],
  ['execArgv with an unknown flag', [SAY_WORLD, { execArgv: ['--no-such-flag'] }]],
  ['execArgv with a flag for the whole process', [SAY_WORLD, { execArgv: ['--expose-gc', '--title=x'] }]],
  ['execArgv with a flag that lacks its argument', [SAY_WORLD, { execArgv: ['--require'] }]],
  ['NODE_OPTIONS with an unknown flag', [SAY_WORLD, { env: { NODE_OPTIONS: '--no-such-flag' } }]],
  ['an environment that is none', [SAY_WORLD, { env: 'x' }]],
  ['argv that is no array', [SAY_WORLD, { argv: 'x' }]],
  ['data that cannot be cloned', [SAY_WORLD, { workerData: () => {} }]],
  ['a getter that throws', [SAY_WORLD, { get eval () { throw new RangeError('mine') } }]]
]

for (const [what, args] of refused) {
  test(`${what}: the same error as without an install, and nothing is left of it`, async t => {
    const attempt = (Worker) => {
      try {
        const worker = new Worker(...args)
        worker.on('error', () => {})
        worker.terminate()
        return 'accepted'
      } catch (error) {
        return [error.name, error.code, error.message]
      }
    }
    const { Worker: HostWorker } = threads
    const { postMessage } = threads.MessagePort.prototype
    const expected = attempt(HostWorker)
    installed(t)
    assert.deepStrictEqual(attempt(threads.Worker), expected)
    assert.deepStrictEqual(attempt(HostWorker), expected)
    const next = messageOf(new HostWorker(SAY_WORLD))
    await null
    await new Promise(setImmediate)
    assert.strictEqual(threads.MessagePort.prototype.postMessage, postMessage)
    if (threads.getEnvironmentData) assert.strictEqual(threads.getEnvironmentData('atomics-waitasync'), undefined)
    assert.strictEqual((await next).engine, 'addon')
  })
}

test('messages between a constructor that throws and the end of its tick arrive as they are', async t => {
  const { Worker: HostWorker } = threads
  installed(t)
  assert.throws(() => new HostWorker(3), TypeError)
  const { port1, port2 } = new threads.MessageChannel()
  const sent = { type: 'loadScript', filename: 'x', doEval: 1 }
  port1.postMessage(sent)
  const received = await new Promise((resolve) => { port2.once('message', resolve) })
  port1.close()
  assert.deepStrictEqual(received, sent)
})

test('a postMessage that other code has put in place after a constructor that throws stays there', async t => {
  const { prototype } = threads.MessagePort
  const before = Object.getOwnPropertyDescriptor(prototype, 'postMessage')
  t.after(() => { Object.defineProperty(prototype, 'postMessage', before) })
  installed(t)
  assert.throws(() => new threads.Worker(3), TypeError)
  const { postMessage } = prototype
  const patched = prototype.postMessage = function () { return postMessage.apply(this, arguments) }
  await new Promise(setImmediate)
  assert.strictEqual(prototype.postMessage, patched)
  for (let n = 0; n < 2; n++) assert.strictEqual((await messageOf(new threads.Worker(SAY_WORLD))).engine, 'addon')
  assert.strictEqual(prototype.postMessage, patched)
})

test('options are read as without an install: as often, in order, on their own object, and not changed', async t => {
  const read = (Worker) => {
    const log = []
    const values = { argv: ['x'], workerData: 1, execArgv: ['--no-deprecation'], env: { A: '1' } }
    const options = {}
    for (const key of [
      'argv', 'env', 'eval', 'execArgv', 'name', 'resourceLimits', 'stderr', 'stdin', 'stdout', 'trackUnmanagedFds',
      'transferList', 'workerData'
    ]) {
      Object.defineProperty(options, key, {
        get () {
          assert.strictEqual(this, options)
          log.push(key)
          return values[key]
        }
      })
    }
    const heard = messageOf(new Worker(SAY_WORLD, options))
    return { log, heard, values }
  }
  const expected = read(threads.Worker)
  installed(t)
  const { log, heard, values } = read(threads.Worker)
  assert.deepStrictEqual(log, expected.log)
  assert.deepStrictEqual(values, { argv: ['x'], workerData: 1, execArgv: ['--no-deprecation'], env: { A: '1' } })
  await expected.heard
  assert.strictEqual((await heard).engine, 'addon')
})

test('options may be frozen, inherited, a proxy or no object at all', async t => {
  installed(t)
  const execArgv = Object.freeze(['--no-deprecation'])
  const all = [
    Object.freeze({ execArgv }), Object.create({ execArgv }), new Proxy({ execArgv }, {}),
    Object.assign(() => {}, { execArgv }), 5, 'text', undefined
  ]
  for (const options of all) {
    const { engine, noDeprecation } = await startAndHear(SAY_WORLD, options)
    assert.strictEqual(engine, 'addon')
    assert.strictEqual(noDeprecation, MAJOR >= 12 && Object(options).execArgv === execArgv)
  }
})

test('a worker started while the options of another are read', async t => {
  const { Worker: HostWorker } = threads
  installed(t)
  for (const Outer of [threads.Worker, HostWorker]) {
    for (const Inner of [threads.Worker, HostWorker]) {
      let inner
      const outer = startAndHearBy(Outer, { get workerData () { inner = startAndHearBy(Inner, {}); return 1 } })
      const worlds = [await outer, await inner]
      assert.deepStrictEqual(worlds.map(({ engine }) => engine), ['addon', 'addon'])
      assert.deepStrictEqual(
        worlds.map(({ execArgv }) => execArgv),
        [process.execArgv, process.execArgv].map(flags => (MAJOR < 12 ? [] : flags))
      )
    }
  }
})

test('workers started one after the other in one tick, one of them in vain', async t => {
  const { Worker: HostWorker } = threads
  installed(t)
  const all = []
  for (const Worker of [HostWorker, threads.Worker, HostWorker]) {
    assert.throws(() => new HostWorker(3), TypeError)
    all.push(messageOf(new Worker(SAY_WORLD)), messageOf(new Worker(SAY_WORLD)))
  }
  const worlds = await Promise.all(all)
  const stack = worlds[0].stack
  for (const world of worlds) {
    assert.strictEqual(world.engine, 'addon')
    assert.deepStrictEqual(world.stack, stack)
  }
})

const startAndHearBy = (Worker, options) => messageOf(new Worker(SAY_WORLD, options))

// How the parent came to its install.

program('a reference to Worker that is older than the install')(
  `
  const { Worker } = require('worker_threads')
  require(${JSON.stringify(entryFile('force'))})
  new Worker(${JSON.stringify(SAY_WORLD)}).on('message', ({ engine }) => { console.log(JSON.stringify(engine)) })`
).gives('addon')

test(
  'an import of Worker, older or newer than the install',
  { skip: MAJOR < 12 && 'this Node has no ES modules' },
  async t => {
    for (const file of ['import-before.mjs', 'import-after.mjs']) {
      const flags = MAJOR < 14 ? ['--experimental-modules', '--no-warnings'] : []
      const heard = await runForJSON(t, [...flags, fixture(file)])
      assert.deepStrictEqual(heard, ['addon', 'addon'])
    }
  }
)

const preloads = [
  ['an absolute path', { args: ['-r', entryFile('force')] }],
  ['a relative path', { args: ['-r', './force/index.js'], cwd: root }],
  ['NODE_OPTIONS', { args: [], env: { NODE_OPTIONS: `-r ${entryFile('force')}` } }]
]
for (const [what, { args, env, cwd }] of preloads) {
  test(`preloaded by ${what}: main and its workers have it, once`, async t => {
    const source = `
      const { Worker } = require('worker_threads')
      const ours = Atomics.wait
      console.assert(ours[Symbol.for('atomics-waitasync')].engine === 'addon')
      const worker = new Worker(${JSON.stringify(SAY_WORLD)})
      worker.on('message', ({ engine, execArgv }) => { console.log(JSON.stringify([engine, execArgv])) })`
    const [engine, execArgv] = await runForJSON(t, [...args, '-e', source], { env, cwd })
    assert.strictEqual(engine, 'addon')
    if (MAJOR >= 12) assert.deepStrictEqual(execArgv, [...BASE_FLAGS, ...args, '-e', source])
  })
}

test('workers have the flags that the process was started with, although process.execArgv was changed', async t => {
  const heard = await runForJSON(t, [
    '--no-deprecation',
    '-e',
    `
    const api = require(${JSON.stringify(entryFile('pure'))})
    process.execArgv.length = 0
    api.install({ force: true })
    const { Worker } = require('worker_threads')
    const worker = new Worker(${JSON.stringify(SAY_WORLD)})
    worker.on('message', ({ engine, noDeprecation }) => { console.log(JSON.stringify([engine, noDeprecation])) })`
  ])
  assert.deepStrictEqual(heard, ['addon', true])
})

test('a worker has the install although a preload of it takes waitAsync away', async t => {
  // Programs do so to see their behaviour on an older Node.
  const heard = await runForJSON(t, ['-r', fixture('without-wait-async.js'), '-e', `
    require(${JSON.stringify(entryFile('index'))})
    const { Worker } = require('worker_threads')
    new Worker(${JSON.stringify(SAY_WORLD)}).on('message', ({ engine }) => { console.log(JSON.stringify(engine)) })`])
  assert.strictEqual(heard, 'addon')
})

program(
  'the workers of a thread with /keep-alive have that',
  MAJOR < 16 && 'this Node has no waitAsync'
)(
  `
  require(${JSON.stringify(entryFile('keep-alive'))})
  const { Worker } = require('worker_threads')
  new Worker(${JSON.stringify(SAY_WORLD)}).on('message', ({ engine }) => { console.log(JSON.stringify(engine)) })`
).gives('host')

test(
  'the latest install is the one that workers have',
  { skip: MAJOR < 16 && 'this Node has no waitAsync' },
  async t => {
    const { Worker: HostWorker } = threads
    const keepAlive = require('../../keep-alive')
    t.after(() => {
      keepAlive.uninstall()
    })
    const { Worker: First } = threads
    const engines = async () => {
      const all = [HostWorker, First, threads.Worker].map(Worker => messageOf(new Worker(SAY_WORLD)))
      return (await Promise.all(all)).map(({ engine }) => engine)
    }
    assert.deepStrictEqual(await engines(), ['host', 'host', 'host'])
    installed(t)
    assert.deepStrictEqual(await engines(), ['addon', 'addon', 'addon'])
    assert.strictEqual(api.uninstall(), true)
    assert.deepStrictEqual(await engines(), ['host', 'host', 'host'])
    assert.strictEqual(keepAlive.uninstall(), true)
    assert.deepStrictEqual(await engines(), [null, null, null])
    assert.strictEqual(threads.Worker, HostWorker)
  }
)

program('a Worker that is frozen is refused by the name of the option, and nothing is changed')(
  `
  const { wait } = Atomics
  Object.freeze(require('worker_threads').Worker)
  const api = require(${JSON.stringify(entryFile('pure'))})
  try { api.install({ force: true }) } catch (error) {
    const isUnchanged = Atomics.wait === wait
    console.log(JSON.stringify([error.name, error.message, isUnchanged, api.install({ force: true, workers: false })]))
  }`
).gives(['TypeError', 'install: workers must be false, because worker_threads.Worker is not extensible', true, true])

test('a Worker that is not reached, as on a later Node, starts with a warning; a refused one has none', async t => {
  const { code, stdout, stderr } = await runNode(t, ['-e', `
    require(${JSON.stringify(entryFile('force'))})
    const { MessagePort, Worker } = require('worker_threads')
    const { postMessage } = MessagePort.prototype
    try { new Worker(3) } catch (_) {}
    setImmediate(() => {
      Object.defineProperty(MessagePort.prototype, 'postMessage', { configurable: true, get: () => postMessage })
      try { new Worker(3) } catch (_) {}
      new Worker('console.log("runs")', { eval: true })
    })`])
  assert.strictEqual(code, 0, stderr)
  assert.strictEqual(stdout, 'runs\n')
  assert.strictEqual(stderr.match(/ATOMICS_WAITASYNC_WORKER/g).length, 1, stderr)
  assert.ok(/threadId 1\b/.test(stderr), stderr)
})

// Threads of Node's own.

test('the thread of module hooks still talks to main', {
  skip: typeof require('module').register !== 'function' && 'this Node has no module.register'
}, async t => {
  const heard = await runForJSON(t, ['--no-warnings', fixture('register-hooks.mjs')])
  assert.deepStrictEqual(heard, ['hooked', 'addon'])
})

test('web workers have it', { skip: MAJOR < 26 && 'this Node has no web workers' }, async t => {
  const { code, stdout, stderr } = await runNode(t, ['--experimental-web-worker', fixture('web-workers.js')])
  assert.strictEqual(code, 0, stderr)
  assert.deepStrictEqual(JSON.parse(stdout), {
    'classic file': ['addon', 2], 'module file': ['addon', 2],
    'classic data': ['addon', 2], 'module data': ['addon', 2],
    'classic blob': ['addon', 2], 'module blob': ['addon', 2]
  })
})

test(
  'without workers in this Node, an install works as well',
  { skip: MAJOR >= 12 && 'this Node always has workers' },
  async t => {
    const { spawnSync } = require('child_process')
    const { status, stdout } = spawnSync(
      process.execPath,
      ['-p', `require(${JSON.stringify(entryFile('index'))}).engine`],
      { encoding: 'utf8' }
    )
    assert.strictEqual(status, 0)
    assert.strictEqual(stdout, 'addon\n')
  }
)

test('the fixtures are all used', () => {
  const used = [__filename, ...fs.readdirSync(path.dirname(COMPARE)).map(fixture)]
    .map(file => fs.readFileSync(file, 'utf8'))
    .join('\n')
  for (const name of fs.readdirSync(path.dirname(COMPARE))) assert.ok(used.includes(name.replace(/\.js$/, '')), name)
})
