'use strict'
// nodes: running (the pages and the sources are the same for every Node)

// README.md and docs/: links lead somewhere, and statements about the code are true. docs-programs.test.js runs the
// programs.

const assert = require('assert')
const fs = require('fs')
const path = require('path')
const { test } = require('../harness')
const { assertNone, found, list, textOf } = require('../fixtures/source-texts')
const generated = require('../../scripts/lib/generated')
const testFile = require('../../scripts/lib/test-file')

const root = path.join(__dirname, '..', '..')
const exists = name => fs.existsSync(path.join(root, name))
const top = ['README', 'CHANGELOG', 'RELIABILITY', 'CONTRIBUTING', 'examples/README'].map(name => `${name}.md`)
const pages = [...top, ...list('docs', /\.md$/)]
const sources = ['lib', 'src', 'core/src'].flatMap(folder => list(folder))

test('each class has a page that says when to use it, what happens when a thread dies, and what it costs', () => {
  const topics = [/^\*\*When to use it\.\*\*/m, /^\*\*When (a thread|the holder) dies\*\*/m, /^\*\*Cost\.\*\*/m]
  const classes = found(sources.join('\n'), /^lib\/locks\/(?!index|view)([\w-]+)\.js$/gm)
  assert.ok(classes.length > 0)
  for (const topic of topics) assertNone(classes, name => !topic.test(textOf(`docs/${name}.md`)))
  for (const index of ['README.md', 'docs/choosing.md']) {
    const targets = links.filter(({ page }) => page === index).map(({ target }) => target)
    assertNone(classes, name => !targets.includes(`docs/${name}.md`))
  }
})

test('each method of a class, and of the locks by name, has a heading on its page', () => {
  const methodsOf = object => Object.getOwnPropertyNames(object)
    .filter(key => typeof Object.getOwnPropertyDescriptor(object, key).value === 'function')
  const assertHeadings = (page, names) => {
    const headings = found(textOf(`docs/${page}.md`), /^### (.+)$/gm).flatMap(heading => heading.split(' and '))
    assert.ok(names.length > 3)
    assertNone(names, name => name !== 'toJSON' && !headings.includes(name))
  }
  const entry = require('../..')
  for (const [, page] of textOf('README.md').matchAll(/^\| \[`\w+`\]\(docs\/([\w-]+)\.md\)/gm)) {
    const [, title] = /^# (\w+)$/m.exec(textOf(`docs/${page}.md`))
    const names = methodsOf(entry[title].prototype).map(key => key === 'constructor' ? `new ${title}` : key)
    assertHeadings(page, [...names, ...methodsOf(entry[title]).map(key => `${title}.${key}`)])
  }
  const { ProcessLocks } = require('../../lib/processes/process-locks')
  for (const [page, Class] of [['web-locks', entry.LockManager], ['processes', ProcessLocks]])
    assertHeadings(page, methodsOf(Class.prototype).filter(key => key !== 'constructor'))
})

/** The links of a page into this repository: `{ page, target, anchor }`. */
const links = pages.flatMap(page => {
  const prose = textOf(page).replace(/^```[^]*?^```/gm, '')
  return found(prose, /\]\((?!https?:)([^)\s]+)\)/g).map(link => {
    const [file, anchor] = link.split('#')
    return { page, target: path.posix.join(file === '' ? page : path.posix.dirname(page), file), anchor }
  })
})

/** Returns the anchors of a page, as GitHub names headings. */
function anchorsOf (name) {
  const headings = found(textOf(name), /^#+ (.*)$/gm).map(heading => heading.toLowerCase().replace(/[^\w -]/g, ''))
  return headings.map(heading => heading.replace(/ /g, '-'))
}

const isBelow = (name, folder) => path.posix.join(name, '/').startsWith(`${folder}/`)

test('links lead to files and headings that are there, and in what is published to what is published', () => {
  const { files } = require('../../package.json')
  const isListed = (name, list) => list.some(each => isBelow(name, each))
  const isLeftOut = name => isListed(name, files.filter(each => each.startsWith('!')).map(each => each.slice(1)))
  const isPublished = name => isListed(name, [...files, 'README.md', 'LICENSE']) && !isLeftOut(name)
  assert.ok(links.length > pages.length)
  assertNone(links, ({ target }) => !exists(target))
  assertNone(links, ({ target, anchor }) => anchor !== undefined && !anchorsOf(target).includes(anchor))
  assertNone(links, ({ page, target }) => isPublished(page) && !isPublished(target))
})

test('the indexes of docs/ and examples/ lead to every page and every example', () => {
  for (const folder of ['docs', 'examples']) {
    const targets = links.filter(({ page }) => page === `${folder}/README.md`).map(({ target }) => target)
    const names = fs.readdirSync(path.join(root, folder)).filter(name => !/^(README\.md|internals|.*\.svg)$/.test(name))
    assertNone(names, name => !targets.some(target => isBelow(target, `${folder}/${name}`)))
  }
})

const variables = found(textOf('docs/environments.md'), /^\| `(ATOMICS_WAITASYNC_\w+)=/gm)

test('docs/environments.md lists every environment variable', () => {
  const reads = /(?:process\.env\.|var_os\("|variable\("|^const VARIABLE: &str = ")(ATOMICS_WAITASYNC_\w+)/gm
  const names = found(sources.map(textOf).join('\n'), reads)
  assert.ok(names.length > 3)
  assertNone(names, name => !variables.includes(name))
})

test('docs/errors.md has every code and every name that the package gives an error or a warning', () => {
  const pattern = /['"](ERR_[A-Z_]+|ABORT_ERR|ATOMICS_WAITASYNC_[A-Z_]+|[A-Z]\w*Error)(?=['"])/g
  // Warnings about what a variable asks for have its name.
  const both = ['STALL', 'DUMP', 'PROFILE'].map(word => `ATOMICS_WAITASYNC_${word}`)
  const names = found(sources.map(textOf).join(''), pattern)
    .filter(name => both.includes(name) || !variables.includes(name))
  assertNone(['ERR_DEADLOCK', 'ATOMICS_WAITASYNC_WORKER', ...both, 'TimeoutError'], known => !names.includes(known))
  assertNone(names, name => !textOf('docs/errors.md').includes(`\`${name}\``))
})

test('files have the tables of lib/, parts of examples, the map of lib/ and the table of figures as they are', () => {
  for (const [page, corrected] of generated) {
    const text = fs.readFileSync(page, 'utf8')
    assert.strictEqual(text, corrected(text), 'npm run lint -- --fix')
  }
  const guides = textOf('docs/guides.md') + textOf('docs/recipes.md')
  const parts = found(guides, /^```javascript\n\/\/ (examples\/[^]*?)^```$/gm)
  assert.ok(parts.length >= 10)
  assertNone(parts, part => !textOf(part.split('\n', 1)[0]).includes(part.slice(part.indexOf('\n') + 1)))
})

test('the lines in the table of docs/profiling.md are those of its example that wait', () => {
  const example = textOf('examples/contention/worker.mjs').split('\n')
  const lines = found(textOf('docs/profiling.md'), /^\| \d+ ms .*worker\.mjs:(\d+)` \|/gm)
  assert.ok(lines.length >= 3)
  assertNone(lines, line => !/execute|wait\(/.test(example[line - 1]))
})

/** Returns a constant's value, from the one file of this name; of a duration, its milliseconds. */
function constantOf (file, name) {
  const [at, ...others] = [...sources, ...list('bin')].filter(each => each.endsWith(`/${file}`))
  assert.ok(at !== undefined && others.length === 0, file)
  const begin = `(?:const ${name}\\b[^=]*= (?:exports\\.\\w+ = )?|\\b${name}\\()`
  const pattern = `${begin}(?:Duration::from_(\\w+)\\()?(0x[\\da-f]+|[\\d._]+)`
  const [, unit, number] = new RegExp(pattern).exec(textOf(at)) || assert.fail(`${file}: ${name}`)
  return Number(number.replace(/_/g, '')) * { undefined: 1, micros: 0.001, millis: 1, secs: 1000 }[unit]
}

/**
 * Constants that users are told of: on which page, in which words, where they are (several are added up), and what part
 * they are of.
 */
const CONSTANTS = [
  ['guarantees', /overtaken for ([\d.]+) ms/, 'fairness.rs', 'FAIRNESS'],
  ['guarantees', /After (\d+) such hand-overs/, 'agent/pending.rs', 'MOST'],
  ['guarantees', /such hand-overs, or (\d+) ms/, 'agent/pending.rs', 'LONGEST'],
  ['guarantees', /wakes at most\s+(\d+) ms late/, 'service/mod.rs', 'SHORTEST'],
  ['guarantees', /never more than (\d+) s\b/, 'service/mod.rs', 'LONGEST', 1000],
  ['guarantees', /up to (\d+) ms\s+if that was while it was blocked/, 'sleeping.rs', 'SIGNALLED_SLICE_MILLISECONDS'],
  ['guarantees', /at most (\d+) s\b/, 'sleeping.rs', 'WATCHED_SLICE_MILLISECONDS', 1000],
  ['guarantees', /where (\d+) KB of the stack are left/, 'agent/agent.js', 'ENOUGH SPARE'],
  ['guarantees', /the last ([\d ]+) with a death/, 'tracked_buffers.rs', 'MOST_LEFT'],
  ['guarantees', /the last ([\d ]+) deaths of names/, 'names.rs', 'MOST_LEFT'],
  ['choosing', /a string of 1 to (\d+) characters/, 'view.js', 'LONGEST_NAME'],
  ['barrier', /1 to ([\d ]+)$/m, 'barrier.js', 'MOST_PARTIES'],
  ['latch', /0 to ([\d ]+)$/m, 'request.js', 'MOST'],
  ['semaphore', /an integer from 1 to ([\d ]+),/, 'request.js', 'MOST'],
  ['guarantees', /where (\d+) KB are\b/, 'util/stack.js', 'assertKilobytes'],
  ['errors', /each of the first (\d+)\s+locks/, 'agent/agent.js', 'MOST_WARNINGS'],
  ['environments', /A blocked thread wakes every (\d+) ms/, 'sleeping.rs', 'SLICE_MILLISECONDS'],
  ['environments', /within (\d+) ms: Deno/, 'agent/agent.js', 'DENO_TURN'],
  ['platforms', /Each blocked thread wakes every\s+(\d+) ms/, 'sleeping.rs', 'SLICE_MILLISECONDS'],
  ['profiling', /every (\d+) seconds/, 'observe/profile.js', 'PERIOD', 1000],
  ['profiling', /Of a stack, (\d+) frames/, 'observe/profile.js', 'FRAMES'],
  ['profiling', /when\s+([\d ]+) were known/, 'stacks.rs', 'MOST'],
  ['profiling', /when a stack had (\d+)/, 'profile.rs', 'MOST_LEAVES'],
  ['debugging', /up to (\d+) such reports are kept/, 'observe/stalls.rs', 'MOST'],
  ['debugging', /The process keeps ([\d ]+) different stacks/, 'stacks.rs', 'MOST'],
  ['deadlocks', /at most\s+(\d+) cycles/, 'cycles.rs', 'MOST_CYCLES'],
  ['deadlocks', /hold one lock the first (\d+)/, 'cycles.rs', 'MOST'],
  ['debugging', /its holders \((\d+) of them/, 'sentences.rs', 'MOST_HOLDERS'],
  ['debugging', /up to (\d+) cycles and/, 'reports.rs', 'MOST'],
  ['debugging', /not more often than every (\d+) ms/, 'observe/stalls.js', 'PERIOD'],
  ['debugging', /the stacks of (\d+) in \d+ ms/, 'observe/stalls.js', 'MOST'],
  ['debugging', /the stacks of \d+ in (\d+) ms/, 'observe/stalls.js', 'WINDOW'],
  ['dumps', /not answer within (\d+) s:/, 'atomics-waitasync.js', 'WORKER_LIMIT', 1000],
  ['dumps', /within\s+(\d+) s, usually/, 'atomics-waitasync.js', 'GUARD', 1000],
  ['dumps', /within (\d+) s \(10 s if/, 'atomics-waitasync.js', 'LIMIT', 1000],
  ['dumps', /has not within (\d+) s;/, 'atomics-waitasync.js', 'LIMIT', 1000],
  ['dumps', /within (\d+) s; try again/, 'atomics-waitasync.js', 'DEADLINE', 1000],
  ['channels', /up to (\d+) such messages/, 'observe/stalls.rs', 'MOST'],
  ['engines', /up to ([\d ]+) threads/, 'file_locks/waiting/pool.rs', 'MOST_LINES'],
  ['engines', /locks have ([\d ]+) further threads/, 'file_locks/waiting/pool.rs', 'MOST_JOBS'],
  ['engines', /a request tries every (\d+) ms/, 'engines/files.js', 'POLL'],
  ['engines', /and later every (\d+) ms, instead/, 'engines/files.js', 'LONGEST_POLL'],
  ['engines', /Up to (\d+) connections that are free/, 'postgresql-sessions.js', 'MOST_FREE'],
  ['engines', /goes on with the new file within (\d+) s\b/, 'file_locks/waiting.rs', 'LOOK LOOK', 1000],
  ['engines', /each request behind it within about (\d+) s\b/, 'file_locks/waiting.rs', 'LOOK LOOK', 1000],
  ['engines', /no channels, it asks every (\d+) ms/, 'redis.js', 'WITHOUT'],
  ['engines', /At most ([\d ]+) names are held/, 'mapped_names/table.rs', 'CAPACITY'],
  ['engines', /(\d+) processes can have the\s+table/, 'names/entry.rs', 'MOST_SHARERS'],
  ['engines', /within (\d+) ms, because it is suspended/, 'names/entry.rs', 'TURN_MILLISECONDS'],
  ['shared-memory', /(\d+) processes can have a file/, 'src/mapped/mod.rs', 'MOST_PROCESSES'],
  ['shared-memory', /at least (\d+) and at most/, 'words/mod.rs', 'SHORTEST_TABLE'],
  ['shared-memory', /and at most ([\d ]+)\./, 'words/mod.rs', 'LONGEST_TABLE'],
  ['processes', /among all processes: 1 to (\d+)\./, 'processes/arguments.js', 'MOST_PERMITS'],
  ['processes', /at most (\d+) characters of/, 'holder.js', 'LONGEST']
]

test('the constants that docs/ has are those of the code', () => {
  for (const [page, pattern, file, constants, part = 1] of CONSTANTS) {
    const [, number] = pattern.exec(textOf(`docs/${page}.md`)) || assert.fail(`${page}: ${pattern}`)
    const value = constants.split(' ').reduce((sum, name) => sum + constantOf(file, name), 0)
    assert.strictEqual(Number(number.replace(/ /g, '')), value / part, `${page}: ${pattern}`)
  }
})

/** Of messages to users, which stay. */
const MESSAGES = /waits for what it holds itself|locks do not exclude each other/g

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

test('docs, the pages of the top level and the sources have the words of the field', () => {
  const isChecked = name => !/internals\/(?!architecture)/.test(name)
  for (const page of [...pages.filter(isChecked), ...sources, ...list('scripts'), 'pure/index.d.ts']) {
    const prose = textOf(page).replace(/^```[^]*?^```/gm, '').replace(MESSAGES, '')
    for (const [pattern, ours] of WORDS) assert.ok(!pattern.test(prose), `${page}: ${pattern} → ${ours}`)
  }
})

test('the files that CONTRIBUTING.md, the architecture and the heads of files name are there', () => {
  const all = ['lib', 'src', 'core', '__test__', 'scripts'].flatMap(folder => list(folder)).join('\n')
  const texts = ['CONTRIBUTING.md', 'docs/internals/architecture.md', ...sources].map(textOf)
  const named = found(texts.join('\n'), /`((?:[\w.-]+\/)+|(?:[\w.-]+\/)*[\w.-]+\.(?:js|rs|toml|json))`/g)
  assert.ok(named.length > 100)
  assertNone(named, name => name !== 'dist/' && !exists(name) && !all.includes(`/${name}`))
})

test('the reading order of CONTRIBUTING.md has as many files and lines as it says', () => {
  const [, lines, order] = /^Eight files, ([\d ]+) lines[^]*?\n\n([^]*?)\n\n/m.exec(textOf('CONTRIBUTING.md'))
  const files = found(order, /^\d\. `([^`]+)`/gm)
  assert.strictEqual(files.length, 8)
  const sum = files.reduce((all, name) => all + textOf(name).split('\n').length, 0)
  assert.ok(Math.abs(sum - Number(lines.replace(' ', ''))) <= 200, `${sum} lines`)
})

test('what pages give to `npm test -- --only` finds test files', () => {
  const patterns = found(pages.map(textOf).join('\n'), /npm test -- [^`]*--only '?([^'`\s]+)/g)
  assert.ok(patterns.length > 5)
  assertNone(patterns, pattern => !testFile.names().some(name => new RegExp(pattern).test(name)))
})
