'use strict'

// Joins `lib/` to a few files for the published package. Node takes 0.1 to 0.25 ms to load a file of any size, and V8
// some 20 µs for each kilobyte, even if it only scans it. So there is a file for each use of the package (PARTS).
// `entry-point.js` links them. Files that are loaded by their path stay files.
//
// Half of the time of a first lock is for compiling. So the files are scripts of `vm`, whose compiled code threads hand
// on: a thread that has compiled one leaves that to the native library, and later threads take it from there
// (src/exports/code.rs). Main, which is first, leaves its own when it starts a Worker that an install reaches. The
// files are required where that is not possible: in the realm of a test runner, by a bundler, in Bun and Deno; and
// with Node's compile cache, which works for required files.
//
// esbuild removes the comments and writes the syntax of the oldest Node. It does not join the files: it would rename
// functions that have the same name in two files, which stack traces show, and V8 would parse its wrappers twice.

const { createHash } = require('crypto')
const fs = require('fs')
const path = require('path')
const { EXTERNAL } = require('../../lib/agent/load-binding')
const { packageName } = require('../../lib/agent/target')
const processes = require('../../lib/processes')
const { targets } = require('./targets')

const LIB = path.join(__dirname, '..', '..', 'lib')
/** The engines of /processes that need a server. */
const SERVERS = Object.keys(processes)
  .filter(name => !['files', 'memory'].includes(name))
  .filter(name => fs.existsSync(path.join(LIB, 'processes', 'engines', `${name}.js`)))

/**
 * The parts, in order. Each has these modules and all that they require at the top level, except for those of an
 * earlier one; the last has the rest. V8 compiles the files of a part at once if whoever loads the part needs `all` of
 * them.
 */
const PARTS = [
  /** With the linker. In a Worker it comes before the others' compiled code, which the native library has. */
  { name: 'entry-point.js', modules: ['agent/load-binding.js', 'util/worker-threads.js'], all: true },
  /** Of every entry point. */
  { name: 'main.js', modules: ['create-entry.js', 'atomics/host-queue.js'], all: true },
  { name: 'agent.js', modules: ['agent/find-agent.js', 'agent/agent.js', 'observe/attach.js'], all: true },
  {
    name: 'install.js',
    modules: ['atomics/functions.js', 'install/contexts.js', 'install/workers/reach.js'],
    all: true
  },
  /** Of every lock: in memory, by name, and of processes. */
  {
    name: 'hold.js',
    modules: ['holding/run.js', 'holding/robust-list.js', 'observe/channels.js'],
    all: true
  },
  { name: 'lock.js', modules: ['locks/async-lock.js', 'holding/word.js'], all: true },
  { name: 'names.js', modules: ['named/names.js', 'named/arguments.js'], all: true },
  { name: 'lock-manager.js', modules: ['named/lock-manager.js', 'install/navigator.js'], all: false },
  { name: 'observe.js', modules: ['observe/snapshot.js', 'observe/stalls.js'], all: false },
  /** Of the entry /processes: with the engine of a folder; and the others. */
  {
    name: 'processes.js',
    modules: ['processes/index.js', 'processes/engines/files.js'],
    all: true
  },
  {
    name: 'servers.js',
    modules: SERVERS.map(engine => `processes/engines/${engine}.js`),
    all: false
  },
  /** What maps memory of several processes, and what few need of process locks. */
  {
    name: 'mapped.js',
    modules: [
      'processes/engines/memory.js', 'processes/engines/files-permits.js', 'processes/engines/files-query.js'
    ],
    all: false
  },
  { name: 'later.js', all: false }
]
/** The linker takes its place. */
const LINKED = ['entry-point.js']
/**
 * Loaded by their path: by scripts/build.js, by workers, and by index.js. They have no state, so other files may
 * contain them, too.
 */
const BY_PATH = ['agent/target.js', 'install/workers/by-message/start.js', 'util/require-builtins.js']

const HEADER = `'use strict'

// Generated from the repository's lib/, where the files have comments.
`

/**
 * Evaluates files when they are first required, as Node does: one that throws is evaluated again the next time. A call
 * for a file of another part names that part.
 */
const LINKER = `
// An ES module has no such variable, and no require either: a bundler has joined these files to one.
if (typeof __dirname === 'undefined') {
  throw Object.assign(new Error(${JSON.stringify(EXTERNAL)}), { code: 'ERR_ATOMICS_WAITASYNC_NO_LIBRARY' })
}

const fs = require('fs')
const path = require('path')
const vm = require('vm')
// As it is now: a program may replace the global one.
const { setImmediate } = require('timers')

/** The functions that define the files of each part. */
const parts = {
${PARTS.slice(1).map(({ name }) => `  '${name}': () => run('${name}') || require('./${name}')`).join(',\n')}
}
/** The scripts of this thread, by the keys of their code; whether it has compiled one since it kept them. */
const scripts = []
let hasNew = false

/** Leaves the scripts, with the functions that have been compiled by now, to the threads that start later. */
function keepCode () {
  if (!hasNew) return
  hasNew = false
  try {
    const library = requireFile('agent/load-binding.js').load()
    for (let n = 0; n < scripts.length; n++) library.keepCode(scripts[n].key, scripts[n].script.createCachedData())
  } catch (_) {
    // There is no library, or other code has replaced one of these functions.
  }
}

const nodeModule = module
const evaluated = {}

const requireFile = (function requireFile (name, part) {
  let module = evaluated[name]
  if (module === undefined) {
    module = { exports: {}, constructor: nodeModule.constructor }
    if (files[name] === undefined) parts[part]()(files, requireFile)
    // Not joined: whoever uses it does that. For each file, it would take a tenth of a first lock.
    files[name](module, module.exports, __dirname + '/' + name + '/..')
    evaluated[name] = module
  }
  return module.exports
})

const workerThreads = requireFile('util/worker-threads.js')
const { isMainThread } = workerThreads
workerThreads.keepCode = keepCode

/** Whether the files are scripts of vm: these run in the main realm. Node's compile cache is for required files. */
const isScripts = (function isScripts () {
  try {
    const { constructor: { getCompileCacheDir } } = nodeModule
    return !process.versions.bun && !process.versions.deno && process.env.NODE_COMPILE_CACHE === undefined &&
      process.env.NODE_V8_COVERAGE === undefined &&
      !(getCompileCacheDir && getCompileCacheDir()) && Object.getPrototypeOf(vm.runInThisContext) === Function.prototype
  } catch (_) {
    return false
  }
})()

/** Returns what an earlier thread has compiled; undefined if there is none. */
const keptCode = (function keptCode (key) {
  try {
    const code = isMainThread ? null : requireFile('agent/load-binding.js').load().keptCode(key)
    return code === null ? undefined : new Uint8Array(code)
  } catch (_) {
    // There is no library.
    return undefined
  }
})

const run = (function run (name) {
  if (!isScripts) return undefined
  try {
    const filename = path.join(__dirname, name)
    const text = fs.readFileSync(filename, 'latin1')
    // In a bundle, a file of this name is the program's own.
    if (text.indexOf(${JSON.stringify(HEADER)}) !== 0) return undefined
    const key = filename + ' ' + VERSION
    const cachedData = keptCode(key)
    const script = new vm.Script('(function (module, require) {' + text + '\\n})', { filename, cachedData })
    const module = { exports: undefined }
    script.runInThisContext()(module, require)
    scripts[scripts.length] = { key, script }
    if (script.cachedDataRejected !== false) {
      // In a turn to come, a first lock's functions have been compiled. Main does so if it starts a Worker.
      if (!hasNew && !isMainThread) setImmediate(keepCode)
      hasNew = true
    }
    return module.exports
  } catch (_) {
    // The file is not there, or other code has replaced one of these functions.
    return undefined
  }
})

/**
 * Names files, and is never called: tools that find the files of a program by its text follow the first path, as
 * @vercel/nft does, or the second, as Turbopack.
 */
function traced (platform) {
  return [path.join(__dirname, 'traced.js'), path.join(__dirname, '..', '..', 'atomics-waitasync-' + platform)]
}
`

/**
 * A file that is never run, but read by tools that find the files of a program by its text, such as @vercel/nft: it
 * names those that are found only when they are needed. It is apart, because a bundler that comes upon the name of a
 * native library fails.
 */
const TRACED = `
${Object.keys(targets)
  .map((name) => `try { require('${packageName(name)}') } catch (_) {}`)
  .join('\n')}
require('./install/workers/by-message/start.js')
require('../force/index.js')
require('../keep-alive/index.js')
require('../processes/index.js')
require('../web-locks/index.js')
`

/** A require of another file of lib/, as esbuild writes it. */
const REQUIRE = /\brequire\("(\.[^"]+)"\)/g
/** The same, at the top level. */
const TOP_LEVEL = /^(?! )(?!.*=>).*\brequire\("(\.[^"]+)"\)/gm

/**
 * Reads all of lib/.
 * @returns {Map<string, { code: string, requires: string[] }>} by name: without comments; and its requirements at the
 *   top level
 */
function readFiles () {
  const { transformSync } = require('esbuild')
  const names = fs
    .readdirSync(LIB, { recursive: true })
    .map((name) => name.split(path.sep).join('/'))
    .filter((name) => name.endsWith('.js') && !LINKED.includes(name))
  return new Map(names.sort().map(name => {
    const source = fs.readFileSync(path.join(LIB, name), 'utf8')
    if (source.includes('requireFile')) throw new Error(`lib/${name} uses a name that the bundle needs: requireFile`)
    // The bundle's header says this.
    const transformed = transformSync(source, { target: targetOf(name), sourcefile: name }).code
    const code = transformed.replace(/^"use strict";\n/, '').replace(/^ *\/\/ \u2014.*\n/gm, '')
    // Scripts are read as Latin-1. In another encoding, V8 would take twice as much memory for them.
    if (/[^\0-\x7f]/.test(code)) throw new Error(`lib/${name} has characters that are not ASCII in its code`)
    return [name, { code, requires: Array.from(code.matchAll(TOP_LEVEL), ([, request]) => resolve(name, request)) }]
  }))
}

/** Returns the oldest Node that runs a file. */
const targetOf = name => name.startsWith('processes/') ? 'node16' : 'node10'

/** Returns the name of the file that another one requires. */
function resolve (from, request) {
  const target = path.posix.join(path.posix.dirname(from), request)
  return fs.existsSync(path.join(LIB, `${target}.js`)) ? `${target}.js` : `${target}/index.js`
}

/** Returns these files and their requirements at the top level. */
function closure (files, names, found = new Set()) {
  for (const name of names) {
    if (found.has(name) || LINKED.includes(name)) continue
    found.add(name)
    closure(files, files.get(name).requires, found)
  }
  return found
}

function divide (files) {
  const partOf = new Map()
  for (const { name, modules = [...files.keys()].filter(file => !BY_PATH.includes(file)) } of PARTS) {
    const own = [...closure(files, modules)].filter(file => !partOf.has(file))
    // Otherwise an old Node would load the syntax of a newer one.
    if (new Set(own.map(targetOf)).size > 1) throw new Error(`${name} has files for different versions of Node`)
    for (const file of own) partOf.set(file, name)
  }
  return partOf
}

/** Returns the code of a file, which requires others from the linker. */
function link (files, partOf, name) {
  return files.get(name).code.replace(REQUIRE, (_, request) => {
    const wanted = resolve(name, request)
    const part = partOf.get(wanted)
    return `requireFile("${wanted}"${part === undefined || part === partOf.get(name) ? '' : `, "${part}"`})`
  })
}

/** Returns the files of a part. V8 compiles a function in parentheses at once. */
function definitionsOf ({ name: part, all }, files, partOf) {
  const definitions = [...partOf.keys()].filter(file => partOf.get(file) === part).map(file => {
    const fn = `function (module, exports, __dirname) {\n${link(files, partOf, file)}}`
    return `\n// lib/${file}\nfiles['${file}'] = ${all ? `(${fn})` : fn}\n`
  })
  return definitions.join('')
}

/** Writes the published files of `lib/` into a folder that it makes. */
function bundle (folder) {
  const files = readFiles()
  const partOf = divide(files)
  const [first, ...others] = PARTS.map(part => [part.name, definitionsOf(part, files, partOf)])
  const texts = Object.fromEntries(others.map(([name, definitions]) => (
    [name, `${HEADER}\nmodule.exports = (function (files, requireFile) {${definitions}})\n`])))
  const version = createHash('sha256').update(JSON.stringify(texts)).digest('base64')
  texts['entry-point.js'] = [
    HEADER,
    'const files = {}',
    first[1],
    `const VERSION = '${version}'`,
    LINKER,
    'module.exports = requireFile(\'create-entry.js\', \'main.js\')\n'
  ].join('\n')
  texts['traced.js'] = `${HEADER}${TRACED}`
  // An ES module stays one.
  texts['lazy-exports.mjs'] = fs.readFileSync(path.join(LIB, 'lazy-exports.mjs'), 'utf8')
  for (const name of BY_PATH) texts[name] = `${HEADER}${files.get(name).code}`
  for (const [name, text] of Object.entries(texts)) {
    const file = path.join(folder, name)
    fs.mkdirSync(path.dirname(file), { recursive: true })
    fs.writeFileSync(file, text)
  }
}

module.exports = { PARTS, bundle }
