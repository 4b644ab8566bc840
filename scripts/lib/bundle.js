'use strict'

// Joins `lib/` to a few files for the published package. Node takes 0.25 ms to load a file of any size, and V8 some 20 µs for each
// kilobyte, even if it only scans it. So `main.js` has the files that every entry point loads, `queue.js` those that an install of
// our own queue loads, and `later.js` those that are loaded at their first use. `entry.js` links them. Files that are loaded by their
// path stay files.
//
// Compiling is a third of what loading costs in a Worker. So a thread that starts Workers hands them what it has compiled, as
// environment data (lib/workers/by-message/share-code.js), under the hash of its text. For that the files are scripts of `vm`. They are
// required where that is not possible: in the realm of a test runner, by a bundler, in Bun and Deno, on Node before 15.12; and with
// NODE_COMPILE_CACHE, which works for what is required.
//
// esbuild removes the comments and writes the syntax of the oldest Node. It does not join the files: it would rename functions
// that have the same name in two files, which stack traces show, and V8 would parse its wrappers twice.

const { createHash } = require('crypto')
const fs = require('fs')
const path = require('path')

const LIB = path.join(__dirname, '..', '..', 'lib')

/** `main.js` and `queue.js` have these modules, and all that they require at the top level. */
const ENTRY = ['entry.js', 'atomics/keep-alive.js']
const QUEUE = ['agent/agent.js', 'atomics/functions.js', 'contexts.js', 'workers/loader-thread.js', 'workers/reach.js']
/** The linker takes its place. */
const LINKED = 'util/compiled.js'
/** Loaded by their path: by scripts/build.js, and by workers. They have no state, so other files may contain them, too. */
const BY_PATH = ['agent/target.js', 'workers/by-message/start.js']

const HEADER = `'use strict'

// Generated from the repository's lib/, where the files have comments.
`

/** Evaluates files when they are first required, as Node does: one that throws is evaluated again the next time. */
const LINKER = `
const fs = require('fs')
const path = require('path')
const vm = require('vm')

const files = {}
/** Those that are left: the functions give what defines the files of one. */
const parts = [
  () => run('main.js') || require('./main.js'),
  () => run('queue.js') || require('./queue.js'),
  () => run('later.js') || require('./later.js')
]
/** Compiled by this thread: for its Workers. */
const scripts = []
const evaluated = { '${LINKED}': { exports: scripts } }

const requireFile = (function requireFile (name) {
  let module = evaluated[name]
  if (module === undefined) {
    module = { exports: {}, constructor: nodeModule.constructor }
    while (files[name] === undefined) {
      parts[0]()(files, requireFile)
      parts.shift()
    }
    files[name](module, module.exports, path.join(__dirname, name, '..'))
    evaluated[name] = module
  }
  return module.exports
})
const nodeModule = module

const run = (function run (name) {
  try {
    const { getEnvironmentData } = threads
    if (getEnvironmentData === undefined || process.versions.bun || process.versions.deno) return undefined
    if (process.env.NODE_COMPILE_CACHE !== undefined) return undefined
    // A script of vm runs in the main realm.
    if (Object.getPrototypeOf(vm.runInThisContext) !== Function.prototype) return undefined
    const filename = path.join(__dirname, name)
    const text = fs.readFileSync(filename, 'utf8')
    const key = 'atomics-waitasync ' + HASHES[name]
    const compiled = getEnvironmentData(key)
    const cachedData = compiled && new Uint8Array(compiled)
    const script = new vm.Script('(function (module, require) {' + text + '\\n})', { filename, cachedData })
    if (cachedData === undefined || script.cachedDataRejected) scripts.push({ key, script })
    const module = { exports: undefined }
    script.runInThisContext()(module, require)
    return module.exports
  } catch (_) {
    // The file is not there, or other code has replaced one of these functions.
    return undefined
  }
})

/** The same on a Node 10 without worker_threads. */
let threads = {}
try {
  threads = require('worker_threads')
} catch (_) {}
`

/** A require of another file of lib/, as esbuild writes it. */
const REQUIRE = /\brequire\("(\.[^"]+)"\)/g
/** The same, at the top level. */
const TOP_LEVEL = /^(?! ).*\brequire\("(\.[^"]+)"\)/gm

/**
 * Reads all of lib/.
 * @returns {Map<string, { code: string, requires: string[] }>} by name: without comments; and what it requires at the top level
 */
function readFiles () {
  const { transformSync } = require('esbuild')
  const names = fs.readdirSync(LIB, { recursive: true }).map(name => name.split(path.sep).join('/')).filter(name => name.endsWith('.js') && name !== LINKED)
  return new Map(names.sort().map(name => {
    const source = fs.readFileSync(path.join(LIB, name), 'utf8')
    if (source.includes('requireFile')) throw new Error(`lib/${name} uses a name that the bundle needs: requireFile`)
    // The bundle's header says this.
    const code = transformSync(source, { target: 'node10', sourcefile: name }).code.replace(/^"use strict";\n/, '')
    return [name, { code, requires: Array.from(code.matchAll(TOP_LEVEL), ([, request]) => resolve(name, request)) }]
  }))
}

/** The name of the file that another one requires. */
function resolve (from, request) {
  const target = path.posix.join(path.posix.dirname(from), request)
  return fs.existsSync(path.join(LIB, `${target}.js`)) ? `${target}.js` : `${target}/index.js`
}

/** These files and what they require at the top level. */
function closure (files, names, found = new Set()) {
  for (const name of names) {
    if (found.has(name) || name === LINKED) continue
    found.add(name)
    closure(files, files.get(name).requires, found)
  }
  return found
}

/** Statements that define files. V8 compiles a function in parentheses at once: those that are loaded `atOnce`. */
function define (files, names, atOnce) {
  return Array.from(names, name => {
    const code = files.get(name).code.replace(REQUIRE, (_, request) => `requireFile("${resolve(name, request)}")`)
    const fn = `function (module, exports, __dirname) {\n${code}}`
    return `\n// lib/${name}\nfiles['${name}'] = ${atOnce ? `(${fn})` : fn}\n`
  }).join('')
}

/** Writes the files that `lib/` has in the published package into a folder that it makes. */
function bundle (folder) {
  const files = readFiles()
  const entry = closure(files, ENTRY)
  const queue = [...closure(files, QUEUE)].filter(name => !entry.has(name))
  const later = [...closure(files, [...files.keys()].filter(name => !BY_PATH.includes(name)))]
    .filter(name => !entry.has(name) && !queue.includes(name))
  const part = definitions => `${HEADER}\nmodule.exports = (function (files, requireFile) {${definitions}})\n`
  const parts = {
    'main.js': part(define(files, entry, true)),
    'queue.js': part(define(files, queue, true)),
    'later.js': part(define(files, later, false))
  }
  const hashes = Object.entries(parts).map(([name, text]) => `  '${name}': '${createHash('sha256').update(text).digest('base64')}'`)
  const texts = {
    'entry.js': `${HEADER}\nconst HASHES = {\n${hashes.join(',\n')}\n}\n${LINKER}\nmodule.exports = requireFile('entry.js')\n`,
    ...parts
  }
  for (const name of BY_PATH) texts[name] = `${HEADER}${files.get(name).code}`
  for (const [name, text] of Object.entries(texts)) {
    const file = path.join(folder, name)
    fs.mkdirSync(path.dirname(file), { recursive: true })
    fs.writeFileSync(file, text)
  }
}

module.exports = { bundle }
