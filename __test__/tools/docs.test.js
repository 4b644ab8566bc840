'use strict'
// timeout: 300

// The programs in docs/ run and print what they say, its links lead somewhere, and it has every error.

const assert = require('assert')
const fs = require('fs')
const path = require('path')
const { test } = require('../harness')
const { testCommands, testPrograms } = require('../fixtures/markdown-programs')

const root = path.join(__dirname, '..', '..')
const folder = path.join(root, 'docs')
const names = fs.readdirSync(folder).filter(name => name.endsWith('.md'))
const internals = fs.readdirSync(path.join(folder, 'internals')).map(name => `internals/${name}`)
const CLASSES = ['async-lock', 'barrier', 'condition', 'latch', 'queue', 'rw-lock', 'semaphore']
const OTHERS = ['choosing', 'debugging', 'entry-points', 'errors', 'processes', 'repair', 'web-locks']
const WITHOUT_PROGRAMS = ['README', 'comparison', 'conformance', 'environments', 'guarantees', 'guides', 'platforms', 'profiling', 'recipes', 'testing']

const MAJOR = Number(process.versions.node.split('.')[0])

// The pages and the sources are the same for every Node.
const ONCE = { skip: MAJOR < 20 && 'Node 20 and later do it' }

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
  assert.deepStrictEqual(names.sort(), [...CLASSES, ...OTHERS, ...WITHOUT_PROGRAMS].map(name => `${name}.md`).sort())
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

/** The files below a folder; none, if it is not there. */
function filesIn (folder) {
  if (!fs.existsSync(folder)) return []
  return fs.readdirSync(folder, { withFileTypes: true }).reduce((files, entry) => {
    const file = path.join(folder, entry.name)
    return files.concat(entry.isDirectory() ? filesIn(file) : file)
  }, [])
}

/** The text of every file below `folder` whose name ends with `extension`. */
const sourcesIn = (folder, extension) => filesIn(folder).filter(name => name.endsWith(extension)).map(name => fs.readFileSync(name, 'utf8')).join('')

const CODES = /\b(?:ERR_[A-Z_]+|ABORT_ERR|ATOMICS_WAITASYNC_(?:PENDING|PROFILE|STALL|WORKER|CONTEXT|LOCKS))\b/

test('docs/errors.md has every code and every name that the package gives an error or a warning', () => {
  const text = textOf('errors.md')
  const sources = sourcesIn(path.join(root, 'lib'), '.js') + ['src', 'core/src'].map(name => sourcesIn(path.join(root, name), '.rs')).join('')
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

test('docs/processes.md has programs and the figures of its example, and leads to the others', { skip: MAJOR < 20 && 'the scripts need Node 20' }, () => {
  const { page, withEmbedded } = require('../../scripts/lib/embedded')
  const text = fs.readFileSync(page, 'utf8')
  assert.strictEqual(text, withEmbedded(text), 'npm run lint -- --fix')
  const embedded = Array.from(text.matchAll(/^\/\/ ([\w-]+\.mts)$/gm), ([, name]) => name)
  assert.deepStrictEqual(embedded, ['fencing.mts', 'sqlite.mts'])
  const rest = fs.readdirSync(path.join(folder, '..', 'examples', 'processes')).filter(name => name.endsWith('.mts') && !['index.mts', ...embedded].includes(name))
  assert.deepStrictEqual(rest.filter(name => !text.includes(`](../examples/processes/${name})`)), [])
})

test('what guides and recipes show of an example is in its file', ONCE, () => {
  const shown = Array.from((textOf('guides.md') + textOf('recipes.md')).matchAll(/^```javascript\n\/\/ (examples\/.*)\n([^]*?)^```$/gm))
  assert.ok(shown.length >= 10)
  for (const [, file, part] of shown) assert.ok(fs.readFileSync(path.join(folder, '..', file), 'utf8').includes(part), `${file}: ${part}`)
})

/** The value of a constant in the one file of this name in lib/ or in Rust; of a duration, its milliseconds. */
function constantOf (file, name) {
  const [at, ...others] = ['lib', 'src', 'core/src'].flatMap(folder => filesIn(path.join(root, folder))).filter(each => each.endsWith(`${path.sep}${file}`))
  assert.ok(at !== undefined && others.length === 0, file)
  const found = new RegExp(`const ${name}\\b[^=]*= (?:Duration::from_(\\w+)\\()?(0x[\\da-f]+|[\\d._]+)`).exec(fs.readFileSync(at, 'utf8'))
  assert.ok(found, `${file}: ${name}`)
  const [, unit, number] = found
  return Number(number.replace(/_/g, '')) * { undefined: 1, micros: 0.001, millis: 1, secs: 1000 }[unit]
}

/** Constants that users are told of: on which page, in which words, and where they are. */
const CONSTANTS = [
  ['guarantees', /overtaken for ([\d.]+) ms/, () => constantOf('fairness.rs', 'FAIRNESS')],
  ['guarantees', /After (\d+) such hand-overs/, () => constantOf('pace.rs', 'MOST')],
  ['guarantees', /such hand-overs, or (\d+) ms/, () => constantOf('pace.rs', 'LONGEST')],
  ['guarantees', /wakes at most\s+(\d+) ms late/, () => constantOf('looks.rs', 'SHORTEST')],
  ['guarantees', /never more than (\d+) s\b/, () => constantOf('looks.rs', 'LONGEST') / 1000],
  ['guarantees', /up to (\d+) ms\s+if that was while it was blocked/, () => constantOf('blocking.rs', 'SIGNALLED_SLICE_MILLISECONDS')],
  ['guarantees', /at most (\d+) s\b/, () => constantOf('blocking.rs', 'WATCHED_SLICE_MILLISECONDS') / 1000],
  ['guarantees', /where (\d+) KB of the stack are left/, () => constantOf(path.join('agent', 'agent.js'), 'ENOUGH') + constantOf(path.join('agent', 'agent.js'), 'SPARE')],
  ['guarantees', /the last ([\d ]+) with a death/, () => constantOf('memories.rs', 'MOST_LEFT')],
  ['guarantees', /the last ([\d ]+) deaths of names/, () => constantOf('name_table.rs', 'MOST_LEFT')],
  ['guarantees', /each of the first (\d+) locks/, () => constantOf(path.join('agent', 'runs-dry.js'), 'MOST_WARNINGS')],
  ['choosing', /a string of 1 to (\d+) characters/, () => constantOf('view.js', 'LONGEST_NAME')],
  ['barrier', /1 to ([\d ]+)$/m, () => constantOf('barrier.js', 'MOST_PARTIES')],
  ['latch', /0 to ([\d ]+)$/m, () => constantOf('request.js', 'MOST')],
  ['semaphore', /an integer from 1 to ([\d ]+),/, () => constantOf('request.js', 'MOST')],
  ['guarantees', /where (\d+) KB are\b/, () => Number(/assertKilobytes\((\d+)\)/.exec(fs.readFileSync(path.join(root, 'lib', 'util', 'stack.js'), 'utf8'))[1])],
  ['errors', /each of the first (\d+)\s+locks/, () => constantOf(path.join('agent', 'runs-dry.js'), 'MOST_WARNINGS')],
  ['environments', /A blocked thread wakes every (\d+) ms/, () => constantOf('blocking.rs', 'SLICE_MILLISECONDS')],
  ['environments', /within (\d+) ms: Deno/, () => constantOf(path.join('agent', 'agent.js'), 'DENO_TURN')],
  ['platforms', /Each blocked thread wakes every\s+(\d+) ms/, () => constantOf('blocking.rs', 'SLICE_MILLISECONDS')],
  ['profiling', /every (\d+) seconds/, () => constantOf('profile.rs', 'PERIOD') / 1000],
  ['profiling', /Of a stack, (\d+) frames/, () => constantOf('call-stacks.js', 'FRAMES')],
  ['profiling', /when\s+([\d ]+) were known/, () => constantOf('stacks.rs', 'MOST')],
  ['profiling', /when a stack had (\d+)/, () => constantOf('profile.rs', 'MOST_LEAVES')],
  ['debugging', /The process keeps ([\d ]+) different stacks/, () => constantOf('stacks.rs', 'MOST')],
  ['debugging', /at most\s+(\d+) rings/, () => constantOf('task_rings.rs', 'MOST')],
  ['debugging', /its holders \((\d+) of them/, () => constantOf('reports.rs', 'MOST_HOLDERS')],
  ['debugging', /on no ring, (\d+) are reported/, () => constantOf('reports.rs', 'MOST')],
  ['debugging', /up to ([\d.]+) s after the time has come/, () => constantOf('blocking.rs', 'SIGNALLED_SLICE_MILLISECONDS') / 1000],
  ['debugging', /not more often than every (\d+) ms/, () => constantOf('taken.js', 'PERIOD')],
  ['debugging', /up to (\d+) such messages/, () => constantOf('reports.rs', 'MOST_FOR_MAIN')]
]

test('the constants that docs/ has are those of the code', ONCE, () => {
  for (const [page, pattern, valueOf] of CONSTANTS) {
    const found = pattern.exec(textOf(`${page}.md`))
    assert.ok(found, `${page}: ${pattern}`)
    assert.strictEqual(Number(found[1].replace(/ /g, '')), valueOf(), `${page}: ${pattern}`)
  }
})

test('the limit of fairness is on one page', ONCE, () => {
  const limit = `${constantOf('fairness.rs', 'FAIRNESS')} ms`
  const pages = [...names, ...internals, '../README.md', '../RELIABILITY.md', '../CONTRIBUTING.md'].filter(name => textOf(name).replace(/parking_lot[^]*/, '').includes(`for ${limit}`))
  assert.deepStrictEqual(pages, ['guarantees.md'])
})

/** Words that are not ours, each with ours. */
const WORDS = [
  [/\btime-outs?\b/i, 'timeout'],
  [/\bto and fro\b/, 'back and forth'],
  [/\bexclude each other\b/, 'cannot be combined'],
  [/\b(?:break|breaks|broke|broken) (?:it |them |a \w+ )?off\b/, 'interrupt'],
  [/\blikewise\b/i, 'also, or the sentence again'],
  [/\b(?:of|for|from|by|with|and|gives|has|does) what (?:it|they|is|was|were|has|had|waits|the|a|an|this|you)\b/, 'a noun']
]

test('docs and the pages of the top level have the words of the field', ONCE, () => {
  const top = fs.readdirSync(root).filter(name => name.endsWith('.md')).map(name => `../${name}`)
  const found = []
  for (const name of [...names, 'internals/architecture.md', ...top]) {
    for (const [pattern, ours] of WORDS) {
      const match = pattern.exec(textOf(name).replace(/^```[^]*?^```/gm, ''))
      if (match !== null) found.push(`${name}: ${match[0]} → ${ours}`)
    }
  }
  assert.deepStrictEqual(found, [])
})

test('the files that CONTRIBUTING.md names are there', ONCE, () => {
  const named = Array.from(textOf('../CONTRIBUTING.md').matchAll(/`((?:[\w.-]+\/)+[\w.-]*)`/g), ([, name]) => name).filter(name => name !== 'dist/')
  assert.ok(named.length > 20)
  assert.deepStrictEqual(named.filter(name => !fs.existsSync(path.join(root, name))), [])
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
  const { files } = require('../../package.json')
  const published = ['README.md', 'LICENSE', ...files].map(name => path.join(root, name))
  const isLeft = target => files.some(name => name.startsWith('!') && target.startsWith(path.join(root, name.slice(1))))
  const pages = ['../README.md', '../CHANGELOG.md', '../RELIABILITY.md', '../examples/README.md', ...names]
  const missing = []
  for (const page of pages) {
    for (const { file } of linksOf(page)) {
      const target = file === page ? path.join(folder, page) : path.join(folder, path.dirname(page), file)
      if (isLeft(target) || !published.some(each => target === each || target.startsWith(each + path.sep))) missing.push(`${page}: ${file}`)
    }
  }
  assert.deepStrictEqual(missing, [])
})

// The programs of docs/processes.md are those of an example, which examples.test.js runs.
for (const name of names.filter(name => name !== 'processes.md')) testPrograms(test, `docs/${name}`, WITHOUT_PROGRAMS.includes(name.slice(0, -3)) ? 0 : 1)

testCommands(test, 'docs/debugging.md', { skip: process.platform === 'win32' ? 'it has no such signals' : MAJOR < 14 && 'stacks of promises are others' })
