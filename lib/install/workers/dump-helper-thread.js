'use strict'

/**
 * The helper of dumps: a thread that asks all others where they are now. src/observe/whereabouts.rs rings it.
 *
 * It speaks to the main thread's inspector, and by that to the other Workers'. Both answer in the midst of JavaScript,
 * also while it blocks in `Atomics.wait` or in a lock; one in native code does not answer. Each is asked to throw a
 * number: the answer has the frames below. No frame is the program's if its event loop called.
 *
 * To pause a thread would need its debugger, which first tells of each script: some 150 messages by each Worker.
 */

const { Session } = require('inspector')
const { threadId, workerData } = require('worker_threads')
const { fileURLToPath } = require('url')

const binding = require(workerData.library)

/** The most milliseconds of a look: a dump does not wait for longer. */
const LIMIT = 170
/** Milliseconds of a sleep between two turns of the event loop. */
const NAP = 3
const MOST_FRAMES = 10
const MAIN = 0
/** The names of Workers without one. */
const NO_NAMES = ['', 'WorkerThread']

/** The messages, by their numbers. The answers have those, too. */
const [ENABLE, ASK, DISABLE] = [0, 1, 2]
const MESSAGES = [
  // Only then an answer has frames.
  ['Runtime.enable', {}],
  // Silent: a debugger may stop at exceptions.
  ['Runtime.evaluate', { expression: 'throw 0', silent: true }],
  ['Runtime.disable', {}]
]

/** A thread that is asked. `send(number)` posts a message to it. */
class Asked {
  constructor (look, threadId, name, send) {
    this.look = look
    this.threadId = threadId
    this.name = name
    this.send = send
    this.isAnswered = false
    send(ENABLE)
    send(ASK)
    send(DISABLE)
  }

  answered ({ exceptionDetails: { stackTrace } }) {
    // The first frame is that of the thrown number.
    const frames = stackTrace === undefined ? [] : stackTrace.callFrames.slice(1)
    this.answer(frames.length > 0 ? this.linesOf(frames) : undefined)
  }

  answer (lines, silence) {
    if (this.isAnswered) return
    this.isAnswered = true
    binding.dumpAnswer(this.look.request, this.threadId, this.name, lines, silence)
    this.look.endIfAllAnswered()
  }

  linesOf (frames) {
    const lines = frames.map(lineOf)
    const others = lines.filter((line) => !this.look.isOwn(line))
    const shown = others.length > 0 ? others : lines
    // Node's frames around the program say nothing.
    while (shown.length > 1 && shown[shown.length - 1].includes('node:internal/')) shown.pop()
    return shown.slice(0, MOST_FRAMES).join('\n')
  }
}

function lineOf ({ columnNumber, functionName, lineNumber, url }) {
  const place = fileOf(url) + ':' + (lineNumber + 1) + ':' + (columnNumber + 1)
  return functionName === '' ? 'at ' + place : 'at ' + functionName + ' (' + place + ')'
}

function fileOf (url) {
  try {
    return fileURLToPath(url)
  } catch (_) {
    return url === '' ? '<anonymous>' : url
  }
}

class Look {
  constructor () {
    this.request = binding.dumpRequest()
    this.began = Date.now()
    this.copies = binding.copies()
    this.session = new Session()
    this.hasAll = false
    this.main = undefined
    // By the inspector's ids.
    this.workers = new Map()
    this.timer = setTimeout(() => this.end(), LIMIT)
    this.session.connectToMainThread()
    this.askWorkers()
    this.askMain()
  }

  /** Whether a frame is of a copy of the package. */
  isOwn (line) {
    return this.copies.some((folder) => line.includes(folder))
  }

  askMain () {
    const { session } = this
    const send = (number) => {
      const [method, params] = MESSAGES[number]
      // The end of the session is an error.
      session.post(method, params, (error, result) => { if (!error && number === ASK) this.main.answered(result) })
    }
    this.main = new Asked(this, MAIN, undefined, send)
  }

  askWorkers () {
    const { session, workers } = this
    session.on('NodeWorker.attachedToWorker', ({ params: { sessionId, workerInfo } }) => {
      const [, id, name] = /^\[worker (\d+)\] ?([^]*)$/.exec(workerInfo.title) || []
      // It may come after the session.
      if (id === undefined || Number(id) === threadId || current !== this) return
      const send = (number) => {
        const [method, params] = MESSAGES[number]
        const message = JSON.stringify({ id: number, method, params })
        // The worker may have ended.
        session.post('NodeWorker.sendMessageToWorker', { sessionId, message }, () => {})
      }
      workers.set(sessionId, new Asked(this, Number(id), NO_NAMES.includes(name) ? undefined : name, send))
    })
    session.on('NodeWorker.detachedFromWorker', ({ params: { sessionId } }) => {
      workers.delete(sessionId)
      this.endIfAllAnswered()
    })
    session.on('NodeWorker.receivedMessageFromWorker', ({ params: { sessionId, message } }) => {
      const worker = workers.get(sessionId)
      if (worker === undefined) return
      const { id, result } = JSON.parse(message)
      if (id === ASK) worker.answered(result)
    })
    session.post('NodeWorker.enable', { waitForDebuggerOnStart: false }, () => {
      this.hasAll = true
      this.endIfAllAnswered()
    })
  }

  endIfAllAnswered () {
    if (!this.hasAll || this.main === undefined || !this.main.isAnswered) return
    for (const worker of this.workers.values()) if (!worker.isAnswered) return
    this.end()
  }

  /** Tells of those who have not answered. */
  end () {
    if (current !== this) return
    current = undefined
    clearTimeout(this.timer)
    const asked = [this.main, ...this.workers.values()]
    for (const each of asked) each.answer(undefined, Date.now() - this.began)
    binding.dumpAnswersEnd(this.request)
    this.session.post('NodeWorker.disable')
    this.session.disconnect()
    // A dump may have asked meanwhile.
    look()
  }
}

/**
 * Sleeps between turns of the event loop while a look lasts. Each message would wake this thread: and on a machine
 * without a free core, that takes the core from the thread that answers.
 */
function nap () {
  if (current === undefined) return
  Atomics.wait(cell, 0, 0, NAP)
  setImmediate(nap)
}

const cell = new Int32Array(new SharedArrayBuffer(4))
let current
let answered = 0

/** Looks where the threads are, unless it does so already. */
function look () {
  if (current !== undefined || binding.dumpRequest() === answered) return
  answered = binding.dumpRequest()
  current = new Look()
  nap()
}

/** Loads beforehand what a look needs, and stops nobody. */
function rehearse () {
  const session = new Session()
  session.connectToMainThread()
  session.post('Schema.getDomains', () => session.disconnect())
}

rehearse()
binding.becomeDumpHelper(look)
// It ends with its parent.
setInterval(() => {}, 2 ** 30)
