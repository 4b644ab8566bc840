'use strict'
// nodes: running (the source is the same for every Node)

// The source: imports go one way, files are short, comments say at once what they are about, and lists of platforms and
// mutations are as they must be.

const assert = require('assert')
const path = require('path')
const { test } = require('../harness')
const { assertNone, found, list, textOf } = require('../fixtures/source-texts')
const budget = require('../../scripts/lib/budget')
const { targets } = require('../../scripts/lib/targets')

const MOST_LINES = 400
const MOST_WORDS = 12

/**
 * The layers of lib/, the lowest first. A file requires files of its own layer and of lower ones; those on a line know
 * nothing of each other.
 */
const LAYERS = [
  ['util'],
  ['agent'],
  ['waiting'],
  ['holding'],
  ['view.js'],
  ['atomics', 'locks', 'named', 'queue'],
  ['observe'],
  ['lazy.js'],
  ['install', 'processes'],
  ['create-entry.js'],
  ['entry-point.js'],
  ['lazy-exports.mjs']
]

/** Returns the texts of a folder's files, by their names in it. */
const textsOf = (folder, end) =>
  new Map(list(folder, end).map(name => [path.posix.relative(folder, name), textOf(name)]))

const lib = textsOf('lib', /\.js$/)
const core = textsOf('core/src', /\.rs$/)

/** The doc comments of JavaScript; those of files, functions and types of Rust. */
const IN_JAVASCRIPT = /\/\*\*([^]*?)\*\//g
const IN_RUST = /^((?: *\/\/!.*\n)+|(?: *\/\/\/.*\n)+(?=(?: *#.*\n)* *(?:[\w()"]+ )*(?:fn|struct|enum|trait|type) ))/gm
const HEADS = { lib: /^'use strict'\n\n\/\*\* ?(\n \* )?\S/, rust: /^\/\/! \S/ }

for (const [folder, texts, docs, head] of [
  ['lib', lib, IN_JAVASCRIPT, HEADS.lib],
  ['src', textsOf('src', /\.rs$/), IN_RUST, HEADS.rust],
  ['core/src', core, IN_RUST, HEADS.rust]
]) {
  test(`${folder}/: files have a head and at most ${MOST_LINES} lines; first sentences, ${MOST_WORDS} words`, () => {
    assertNone([...texts.keys()], name => !head.test(texts.get(name)))
    assertNone([...texts.keys()], name => texts.get(name).split('\n').length - 1 > MOST_LINES)
    const comments = [...texts.values()].flatMap(text => found(text, docs))
    assert.ok(comments.length > 3 * texts.size)
    const plain = comments.map(comment => comment.replace(/^ *(?:\*|\/\/[/!]) ?/gm, '').trim())
    const sentences = plain.map(text => /^(?![@#])[^]*?(?=[.:;]\s|$)|$/.exec(text)[0])
    assertNone(sentences, sentence => sentence.split(/\s+/).length > MOST_WORDS)
  })
}

/** The requests of each file of lib/, wherever in it. */
const required = new Map()
for (const [name, text] of textsOf('lib', /\.m?js$/)) {
  const requests = [...found(text, /\brequire\('(\.[^']+)'\)/g), ...found(text, /\b(?:from|import) '(\.[^']+)'/g)]
  const fileOf = target => [target, `${target}.js`, `${target}/index.js`].find(file => lib.has(file))
  required.set(name, requests.map(request => path.posix.join(name, '..', request)).map(fileOf))
}

test('no files of lib/ require each other, and a layer requires lower layers only', () => {
  const reached = (name, seen = new Set()) => {
    for (const next of required.get(name)) if (!seen.has(next)) reached(next, seen.add(next))
    return seen
  }
  assertNone([...required.keys()], name => reached(name).has(name))
  const longestFirst = LAYERS.flat().sort().reverse()
  const layerOf = name => longestFirst.find(layer => `${name}/`.startsWith(`${layer}/`))
  const rank = name => LAYERS.findIndex(layers => layers.includes(layerOf(name)))
  assertNone([...required.keys()], name => rank(name) < 0)
  const pairs = [...required].flatMap(([name, targets]) => targets.map(target => [name, target]))
  // No file requires what is not in lib/.
  assertNone(pairs, ([, target]) => target === undefined)
  assertNone(pairs, ([name, target]) => layerOf(name) !== layerOf(target) && rank(target) >= rank(name))
})

test('one request means one file of lib/, in whichever order a resolver tries endings and folders', () => {
  const stems = list('lib').map(name => name.replace(/\.\w+$/, ''))
  const folders = list('lib', /^[^.]+$/)
  assert.ok(folders.includes('lib/holding'))
  assert.deepStrictEqual([...stems, ...folders], [...new Set([...stems, ...folders])])
})

/**
 * The paths of this crate that a file of Rust uses, whole: `use a::{b, c};` is two. A file's folder is told by `super`.
 */
const used = (name, text) => {
  const code = text.replace(/^ *\/\/.*$/gm, '')
  const whole = tree => {
    const [, before, within] = /^([^{]*)\{([^]*)\}$/.exec(tree) || []
    if (within === undefined) return [tree]
    const parts = within.match(/(?:[^{},]|\{[^]*?\})+/g).map(part => part.trim())
    return parts.filter(Boolean).flatMap(part => whole(before + part))
  }
  const above = name.split('/').slice(0, -1).join('::')
  const trees = found(code, /\b((?:crate|super)::(?:[\w:]|\{[^;]*\})+)/g)
  return trees.flatMap(tree => whole(tree.replace(/^super::/, `crate::${above}::`))).map(each => each.slice(7))
}

/** Who uses whom, of files or of folders: `part` makes the one or the other of a path. */
const arrows = (texts, part) => {
  const all = new Map([...texts.keys()].map(name => [part(name.replace(/(?:\/mod)?\.rs$/, '').split('/')), new Set()]))
  for (const [name, text] of texts) {
    const own = part(name.replace(/(?:\/mod)?\.rs$/, '').split('/'))
    for (const each of used(name, text)) {
      const target = part(each.split('::'))
      if (target !== own && all.has(target)) all.get(own).add(target)
    }
  }
  return all
}

/** Finds a circle, as the names on it; undefined: there is none. */
const circle = arrows => {
  const done = new Set()
  const visit = (name, path) => {
    if (path.includes(name)) return [...path.slice(path.indexOf(name)), name]
    if (done.has(name)) return undefined
    for (const next of arrows.get(name)) {
      const found = visit(next, [...path, name])
      if (found !== undefined) return found
    }
    done.add(name)
    return undefined
  }
  for (const name of arrows.keys()) {
    const found = visit(name, [])
    if (found !== undefined) return found.join(' → ')
  }
  return undefined
}

for (const folder of ['src', 'core/src']) {
  test(`${folder}/: arrows go one way, between folders and between files`, () => {
    const texts = new Map([...textsOf(folder, /\.rs$/)].filter(([name]) => !/\b(?:lib|tests)\.rs$/.test(name)))
    const folders = arrows(texts, path => path[0])
    assert.ok([...folders.values()].some(targets => targets.size > 1))
    assert.strictEqual(circle(folders), undefined)
    // What a folder's head exports again counts as its head, which names all of its files.
    const files = new Map([...texts].filter(([name]) => !name.endsWith('/mod.rs')))
    assert.strictEqual(circle(arrows(files, path => path.slice(0, 2).join('/'))), undefined)
  })
}

test('a circle is named, also through a list in braces and by super', () => {
  const texts = new Map([
    ['a/one.rs', 'use crate::b::{self, two::{X, Y}};'],
    ['b/two.rs', 'fn f() { super::three::g() }'],
    ['b/three.rs', '// use crate::c::four\nuse crate::a::one::Z;']
  ])
  assert.strictEqual(circle(arrows(texts, path => path[0])), 'a → b → a')
  assert.strictEqual(circle(arrows(texts, path => path.slice(0, 2).join('/'))), 'a/one → b/two → b/three → a/one')
  texts.delete('b/three.rs')
  assert.strictEqual(circle(arrows(texts, path => path.slice(0, 2).join('/'))), undefined)
})

test('the queue knows no lock', () => {
  const queue = [...core.keys()].filter(name => name.startsWith('queue/'))
  const users = queue.flatMap(name => used(name, core.get(name)).map(path => path.split('::')[0]))
  assert.ok(users.length > 0)
  assertNone(users, name => !['clock', 'queue', 'sync'].includes(name))
})

test('a word and the robust list change together: no function is called between, where a thread may be ended', () => {
  const write = /words\[HELD\] = (?!=)/
  const memory = /(?:(?:word|thing|lease|putter)\.)?array|record/.source
  const change = new RegExp(`\\b(?:compareExchange|store|add|sub)\\((?:${memory})\\b[^)]*\\)|\\barray\\[0\\] =`)
  const files = ['holding/robust-list.js', 'holding/entries.js', 'holding/shared-word.js']
  assertNone([...lib.keys()], name => write.test(lib.get(name)) !== files.includes(name))
  const parts = files.flatMap(name => lib.get(name).split(write).slice(0, -1))
  assert.strictEqual(parts.length, 9)
  assertNone(parts, before => /\b(?!if\b|for\b)[\w.]+\(/.test(before.split(change).pop()))
})

test('lint finds an answer that is read late, and what leaves by no door', () => {
  const { Linter } = require('eslint')
  const own = require('../../scripts/lib/lint-rules')
  const rules = { 'own/answer-at-once': 'error', 'own/one-door': 'error' }
  const found = text => new Linter().verify(text, [{ plugins: { own }, rules }]).map(({ ruleId }) => ruleId)
  const late = 'own/answer-at-once'
  assert.deepStrictEqual(found('function f () { operations.claim(); tell(); return words[ANSWER] }'), [late])
  assert.deepStrictEqual(found('function f () { return agent().native.words[ANSWER] !== 0 }'), [late])
  assert.deepStrictEqual(found('const f = () => { operations.take(g()); return floats[ADDRESS] }'), [])
  assert.deepStrictEqual(found('const f = () => { operations.take(); return [words[ANSWER], words[AMOUNT]] }'), [])
  assert.deepStrictEqual(found('const f = () => { operations.take(); g(() => words[ANSWER]) }'), [late])
  assert.deepStrictEqual(found('words[ANSWER] = 1'), [])
  for (const tells of ['channel.publish(a)', 'nextTick(f)', 'process.emitWarning(text)', 'new AsyncResource(a)']) {
    assert.deepStrictEqual([found(tells), found(`door.note(() => { ${tells} })`)], [['own/one-door'], []])
  }
})

test('cargo deny and the workflow of a release know all platforms', () => {
  const named = (file, pattern) => found(textOf(file), pattern).sort()
  const workflow = '.github/workflows/release.yml'
  const built = Object.entries(targets).map(([name, { rust }]) => `${name}, rust: ${rust}`)
  assert.deepStrictEqual(named(workflow, /\btarget: ([\w-]+, rust: [\w-]+)/g), built.sort())
  assert.deepStrictEqual(named(workflow, /\btarget: ([\w-]+)(?:$|, os)/gm), Object.keys(targets).sort())
  const triples = Object.values(targets).map(({ rust }) => rust)
  assert.deepStrictEqual(named('deny.toml', /^ {4}"([\w-]+)",$/gm), triples.sort())
})

test('versions of Nodes are in one table: no script and no workflow names one that gets releases', () => {
  const { majors } = require('../../scripts/nodes')
  const named = name => /(?<![\d.])(?:2[2-9]|[3-9]\d)\.\d+\.\d+\b/.test(textOf(name))
  assert.ok(named('scripts/nodes.js'))
  const others = [...list('scripts', /\.js$/), ...list('.github', /\.yml$/)].filter(name => name !== 'scripts/nodes.js')
  assertNone(others, named)
  // What `npm run lint -- --fix` writes is there for each platform.
  const lists = found(textOf('.github/workflows/release.yml'), /\bnodes: '([\d, ]+)'/g)
  assert.strictEqual(lists.length, Object.keys(targets).length)
  assert.ok(lists.some(each => each === majors.join(',')))
})

test('each source file is in one wing, and a wing that has a line too many is named', () => {
  const wings = budget.wingsOf()
  assert.deepStrictEqual(
    wings.map(({ name }) => name), [
      'queue', 'locks', 'holding', 'processes', 'mapped', 'diagnostics', 'install', 'workshop'
    ])
  const files = ['benchmark', 'core/src', 'lib', 'scripts', 'src'].flatMap(folder => list(folder))
  assertNone(wings.flatMap(({ paths }) => paths), name => !files.some(file => `${file}/`.startsWith(`${name}/`)))
  assert.deepStrictEqual([...budget.sizes().keys()], wings)
  const [queue, locks] = [{ name: 'queue', paths: ['core'], most: 4 }, { name: 'locks', paths: ['core/lock'], most: 3 }]
  const lines = new Map([['core/queue.rs', 1], ['core/lock.rs', 3], ['core/lock/claim.rs', 3]])
  assert.strictEqual(budget.check(budget.sizes([queue, locks], lines)), 'queue 4 of 4, locks 3 of 3')
  lines.set('core/lock/claim.rs', 4)
  assert.throws(() => budget.check(budget.sizes([queue, locks], lines)), /: locks 4 of 3$/)
  lines.set('lib/one.js', 1)
  assert.throws(() => budget.sizes([queue, locks], lines), /^Error: lib\/one\.js is in no wing/)
})

test('the text of every mutation is in its file once', () => {
  const all = [...require('../mutants/javascript'), ...require('../mutants/rust')]
  assertNone(all, ({ file, find }) => textOf(file).split(find).length !== 2)
})

test('the tests of Rust that find mutations are there', () => {
  const FOLDERS = { addon: 'src', lib: 'core/src' }
  const filesOf = program => FOLDERS[program] ? list(FOLDERS[program], /\.rs$/) : [`core/tests/${program}.rs`]
  // A filter is a part of a test's path: its modules, and its name, which a macro may have.
  const has = (name, filter) => name.includes(filter) || textOf(name).includes(filter)
  const isThere = ([program, filter]) => filesOf(program).some(name => has(name, filter))
  const filters = require('../mutants/rust').flatMap(({ cargo }) => cargo === undefined ? [] : [cargo])
  assert.ok(filters.length > 50)
  assertNone(filters, filter => !isThere(filter))
})
