'use strict'

// Tests the types: every __test__/types file is compiled by several TypeScript versions, with the oldest library that
// the package supports, the newest, and those between in which something changed.
//
//   node scripts/types.js [--only TEXT] [--few]
//
// `--only`: the programs in whose names, as they are printed, TEXT is; `--few`: only by the oldest TypeScript and the
// newest, with the oldest library and the newest, as `npm test` does.
//
// Code of a file must be accepted, but for that behind `@ts-expect-error`, which
// itself is an error where nothing is rejected. Its second line may have its needs:
//   // needs: typescript >= 5.2, lib >= esnext     only there
//   // needs: lib dom                              with this library added, and only there
//   // needs: modules                              as Node's ES and CommonJS modules, and only there
//   // needs: alone                                in a program of its own
//
// The files of __test__/types/users, one for each class, are as an ordinary user writes them, and compiled with an
// ordinary user's settings. The examples are compiled, too, as modules of Node: those in TypeScript strictly, those in
// JavaScript as an editor checks them. They have the packages of their lock files.
//
// The files are compiled in a folder that has the package in its node_modules, as a user has it.

const assert = require('assert')
const fs = require('fs')
const os = require('os')
const path = require('path')
const { argumentsOf, command } = require('./lib/arguments')
const { succeed } = require('./lib/child')
const { inParallel } = require('./lib/in-parallel')
const { LOCKED, installed } = require('./lib/npm')
const { Results } = require('./lib/results')
const { withScratch } = require('./lib/scratch')
const { compareVersions } = require('./lib/versions')
const manifest = require('../package.json')

const root = path.join(__dirname, '..')
const folder = path.join(root, '__test__', 'types')
const EXAMPLES = path.join(root, 'examples')

/** In order, with the first TypeScript that has them. `dom` and `node` are added to the newest. */
const LIBS = [
  ['es2017', '4.1'], ['es2019', '4.1'], ['es2020', '4.1'], ['es2022', '4.6'], ['es2024', '5.7'], ['esnext', '4.1']
]
const ORDER = LIBS.map(([name]) => name)
/** The first TypeScript that knows Node's modules, its types that are installed, and arrays on shared memory. */
const SINCE = { modules: '4.7', nodeTypes: '5.6', sharedArrays: '5.9' }

/** Returns `typescript` and every `typescript-…` among the development dependencies. */
function compilers () {
  return Object.keys(manifest.devDependencies).filter(name => /^typescript(-|$)/.test(name)).map(name => {
    const home = path.join(root, 'node_modules', name)
    return { tsc: path.join(home, 'bin', 'tsc'), version: require(path.join(home, 'package.json')).version }
  }).sort((one, other) => compareVersions(one.version, other.version))
}

const atLeast = ({ version }, limit) => compareVersions(version, limit) >= 0

/** The needs of files: a program has one of the last three at most, and only the files that ask for it. */
const NEED = new RegExp(
  `^alone$|^typescript >= \\d+\\.\\d+$|^lib (>=|<) (${ORDER.join('|')})$|^lib dom$|^lib node$|^modules$`
)

/** Returns the files of __test__/types and their needs. */
function fixtures () {
  return fs.readdirSync(folder).filter(name => /\.[mc]?ts$/.test(name)).map(name => {
    const [, line] = /^\/\/ needs: (.*)$/m.exec(fs.readFileSync(path.join(folder, name), 'utf8')) || []
    const needs = line === undefined ? [] : line.split(', ')
    for (const need of needs) if (!NEED.test(need)) throw new Error(`${name}: what is "${need}"?`)
    return { name, needs, alone: needs.includes('alone') }
  })
}

/** Returns the files that fit a program with this library and `more`. */
function fitting (all, compiler, lib, more) {
  const isMet = need => {
    const [what, operator, value] = need.split(' ')
    if (value === undefined) return need === more || need === 'alone'
    if (what === 'typescript') return atLeast(compiler, value)
    return (ORDER.indexOf(lib) >= ORDER.indexOf(value)) === (operator === '>=')
  }
  return all.filter(({ needs }) => (more === undefined || needs.includes(more)) && needs.every(isMet))
}

/** Groups the files of a compiler into programs, each with its settings. `isChosen`: filters the libraries. */
function programs (compiler, all, isChosen) {
  const newest = { lib: ['esnext'], target: 'esnext' }
  const withNode = { types: ['node'], typeRoots: [path.join(root, 'node_modules', '@types')] }
  const ofNode = { module: 'nodenext', moduleResolution: 'nodenext' }
  const ofExamples = { allowImportingTsExtensions: true, noUncheckedIndexedAccess: false }
  const ofJavaScript = {
    allowJs: true,
    checkJs: true,
    strict: false,
    noUncheckedIndexedAccess: false,
    exactOptionalPropertyTypes: false,
    skipLibCheck: true
  }
  const isModern = atLeast(compiler, SINCE.nodeTypes)
  const ofUsers = {
    lib: ['es2020', 'dom'],
    target: 'es2020',
    noUncheckedIndexedAccess: false,
    noUnusedLocals: true,
    noUnusedParameters: true,
    ...(atLeast(compiler, '4.4') && { exactOptionalPropertyTypes: false }),
    ...(isModern && withNode)
  }
  const special = more => fitting(all, compiler, 'esnext', more)
  const rows = [
    ...LIBS.filter(isChosen).flatMap(([lib, since]) => withLibrary(lib, since, fitting(all, compiler, lib))),
    ['esnext and dom', special('lib dom'), { ...newest, lib: ['esnext', 'dom'] }],
    ['esnext and @types/node', special('lib node'), { ...newest, ...withNode }, SINCE.nodeTypes],
    ...[true, false].map(skipLibCheck =>
      [`users, skipLibCheck ${skipLibCheck}`, users(isModern), { ...ofUsers, skipLibCheck }]),
    ['the examples', examples('.mts'), { ...newest, ...ofNode, ...withNode, ...ofExamples }, SINCE.sharedArrays],
    [
      'the examples in JavaScript',
      examples('.mjs'),
      { ...newest, ...ofNode, ...withNode, ...ofJavaScript, lib: ['esnext', 'dom'] },
      SINCE.sharedArrays
    ],
    ['modules of Node', special('modules'), { ...newest, ...ofNode }, SINCE.modules]
  ]
  return rows
    .filter(([, files, , since = '0']) => files.length > 0 && atLeast(compiler, since))
    .map(([label, files, options]) => ({ compiler, label: `TypeScript ${compiler.version}, ${label}`, files, options }))
}

/**
 * Returns those with a library. A file that only asks for one of its own is tested with two, which are as good as all.
 */
function withLibrary (lib, since, fits) {
  const options = { lib: [lib], target: lib }
  const lonely = fits.filter(({ alone }) => alone && [ORDER[0], 'esnext'].includes(lib))
  return [
    [lib, fits.filter(({ alone }) => !alone), options, since],
    ...lonely.map(file => [`${lib}, ${file.name} alone`, [file], options, since])
  ]
}

/** Returns the files of users; without `hasNode`, with a declaration in place of Node's types. */
const users = hasNode => fs
  .readdirSync(path.join(folder, 'users'))
  .filter(name => !hasNode || !name.endsWith('.d.ts'))
  .map(name => ({ name: `users/${name}` }))

const examples = ending =>
  fs
    .readdirSync(EXAMPLES, { recursive: true })
    .filter(name => name.endsWith(ending) && !name.includes('node_modules'))
    .map(name => ({ name: `examples/${name}` }))

async function compile ({ compiler, files, options }, scratch, number) {
  const project = path.join(scratch, `tsconfig.${number}.json`)
  const compilerOptions = {
    strict: true,
    noUncheckedIndexedAccess: true,
    noEmit: true,
    types: [],
    skipLibCheck: false,
    skipDefaultLibCheck: true,
    module: 'esnext',
    moduleResolution: atLeast(compiler, '5.0') ? 'bundler' : 'node',
    ...(atLeast(compiler, '4.4') && { exactOptionalPropertyTypes: true }),
    ...options
  }
  fs.writeFileSync(project, JSON.stringify({ compilerOptions, files: files.map(({ name }) => name) }))
  await succeed(process.execPath, [compiler.tsc, '-p', project, '--pretty', 'false'], { cwd: scratch, timeout: 300000 })
  return `${files.length} files`
}

/** Installs the package: its declarations and the files that lead to them. */
function installPackage (scratch) {
  const home = path.join(scratch, 'node_modules', 'atomics-waitasync')
  fs.mkdirSync(home, { recursive: true })
  const declarations = Object.values(manifest.exports).map(({ types }) => types).filter(Boolean)
  for (const name of declarations.concat('package.json'))
    fs.cpSync(path.join(root, name), path.join(home, name), { recursive: true })
  fs.cpSync(folder, scratch, { recursive: true })
  fs.cpSync(EXAMPLES, path.join(scratch, 'examples'), {
    recursive: true,
    filter: (file) => path.basename(file) !== 'node_modules'
  })
}

/** Installs what the examples with a lock file depend on. */
async function installDependencies (scratch) {
  for (const name of ['processes', 'opentelemetry']) {
    const home = await installed(name, path.join(EXAMPLES, name), LOCKED)
    fs.symlinkSync(path.join(home, 'node_modules'), path.join(scratch, 'examples', name, 'node_modules'), 'junction')
  }
}

/** Those of `/processes` are its own; all other entries have the same. */
function compareNames (entry) {
  const own = path.basename(path.dirname(entry)) === 'processes' ? 'processes' : 'pure'
  const text = fs.readFileSync(path.join(root, own, 'index.d.ts'), 'utf8')
  const declared = Array.from(text.matchAll(/^export (?:function|let|const|class) (\w+)/gm), match => match[1])
  assert.deepStrictEqual(Object.keys(require(path.join(root, entry))).sort(), [...new Set(declared)].sort())
}

async function main () {
  const { only, few } = argumentsOf(__filename, { only: { type: 'string', default: '' }, few: { type: 'boolean' } })
  const results = new Results()
  await withScratch(async scratch => {
    installPackage(scratch)
    await installDependencies(scratch)
    const all = fixtures()
    const isChosen = (_, n, { length }) => !few || n === 0 || n === length - 1
    const chosen = compilers()
      .filter(isChosen)
      .flatMap(compiler => programs(compiler, all, isChosen))
      .filter(({ label }) => label.includes(only))
    await inParallel(
      chosen.map((program, number) => () => results.of(program.label, () => compile(program, scratch, number))),
      Math.min(os.cpus().length, 8)
    )
  })
  for (const [entry, { default: file }] of only === '' ? Object.entries(manifest.exports) : []) {
    if (file !== undefined)
      await results.of(`the names that ${entry} exports are those that are declared`, () => compareNames(file))
  }
  results.close()
}

command(main)
