'use strict'

/**
 * Reaches workers by the message in which a Worker's constructor tells its thread what to run.
 *
 * Node's class calls its parent's constructor first, looks the parent up at that moment, and later in the same constructor
 * posts the message by the public `MessagePort.prototype.postMessage`. So a parent in between knows when to look at what
 * is posted next. Every worker passes there, also those of a subclass, or of a reference to Worker, that is older than
 * the install, and flags, environment and all other options stay as they are. It is no documented way, though: if a Node
 * to come does it differently, then nothing is recognised and nothing changed.
 *
 * Invariant: `postMessage` is only replaced while `starting` is not empty, which ends within the constructor, or with the
 * current tick if the constructor throws.
 */

const fs = require('fs')
const path = require('path')
const { pathToFileURL } = require('url')
const vm = require('vm')
const { MARK } = require('./host')
const { threads } = require('./worker-threads')

const { nextTick } = process
const { apply, construct, defineProperty, get, getOwnPropertyDescriptor, getPrototypeOf, setPrototypeOf } = Reflect

const START = path.join(__dirname, 'worker-start.js')
/** What `worker-start.js` knows its own by: a property of `workerData`, a comment in front of source text. */
const STARTED_BY_MESSAGE = exports.STARTED_BY_MESSAGE = 'atomics-waitasync:started-by-message'

/** The entry to be loaded, by Worker whose message is still to come. */
const starting = new Map()
/** The property as it was, while it is replaced. */
let postMessageBefore
let passed = false

/** The next worker is reached another way. */
exports.passNext = function passNext (pass) {
  passed = pass
}

/**
 * @param {Function} HostWorker Node's own class
 * @param {() => (string | undefined)} currentEntry gives the absolute path of the entry point that workers load
 * @returns {() => void} undoes it
 * @throws {TypeError} the class has been frozen
 */
exports.intercept = function intercept (HostWorker, currentEntry) {
  const before = getPrototypeOf(HostWorker)
  const Parent = before[MARK] || before
  const Between = new Proxy(Parent, {
    construct (target, args, newTarget) {
      const pass = passed
      passed = false
      const worker = construct(target, args, newTarget)
      const entry = pass ? undefined : currentEntry()
      if (entry !== undefined) expectMessage(worker, entry)
      return worker
    },
    // Not for the class that inherits from here.
    get: (target, key, receiver) => key === MARK && receiver === Between ? Parent : get(target, key, receiver)
  })
  if (!setPrototypeOf(HostWorker, Between)) {
    throw new TypeError('install: workers must be false, for worker_threads.Worker is not extensible')
  }
  return () => {
    if (getPrototypeOf(HostWorker) === Between) setPrototypeOf(HostWorker, before)
  }
}

function expectMessage (worker, entry) {
  starting.set(worker, entry)
  const { prototype } = threads.MessagePort
  const property = getOwnPropertyDescriptor(prototype, 'postMessage')
  if (postMessageBefore !== undefined || property === undefined || typeof property.value !== 'function') return
  const postMessage = property.value
  postMessageBefore = property
  defineProperty(prototype, 'postMessage', Object.assign({}, property, {
    value (message) {
      if (isLoadScript(message)) {
        const worker = workerOf(this)
        const entry = starting.get(worker)
        if (starting.delete(worker)) letStart(message, entry)
        if (starting.size === 0) stopExpecting()
      }
      return apply(postMessage, this, arguments)
    }
  }))
  nextTick(stopExpecting)
}

function stopExpecting () {
  starting.clear()
  if (postMessageBefore === undefined) return
  defineProperty(threads.MessagePort.prototype, 'postMessage', postMessageBefore)
  postMessageBefore = undefined
}

/** The worker among those starting that a port belongs to: it has it as a property, by a symbol of Node's. */
function workerOf (port) {
  for (const worker of starting.keys()) {
    if (Object.getOwnPropertySymbols(worker).some((symbol) => worker[symbol] === port)) return worker
  }
  return undefined
}

function isLoadScript (message) {
  return typeof message === 'object' && message !== null && message.type === 'loadScript' &&
    typeof message.filename === 'string' && message.doEval !== undefined && message.publicPort !== undefined
}

/**
 * Changes a message so that its worker loads `entry` first.
 *
 * `doEval` says what `filename` is: false, a file; true or 'classic', source text; 'module' (Node 14 to 18), the source
 * of a module; 'data-url', a URL. Anything else is a worker of Node's own.
 */
function letStart (message, entry) {
  if (message.webWorkerData !== undefined && message.doEval !== 'data-url') return letWebWorkerStart(message, entry)
  switch (message.doEval) {
    case false:
      message.workerData = { [STARTED_BY_MESSAGE]: true, entry, filename: message.filename, workerData: message.workerData }
      message.filename = START
      break
    case true:
    case 'classic':
      message.filename = prefixScript(message.filename, entry)
      break
    case 'module':
      message.filename = prefixModule(message.filename, entry)
      break
    case 'data-url':
      message.doEval = 'module'
      message.filename = prefixModule('import ' + JSON.stringify(message.filename), entry)
  }
}

/** The web's Worker, on Node 26 with --experimental-web-worker. */
function letWebWorkerStart (message, entry) {
  const data = Object.assign({}, message.webWorkerData)
  try {
    if (data.source === undefined) data.source = fs.readFileSync(message.filename, 'utf8')
  } catch (_) {
    // The worker will say so.
    return
  }
  data.source = data.type === 'module' ? prefixModule(data.source, entry) : prefixScript(data.source, entry)
  message.doEval = 'classic'
  message.webWorkerData = data
}

/** A module's imports are evaluated in their order. On the same line, for the line numbers' sake. */
function prefixModule (source, entry) {
  return 'import ' + JSON.stringify(pathToFileURL(entry).href) + ';' + source
}

/**
 * A script's source with a call in front of it, on the same line. A script that is strict stays so, and a hashbang stays
 * in front. `global.require` is what Node gives to evaluated code (by its bare name it might be a variable of that code's
 * that is not initialized yet); evaluated as a module, it has none.
 */
function prefixScript (source, entry) {
  const isScript = compiles(source)
  // It will never run, and its error shall show what the user has written.
  if (!isScript && !mayBeModule(source)) return source
  const hashbang = /^#!.*(?:\r\n|[\n\r\u2028\u2029]|$)/.exec(source)
  const start = hashbang === null ? 0 : hashbang[0].length
  return source.slice(0, start) + (isScript && isStrict(source) ? '"use strict";' : '') +
    '((r,p)=>(r=r||p.getBuiltinModule&&p.getBuiltinModule("module").createRequire(' + JSON.stringify(START) + '))&&r(' +
    JSON.stringify(START) + ')(' + JSON.stringify(entry) + ',' + start + '))(global.require,global.process);' +
    '/*' + STARTED_BY_MESSAGE + '*/' + source.slice(start)
}

/** Whether Node may take source text that is no script for a module, or for TypeScript. */
function mayBeModule (source) {
  if (typeof process.getBuiltinModule !== 'function') return false
  return Boolean(process.features.typescript) || /\b(?:import|export|await)\b/.test(source)
}

/** Of a script that compiles. Asks the engine: only strict code has no `with`. */
function isStrict (source) {
  return !compiles(source + '\nwith({}){}')
}

function compiles (source) {
  try {
    new vm.Script(source) // eslint-disable-line no-new
    return true
  } catch (_) {
    return false
  }
}
