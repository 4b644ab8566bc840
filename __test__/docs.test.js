'use strict'

// subjects: none
// timeout: 300

// The programs in docs/ run and print what they say, and its links lead somewhere.

const assert = require('assert')
const fs = require('fs')
const path = require('path')
const { test } = require('./harness')
const { runProgram, testPrograms } = require('./fixtures/markdown-programs')

const folder = path.join(__dirname, '..', 'docs')
const names = fs.readdirSync(folder).filter(name => name.endsWith('.md'))
const CLASSES = ['async-lock', 'barrier', 'condition', 'latch', 'rw-lock', 'semaphore']
const GUIDES = ['guide-one-writer', 'guide-one-writer-database', 'guide-wasm-threads', 'guide-worker-pool']

const OTHERS = ['choosing', 'debugging', 'entry-points', 'recipes', 'web-locks']
const WITHOUT_PROGRAMS = ['README', 'comparison', 'conformance', 'environments', 'fairness', 'guarantees', 'how-it-works', 'install-cost', 'platforms', 'testing']

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

for (const name of CLASSES) {
  test(`docs/${name}.md says when to use it, what happens when a thread dies, and what it costs`, () => {
    const topics = [/^\*\*When to use it\.\*\*/m, /^\*\*When (a thread|the holder) dies\*\*/m, /^\*\*Cost\.\*\*/m]
    for (const topic of topics) assert.ok(topic.test(textOf(`${name}.md`)), String(topic))
  })
}

test('links lead to files and headings that are there', () => {
  let count = 0
  for (const name of names) {
    for (const { file, anchor } of linksOf(name)) {
      const target = path.join(folder, file)
      assert.ok(fs.existsSync(target), `${name}: ${file}`)
      if (anchor !== undefined) assert.ok(anchorsOf(fs.readFileSync(target, 'utf8')).includes(anchor), `${name}: ${file}#${anchor}`)
      count++
    }
  }
  assert.ok(count > 10, `only ${count}`)
})

for (const name of names) testPrograms(test, `docs/${name}`, WITHOUT_PROGRAMS.includes(name.slice(0, -3)) ? 0 : 1)

const WASM_GUIDE = 'docs/guide-wasm-threads.md'
for (const entry of ['/force', '/keep-alive']) {
  runProgram(test, WASM_GUIDE, 1, `with atomics-waitasync${entry}`, code => code.replace('atomics-waitasync/pure', `atomics-waitasync${entry}`), 'the sum: 4500001500000n\n')
  const global = code => code.replace(/const (.*) = require\('atomics-waitasync\/pure'\)/, `require('atomics-waitasync${entry}'); const $1 = Atomics`)
  runProgram(test, WASM_GUIDE, 1, `with the global functions after atomics-waitasync${entry} ends early, as the page says`, global, '')
}
runProgram(test, WASM_GUIDE, 1, 'with the plain entry ends early, as the page says', code => code.replace('atomics-waitasync/pure', 'atomics-waitasync'), '')
