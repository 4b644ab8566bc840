'use strict'

// Test runners evaluate the package anew for each test file. Then they take `require` away. What a file has left in its
// thread goes on: the agent, and an install.

const programsBy = require('../fixtures/printed-value')
const { runForJSON } = require('../fixtures/run-node')

const MAJOR = Number(process.versions.node.split('.')[0])
const NO_HOST_WAIT_ASYNC = MAJOR < 16 && 'this Node has no waitAsync'

/** Runs source text with two test files: `fileA`, whose registry `endA()` tears down, and `fileB`; and with `say`. */
function run (t, source) {
  return runForJSON(t, ['-e', `
    const { Worker } = require('worker_threads')
    const vm = require('vm')
    const { createRegistry } = require(${JSON.stringify(require.resolve('../fixtures/registry'))})
    const say = (value) => { console.log(JSON.stringify(value)) }
    const [a, b] = [createRegistry(), createRegistry()]
    const [fileA, fileB, endA] = [a.require, b.require, a.tearDown]
    const words = new Int32Array(new SharedArrayBuffer(64))
    const mark = Symbol.for('atomics-waitasync')
    const engineOf = (fn) => fn[mark] ? fn[mark].engine : 'host'
    ${source}`])
}

const program = programsBy(run)

program('file A waits, file B uses every lock')(`
  const { waitAsync, notify } = fileA('pure')
  const first = waitAsync(words, 0, 0).value
  notify(words, 0)
  ;(async () => {
    await first
    endA()
    const { AsyncLock, Barrier, Condition, Latch, Queue, RwLock, Semaphore, waitAsync, notify } = fileB('pure')
    const sab = words.buffer
    const lock = new AsyncLock(sab)
    const token = lock.tryLock()
    const second = lock.lockAsync()
    token.unlock()
    const said = [(await second).locked]
    const condition = new Condition(sab, { byteOffset: 4 })
    const waits = condition.waitAsync(await second)
    said.push(condition.notify(), await waits)
    said.push((await new RwLock(sab, { byteOffset: 8 }).lockAsync()).unlock())
    new Semaphore(sab, { byteOffset: 12 }).release(1)
    said.push(new Semaphore(sab, { byteOffset: 12 }).tryAcquire())
    said.push(await new Barrier(sab, { byteOffset: 16, parties: 1 }).waitAsync())
    new Latch(sab, { byteOffset: 20, count: 1 }).countDown()
    await new Latch(sab, { byteOffset: 20, count: 1 }).waitAsync()
    const queue = Queue.create({ capacity: 1, messageSize: 8 })
    const message = queue.takeAsync()
    queue.tryPut(7)
    said.push(await message)
    const third = waitAsync(words, 9, 0).value
    said.push(notify(words, 9), await third)
    say(said)
  })()`).gives([true, 1, true, true, true, { leader: true }, 7, 1, 'ok'])

program('file A locks, file B waits')(`
  const { AsyncLock } = fileA('pure')
  const token = new AsyncLock(words.buffer).tryLock()
  endA()
  const api = fileB('pure')
  const lock = new api.AsyncLock(words.buffer)
  ;(async () => {
    const said = [lock.tryLock()]
    const next = lock.lockAsync()
    token.unlock()
    said.push((await next).locked)
    const { value } = api.waitAsync(words, 4, 0)
    said.push(api.unref(value), api.ref(value), api.notify(words, 4), await value)
    say(said)
  })()`).gives([null, true, true, true, 1, 'ok'])

const WORKER = `
  const { parentPort, workerData: words } = require('worker_threads')
  parentPort.postMessage(Atomics.wait(words, 0, 0, 20000))`

for (const older of [true, false]) {
  program(
    `file A installs, file B starts a Worker by ${older ? 'an older reference to the class' : 'the class in place'}`
  )(
    `
    fileA('force')
    endA()
    const Class = ${older ? 'Worker' : "require('worker_threads').Worker"}
    const worker = new Class(${JSON.stringify(WORKER)}, { eval: true, workerData: words })
    worker.on('message', (outcome) => { say([engineOf(Atomics.notify), outcome]) })
    const timer = setInterval(() => { if (Atomics.notify(words, 0) === 1) clearInterval(timer) }, 5)`
  ).gives(['addon', 'ok'])
}

program('file A installs, file B is evaluated in a context of its own')(`
  fileA('force')
  endA()
  const theirs = vm.runInNewContext('({ Atomics, Promise, TypeError })')
  const { value } = theirs.Atomics.waitAsync(words, 0, 0)
  const thrown = (fn) => { try { fn() } catch (error) { return error } }
  const error = thrown(() => theirs.Atomics.notify(1))
  const said = [value instanceof theirs.Promise, error instanceof theirs.TypeError, Atomics.notify(words, 0)]
  value.then((outcome) => { say(said.concat(outcome)) })`).gives([true, true, 1, 'ok'])

program('file A keeps alive, file B is evaluated in a context of its own', NO_HOST_WAIT_ASYNC)(`
  fileA('keep-alive')
  endA()
  vm.runInNewContext('Atomics.waitAsync', { }).call(Atomics, words, 0, 0, 100).value.then(say)`).gives('timed-out')
