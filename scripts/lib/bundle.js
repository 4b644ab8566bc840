'use strict'

// Joins `lib/` to six files for the published package. Node takes 0.25 ms to load a file of any size, and V8 some 20 µs for each
// kilobyte, even if it only scans it. So `entry.js` has the files that every entry point loads, `queue.js` those that an install of
// our own queue loads, and `later.js` those that are loaded at their first use. Files that are loaded by their path stay files.
//
// esbuild removes the comments and writes the syntax of the oldest Node. It does not join the files: it would rename functions
// that have the same name in two files, which stack traces show, and V8 would parse its wrappers twice.

const fs = require('fs')
const path = require('path')

const LIB = path.join(__dirname, '..', '..', 'lib')

/** These two files have these modules, and all that they require at the top level. */
const ENTRY = ['entry.js', 'atomics/keep-alive.js']
const QUEUE = ['agent/agent.js', 'atomics/functions.js', 'contexts.js', 'workers/loader-thread.js', 'workers/reach.js']
/** Loaded by their path: by scripts/build.js, and by workers. They have no state, so other files may contain them, too. */
const BY_PATH = ['agent/target.js', 'workers/by-message/start.js', 'workers/by-message/mark.js']

const HEADER = `'use strict'

// Generated from the repository's lib/, where the files have comments.
`

/** Evaluates files when they are first required, as Node does: one that throws is evaluated again the next time. */
const LINKER = `
const path = require('path')
const files = {}
const evaluated = {}
const requireFile = (function requireFile (name) {
  let module = evaluated[name]
  if (module === undefined) {
    module = { exports: {} }
    if (files[name] === undefined) require('./queue.js')(files, requireFile)
    if (files[name] === undefined) require('./later.js')(files, requireFile)
    files[name](module, module.exports, path.join(__dirname, name, '..'))
    evaluated[name] = module
  }
  return module.exports
})
`

/** The files of a folder, as paths relative to it. */
function list (folder) {
  return fs.readdirSync(folder, { withFileTypes: true }).flatMap(entry => entry.isDirectory()
    ? list(path.join(folder, entry.name)).map(name => `${entry.name}/${name}`)
    : [entry.name]).sort()
}

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
  return new Map(list(LIB).map(name => {
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
    if (found.has(name)) continue
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
  const more = definitions => `${HEADER}\nmodule.exports = (function (files, requireFile) {${definitions}})\n`
  const texts = {
    'entry.js': `${HEADER}${LINKER}${define(files, entry, true)}\nmodule.exports = requireFile('entry.js')\n`,
    'queue.js': more(define(files, queue, true)),
    'later.js': more(define(files, later, false))
  }
  for (const name of BY_PATH) texts[name] = `${HEADER}${files.get(name).code}`
  for (const [name, text] of Object.entries(texts)) {
    const file = path.join(folder, name)
    fs.mkdirSync(path.dirname(file), { recursive: true })
    fs.writeFileSync(file, text)
  }
}

module.exports = { bundle }
