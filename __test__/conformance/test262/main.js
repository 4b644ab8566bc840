'use strict'

// Runs one test in one mode in this process: `node main.js JOB`, JOB being one of tests.js as JSON, with the name of
// the entry point, whether the mode is strict, and a file for the reports of agents. Of `$262` it has what these tests
// use. Runs on every Node that the package supports.

const fs = require('fs')
const path = require('path')
const { MessageChannel, Worker } = require('worker_threads')
const host = require('./host')

const COMPLETE = 'Test262:AsyncTestComplete'
const FAILURE = 'Test262:AsyncTestFailure:'

/** Features that a supported engine may lack. One that throws is missing, too. */
const PROBES = {
  'Atomics.load, store, add and the like on a BigInt64Array': () =>
    Atomics.add(new BigInt64Array(new SharedArrayBuffer(8)), 0, BigInt(1)) === BigInt(0),
  'Atomics.waitAsync': () => typeof Atomics.waitAsync === 'function',
  'immutable-arraybuffer': () => typeof ArrayBuffer.prototype.transferToImmutable === 'function',
  'resizable-arraybuffer': () =>
    typeof ArrayBuffer.prototype.resize === 'function' && typeof SharedArrayBuffer.prototype.grow === 'function'
}

const job = JSON.parse(process.argv[2])
let concluded = false

function end (status, message) {
  if (concluded) return
  concluded = true
  host.conclude(status, message)
  process.exit(0)
}

function isMissing (feature) {
  try {
    return feature in PROBES && !PROBES[feature]()
  } catch (error) {
    return true
  }
}

/**
 * Makes `$262.agent`: starts agents on worker_threads, and talks to them without the event loop, which a test may block
 * for as long as it likes.
 */
function createAgents (hold) {
  const agents = []
  let reported = 0
  const until = (holds) => { while (!holds()) host.sleep(1) }
  const hasLeft = ({ state }) => Atomics.load(state, host.STATE) === host.HAS_LEFT
  fs.writeFileSync(job.reports, '')
  return {
    start (source) {
      const state = new Int32Array(new SharedArrayBuffer(8))
      const { entry, reports } = job
      const workerData = { number: agents.length, source: String(source), entry, reports, state }
      const worker = new Worker(path.join(__dirname, 'agent.js'), { workerData })
      if (!hold) worker.unref()
      agents.push({ worker, state, sent: 0 })
      until(() => Atomics.load(state, host.STATE) !== 0)
    },
    broadcast (buffer, id) {
      const present = agents.filter(agent => !hasLeft(agent))
      for (const agent of present) {
        agent.sent++
        agent.worker.postMessage({ buffer, id })
      }
      until(() => present.every(agent => Atomics.load(agent.state, host.RETRIEVED) >= agent.sent || hasLeft(agent)))
    },
    /** Returns a whole line of the file. */
    getReport () {
      const reports = fs.readFileSync(job.reports, 'utf8').split('\n')
      return reported + 1 < reports.length ? JSON.parse(reports[reported++]) : null
    },
    sleep: host.sleep,
    monotonicNow: host.monotonicNow
  }
}

function detachArrayBuffer (buffer) {
  const { port1 } = new MessageChannel()
  port1.postMessage(null, [buffer])
  port1.close()
  if (buffer.byteLength !== 0) throw new Error('this Node did not detach the ArrayBuffer')
}

/** Hears the end of an asynchronous test. */
function hear (message) {
  const text = String(message)
  if (job.async && text === COMPLETE) end('passed')
  else if (job.async && text.startsWith(FAILURE)) end('failed', text.slice(FAILURE.length).trim())
  else host.print(text)
}

function main () {
  // A rejection that nobody handles is no failure in test262's terms, but explains a test that then never ends.
  process.on('unhandledRejection', error => { host.print(`unhandled rejection of ${host.describe(error)}`) })
  process.on('uncaughtException', error => { end('failed', host.describe(error)) })
  process.on('exit', code => {
    if (!concluded && code === 0) host.conclude('failed', 'the event loop ran dry before $DONE was called')
  })
  const api = host.loadEntry(job.entry)
  if (api !== null) host.checkEntry(job.entry, api)
  const hold = !host.holdsEventLoop(job.entry, api)
  const missing = job.features.filter(isMissing)
  if (missing.length > 0) return end('skipped', `the engine has no ${missing.join(', ')}`)
  if (hold) setInterval(() => {}, 1 << 30)

  const sources = job.scripts.map(file => fs.readFileSync(file, 'utf8'))
  // Harness files that are newer than Node 10 name it. Defined only for them, so that nothing else comes to rely on it.
  const usesGlobalThis = sources.some(source => source.includes('globalThis'))
  if (!('globalThis' in global) && usesGlobalThis) host.define('globalThis', global)
  host.define('print', hear)
  host.define('$262', { agent: createAgents(hold), detachArrayBuffer, global })
  sources.forEach((source, n) => host.evaluate(source, job.scripts[n]))
  host.evaluate((job.strict ? '"use strict";\n' : '') + fs.readFileSync(job.file, 'utf8'), job.file)
  if (!job.async) end('passed')
}

main()
