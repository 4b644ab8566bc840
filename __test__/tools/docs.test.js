'use strict'

// subjects: none
// timeout: 300

// The programs in docs/ run and print what they say, its links lead somewhere, and it has every error.

const assert = require('assert')
const fs = require('fs')
const path = require('path')
const { test } = require('../harness')
const { testCommands, testPrograms } = require('../fixtures/markdown-programs')

const folder = path.join(__dirname, '..', '..', 'docs')
const names = fs.readdirSync(folder).filter(name => name.endsWith('.md'))
const internals = fs.readdirSync(path.join(folder, 'internals')).map(name => `internals/${name}`)
const CLASSES = ['async-lock', 'barrier', 'condition', 'latch', 'queue', 'rw-lock', 'semaphore']
const GUIDES = ['guide-one-writer', 'guide-one-writer-database', 'guide-wasm-threads', 'guide-worker-pool']

const OTHERS = ['choosing', 'debugging', 'entry-points', 'errors', 'processes', 'recipes', 'repair', 'web-locks']
const WITHOUT_PROGRAMS = ['README', 'comparison', 'conformance', 'environments', 'fairness', 'guarantees', 'how-it-works', 'install-cost', 'platforms', 'profiling', 'testing']

const MAJOR = Number(process.versions.node.split('.')[0])

const textOf = (name) => fs.readFileSync(path.join(folder, name), 'utf8')

/** The links of a page into this repository: `{ file, anchor }`. */
function linksOf (name) {
  const links = textOf(name).replace(/^```[^]*?^```/gm, '').match(/\]\([^)\s]+\)/g) || []
  return links.map(link => link.slice(2, -1)).filter(target => !/^https?:/.test(target)).map(target => {
    const [file, anchor] = target.split('#')
    return { file: file === '' ? name : file, anchor }
  })
}

/** As GitHub names headings. */
const anchorsOf = (text) => (text.match(/^#+ .*$/gm) || []).map(line => {
  return line.replace(/^#+ /, '').toLowerCase().replace(/[^\w -]/g, '').replace(/ /g, '-')
})

test('each class has its page, and each page is one of those that are known', () => {
  assert.deepStrictEqual(names.sort(), [...CLASSES, ...GUIDES, ...OTHERS, ...WITHOUT_PROGRAMS].map(name => `${name}.md`).sort())
})

test('the indexes of docs/ and examples/ lead to every page and every example', () => {
  const targets = linksOf('README.md').map(({ file }) => file)
  assert.deepStrictEqual(names.filter(name => name !== 'README.md' && !targets.includes(name)), [])
  const examples = path.join(folder, '..', 'examples')
  const text = fs.readFileSync(path.join(examples, 'README.md'), 'utf8')
  const linked = Array.from(text.match(/\]\([\w-]+\/[\w.-]+\)/g), link => link.slice(2, -1))
  assert.deepStrictEqual(linked.filter(file => !fs.existsSync(path.join(examples, file))), [])
  assert.deepStrictEqual(linked.map(file => file.split('/')[0]).sort(), fs.readdirSync(examples).filter(name => name !== 'README.md').sort())
})

/** The text of every file below `folder` whose name ends with `extension`. */
function sourcesIn (folder, extension) {
  let text = ''
  for (const entry of fs.readdirSync(folder, { withFileTypes: true })) {
    const file = path.join(folder, entry.name)
    if (entry.isDirectory()) text += sourcesIn(file, extension)
    else if (entry.name.endsWith(extension)) text += fs.readFileSync(file, 'utf8')
  }
  return text
}

const CODES = /\b(?:ERR_[A-Z_]+|ABORT_ERR|ATOMICS_WAITASYNC_(?:PENDING|PROFILE|STALL|WORKER|CONTEXT|LOCKS))\b/

test('docs/errors.md has every code and every name that the package gives an error or a warning', () => {
  const text = textOf('errors.md')
  const root = path.join(folder, '..')
  const sources = sourcesIn(path.join(root, 'lib'), '.js') + sourcesIn(path.join(root, 'src'), '.rs')
  const found = new Set(sources.match(/(?<=['"])(?:ERR_[A-Z_]+|ABORT_ERR|ATOMICS_WAITASYNC_[A-Z]+|[A-Z]\w*Error)(?=['"])/g))
  for (const known of ['ERR_DEADLOCK', 'ATOMICS_WAITASYNC_WORKER', 'TimeoutError']) assert.ok(found.has(known), known)
  assert.deepStrictEqual(Array.from(found).filter(each => !text.includes(`\`${each}\``)), [])
})

test('a page that mentions the code of an error or a warning leads to docs/errors.md', () => {
  const mention = names.filter(name => name !== 'errors.md' && CODES.test(textOf(name)))
  assert.ok(mention.length > 5)
  assert.deepStrictEqual(mention.filter(name => !linksOf(name).some(({ file }) => file === 'errors.md')), [])
})

for (const name of CLASSES) {
  test(`docs/${name}.md says when to use it, what happens when a thread dies, and what it costs`, () => {
    const topics = [/^\*\*When to use it\.\*\*/m, /^\*\*When (a thread|the holder) dies\*\*/m, /^\*\*Cost\.\*\*/m]
    for (const topic of topics) assert.ok(topic.test(textOf(`${name}.md`)), String(topic))
  })
}

test('docs/processes.md has the programs and the figures of its example, and leads to all of them', { skip: MAJOR < 20 && 'the scripts need Node 20' }, () => {
  const { page, withEmbedded } = require('../../scripts/lib/embedded')
  const text = fs.readFileSync(page, 'utf8')
  assert.strictEqual(text, withEmbedded(text), 'npm run lint -- --fix')
  const example = path.join(folder, '..', 'examples', 'processes')
  const there = fs.readdirSync(example).filter(name => name.endsWith('.mts') && name !== 'index.mts')
  assert.deepStrictEqual(Array.from(text.match(/^\/\/ [\w-]+\.mts$/gm), line => line.slice(3)).sort(), there.sort())
})

test('the lines in the table of docs/profiling.md are those of its example that wait', () => {
  const rows = textOf('profiling.md').match(/^\| \d+ ms .*$/gm)
  const example = fs.readFileSync(path.join(folder, '..', 'examples', 'contention', 'worker.mjs'), 'utf8').split('\n')
  const places = rows.map(row => /worker\.mjs:(\d+)` \| (.*) \|$/.exec(row))
  assert.ok(places.length >= 3)
  for (const [row, line] of places) assert.ok(/lock|wait\(\)/.test(example[line - 1]), row)
})

test('links lead to files and headings that are there', () => {
  let count = 0
  for (const name of [...names, ...internals]) {
    for (const { file, anchor } of linksOf(name)) {
      const target = file === name ? path.join(folder, name) : path.join(folder, path.dirname(name), file)
      assert.ok(fs.existsSync(target), `${name}: ${file}`)
      if (anchor !== undefined) assert.ok(anchorsOf(fs.readFileSync(target, 'utf8')).includes(anchor), `${name}: ${file}#${anchor}`)
      count++
    }
  }
  assert.ok(count > 10, `only ${count}`)
})

test('links of what is published lead to what is published', () => {
  const root = path.join(folder, '..')
  const { files } = require('../../package.json')
  const published = ['README.md', 'LICENSE', ...files].map(name => path.join(root, name))
  const isLeft = target => files.some(name => name.startsWith('!') && target.startsWith(path.join(root, name.slice(1))))
  const pages = ['../README.md', '../CHANGELOG.md', '../RELIABILITY.md', '../examples/README.md', '../benchmark/RESULTS.md', ...names]
  const missing = []
  for (const page of pages) {
    for (const { file } of linksOf(page)) {
      const target = file === page ? path.join(folder, page) : path.join(folder, path.dirname(page), file)
      if (isLeft(target) || !published.some(each => target === each || target.startsWith(each + path.sep))) missing.push(`${page}: ${file}`)
    }
  }
  assert.deepStrictEqual(missing, [])
})

for (const name of names) testPrograms(test, `docs/${name}`, WITHOUT_PROGRAMS.includes(name.slice(0, -3)) ? 0 : 1)

testCommands(test, 'docs/debugging.md', { skip: process.platform === 'win32' ? 'it has no such signals' : MAJOR < 14 && 'stacks of promises are others' })
