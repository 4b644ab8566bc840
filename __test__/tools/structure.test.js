'use strict'
// nodes: running (the source is the same for every Node)

// The source: no file of lib/, src/ or core/ is long, each says at its top what it is, imports go one way, and
// mutations find their texts.

const assert = require('assert')
const fs = require('fs')
const path = require('path')
const { test } = require('../harness')

const root = path.join(__dirname, '..', '..')
const MOST_LINES = 400

/**
 * The layers of lib/, the lowest first. A file requires files of its own layer and of lower ones; those on a line know
 * nothing of each other.
 */
const LAYERS = [
  ['util'],
  ['agent'],
  ['waiting'],
  ['host.js'],
  ['realm.js'],
  ['atomics', 'locks/hold/request.js', 'install/workers/by-message'],
  ['locks/hold/entry.js'],
  ['locks/observe'],
  ['locks/hold'],
  ['locks/observe/stalls.js', 'locks/view.js'],
  ['locks/hold/claim.js', 'locks/hold/repair.js'],
  ['locks/hold/acquire.js'],
  ['locks/hold/run.js', 'locks/hold/run-sync.js'],
  ['locks/named'],
  ['locks', 'install/workers', 'install/contexts.js'],
  ['install'],
  ['entry.js']
]

/** The files below a folder whose names end so, relative to it. */
const list = (folder, ext) => fs.readdirSync(path.join(root, folder), { recursive: true })
  .map(name => name.split(path.sep).join('/'))
  .filter(name => name.endsWith(ext))

const textOf = name => fs.readFileSync(path.join(root, name), 'utf8')

/** From the name of each of these files to its text. */
const read = (folder, ext) => new Map(list(folder, ext).map(name => [name, textOf(`${folder}/${name}`)]))

/** What the first group of a pattern finds in a text. */
const found = (text, pattern) => Array.from(text.matchAll(pattern), ([, group]) => group)

/** Fails with a cycle of a graph, given as a map from a name to a set of names. */
function assertNoCycle (graph) {
  const done = new Set()
  const visit = (name, way) => {
    if (way.includes(name)) assert.fail(`a cycle: ${[...way.slice(way.indexOf(name)), name].join(' → ')}`)
    if (done.has(name)) return
    for (const next of graph.get(name)) visit(next, [...way, name])
    done.add(name)
  }
  for (const name of graph.keys()) visit(name, [])
}

const lib = read('lib', '.js')
const src = read('src', '.rs')
const core = read('core/src', '.rs')

test(`no file of lib/, src/ and core/ has more than ${MOST_LINES} lines`, () => {
  const long = [...lib, ...src, ...core].filter(([, text]) => text.split('\n').length - 1 > MOST_LINES)
  assert.deepStrictEqual(long.map(([name]) => name), [])
})

test('every file of lib/ exports what others take from it', () => {
  const absent = []
  for (const [name, text] of lib) {
    for (const [, names, request] of text.matchAll(/^const \{([^}]+)\} = require\('(\.[^']+)'\)/gm)) {
      const exported = require(path.join(root, 'lib', path.dirname(name), request))
      for (const each of names.split(',').map(part => part.split(':')[0].trim())) {
        if (!(each in exported)) absent.push(`${name}: ${each} of ${request}`)
      }
    }
  }
  assert.deepStrictEqual(absent, [])
})

test('every file says at its top what it is', () => {
  const silent = (files, begin) => [...files].filter(([, text]) => !begin.test(text)).map(([name]) => name)
  assert.deepStrictEqual(silent(lib, /^'use strict'\n\n\/\*\* ?(\n \* )?\S/), [])
  assert.deepStrictEqual(silent([...src, ...core], /^\/\/! \S/), [])
})

// ——— lib/ ———

const MOST_WORDS = 12

/** The doc comments in JavaScript, and those of files, functions and types in Rust. */
const IN_JAVASCRIPT = /\/\*\*([^]*?)\*\//g
const ITEM = '(?:pub(?:\\(\\w+\\))? )?(?:(?:const|async|unsafe|extern "C") )*(?:fn|struct|enum|trait|type)\\b'
const IN_RUST = new RegExp(`^((?: *//!.*\\n)+|(?: *///.*\\n)+(?=(?: *#\\[.*\\n)* *${ITEM}))`, 'gm')

for (const [folder, files, docs] of [['lib', lib, IN_JAVASCRIPT], ['src', src, IN_RUST], ['core/src', core, IN_RUST]]) {
  test(`the first sentence of each doc comment of ${folder}/ has at most ${MOST_WORDS} words`, () => {
    const comments = [...files.values()].flatMap(text => found(text, docs))
      .map(comment => comment.replace(/^ *(?:\*|\/\/[/!]) ?/gm, '').trim())
      .filter(comment => !/^[@#]/.test(comment))
    assert.ok(comments.length > 3 * files.size)
    const sentences = comments.map(comment => /^[^]*?[.:;](?=\s|$)|^[^]*$/.exec(comment)[0].replace(/\s+/g, ' '))
    assert.deepStrictEqual(sentences.filter(each => each.split(' ').length > MOST_WORDS), [])
  })
}

/** The file of lib/ that another one requires. */
function targetOf (name, request) {
  const target = path.posix.join(path.posix.dirname(name), request)
  const file = [target, `${target}.js`, `${target}/index.js`].find(file => lib.has(file))
  return file || assert.fail(`${name} requires ${request}, which is not in lib/`)
}

/** What each file requires, wherever in the file. `es-modules.js` requires the entries, which stand above. */
const required = new Map()
for (const [name, text] of lib) {
  if (name === 'es-modules.js') continue
  required.set(name, new Set(found(text, /\brequire\('(\.[^']+)'\)/g).map(request => targetOf(name, request))))
}

test('no files of lib/ require each other', () => assertNoCycle(required))

test('a layer of lib/ requires lower layers only', () => {
  const layerOf = name => LAYERS.flat().filter(layer => `${name}/`.startsWith(`${layer}/`)).sort().pop()
  const rank = name => LAYERS.findIndex(layers => layers.includes(layerOf(name)))
  assert.deepStrictEqual([...lib.keys()].filter(name => name !== 'es-modules.js' && rank(name) < 0), [])
  const isUpwards = (name, target) => layerOf(name) !== layerOf(target) && rank(target) >= rank(name)
  const upwards = [...required].flatMap(([name, targets]) => (
    [...targets].filter(target => isUpwards(name, target)).map(target => `${name} → ${target}`)))
  assert.deepStrictEqual(upwards, [])
})

// ——— core/ ———

test('the queue knows no lock', () => {
  const uses = text => found(text, /^ *[^/\s].*\b(?:crate|super::super)::(\w+|\{)/gm)
  const beyond = [...core].filter(([name]) => name.startsWith('queue/')).flatMap(([, text]) => uses(text))
  assert.deepStrictEqual(beyond.filter(used => !['clock', 'queue', 'sync'].includes(used)), [])
})

test('the files that docs/internals/architecture.md and the heads of files name are there', () => {
  const all = ['lib', 'src', 'core'].flatMap(folder => list(folder, '').map(name => `${folder}/${name}`))
  const texts = [textOf('docs/internals/architecture.md'), ...lib.values(), ...src.values(), ...core.values()]
  const named = texts.flatMap(text => found(text, /`((?:[\w.-]+\/)*[\w.-]+\.(?:js|rs))`/g))
  const isThere = name => ['.', '__test__'].some(folder => fs.existsSync(path.join(root, folder, name)))
  assert.deepStrictEqual(named.filter(name => !isThere(name) && !all.some(file => file.endsWith(`/${name}`))), [])
})

test('docs/internals/map.md has the files of lib/ with the first sentences of their heads', () => {
  const { page, withMap } = require('../../scripts/lib/lib-map')
  const text = fs.readFileSync(page, 'utf8')
  assert.strictEqual(text, withMap(text))
})

test('Dependabot, cargo deny and the form for bugs know all lock files, platforms and entries', () => {
  /** The items of the list that a pattern finds in a file. */
  const items = (name, pattern) => found(pattern.exec(textOf(name))[1], /['" ]?([\w@./-]+)['"]?(?:,|$)/gm).sort()
  const folders = ['__test__', 'benchmark', 'examples', 'scripts']
  const lockFiles = folders.flatMap(folder => list(folder, 'package-lock.json').map(name => `${folder}/${name}`))
  const locked = ['package-lock.json', ...lockFiles.filter(name => !name.includes('node_modules'))]
    .map(name => path.posix.join('/', path.dirname(name)))
  const directories = items('.github/dependabot.yml', /directories: \[(.*)\]/)
  assert.deepStrictEqual(locked.filter(folder => !directories.includes(folder)), [])
  const targets = Object.values(require('../../scripts/lib/targets').targets).map(({ rust }) => rust)
  assert.deepStrictEqual(items('deny.toml', /^targets = \[([^]*?)\n?\]/m), targets.sort())
  const entries = Object.keys(require('../../package.json').exports).filter(name => !name.endsWith('.json'))
  const offered = entries.map(name => path.posix.join('atomics-waitasync', name))
  assert.deepStrictEqual(items('.github/ISSUE_TEMPLATE/bug.yml', /options: \[(atomics.*)\]/), offered.sort())
})

test('what pages give to `npm test -- --only` finds test files', () => {
  const names = require('../../scripts/lib/test-file').names()
  const pages = ['README.md', 'CONTRIBUTING.md', 'RELIABILITY.md', ...list('docs', '.md').map(name => `docs/${name}`)]
  const patterns = pages.flatMap(name => found(textOf(name), /npm test -- [^`]*--only '?([^'`\s]+)/g))
  assert.ok(patterns.length > 5)
  assert.deepStrictEqual(patterns.filter(pattern => !names.some(name => new RegExp(pattern).test(name))), [])
})

test('the text of every mutation is in its file once', () => {
  const all = [...require('../mutants/javascript'), ...require('../mutants/rust')]
  const lost = all.filter(({ file, find }) => textOf(file).split(find).length !== 2)
  assert.deepStrictEqual(lost.map(({ what }) => what), [])
})

test('a word and the robust list change together: no function is called between, where a thread may be ended', () => {
  const change = new RegExp(
    [
      /\b(?:compareExchange|store|add|sub)\((?:word|thing|lease)\.array\b[^)]*\)/,
      /\boperations\.take\(\)/,
      /word\.array\[0\] =/
    ]
      .map(({ source }) => source)
      .join('|')
  )
  const changes = [...lib].map(([name, text]) => [name, text.split(/words\[HELD\] = (?!=)/).slice(0, -1)])
  const parts = changes.filter(([, before]) => before.length > 0)
  assert.deepStrictEqual(parts.map(([name, { length }]) => [name, length]), [['locks/hold/robust-list.js', 4]])
  for (const before of parts[0][1]) {
    const between = before.split(change).pop()
    assert.deepStrictEqual(found(between, /\b([\w.]+)\(/g).filter(name => !['if', 'for'].includes(name)), [], between)
  }
})
