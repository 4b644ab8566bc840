'use strict'

// Two copies of the package in one process, as of two versions: one queue, and installs that know of each other.

const assert = require('assert')
const path = require('path')
const { target } = require('../../lib/agent/target')
const { test } = require('../harness')
const programsBy = require('../fixtures/printed-value')
const { packageCopy } = require('../fixtures/entries/folders')
const { runForJSON } = require('../fixtures/run-node')

const MAJOR = Number(process.versions.node.split('.')[0])
const HOST_HAS_WAIT_ASYNC = MAJOR >= 16
const NO_HOST_WAIT_ASYNC = !HOST_HAS_WAIT_ASYNC && 'this Node has no waitAsync'
const NO_CONTEXTS = typeof require('async_hooks').AsyncLocalStorage !== 'function' && 'this Node has no contexts'
/** Its linker knows a loaded library by its path. */
const IS_GLIBC = /^linux-.*-gnu/.test(target())
const root = path.join(__dirname, '..', '..')

/** Runs source text with the folders of both copies; it calls `say` with values to compare. */
function run (t, source, folders = [root, packageCopy(t)]) {
  return runForJSON(t, ['-e', `
    const path = require('path')
    const [first, second] = ${JSON.stringify(folders)}
    const from = (folder, entry) => require(path.join(folder, entry))
    const say = (value) => { console.log(JSON.stringify(value)) }
    const threads = require('worker_threads')
    const { Worker } = threads
    const array = new Int32Array(new SharedArrayBuffer(64))
    const mark = Symbol.for('atomics-waitasync')
    ${source}`])
}

const program = programsBy(run)

program('in one thread, each notifies the waits of the other and counts them')(
  `
  const [a, b] = [from(first, 'pure'), from(second, 'pure')]
  const waits = [a.waitAsync(array, 0, 0).value, b.waitAsync(array, 0, 0).value, a.waitAsync(array, 0, 0).value]
  const counts = [a.waiterCount(array, 0), b.waiterCount(array, 0)]
  const woken = [b.notify(array, 0, 1), a.notify(array, 0)]
  Promise.all(waits).then((outcomes) => { say({ counts, woken, outcomes, distinct: a.waitAsync !== b.waitAsync }) })`
).gives({ counts: [3, 3], woken: [1, 2], outcomes: ['ok', 'ok', 'ok'], distinct: true })

program('in one thread, both cancel their waits by one signal, and each lets go of and holds those of the other')(
  `
  const [a, b] = [from(first, 'pure'), from(second, 'pure')]
  const listeners = new Set()
  const signal = {
    aborted: false,
    reason: 'aborted',
    addEventListener (_, listener) { listeners.add(listener) },
    removeEventListener (_, listener) { listeners.delete(listener) }
  }
  const waits = [a, b, a, b].map(({ waitAsync }) => waitAsync(array, 0, 0, undefined, { signal }).value)
  const said = [b.unref(waits[0]), b.ref(waits[0]), a.unref(waits[1]), a.ref(waits[1])]
  said.push(b.notify(array, 0, 1), listeners.size <= 2)
  for (const listener of listeners) listener()
  said.push(a.waiterCount(array, 0), b.notify(array, 0), listeners.size)
  Promise.all(waits.map(wait => wait.catch(reason => reason))).then(outcomes => { say([said, outcomes]) })`
).gives([
  [true, true, true, true, 1, true, 0, 0, 0],
  ['ok', 'aborted', 'aborted', 'aborted']
])

program('in two threads, each notifies the waits of the other')(`
  const a = from(first, 'pure')
  new Worker(\`
    const { workerData: [folder, array] } = require('worker_threads')
    const b = require(folder + '/pure')
    while (b.notify(array, 0) === 0);
    b.wait(array, 1, 0)
    while (b.notify(array, 0) === 0);\`, { eval: true, workerData: [second, array] })
  ;(async () => {
    const outcomes = [await a.waitAsync(array, 0, 0).value]
    while (a.notify(array, 1) === 0) await new Promise(setImmediate)
    outcomes.push(await a.waitAsync(array, 0, 0).value)
    say(outcomes)
  })()`).gives(['ok', 'ok'])

program('ref and unref of one know the waits of the other')(`
  const [a, b] = [from(first, 'pure'), from(second, 'pure')]
  const { value } = a.waitAsync(array, 0, 0)
  const before = [b.unref(value), b.ref(value)]
  a.notify(array, 0)
  value.then(() => { say([...before, b.ref(value)]) })`).gives([true, true, false])

for (const entry of ['force', 'keep-alive']) {
  program(
    `ref and unref of the plain entry know the waits of the other's /${entry}`,
    entry === 'keep-alive' && NO_HOST_WAIT_ASYNC
  )(
    `
    from(first, '${entry}')
    const { unref, ref } = from(second, 'index')
    const { value } = Atomics.waitAsync(array, 0, 0)
    const before = [unref(value), ref(value)]
    Atomics.notify(array, 0)
    value.then(() => { say([...before, ref(value)]) })`
  ).gives([true, true, false])
}

program('a pending wait holds while a Worker starts, whichever copy reaches the Worker')(`
  from(first, 'pure').waiterCount(array, 0)
  from(second, 'force')
  const worker = new threads.Worker(\`
    const { workerData: array } = require('worker_threads')
    while (Atomics.notify(array, 0) === 0);\`, { eval: true, workerData: array })
  worker.unref()
  Atomics.waitAsync(array, 0, 0).value.then(say)`).gives('ok')

program('in one thread, both copies share the robust list, and each takes the tokens of the other')(`
  const [a, b] = [from(first, 'pure'), from(second, 'pure')]
  const sab = array.buffer
  const [ofA, ofB] = [new a.AsyncLock(sab), new b.AsyncLock(sab)]
  ;(async () => {
    const said = []
    const token = ofA.tryLock()
    said.push(ofB.tryLock(), token instanceof b.UnlockToken)
    const result = new b.Condition(sab, { byteOffset: 8 }).waitAsync(token)
    said.push(token.locked, new a.Condition(sab, { byteOffset: 8 }).notify(), await result, token.locked)
    const unlock = Object.getOwnPropertyDescriptor(b.UnlockToken.prototype, 'unlock').value
    said.push(unlock.call(token), ofA.locked)
    const next = ofA.tryLock()
    ofB.unlock()
    said.push(next.locked, a.AsyncLock.prototype.tryLock.name)
    try { a.AsyncLock.prototype.tryLock.call(ofB) } catch (error) { said.push(error.name) }
    said.push(ofA.locked)
    say(said)
  })()`).gives([null, false, false, 1, true, true, true, false, false, 'tryLock', 'TypeError', false])

program('where one copy is installed, the other changes nothing, but exports the functions in place')(`
  from(first, 'force')
  const trio = () => [Atomics.wait, Atomics.notify, Atomics.waitAsync]
  const before = trio()
  const Before = threads.Worker
  const said = ['index', 'keep-alive', 'pure', 'force'].map((entry) => {
    const api = from(second, entry)
    return [entry, api.engine, api.install({ force: true }), api.uninstall(), api.notify === Atomics.notify,
      api.waitAsync === (Atomics.waitAsync[mark].exported || Atomics.waitAsync)]
  })
  say([...said, trio().every((fn, i) => fn === before[i]), threads.Worker === Before])`).gives([
  ['index', 'addon', false, false, true, true],
  ['keep-alive', 'addon', false, false, true, true],
  ['pure', 'addon', false, false, false, false],
  ['force', 'addon', false, false, false, false],
  true, true
])

program('one over the other: undone in order, and only in order', NO_HOST_WAIT_ASYNC)(`
  const host = Atomics.waitAsync
  const Parent = Object.getPrototypeOf(Worker)
  const a = from(first, 'keep-alive')
  const b = from(second, 'force')
  const steps = [b.engine]
  steps.push(a.uninstall(), a.engine)
  steps.push(b.uninstall(), b.engine, Atomics.waitAsync[mark].host.waitAsync === host)
  steps.push(a.uninstall(), Atomics.waitAsync === host)
  steps.push(threads.Worker === Worker, Object.getPrototypeOf(Worker) === Parent)
  say(steps)`).gives(['addon', false, 'addon', true, 'host', true, true, true, true, true])

program(
  'notify passes the rest of its count on to the host, not through the other copy',
  NO_HOST_WAIT_ASYNC
)(
  `
  const host = { waitAsync: Atomics.waitAsync, notify: Atomics.notify }
  from(first, 'keep-alive')
  from(second, 'force')
  const own = Atomics.waitAsync(array, 0, 0).value
  const hosts = [host.waitAsync(array, 0, 0).value, host.waitAsync(array, 0, 0).value]
  const said = [Atomics.notify[mark].host.notify === host.notify, Atomics.notify(array, 0, 2), Atomics.notify(array, 0)]
  Promise.all([own, ...hosts]).then((outcomes) => { say([...said, ...outcomes]) })`
).gives([true, 2, 1, 'ok', 'ok', 'ok'])

program(
  'contexts get the install that came last; new ones, once that is undone, the one before',
  NO_HOST_WAIT_ASYNC
)(
  `
  const vm = require('vm')
  const { createContext } = vm
  const engineIn = (context) => {
    const fn = vm.runInContext('Atomics.waitAsync', context)
    return fn[mark] ? fn[mark].engine : 'none'
  }
  const a = from(first, 'keep-alive')
  const b = from(second, 'force')
  const context = vm.createContext()
  const engines = [engineIn(context), vm.runInNewContext('Atomics.waitAsync')[mark].engine]
  b.uninstall()
  engines.push(engineIn(vm.createContext()))
  a.uninstall()
  say([...engines, engineIn(vm.createContext()), vm.createContext === createContext])`
).gives(['addon', 'addon', 'host', 'none', true])

const WORKER = `
  const { parentPort } = require('worker_threads')
  parentPort.postMessage([Atomics.waitAsync[Symbol.for('atomics-waitasync')].engine, process.execArgv.length,
    Object.keys(require.cache).filter((file) => /(force|keep-alive).index\\.js$/.test(file)).length])`

test('workers get the install that came last, once', { skip: NO_HOST_WAIT_ASYNC }, async t => {
  for (const older of ['Worker', 'threads.Worker']) {
    const seen = await run(t, `
      from(first, 'keep-alive')
      const { Worker: Between } = threads
      from(second, 'force')
      new (${older})(${JSON.stringify(WORKER)}, { eval: true }).on('message', (engine) => {
        say([engine, process.execArgv.length])
      })`)
    const [[engine, flags, loaded], flagsOfMain] = seen
    assert.deepStrictEqual([engine, loaded], ['addon', 1])
    assert.strictEqual(flags, flagsOfMain)
  }
})

program('a worker that brings the other copy has one queue with its parent')(`
  from(first, 'force')
  new threads.Worker(\`
    const { workerData: [folder, array] } = require('worker_threads')
    const before = Atomics.waitAsync
    const api = require(folder + '/force')
    if (Atomics.waitAsync !== before) throw new Error('installed twice')
    while (api.notify(array, 0) === 0);\`, { eval: true, workerData: [second, array] })
  Atomics.waitAsync(array, 0, 0).value.then(say)`).gives('ok')

for (const what of ['removed', 'replaced']) {
  test(
    `a worker that brings the other copy, after the library of the first has been ${what}`,
    { skip: process.platform === 'win32' && 'Windows removes no library that is loaded' },
    async t => {
      const seen = await run(
        t,
        `
      const { value } = from(first, 'pure').waitAsync(array, 0, 0)
      const fs = require('fs')
      const [library] = Object.keys(require.cache).filter(file => file.endsWith('.node'))
      fs.unlinkSync(library)
      if (${what === 'replaced'}) fs.copyFileSync(path.join(second, path.basename(library)), library)
      const worker = new Worker(\`
        const { parentPort, workerData: [folder, array] } = require('worker_threads')
        try {
          const api = require(folder + '/pure')
          while (api.notify(array, 0) === 0);
        } catch ({ code, message }) {
          parentPort.postMessage({ code, message })
        }\`, { eval: true, workerData: [second, array] })
      worker.on('message', ({ code, message }) => {
        say([code, message.includes(library)])
        process.exit()
      })
      value.then(say)`,
        [packageCopy(t), packageCopy(t)]
      )
      // Where it cannot be opened again, an error says why.
      assert.deepStrictEqual(seen, IS_GLIBC ? 'ok' : ['ERR_ATOMICS_WAITASYNC_NO_LIBRARY', true])
    }
  )
}

program('the thread that came second may stay when the first one ends')(`
  const owner = new Worker(\`
    const { workerData: [folder, array] } = require('worker_threads')
    require(folder + '/pure').notify(array, 0)\`, { eval: true, workerData: [first, array] })
  owner.on('exit', () => {
    const b = from(second, 'pure')
    new Worker(\`
      const { workerData: [folder, array] } = require('worker_threads')
      const a = require(folder + '/pure')
      while (a.notify(array, 0) === 0);\`, { eval: true, workerData: [first, array] })
    b.waitAsync(array, 0, 0).value.then(say)
  })`).gives('ok')

for (const [one, other] of [['force', 'web-locks'], ['web-locks', 'force']]) {
  program(`a Worker gets what /${one} of one copy and /${other} of the other install`)(
    `
    from(first, ${JSON.stringify(one)})
    from(second, ${JSON.stringify(other)})
    const worker = new Worker(\`
      const { parentPort } = require('worker_threads')
      const mark = Symbol.for('atomics-waitasync')
      const known = Atomics.waitAsync[mark]
      const requestSync = typeof navigator === 'object' && typeof navigator.locks.requestSync
      parentPort.postMessage([known && known.engine, requestSync])\`, { eval: true })
    worker.on('message', say)`
  ).gives(['addon', 'function'])
}

program('in one thread, a lock of each is stolen by the other, before and after the first steal')(`
  const [a, b] = [from(first, 'pure').locks, from(second, 'pure').locks]
  const told = []
  const hold = (locks, name) => new Promise(resolve => {
    const held = locks.request(name, () => { resolve(); return new Promise(() => {}) })
    held.catch(error => { told.push(name + ' ' + error.name) })
  })
  const steal = (locks, name) => locks.request(name, { steal: true }, () => {})
  const turn = () => new Promise(resolve => setTimeout(resolve, 1))
  const main = async () => {
    await hold(a, 'one')
    await hold(b, 'two')
    await steal(b, 'one')
    await hold(a, 'three')
    await hold(b, 'four')
    for (const [locks, name] of [[a, 'two'], [b, 'three'], [a, 'four']]) await steal(locks, name)
    while (told.length < 4) await turn()
    say(told)
  }
  main()`).gives(['one AbortError', 'two AbortError', 'three AbortError', 'four AbortError'])

program('in one thread, each takes what the other has put, and knows what the other has in use')(`
  new Worker(\`
    const { workerData: [first, second], parentPort } = require('worker_threads')
    const [a, b] = [first, second].map(folder => require(folder + '/pure'))
    const options = { capacity: 2, messageSize: 8, format: 'json' }
    const ofA = a.Queue.create(options)
    const ofB = new b.Queue(ofA.buffer, options)
    const said = []
    const codeOf = call => { try { return call() } catch ({ code }) { return code } }
    const main = async () => {
      ofA.put(1)
      ofB.put(2)
      said.push(ofB.take(), ofA.takeMany(2))
      for (const queue of [ofA, ofB]) queue.put(3)
      await ofA.use(() => ofB.use(() => {
        for (const queue of [ofA, ofB]) said.push(codeOf(() => queue.put(4)), codeOf(() => queue.idle()))
        ofB.close()
        for (const queue of [ofA, ofB]) said.push(codeOf(() => queue.take()))
      }))
      said.push(ofA.ended, ofB.ended)
      parentPort.postMessage(said)
    }
    main()\`, { eval: true, workerData: [first, second] }).on('message', say)`
).gives([1, [2], ...Array(6).fill('ERR_DEADLOCK'), true, true])

program('in one thread, the puts of both keep their order, and tryPut overtakes none of them')(`
  const options = { capacity: 1, messageSize: 8, format: 'json' }
  const memory = new SharedArrayBuffer(1024)
  const [one, other] = [first, second].map(folder => new (from(folder, 'pure').Queue)(memory, options))
  const main = async () => {
    const said = []
    for (const [a, b] of [[one, other], [other, one]]) {
      a.tryPut(0)
      const puts = [a.putAsync(1), b.putAsync(2), a.putAsync(3, { timeout: 1 }).catch(({ name }) => name)]
      said.push(await puts[2], a.tryTake(), a.tryPut(9), b.tryPut(9))
      puts.push(b.putAsync(4), a.putAsync(5))
      for (let n = 0; n < 4; n++) said.push(await a.takeAsync())
      await Promise.all(puts)
      said.push(b.tryPut(6), a.tryTake(), a.waiters)
    }
    one.tryPut(0)
    const puts = [one, other, one].map((queue, n) => queue.putAsync(n).catch(({ code }) => code))
    other.close()
    say([...said, ...await Promise.all(puts)])
  }
  main()`).gives([].concat(...Array(2).fill(['TimeoutError', 0, false, false, 1, 2, 4, 5, true, 6, 0]),
  Array(3).fill('ERR_QUEUE_CLOSED')))

program('in one thread, each undoes the step of the other that a time limit has interrupted')(`
  const { runInThisContext } = require('vm')
  const options = { capacity: 2, messageSize: 8, format: 'json' }
  const memory = new SharedArrayBuffer(1024)
  const queues = [first, second].map(folder => new (from(folder, 'pure').Queue)(memory, options))
  const said = []
  // The library is loaded, and the code compiled, by those before.
  for (let n = 0; n < 300; n++) {
    const [one, other] = n % 2 ? queues : [queues[1], queues[0]]
    global.one = one
    try {
      runInThisContext('for (;;) { one.tryPut(1); one.tryTake() }', { timeout: 1 })
    } catch ({ message }) {
      // Node 10 has no code for it.
      if (n === 0) said.push(/timed out/.test(message))
    }
    other.clear()
    if (!other.tryPut(2) || other.tryTake() !== 2) said.push(n)
  }
  say(said)`).gives([true])

program('in one thread, a name that each holds goes to the other, and one that is stolen')(`
  const [a, b] = [from(first, 'pure'), from(second, 'pure')]
  const main = async () => {
    const said = []
    for (const [one, other] of [[a, b], [b, a]]) {
      const token = one.locks.tryHold('x')
      const next = other.locks.holdAsync('x')
      said.push(token instanceof other.UnlockToken, other.locks.tryHold('x'), token.abandon())
      const granted = await next
      said.push(granted.ownerDied, granted.name)
      const thief = await one.locks.holdAsync('x', { steal: true })
      said.push(granted.stolen, granted.unlock(), thief.tookOver, thief.unlock())
      const prototype = Object.getPrototypeOf(token)
      const held = other.locks.tryHold('x')
      try { said.push(prototype.unlock.call(held)) } catch ({ name }) { said.push(name) }
      said.push(held.unlock())
    }
    say(said)
  }
  main()`).gives([].concat(...Array(2).fill([
  false, null, true, true, 'x', true, false, true, true, 'TypeError', true
])))

program('in one thread, re-entry is detected in the callback of the other', NO_CONTEXTS)(`
  const { AsyncLock } = from(first, 'pure')
  const lock = AsyncLock.create({ detectReentry: true })
  const other = new (from(second, 'pure').AsyncLock)(lock, { detectReentry: true })
  const main = async () => {
    const said = []
    for (const [outer, inner] of [[lock, other], [other, lock]]) {
      said.push(await outer.executeLocked(() => inner.lockAsync()).catch(({ code }) => code))
    }
    say(said)
  }
  main()`).gives(['ERR_DEADLOCK', 'ERR_DEADLOCK'])
