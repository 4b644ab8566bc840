'use strict'

/**
 * Changes a starting message so that the worker runs `start.js` first. That loads the entries. The worker's own
 * code is never mixed with ours if it can be run by a documented function: a file by `Module.runMain`, the text of
 * a script by `vm.Script`.
 */

const { Buffer } = require('buffer')
const fs = require('fs')
const path = require('path')
const { URL, pathToFileURL } = require('url')
const vm = require('vm')
const startingWorkers = require('../../../agent/starting-workers')

const START = path.join(__dirname, 'start.js')
/** The property of `workerData` that has the data for `start.js`. The worker's own `workerData` is part of them. */
const STARTED_BY_MESSAGE = 'atomics-waitasync:started-by-message'
const { existsSync } = fs
const wasThere = existsSync(START)

/**
 * Whether `start.js` is still there. A package manager may have replaced the folder while the process runs. Where this
 * Node's own binary is not there either, the file system is mocked, which does not concern workers.
 */
const isThere = () => wasThere && (existsSync(START) || !existsSync(process.execPath))

/**
 * Runs `start.js` from source text. Node gives the text of a script `require` as a global variable; a module has none.
 * No name is used that the text could have for a variable of its own; if `this` is missing, the text is a module.
 */
const CALL = '(t=>(t.require||t.process.getBuiltinModule("module").createRequire(' + JSON.stringify(START) + '))(' +
  JSON.stringify(START) + '))(this||globalThis);'
const IMPORT = 'import ' + JSON.stringify(pathToFileURL(START).href) + ';'

/**
 * Changes a message so that its worker runs `start.js` first. `doEval` says how to read `filename`: false, a file; true
 * or 'classic', source text; 'module' (Node 14 to 18), the source of a module; 'data-url', a URL. With any other value
 * it is a worker of Node's own.
 *
 * @param {string} [name] the worker's name, if Node will not tell it
 */
module.exports = function letStart (message, entries, name) {
  if (!isThere()) {
    startingWorkers.warn('An install does not reach this worker: there is no ' + START + '. Bundlers must leave ' +
      'atomics-waitasync external, and a first worker must have started before the file system is mocked')
    return
  }
  const { doEval, filename } = message
  /** The data for `start.js`. */
  const sent = { entries, workerData: message.workerData, name }
  if (message.webWorkerData !== undefined && doEval !== 'data-url') {
    letWebWorkerStart(message)
  } else if (doEval === false) {
    sent.file = filename
    message.filename = START
  } else if (doEval === true || doEval === 'classic') {
    const isScript = compiles(filename)
    // The text will never run, and its error must show the user's own text.
    if (!isScript && !mayBeModule(filename)) return
    sent.source = filename
    // `vm` cannot run a script that imports, nor one that makes code which does: neither on all
    // versions nor without a warning.
    sent.isSeparate = isScript && !/\b(?:import|eval|Function)\b|\.\s*constructor\b/.test(filename)
    message.filename = sent.text = sent.isSeparate ? CALL : prefixed(filename, isScript)
  } else if (doEval === 'module') {
    message.filename = inFront(IMPORT, filename)
  } else if (doEval === 'data-url') {
    const entry = asEntry(filename)
    if (entry === undefined) message.doEval = 'module'
    message.filename = entry || IMPORT + 'import ' + JSON.stringify(filename)
  } else {
    return
  }
  message.workerData = { [STARTED_BY_MESSAGE]: sent }
}

/** Changes the message of a Worker as in browsers. Node 26 has them, with --experimental-web-worker. */
function letWebWorkerStart (message) {
  const data = Object.assign({}, message.webWorkerData)
  try {
    if (data.source === undefined) data.source = fs.readFileSync(message.filename, 'utf8')
  } catch (_) {
    // The worker will report it.
    return
  }
  data.source = data.type === 'module' ? inFront(IMPORT, data.source) : prefixed(data.source, compiles(data.source))
  message.doEval = 'classic'
  message.webWorkerData = data
}

/**
 * Gives a `data:` module the prefix, if it may read `import.meta`. It may ask whether it is the entry point. Returns
 * the new URL; otherwise undefined.
 */
function asEntry (url) {
  const [, isBase64, body] = /^text\/javascript[^,]*?(;base64)?,([^]*)$/.exec(new URL(url).pathname) || []
  if (body === undefined) return undefined
  try {
    const source = Buffer.from(decodeURIComponent(body), isBase64 ? 'base64' : 'utf8').toString()
    if (!/\bimport\s*\.\s*meta\b/.test(source)) return undefined
    const prefix = IMPORT + 'import.meta.url=' + JSON.stringify(url) + ';'
    return 'data:text/javascript,' + encodeURIComponent(inFront(prefix, source))
  } catch (_) {
    // The worker will report the URL.
    return undefined
  }
}

/**
 * Matches a line that begins as a module does. With `\s*` it would be searched from each of many blank
 * lines to the last of them.
 */
const BEGINS_AS_MODULE = /^[^\S\n\r\u2028\u2029]*(?:import|export)\b(?!\s*[(.])/m

/** Puts a call of `start.js` in front of source text. A strict script stays strict. */
function prefixed (source, isScript) {
  if (isScript) return inFront(isStrict(source) ? '"use strict";' + CALL : CALL, source)
  // A module's imports are evaluated before its own code.
  return inFront(BEGINS_AS_MODULE.test(source) ? IMPORT : CALL, source)
}

/** Puts a prefix on source text's first line, behind a hashbang. So the numbers of the lines stay. */
function inFront (prefix, source) {
  const hashbang = /^#!.*(?:\r\n|[\n\r\u2028\u2029]|$)/.exec(source)
  const start = hashbang === null ? 0 : hashbang[0].length
  return source.slice(0, start) + prefix + source.slice(start)
}

/** Whether Node may run the text as a module, or as TypeScript. The text is no script. */
function mayBeModule (source) {
  if (typeof process.getBuiltinModule !== 'function') return false
  return Boolean(process.features.typescript) || /\b(?:import|export|await)\b/.test(source)
}

/** Whether a script that compiles is strict. Then it does not compile with a `with`. */
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
