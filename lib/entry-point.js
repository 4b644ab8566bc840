'use strict'

/**
 * Loads the files of `lib/`, by a registry of their own.
 *
 * A program may empty Node's registry at any time, and a test runner that of a test file. Code that is loaded at its
 * first use has to meet the state of the code before it. In the published package, a file that does the same for few
 * files takes this one's place (scripts/lib/bundle.js).
 */

const fs = require('fs')
const path = require('path')
const vm = require('vm')

const { apply } = Reflect
const { slice } = String.prototype
const nodeModule = module
const evaluated = {}

/** Requires a file, as Node does: one that throws is evaluated again the next time. */
function requireFile (file) {
  let module = evaluated[file]
  if (module === undefined) {
    const folder = path.dirname(file)
    const requireFrom = (request) => request[0] === '.' ? requireFile(fileOf(folder, request)) : require(request)
    module = { exports: {}, constructor: nodeModule.constructor }
    compile(path.normalize(file))(module, module.exports, requireFrom, path.normalize(folder))
    evaluated[file] = module
  }
  return module.exports
}

/** Resolves `./name` or `../name`. It calls nothing that uses an array, whose methods a program may have replaced. */
function fileOf (folder, request) {
  let from = 0
  while (request[from] === '.') {
    if (request[from + 1] === '.') {
      folder = path.dirname(folder)
      from++
    }
    from += 2
  }
  const name = folder + '/' + apply(slice, request, [from])
  return fs.existsSync(name + '.js') ? name + '.js' : name + '/index.js'
}

/** Compiles a file in this realm. A script of `vm` belongs to the main one. */
function compile (file) {
  const text = '(function (module, exports, require, __dirname) {' + fs.readFileSync(file, 'utf8') + '\n})'
  const isMain = Object.getPrototypeOf(vm.runInThisContext) === Function.prototype
  // eslint-disable-next-line no-eval -- it is the way to compile code in another realm
  return isMain ? vm.runInThisContext(text, { filename: file }) : (0, eval)(text + '\n//# sourceURL=' + file)
}

module.exports = requireFile(__dirname.replace(/\\/g, '/') + '/create-entry.js')
// For tests.
module.exports.requireFile = requireFile
