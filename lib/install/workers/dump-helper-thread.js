'use strict'

/**
 * The helper of dumps: a thread that asks all others where they are now. src/observe/whereabouts.rs rings it.
 *
 * It speaks to the main thread's inspector, and by that to the other Workers'. Both answer in the midst of JavaScript,
 * also while it blocks in `Atomics.wait` or in a lock. Each thread is asked to pause, tells its frames, and is let go.
 * A thread whose event loop has nothing to do answers, but does not pause; one in native code does not answer.
 *
 * # Rules
 * 1. This thread itself is never paused: nobody could let it go.
 * 2. What was asked is withdrawn at the end of each look, in the same order: otherwise a thread would pause later, and
 *    the process would wait for a debugger at its end.
 * 3. A thread is let go only if it has paused after it was asked to: a debugger may have stopped it before.
 */

const { Session } = require('inspector')
const { threadId, workerData } = require('worker_threads')
const { fileURLToPath } = require('url')

const binding = require(workerData.library)

/** The most milliseconds of a look: a dump does not wait for longer. */
const LIMIT = 170
/** Milliseconds after which a thread that has answered is asked again. */
const PAUSES_WITHIN = 5
const ANSWERS = 3
const NAP = 3
const MOST_FRAMES = 10
const MAIN = 0
/** The names of Workers without one. */
const NO_NAMES = ['', 'WorkerThread']

/** The numbers of messages, and of their answers. */
const [ENABLE, PAUSE, ASK, RESUME, DISABLE] = [1, 2, 3, 4, 5]
const METHODS = {
  [ENABLE]: 'Debugger.enable',
  [PAUSE]: 'Debugger.pause',
  [ASK]: 'Schema.getDomains',
  [RESUME]: 'Debugger.resume',
  [DISABLE]: 'Debugger.disable'
}
/** How a thread tells of each of its scripts: there may be thousands, of which few are looked up. */
const SCRIPT = '{"method":"Debugger.scriptParsed","params":{"scriptId":"'

/** A thread that is asked. `send(number)` posts a message to it. */
class Asked {
  constructor (look, threadId, name, send) {
    this.look = look
    this.threadId = threadId
    this.name = name
    this.send = send
    // By their ids: URLs, or messages that have them.
    this.scripts = new Map()
    this.hasAnswered = false
    this.answers = 0
    this.isTold = false
    this.timer = undefined
    send(ENABLE)
    send(PAUSE)
  }

  answered (number) {
    if (this.isTold) return
    if (number === PAUSE) {
      this.hasAnswered = true
      this.timer = setTimeout(() => this.send(ASK), PAUSES_WITHIN)
    } else if (number === ASK) {
      if (this.isIdle()) this.tell()
      else this.timer = setTimeout(() => this.send(ASK), PAUSES_WITHIN)
    }
  }

  /**
   * Whether the event loop turns. A thread that runs JavaScript may answer, too, and be short of processor time before
   * it pauses. Native code knows of the threads that have the package; the others have to answer several times.
   */
  isIdle () {
    const hasTurned = binding.hasTurned(this.threadId)
    return typeof hasTurned === 'boolean' ? hasTurned : ++this.answers === ANSWERS
  }

  paused (frames) {
    if (this.hasAnswered) this.send(RESUME)
    this.tell(this.linesOf(frames))
  }

  tell (lines, silence) {
    if (this.isTold) return
    this.isTold = true
    clearTimeout(this.timer)
    binding.tellThread(this.look.request, this.threadId, this.name, lines, silence)
    this.look.endIfAllAreTold()
  }

  /** Withdraws what was asked. */
  end () {
    clearTimeout(this.timer)
    this.send(DISABLE)
  }

  linesOf (frames) {
    const lines = frames.map((frame) => this.lineOf(frame))
    const others = lines.filter((line) => !this.look.isOwn(line))
    const shown = others.length > 0 ? others : lines
    // Node's frames around the program say nothing.
    while (shown.length > 1 && shown[shown.length - 1].includes('node:internal/')) shown.pop()
    // It may be about to begin or to end.
    return shown.slice(0, MOST_FRAMES).join('\n') || 'outside of the program'
  }

  lineOf ({ functionName, location }) {
    const place = this.fileOf(location.scriptId) + ':' + (location.lineNumber + 1) + ':' + (location.columnNumber + 1)
    return functionName === '' ? 'at ' + place : 'at ' + functionName + ' (' + place + ')'
  }

  fileOf (scriptId) {
    const script = this.scripts.get(scriptId)
    if (script === undefined) return 'unknown'
    const url = script.startsWith(SCRIPT) ? JSON.parse(script).params.url : script
    try {
      return fileURLToPath(url)
    } catch (_) {
      return url === '' ? '<anonymous>' : url
    }
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
    // The end of the session is an error.
    const send = (number) => session.post(METHODS[number], (error) => { if (!error) this.main.answered(number) })
    session.on('Debugger.scriptParsed', ({ params }) => this.main.scripts.set(params.scriptId, params.url))
    session.on('Debugger.paused', ({ params }) => this.main.paused(params.callFrames))
    this.main = new Asked(this, MAIN, undefined, send)
  }

  askWorkers () {
    const { session, workers } = this
    session.on('NodeWorker.attachedToWorker', ({ params: { sessionId, workerInfo } }) => {
      const [, id, name] = /^\[worker (\d+)\] ?([^]*)$/.exec(workerInfo.title) || []
      if (id === undefined || Number(id) === threadId) return
      const send = (number) => {
        const message = JSON.stringify({ id: number, method: METHODS[number] })
        // The worker may have ended.
        session.post('NodeWorker.sendMessageToWorker', { sessionId, message }, () => {})
      }
      workers.set(sessionId, new Asked(this, Number(id), NO_NAMES.includes(name) ? undefined : name, send))
    })
    session.on('NodeWorker.detachedFromWorker', ({ params: { sessionId } }) => {
      const worker = workers.get(sessionId)
      if (worker !== undefined) clearTimeout(worker.timer)
      workers.delete(sessionId)
      this.endIfAllAreTold()
    })
    session.on('NodeWorker.receivedMessageFromWorker', ({ params: { sessionId, message } }) => {
      const worker = workers.get(sessionId)
      if (worker !== undefined) receive(worker, message)
    })
    session.post('NodeWorker.enable', { waitForDebuggerOnStart: false }, () => {
      this.hasAll = true
      this.endIfAllAreTold()
    })
  }

  endIfAllAreTold () {
    if (!this.hasAll || this.main === undefined || !this.main.isTold) return
    for (const worker of this.workers.values()) if (!worker.isTold) return
    this.end()
  }

  /** Tells of those who have not answered, and withdraws what was asked. */
  end () {
    if (current !== this) return
    current = undefined
    clearTimeout(this.timer)
    const asked = [this.main, ...this.workers.values()]
    for (const each of asked) each.tell(undefined, Date.now() - this.began)
    binding.tellEnd(this.request)
    for (const each of asked) each.end()
    this.session.post('NodeWorker.disable')
    this.session.disconnect()
    // A dump may have asked meanwhile.
    look()
  }
}

/** Receives a Worker's message. */
function receive (worker, message) {
  if (message.startsWith(SCRIPT)) {
    worker.scripts.set(message.slice(SCRIPT.length, message.indexOf('"', SCRIPT.length)), message)
    return
  }
  const { id, method, params } = JSON.parse(message)
  if (id !== undefined) worker.answered(id)
  else if (method === 'Debugger.paused') worker.paused(params.callFrames)
}

/**
 * Sleeps between turns of the event loop while a look lasts. Each script is a message, which
 * would wake this thread: and on a machine without a free core, that takes the core from the thread that answers.
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
  session.post(METHODS[ASK], () => session.disconnect())
}

rehearse()
binding.becomeDumpHelper(look)
// It ends with its parent.
setInterval(() => {}, 2 ** 30)
