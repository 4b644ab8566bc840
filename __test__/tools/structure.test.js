'use strict'
// nodes: running (the source is the same for every Node)

// The source: no file of lib/, src/ or core/ is long, each says at its top what it is, imports go one way, and mutations find their texts.

const assert = require('assert')
const fs = require('fs')
const path = require('path')
const { test } = require('../harness')

const root = path.join(__dirname, '..', '..')
const MOST_LINES = 400

/** The layers of lib/, the lowest first. A file requires files of its own layer and of lower ones; those on a line know nothing of each other. */
const LAYERS = [
  ['util'],
  ['agent'],
  ['waiting'],
  ['host.js'],
  ['realm.js'],
  ['atomics', 'locks/hold/request.js', 'install/workers/by-message'],
  ['locks/hold/owed.js'],
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

/** From the name of each file in a folder, relative to it, to its text. */
function read (folder, ext) {
  const list = (at) => fs.readdirSync(path.join(root, folder, at), { withFileTypes: true }).flatMap(entry => {
    const name = at + entry.name
    return entry.isDirectory() ? list(`${name}/`) : name.endsWith(ext) ? [name] : []
  })
  return new Map(list('').map(name => [name, fs.readFileSync(path.join(root, folder, name), 'utf8')]))
}

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

for (const [folder, files] of Object.entries({ lib, src, 'core/src': core })) {
  test(`no file of ${folder}/ has more than ${MOST_LINES} lines`, () => {
    const long = [...files].map(([name, text]) => `${name}: ${text.split('\n').length - 1}`).filter(line => Number(line.split(': ')[1]) > MOST_LINES)
    assert.deepStrictEqual(long, [])
  })
}

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

test(`the first sentence of each doc comment of lib/ has at most ${MOST_WORDS} words`, () => {
  const long = [...lib].flatMap(([name, text]) => (
    Array.from(text.matchAll(/\/\*\*([^]*?)\*\//g), ([, comment]) => comment.replace(/^ *\* ?/gm, '').trim())
      .filter(comment => !comment.startsWith('@'))
      .map(comment => /^[^]*?[.:;](?=\s|$)|^[^]*$/.exec(comment)[0].replace(/\s+/g, ' '))
      .filter(sentence => sentence.split(' ').length > MOST_WORDS)
      .map(sentence => `${name}: ${sentence}`)))
  assert.deepStrictEqual(long, [])
})

/** What each file of lib/ requires of lib/, wherever in the file. `es-modules.js` requires the entries, which stand above. */
const required = new Map([...lib].filter(([name]) => name !== 'es-modules.js').map(([name, text]) => [name, new Set(Array.from(text.matchAll(/\brequire\('(\.[^']+)'\)/g), ([, request]) => {
  const target = path.posix.join(path.posix.dirname(name), request)
  return [target, `${target}.js`, `${target}/index.js`].find(file => lib.has(file)) || assert.fail(`${name} requires ${request}, which is not in lib/`)
}))]))

test('no files of lib/ require each other', () => assertNoCycle(required))

test('a layer of lib/ requires lower layers only', () => {
  const layerOf = (name) => LAYERS.flat().filter(layer => name === layer || name.startsWith(`${layer}/`)).sort().pop() || assert.fail(`${name} is in no layer`)
  const rank = (layer) => LAYERS.findIndex(layers => layers.includes(layer))
  const upwards = [...required].flatMap(([name, targets]) => [...targets].filter(target => {
    const [from, to] = [layerOf(name), layerOf(target)]
    return from !== to && rank(to) >= rank(from)
  }).map(target => `${name} → ${target}`))
  assert.deepStrictEqual(upwards, [])
})

// ——— core/ ———

test('the queue knows no lock', () => {
  const beyond = [...core].filter(([name]) => name.startsWith('queue/')).flatMap(([name, text]) => {
    const uses = Array.from(text.matchAll(/^ *[^/\s].*\b(?:crate|super::super)::(\w+|\{)/gm), ([, used]) => used)
    return uses.filter(used => !['clock', 'queue', 'sync'].includes(used)).map(used => `${name} → ${used}`)
  })
  assert.deepStrictEqual(beyond, [])
})

test('the files that docs/internals/architecture.md and the heads of files name are there', () => {
  const all = ['lib', 'src', 'core'].flatMap(folder => [...read(folder, '')].map(([name]) => `${folder}/${name}`))
  const architecture = fs.readFileSync(path.join(root, 'docs', 'internals', 'architecture.md'), 'utf8')
  const named = (text) => Array.from(text.matchAll(/`((?:[\w.-]+\/)*[\w.-]+\.(?:js|rs))`/g), ([, name]) => name)
  const texts = [architecture, ...lib.values(), ...src.values(), ...core.values()]
  const missing = texts.flatMap(named).filter(name => {
    return !fs.existsSync(path.join(root, name)) && !fs.existsSync(path.join(root, '__test__', name)) && !all.some(file => file.endsWith(`/${name}`))
  })
  assert.deepStrictEqual(missing, [])
})

test('docs/internals/map.md has the files of lib/ with the first sentences of their heads', () => {
  const { page, withMap } = require('../../scripts/lib/lib-map')
  const text = fs.readFileSync(page, 'utf8')
  assert.strictEqual(text, withMap(text))
})

test('Dependabot, cargo deny and the form for bugs know all lock files, platforms and entries', () => {
  const text = name => fs.readFileSync(path.join(root, name), 'utf8')
  const quoted = (source, from, to) => Array.from(source.slice(source.indexOf(from), source.indexOf(to, source.indexOf(from))).matchAll(/['"]([^'"]+)['"]/g), ([, item]) => item)
  const [directories] = Array.from(text('.github/dependabot.yml').matchAll(/directories: \[(.*)\]/g), ([, list]) => quoted(`[${list}]`, '[', ']'))
  const locked = ['', '__test__', 'benchmark', 'examples', 'scripts'].flatMap(folder => lockFiles(folder)).map(name => `/${path.posix.dirname(name)}`.replace('/.', '/'))
  assert.deepStrictEqual(locked.filter(folder => !directories.includes(folder)), [])
  assert.deepStrictEqual(quoted(text('deny.toml'), 'targets = [', ']').sort(), Object.values(require('../../scripts/lib/targets').targets).map(({ rust }) => rust).sort())
  const entries = Object.keys(require('../../package.json').exports).filter(name => !name.endsWith('.json')).map(name => path.posix.join('atomics-waitasync', name))
  const [offered] = Array.from(text('.github/ISSUE_TEMPLATE/bug.yml').matchAll(/options: \[(atomics.*)\]/g), ([, list]) => list.split(', '))
  assert.deepStrictEqual(offered.sort(), entries.sort())
})

/** The lock files of npm in a folder; in the root, without its folders. */
function lockFiles (folder) {
  return fs.readdirSync(path.join(root, folder), { withFileTypes: true }).flatMap(entry => {
    const name = path.posix.join(folder, entry.name)
    if (entry.name === 'package-lock.json') return [name]
    return folder !== '' && entry.isDirectory() && entry.name !== 'node_modules' ? lockFiles(name) : []
  })
}

test('what pages give to `npm test -- --only` finds test files', () => {
  const names = require('../../scripts/lib/test-file').names()
  const pages = ['README.md', 'CONTRIBUTING.md', 'RELIABILITY.md', ...fs.readdirSync(path.join(root, 'docs'), { recursive: true }).map(name => `docs/${name}`)]
  const patterns = pages.filter(name => name.endsWith('.md')).flatMap(name => (
    Array.from(fs.readFileSync(path.join(root, name), 'utf8').matchAll(/npm test -- [^`]*--only '?([^'`\s]+)/g), ([, pattern]) => pattern)))
  assert.ok(patterns.length > 5)
  assert.deepStrictEqual(patterns.filter(pattern => !names.some(name => new RegExp(pattern).test(name))), [])
})

test('the text of every mutation is in its file once', () => {
  const lost = [...require('../mutants/javascript'), ...require('../mutants/rust')].filter(({ file, find }) => (
    fs.readFileSync(path.join(root, file), 'utf8').split(find).length !== 2))
  assert.deepStrictEqual(lost.map(({ what }) => what), [])
})

test('a word and the robust list change together: no function is called in between, at whose entry a thread may be ended', () => {
  const text = lib.get('locks/hold/robust-list.js')
  const change = /\b(?:compareExchange|store|add|sub)\((?:word|thing|lease)\.array\b[^)]*\)|\boperations\.take\(\)|word\.array\[0\] =/g
  const together = text.split(/words\[HELD\] = /).slice(0, -1)
  assert.strictEqual(together.length, 4)
  for (const [name, other] of lib) if (name !== 'locks/hold/robust-list.js') assert.ok(!/words\[HELD\] =[^=]/.test(other), name)
  for (const before of together) {
    const between = before.slice(Array.from(before.matchAll(change), ({ index, 0: { length } }) => index + length).pop())
    const calls = (between.match(/\b[\w.]+\(/g) || []).filter(call => !['if(', 'for('].includes(call))
    assert.deepStrictEqual(calls, [], between)
  }
})
