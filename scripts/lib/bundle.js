'use strict'

// What `lib/` is in the published package: six files instead of forty. Node takes a quarter of a millisecond for a file, however
// small, and V8 some twenty microseconds for a kilobyte, even one that it only passes over. So `entry.js` has what every entry point
// loads, `queue.js` what an install of our own queue loads, too, `later.js` what is loaded when it is used. Beside them stands what is
// loaded by its path.
//
// esbuild takes the comments out and sees to the syntax of the oldest Node. It does not join the files: what has the same name in
// two of them it would rename, which stack traces show, and V8 would parse its wrappers twice.

const fs = require('fs')
const path = require('path')

const LIB = path.join(__dirname, '..', '..', 'lib')

/** What is in these two, beside all that it requires at its top level. */
const ENTRY = ['entry.js', 'keep-alive.js']
const QUEUE = ['settle.js', 'atomics.js', 'loader-thread.js', 'workers.js']
/** What is loaded by its path: by scripts/build.js, and as what a worker runs. They hold no state, and may be in another of these files, too. */
const BY_PATH = ['target.js', 'worker-start.js', 'started-by-message.js']

/**
 * The functions that run while `force.js` is loaded. V8 compiles a function in parentheses together with what it stands in; any other it
 * passes over first, and reads again when it is called.
 */
const AT_LOAD = {
  'abstract-operations.js': ['TypedArrayLength'],
  'atomics.js': ['accepts', 'createAtomics'],
  'binding.js': ['load', 'requireLibrary', 'requireWithoutProbe'],
  'counters.js': ['createCounters', 'readable'],
  'entry.js': ['createEntry'],
  'host.js': ['hostOf', 'mark', 'markOf'],
  'install.js': ['chooseTrio', 'install', 'isOurs', 'perRealm', 'propertiesOf', 'readOptions', 'replaceAll', 'replaceOne'],
  'intrinsics.js': ['define', 'withMethods'],
  'loader-thread.js': ['takeHostFunctions'],
  'options.js': ['includes', 'option', 'requireOptions'],
  'realm.js': ['realmOf', 'resolveTarget'],
  'settle.js': ['agent', 'createAgent'],
  'starting-workers.js': ['tell'],
  'target.js': ['abiSuffix', 'isAlpine', 'nameWith'],
  'worker-flags.js': ['wrap'],
  'worker-message.js': ['intercept'],
  'worker-threads.js': ['hostWorker', 'unwrap'],
  'workers.js': ['reach', 'replaceWorker']
}

const HEADER = `'use strict'

// Made from the repository's lib/, where each file has its comments.
`

/** Files that are evaluated when they are first required, as by Node: one that throws is evaluated again the next time. */
const LINKER = `
const files = {}
const evaluated = {}
const requireFile = (function requireFile (name) {
  let module = evaluated[name]
  if (module === undefined) {
    module = { exports: {} }
    if (files[name] === undefined) require('./queue.js')(files, requireFile)
    if (files[name] === undefined) require('./later.js')(files, requireFile)
    files[name](module, module.exports)
    evaluated[name] = module
  }
  return module.exports
})
`

/** The files of a folder, by their paths from it. */
function list (folder) {
  return fs.readdirSync(folder, { withFileTypes: true }).flatMap(entry => entry.isDirectory()
    ? list(path.join(folder, entry.name)).map(name => `${entry.name}/${name}`)
    : [entry.name]).sort()
}

/** A require of another of these files, as esbuild writes it. */
const REQUIRE = /\brequire\("(\.[^"]+)"\)/g
/** One at the top level. */
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
    // What it stands in says so.
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

/** Statements that define files: those that are loaded `atOnce`, with what runs then, are compiled at once, too. */
function define (files, names, atOnce) {
  return Array.from(names, name => {
    const required = files.get(name).code.replace(REQUIRE, (_, request) => `requireFile("${resolve(name, request)}")`)
    const code = atOnce ? compiledAtOnce(required, AT_LOAD[name] || []) : required
    const fn = `function (module, exports) {\n${code}}`
    return `\n// lib/${name}\nfiles['${name}'] = ${atOnce ? `(${fn})` : fn}\n`
  }).join('')
}

/** A file's code with these functions in parentheses. What was declared is a variable then, so it comes first. */
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
  fs.mkdirSync(folder, { recursive: true })
  for (const [name, text] of Object.entries(texts)) fs.writeFileSync(path.join(folder, name), text)
}

module.exports = { bundle }
