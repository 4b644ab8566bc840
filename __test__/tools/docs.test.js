'use strict'
// timeout: 300

// README.md and docs/: their programs run and print what they say, links lead somewhere, and what they say of the code
// is so.

const assert = require('assert')
const fs = require('fs')
const path = require('path')
const { test } = require('../harness')
const { testCommands, testPrograms } = require('../fixtures/markdown-programs')

const root = path.join(__dirname, '..', '..')
const folder = path.join(root, 'docs')
const names = fs.readdirSync(folder).filter(name => name.endsWith('.md'))
const internals = fs.readdirSync(path.join(folder, 'internals')).map(name => `internals/${name}`)
const top = fs.readdirSync(root).filter(name => name.endsWith('.md')).map(name => `../${name}`)
const CLASSES = ['async-lock', 'barrier', 'condition', 'latch', 'queue', 'rw-lock', 'semaphore']
const OTHERS = ['choosing', 'debugging', 'entry-points', 'errors', 'processes', 'repair', 'web-locks']
const WITHOUT_PROGRAMS = [
  'README', 'comparison', 'conformance', 'environments', 'guarantees', 'guides', 'platforms', 'profiling', 'recipes',
  'testing'
]

const MAJOR = Number(process.versions.node.split('.')[0])

// The pages and the sources are the same for every Node.
const ONCE = { skip: MAJOR < 20 && 'Node 20 and later do it' }

const textOf = (name) => fs.readFileSync(path.join(folder, name), 'utf8')

/** The links of a page into this repository: `{ target, anchor }`, by the absolute path of the file. */
function linksOf (name) {
  const links = textOf(name).replace(/^```[^]*?^```/gm, '').match(/\]\([^)\s]+\)/g) || []
  return links.map(link => link.slice(2, -1)).filter(link => !/^https?:/.test(link)).map(link => {
    const [file, anchor] = link.split('#')
    return { target: path.join(folder, file === '' ? name : path.join(path.dirname(name), file)), anchor }
  })
}

/** As GitHub names headings. */
const anchorsOf = (text) => (text.match(/^#+ .*$/gm) || []).map(line => {
  return line.replace(/^#+ /, '').toLowerCase().replace(/[^\w -]/g, '').replace(/ /g, '-')
})

test('each class has its page, and each page is one of those that are known', () => {
  assert.deepStrictEqual(names.sort(), [...CLASSES, ...OTHERS, ...WITHOUT_PROGRAMS].map(name => `${name}.md`).sort())
})

test('the indexes of docs/ and examples/ lead to every page and every example', ONCE, () => {
  const examples = path.join(root, 'examples')
  const all = [
    ...names.map(name => path.join(folder, name)),
    ...fs.readdirSync(examples).map(name => path.join(examples, name))
  ]
  const targets = ['README.md', '../examples/README.md'].flatMap(linksOf).map(({ target }) => target)
  const isLinked = file =>
    path.basename(file) === 'README.md' || targets.some(target => `${target}/`.startsWith(`${file}/`))
  assert.deepStrictEqual(all.filter(file => !isLinked(file)), [])
})

/** The files below a folder; none, if it is not there. */
function filesIn (folder) {
  if (!fs.existsSync(folder)) return []
  return fs.readdirSync(folder, { withFileTypes: true }).reduce((files, entry) => {
    const file = path.join(folder, entry.name)
    return files.concat(entry.isDirectory() ? filesIn(file) : file)
  }, [])
}

const sources = ['lib', 'src', 'core/src'].reduce((files, name) => files.concat(filesIn(path.join(root, name))), [])

const CODES = /\b(?:ERR_[A-Z_]+|ABORT_ERR|ATOMICS_WAITASYNC_(?:PENDING|PROFILE|STALL|WORKER|CONTEXT|LOCKS))\b/

test('docs/errors.md has every code and every name that the package gives an error or a warning', () => {
  const text = textOf('errors.md')
  const code = sources.map(file => fs.readFileSync(file, 'utf8')).join('')
  const found = new Set(
    code.match(/(?<=['"])(?:ERR_[A-Z_]+|ABORT_ERR|ATOMICS_WAITASYNC_[A-Z]+|[A-Z]\w*Error)(?=['"])/g)
  )
  for (const known of ['ERR_DEADLOCK', 'ATOMICS_WAITASYNC_WORKER', 'TimeoutError']) assert.ok(found.has(known), known)
  assert.deepStrictEqual(Array.from(found).filter(each => !text.includes(`\`${each}\``)), [])
})

test('a page that mentions the code of an error or a warning leads to docs/errors.md', () => {
  const mention = names.filter(name => name !== 'errors.md' && CODES.test(textOf(name)))
  assert.ok(mention.length > 5)
  assert.deepStrictEqual(
    mention.filter(name => !linksOf(name).some(({ target }) => path.basename(target) === 'errors.md')),
    []
  )
})

for (const name of CLASSES) {
  test(`docs/${name}.md says when to use it, what happens when a thread dies, and what it costs`, () => {
    const topics = [/^\*\*When to use it\.\*\*/m, /^\*\*When (a thread|the holder) dies\*\*/m, /^\*\*Cost\.\*\*/m]
    for (const topic of topics) assert.ok(topic.test(textOf(`${name}.md`)), String(topic))
  })
}

test('docs/processes.md has programs and the figures of its example, and leads to the others', ONCE, () => {
  const { page, withEmbedded } = require('../../scripts/lib/embedded')
  const text = fs.readFileSync(page, 'utf8')
  assert.strictEqual(text, withEmbedded(text), 'npm run lint -- --fix')
  const embedded = Array.from(text.matchAll(/^\/\/ ([\w-]+\.mts)$/gm), ([, name]) => name)
  assert.deepStrictEqual(embedded, ['fencing.mts', 'sqlite.mts'])
  const rest = fs
    .readdirSync(path.join(root, 'examples', 'processes'))
    .filter(name => name.endsWith('.mts') && !['index.mts', ...embedded].includes(name))
  assert.deepStrictEqual(rest.filter(name => !text.includes(`](../examples/processes/${name})`)), [])
})

test('what guides and recipes show of an example is in its file', ONCE, () => {
  const shown = Array.from(
    (textOf('guides.md') + textOf('recipes.md')).matchAll(/^```javascript\n\/\/ (examples\/.*)\n([^]*?)^```$/gm)
  )
  assert.ok(shown.length >= 10)
  for (const [, file, part] of shown)
    assert.ok(fs.readFileSync(path.join(root, file), 'utf8').includes(part), `${file}: ${part}`)
})

/** The value of a constant in the one file of this name in lib/ or in Rust; of a duration, its milliseconds. */
function constantOf (file, name) {
  const [at, ...others] = sources.filter(each => each.endsWith(path.join(path.sep, file)))
  assert.ok(at !== undefined && others.length === 0, file)
  const begin = `(?:const ${name}\\b[^=]*= (?:exports\\.\\w+ = )?|\\b${name}\\()`
  const pattern = `${begin}(?:Duration::from_(\\w+)\\()?(0x[\\da-f]+|[\\d._]+)`
  const found = new RegExp(pattern).exec(fs.readFileSync(at, 'utf8'))
  assert.ok(found, `${file}: ${name}`)
  const [, unit, number] = found
  return Number(number.replace(/_/g, '')) * { undefined: 1, micros: 0.001, millis: 1, secs: 1000 }[unit]
}

/**
 * Constants that users are told of: on which page, in which words, where they are (several are added up), and what part
 * they are of.
 */
const CONSTANTS = [
  ['guarantees', /overtaken for ([\d.]+) ms/, 'fairness.rs', 'FAIRNESS'],
  ['guarantees', /After (\d+) such hand-overs/, 'pace.rs', 'MOST'],
  ['guarantees', /such hand-overs, or (\d+) ms/, 'pace.rs', 'LONGEST'],
  ['guarantees', /wakes at most\s+(\d+) ms late/, 'looks.rs', 'SHORTEST'],
  ['guarantees', /never more than (\d+) s\b/, 'looks.rs', 'LONGEST', 1000],
  ['guarantees', /up to (\d+) ms\s+if that was while it was blocked/, 'blocking.rs', 'SIGNALLED_SLICE_MILLISECONDS'],
  ['guarantees', /at most (\d+) s\b/, 'blocking.rs', 'WATCHED_SLICE_MILLISECONDS', 1000],
  ['guarantees', /where (\d+) KB of the stack are left/, 'agent/this-agent.js', 'ENOUGH SPARE'],
  ['guarantees', /the last ([\d ]+) with a death/, 'memories.rs', 'MOST_LEFT'],
  ['guarantees', /the last ([\d ]+) deaths of names/, 'name_table.rs', 'MOST_LEFT'],
  ['guarantees', /each of the first (\d+) locks/, 'agent/runs-dry.js', 'MOST_WARNINGS'],
  ['choosing', /a string of 1 to (\d+) characters/, 'view.js', 'LONGEST_NAME'],
  ['barrier', /1 to ([\d ]+)$/m, 'barrier.js', 'MOST_PARTIES'],
  ['latch', /0 to ([\d ]+)$/m, 'request.js', 'MOST'],
  ['semaphore', /an integer from 1 to ([\d ]+),/, 'request.js', 'MOST'],
  ['guarantees', /where (\d+) KB are\b/, 'util/stack.js', 'assertKilobytes'],
  ['errors', /each of the first (\d+)\s+locks/, 'agent/runs-dry.js', 'MOST_WARNINGS'],
  ['environments', /A blocked thread wakes every (\d+) ms/, 'blocking.rs', 'SLICE_MILLISECONDS'],
  ['environments', /within (\d+) ms: Deno/, 'agent/this-agent.js', 'DENO_TURN'],
  ['platforms', /Each blocked thread wakes every\s+(\d+) ms/, 'blocking.rs', 'SLICE_MILLISECONDS'],
  ['profiling', /every (\d+) seconds/, 'profile.rs', 'PERIOD', 1000],
  ['profiling', /Of a stack, (\d+) frames/, 'call-stacks.js', 'FRAMES'],
  ['profiling', /when\s+([\d ]+) were known/, 'stacks.rs', 'MOST'],
  ['profiling', /when a stack had (\d+)/, 'profile.rs', 'MOST_LEAVES'],
  ['debugging', /The process keeps ([\d ]+) different stacks/, 'stacks.rs', 'MOST'],
  ['debugging', /at most\s+(\d+) rings/, 'task_rings.rs', 'MOST'],
  ['debugging', /its holders \((\d+) of them/, 'reports.rs', 'MOST_HOLDERS'],
  ['debugging', /on no ring, (\d+) are reported/, 'reports.rs', 'MOST'],
  ['debugging', /up to ([\d.]+) s after the time has come/, 'blocking.rs', 'SIGNALLED_SLICE_MILLISECONDS', 1000],
  ['debugging', /not more often than every (\d+) ms/, 'taken.js', 'PERIOD'],
  ['debugging', /up to (\d+) such messages/, 'reports.rs', 'MOST_FOR_MAIN']
]

test('the constants that docs/ has are those of the code', ONCE, () => {
  for (const [page, pattern, file, constants, part = 1] of CONSTANTS) {
    const found = pattern.exec(textOf(`${page}.md`))
    assert.ok(found, `${page}: ${pattern}`)
    const value = constants.split(' ').reduce((sum, name) => sum + constantOf(file, name), 0)
    assert.strictEqual(Number(found[1].replace(/ /g, '')), value / part, `${page}: ${pattern}`)
  }
})

test('the limit of fairness is on one page', ONCE, () => {
  const limit = `${constantOf('fairness.rs', 'FAIRNESS')} ms`
  const pages = [...names, ...internals, '../README.md', '../RELIABILITY.md', '../CONTRIBUTING.md'].filter(name =>
    textOf(name)
      .replace(/parking_lot[^]*/, '')
      .includes(`for ${limit}`)
  )
  assert.deepStrictEqual(pages, ['guarantees.md'])
})

/** Words that are not ours, each with ours. */
const WORDS = [
  [/\btime-outs?\b/i, 'timeout'],
  [/\bto and fro\b/, 'back and forth'],
  [/\bexclude each other\b/, 'cannot be combined'],
  [/\b(?:break|breaks|broke|broken) (?:it |them |a \w+ )?off\b/, 'interrupt'],
  [/\blikewise\b/i, 'also, or the sentence again'],
  [
    /\b(?:of|for|from|by|with|and|gives|has|does) what (?:it|they|is|was|were|has|had|waits|the|a|an|this|you)\b/,
    'a noun'
  ]
]

test('docs and the pages of the top level have the words of the field', ONCE, () => {
  const texts = [...names, 'internals/architecture.md', ...top].map(name => [
    name,
    textOf(name).replace(/^```[^]*?^```/gm, '')
  ])
  const found = texts.flatMap(([name, text]) =>
    WORDS.filter(([pattern]) => pattern.test(text)).map(([pattern, ours]) => `${name}: ${pattern} → ${ours}`)
  )
  assert.deepStrictEqual(found, [])
})

test('the files that CONTRIBUTING.md names are there', ONCE, () => {
  const named = Array.from(
    textOf('../CONTRIBUTING.md').matchAll(/`((?:[\w.-]+\/)+[\w.-]*)`/g),
    ([, name]) => name
  ).filter(name => name !== 'dist/')
  assert.ok(named.length > 20)
  assert.deepStrictEqual(named.filter(name => !fs.existsSync(path.join(root, name))), [])
})

test('the lines in the table of docs/profiling.md are those of its example that wait', () => {
  const rows = textOf('profiling.md').match(/^\| \d+ ms .*$/gm)
  const example = fs.readFileSync(path.join(root, 'examples', 'contention', 'worker.mjs'), 'utf8').split('\n')
  const places = rows.map(row => /worker\.mjs:(\d+)` \| (.*) \|$/.exec(row))
  assert.ok(places.length >= 3)
  for (const [row, line] of places) assert.ok(/lock|wait\(\)/.test(example[line - 1]), row)
})

test('links lead to files and headings that are there', () => {
  const links = ['../README.md', ...names, ...internals].map(name => [name, linksOf(name)])
  for (const [name, list] of links) {
    for (const { target, anchor } of list) {
      assert.ok(fs.existsSync(target), `${name}: ${target}`)
      if (anchor !== undefined)
        assert.ok(anchorsOf(fs.readFileSync(target, 'utf8')).includes(anchor), `${name}: ${target}#${anchor}`)
    }
  }
  assert.ok(links.every(([name, list]) => name !== '../README.md' || list.length > 10))
})

const { files } = require('../../package.json')
const [left, published] = [true, false].map(isLeft =>
  files.filter(name => name.startsWith('!') === isLeft).map(name => path.join(root, name.replace('!', '')))
)

test('links of what is published lead to what is published', () => {
  const isIn = (list, file) => list.some(each => file === each || file.startsWith(each + path.sep))
  const all = published.concat(['README.md', 'LICENSE'].map(name => path.join(root, name)))
  const missing = ['../README.md', '../CHANGELOG.md', '../RELIABILITY.md', '../examples/README.md', ...names].map(
    page =>
      linksOf(page)
        .map(({ target }) => target)
        .filter(target => isIn(left, target) || !isIn(all, target))
        .map(target => `${page}: ${target}`)
  )
  assert.deepStrictEqual([].concat(...missing), [])
})

test('README.md is short, has the commands of a checkout on its first screen, and the size of an installation', t => {
  const text = textOf('../README.md')
  const lines = text.split('\n')
  assert.ok(lines.length <= 181)
  for (const command of ['`npm start`', '`npm test`'])
    assert.ok(lines.slice(0, 40).join('\n').includes(command), command)
  const library = fs.readdirSync(root).find(name => name.endsWith('.node')) || t.skip('no library was built')
  const bytesOf = list =>
    list.reduce(
      (sum, name) =>
        sum +
        []
          .concat(fs.statSync(name).isFile() ? name : filesIn(name))
          .reduce((sum, file) => sum + fs.statSync(file).size, 0),
      0
    )
  const size = bytesOf(published) - bytesOf(left) + bytesOf([path.join(root, library)])
  const [, said] = /about ([\d.]+) MB/.exec(text)
  assert.ok(Math.abs(size / 1e6 - said) < 0.5, `${size} bytes`)
})

testPrograms(test, 'README.md', 4)
// The programs of docs/processes.md are those of an example, which examples.test.js runs.
for (const name of names.filter(name => name !== 'processes.md'))
  testPrograms(test, `docs/${name}`, WITHOUT_PROGRAMS.includes(name.slice(0, -3)) ? 0 : 1)

testCommands(test, 'docs/debugging.md', {
  skip: process.platform === 'win32' ? 'it has no such signals' : MAJOR < 14 && 'stacks of promises are others'
})
