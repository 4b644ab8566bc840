'use strict'

// The test harness, small enough for every Node of the package.
//
//   test('notify wakes in order', async t => { ... })
//   test('slow one', { timeout: 60000 }, async t => { ... })
//   test('not here', { skip: 'this Node has no ESM workers' }, async t => { ... })
//
// `t.after(fn)` runs `fn` when the test is over, however it ended (last in, first out); `t.skip(reason)` ends it as
// skipped.
//
// Invariants:
// 1. The tests of a file run one after the other, in the order they were written, after the file is loaded.
// 2. Nothing here keeps the event loop alive while a test runs. A promise that can no longer settle is therefore seen
//    at once: the loop runs dry, and the test that awaited it has failed.
// 3. A file ends by itself. One that something keeps alive after its last test has failed, for a forgotten handle is
//    exactly the kind of bug that these tests look for.
// 4. The last line of the output is `# {"passed":n,"failed":n,"skipped":n}`. A file without it crashed or was killed.
//
// Main thread only.

const fs = require('fs')
const util = require('util')
const slowness = require('./fixtures/slowness')

// Taken now, so that a test that replaces a global does not replace ours.
const { setTimeout, clearTimeout, setImmediate } = global

const DEFAULT_TIMEOUT = 30000
// How long a file may take from its last test to its end: when all is well, and when it has failed anyway.
const LINGER = Number(process.env.HARNESS_LINGER) || slowness * 10000
const LINGER_AFTER_FAILURE = Math.min(LINGER, 1000)

const queue = []
const counts = { passed: 0, failed: 0, skipped: 0 }
let number = 0
let started = false
let finished = false
let leaving = false // the process is being ended as a failure
let ending = false // the process is about to end: only what is written synchronously still arrives
let running = null // the name of the test
let guarded = null // what `guard` waits for now

class Skip {
  constructor (reason) {
    this.reason = reason
  }
}

/**
 * Registers a test. Options: `timeout` in milliseconds (30 000 unless given), see fixtures/slowness.js, `skip`: the
 * reason not to run it.
 */
function test (name, options, fn) {
  if (typeof options === 'function') {
    fn = options
    options = {}
  }
  if (typeof name !== 'string' || typeof fn !== 'function') {
    throw new TypeError('test(name, [options], fn): a name and a function are needed')
  }
  if (finished) throw new Error(`test '${name}' comes after the last test of the file has ended`)
  const { timeout = DEFAULT_TIMEOUT, skip } = options
  queue.push({ name, timeout, skip, fn })
  if (!started) {
    started = true
    setImmediate(runAll)
  }
}

async function runAll () {
  while (queue.length > 0) {
    const { name, timeout: limit, skip, fn } = queue.shift()
    const timeout = slowness * limit
    if (skip) {
      report('skipped', name, skip)
      continue
    }
    running = name
    const begin = Date.now()
    const outcome = await runOne(name, timeout, fn)
    running = null
    if (outcome.failed) report('failed', name, outcome.error)
    else if (outcome.skipped) report('skipped', name, outcome.skipped)
    else report('passed', name, `${Date.now() - begin} ms`)
  }
  finish()
}

async function runOne (name, timeout, fn) {
  const hooks = []
  const t = {
    name,
    after (hook) { hooks.push(hook) },
    skip (reason) { throw new Skip(reason || 'no reason given') }
  }
  let outcome = await guard(() => fn(t), timeout)
  while (hooks.length > 0) {
    const cleanUp = await guard(hooks.pop(), timeout)
    if (cleanUp.failed && !outcome.failed) {
      outcome = typeof cleanUp.error === 'string' ? { failed: true, error: `its clean-up: ${cleanUp.error}` } : cleanUp
    }
  }
  return outcome
}

// Runs `fn` to its end, to its timeout, or to the first sign that it will never end; never rejects.
function guard (fn, timeout) {
  return new Promise(resolve => {
    const end = outcome => {
      if (guarded !== end) return
      guarded = null
      clearTimeout(timer)
      resolve(outcome)
    }
    const fail = error => end(error instanceof Skip ? { skipped: error.reason } : { failed: true, error })
    const timer = setTimeout(() => end({ failed: true, error: `timed out after ${timeout} ms` }), timeout)
    timer.unref()
    guarded = end
    Promise.resolve().then(fn).then(() => end({}), fail)
  })
}

function finish () {
  finished = true
  setTimeout(() => {
    report('failed', 'the file ends by itself', `its tests are over, but something keeps it alive: ${aliveHandles()}`)
    leave()
  }, counts.failed > 0 ? LINGER_AFTER_FAILURE : LINGER).unref()
}

// Ends the process as soon as what was printed is out.
function leave () {
  leaving = true
  process.stdout.write('', () => process.exit(1))
}

function aliveHandles () {
  const names = typeof process.getActiveResourcesInfo === 'function'
    ? process.getActiveResourcesInfo()
    : process._getActiveHandles().filter(each => each !== process.stdout && each !== process.stderr)
        .map(each => each.constructor.name)
  return names.join(', ') || 'a handle that Node does not list'
}

process.on('beforeExit', () => {
  if (guarded === null) return
  const stuck = guarded
  // One more turn, so that the next test starts with a live event loop.
  setImmediate(() => stuck({ failed: true, error: 'never settled: the event loop ran dry' }))
})

process.on('uncaughtException', error => failFromOutside('uncaught exception', error))
process.on('unhandledRejection', error => failFromOutside('unhandled rejection', error))

function failFromOutside (what, error) {
  const text = `${what}: ${describe(error)}`
  if (leaving) return
  if (guarded !== null) guarded({ failed: true, error: text })
  else report('failed', '(outside of a test)', text)
  // An error that is thrown as the process ends can keep it from ending, and be thrown again, for ever.
  if (finished && !ending) leave()
}

process.on('exit', code => {
  ending = true
  if (process.stdout.writableLength > 0) write('\n') // the buffered rest of a line is lost
  if (running !== null) report('failed', running, `the process ended during this test (exit code ${code})`)
  for (const { name } of queue) report('failed', name, 'not run: the process ended before it')
  if (code !== 0 && counts.failed === 0) report('failed', '(exit code)', `the process ended with exit code ${code}`)
  if (number === 0) report('failed', '(empty)', 'the file has no test')
  write(`# ${JSON.stringify(counts)}\n`)
  if (counts.failed > 0) process.exitCode = 1
})

function report (kind, name, detail) {
  number++
  counts[kind]++
  const title = name.replace(/\s+/g, ' ')
  if (kind === 'passed') write(`ok ${number} - ${title} (${detail})\n`)
  else if (kind === 'skipped') write(`skip ${number} - ${title} # ${String(detail).replace(/\s+/g, ' ')}\n`)
  else write(`not ok ${number} - ${title}\n${describe(detail).replace(/^/gm, '    ')}\n`)
}

function describe (error) {
  if (typeof error === 'string') return error
  return util.types.isNativeError(error) && typeof error.stack === 'string' ? error.stack : util.inspect(error)
}

// Through `process.stdout` like everything a test prints, so that the lines keep their order; but what would then still
// be buffered when the process ends is lost, so the last ones go straight to the descriptor.
function write (text) {
  if (!ending) {
    process.stdout.write(text)
    return
  }
  let rest = Buffer.from(text)
  while (rest.length > 0) {
    try {
      rest = rest.slice(fs.writeSync(1, rest))
    } catch (error) {
      if (error.code !== 'EAGAIN') return
    }
  }
}

module.exports = { test }
