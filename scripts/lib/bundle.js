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
const QUEUE = ['agent/agent.js', 'atomics/functions.js', 'workers/loader-thread.js', 'workers/reach.js']
/** Loaded by their path: by scripts/build.js, and by workers. They have no state, so other files may contain them, too. */
const BY_PATH = ['agent/target.js', 'workers/by-message/start.js', 'workers/by-message/mark.js']

/**
 * The functions that run while `force.js` is loaded. V8 compiles a function in parentheses together with the code around it; any
 * other function it scans first, and reads again when it is called.
 */
const AT_LOAD = {
  'agent/agent.js': ['agent', 'createAgent'],
  'agent/binding.js': ['load', 'requireLibrary', 'requireWithoutProbe'],
  'agent/blocking.js': ['createBlocking'],
  'agent/counters.js': ['createCounters', 'readable'],
  'agent/slots.js': ['createSlots'],
  'agent/starting-workers.js': ['tell'],
  'agent/target.js': ['abiSuffix', 'isAlpine', 'nameWith'],
  'atomics/functions.js': ['accepts', 'createAtomics'],
  'entry.js': ['createEntry'],
  'host.js': ['hostOf', 'mark', 'markOf'],
  'install.js': ['chooseTrio', 'install', 'isOurs', 'perRealm', 'propertiesOf', 'readOptions', 'replaceAll', 'replaceOne'],
  'realm.js': ['realmOf', 'resolveTarget'],
  'util/intrinsics.js': ['define', 'withMethods'],
  'util/options.js': ['includes', 'option', 'requireOptions'],
  'util/typed-arrays.js': ['TypedArrayLength'],
  'workers/by-flag.js': ['wrap'],
  'workers/by-message/intercept.js': ['intercept'],
  'workers/host-worker.js': ['hostWorker', 'unwrap'],
  'workers/loader-thread.js': ['takeHostFunctions'],
  'workers/reach.js': ['reach', 'replaceWorker']
}

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

/** Statements that define files. If they are loaded `atOnce`, they and the functions that run then are compiled at once, too. */
function define (files, names, atOnce) {
  return Array.from(names, name => {
    const required = files.get(name).code.replace(REQUIRE, (_, request) => `requireFile("${resolve(name, request)}")`)
    const code = atOnce ? compiledAtOnce(required, AT_LOAD[name] || []) : required
    const fn = `function (module, exports, __dirname) {\n${code}}`
    return `\n// lib/${name}\nfiles['${name}'] = ${atOnce ? `(${fn})` : fn}\n`
  }).join('')
}

/** A file's code with these functions in parentheses. Declared functions become variables, so they come first. */
function compiledAtOnce (code, names) {
  const variables = []
  for (const name of names) {
    const fn = new RegExp(`^(exports\\.\\w+ = |module\\.exports = |)(function ${name}\\([^]*?\n})(;?\n)`, 'm')
    if (!fn.test(code)) throw new Error(`lib/ has no function ${name} where the bundle looks for it`)
    code = code.replace(fn, (_, assigned, text, end) => {
      if (assigned !== '') return `${assigned}(${text})${end}`
      variables.push(`var ${name} = (${text});\n`)
      return ''
    })
  }
  return variables.join('') + code
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
