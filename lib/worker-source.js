'use strict'

/**
 * Changes the message in which a Worker's constructor tells its thread what to run, so that the worker loads an entry first.
 */

const fs = require('fs')
const path = require('path')
const { pathToFileURL } = require('url')
const vm = require('vm')
const STARTED_BY_MESSAGE = require('./started-by-message')

const START = path.join(__dirname, 'worker-start.js')

/**
 * `doEval` says what `filename` is: false, a file; true or 'classic', source text; 'module' (Node 14 to 18), the source
 * of a module; 'data-url', a URL. Anything else is a worker of Node's own.
 */
module.exports = function letStart (message, entry) {
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
