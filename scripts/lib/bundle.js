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

const HEADER = `'use strict'

// Made from the repository's lib/, where each file has its comments.
`

/** Files that are evaluated when they are first required, as by Node: one that throws is evaluated again the next time. */
const LINKER = `
const files = {}
const evaluated = {}
function requireFile (name) {
  let module = evaluated[name]
  if (module === undefined) {
    module = { exports: {} }
    if (files[name] === undefined) require('./queue.js')(files, requireFile)
    if (files[name] === undefined) require('./later.js')(files, requireFile)
    files[name](module, module.exports)
    evaluated[name] = module
  }
  return module.exports
}
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

/** Statements that define files. A function in parentheses is compiled at once, one without is passed over until it is called. */
function define (files, names, atOnce) {
  return Array.from(names, name => {
    const code = files.get(name).code.replace(REQUIRE, (_, request) => `requireFile("${resolve(name, request)}")`)
    const fn = `function (module, exports) {\n${code}}`
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
  const more = definitions => `${HEADER}\nmodule.exports = function (files, requireFile) {${definitions}}\n`
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
