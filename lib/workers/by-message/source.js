'use strict'

/**
 * Changes the message in which a Worker's constructor tells its thread what to run, so that the worker loads an entry first.
 */

const fs = require('fs')
const path = require('path')
const { pathToFileURL } = require('url')
const vm = require('vm')
const STARTED_BY_MESSAGE = require('./mark')

const START = path.join(__dirname, 'start.js')

/**
 * `doEval` tells the meaning of `filename`: false, a file; true or 'classic', source text; 'module' (Node 14 to 18), the source
 * of a module; 'data-url', a URL. With any other value it is a worker of Node's own.
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

/** A Worker as in browsers, on Node 26 with --experimental-web-worker. */
function letWebWorkerStart (message, entry) {
  const data = Object.assign({}, message.webWorkerData)
  try {
    if (data.source === undefined) data.source = fs.readFileSync(message.filename, 'utf8')
  } catch (_) {
    // The worker will report it.
    return
  }
  data.source = data.type === 'module' ? prefixModule(data.source, entry) : prefixScript(data.source, entry)
  message.doEval = 'classic'
  message.webWorkerData = data
}

/** A module's source with an import in front, which is evaluated first. It is on the same line, to keep the line numbers. */
function prefixModule (source, entry) {
  return 'import ' + JSON.stringify(pathToFileURL(entry).href) + ';' + source
}

/**
 * A script's source with a call in front of it, on the same line. A strict script stays strict, and a hashbang stays in front.
 * Node gives evaluated code `global.require` (as a bare name it might be an uninitialized variable of that code); a module has none.
 */
function prefixScript (source, entry) {
  const isScript = compiles(source)
  // It will never run, and its error must show what the user has written.
  if (!isScript && !mayBeModule(source)) return source
  const hashbang = /^#!.*(?:\r\n|[\n\r\u2028\u2029]|$)/.exec(source)
  const start = hashbang === null ? 0 : hashbang[0].length
  return source.slice(0, start) + (isScript && isStrict(source) ? '"use strict";' : '') +
    '((r,p)=>(r=r||p.getBuiltinModule&&p.getBuiltinModule("module").createRequire(' + JSON.stringify(START) + '))&&r(' +
    JSON.stringify(START) + ')(' + JSON.stringify(entry) + ',' + start + '))(global.require,global.process);' +
    '/*' + STARTED_BY_MESSAGE + '*/' + source.slice(start)
}

/** Whether Node may run source text that is no script as a module, or as TypeScript. */
function mayBeModule (source) {
  if (typeof process.getBuiltinModule !== 'function') return false
  return Boolean(process.features.typescript) || /\b(?:import|export|await)\b/.test(source)
}

/** Whether a script that compiles is strict: then it does not compile with a `with`. */
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
