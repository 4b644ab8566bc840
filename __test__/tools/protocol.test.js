'use strict'
// nodes: running (the source is the same for every Node)

// What JavaScript and native code both know stands in both: the kinds of requests and of waits, formats, and variables.

const assert = require('assert')
const { test } = require('../harness')
const { NAMES } = require('../fixtures/every-class')
const { list, textOf } = require('../fixtures/source-texts')
const format = require('../../lib/queue/format')
const requests = require('../../lib/holding/request')
const { NOTIFIED, WAIT_KINDS, waitKinds } = require('../../lib/waiting/errors')

const found = (text, pattern) => [...text.matchAll(pattern)].map(match => match.slice(1))

/** Returns the number of a constant of Rust's. */
function constant (file, name) {
  const rows = found(textOf(file), new RegExp(`const ${name}: u\\d+ = (\\d+);`, 'g'))
  assert.strictEqual(rows.length, 1, name)
  return Number(rows[0][0])
}

test('the table of waits for notifications has room in both', () => {
  assert.strictEqual(WAIT_KINDS, 1 << constant('core/src/held/notes.rs', 'WAIT_KIND_BITS'))
  assert.ok(NOTIFIED.length <= WAIT_KINDS)
})

test('each kind of wait is the index of its row', () => {
  const nameOf = ({ kind, mode }) => (mode || kind).toUpperCase()
  assert.deepStrictEqual(Object.keys(waitKinds), NOTIFIED.map(nameOf))
  assert.deepStrictEqual(Object.values(waitKinds), NOTIFIED.map((_, n) => n))
  assert.strictEqual(constant('core/src/held/notes.rs', 'PLAIN'), waitKinds.WAIT)
  assert.strictEqual(constant('core/src/held/notes.rs', 'CONDITION'), waitKinds.CONDITION)
})

test('native code and lib have the same kinds of requests, which have room', () => {
  const file = 'core/src/lock/word.rs'
  const room = constant(file, 'KINDS')
  assert.strictEqual(requests.requestOf(0, 1), room)
  const requested = found(textOf(file), /(\d+) => Self/g)
  const rows = found(textOf(file), /pack\((\d+), /g).concat(requested)
  const native = [...new Set(rows.map(([kind]) => Number(kind)))]
  const kinds = found(textOf('lib/holding/request.js'), /exports\.([A-Z_]+) = (\d+)$/gm)
    .slice(0, native.length + 1)
    .map(([, kind]) => Number(kind))
  // A notification is a kind in lib alone.
  const all = native.concat(requests.NOTIFICATION)
  assert.deepStrictEqual(kinds, all.sort((a, b) => a - b))
  assert.ok(kinds.every(kind => kind < room))
})

test('a request of a kind that users do not see, or that is unknown, has no description', () => {
  const { BLOCKED_PUTTER, INNER, OWED, PUTTER, described, isVisible, requestOf } = requests
  for (const kind of [INNER, OWED, PUTTER, BLOCKED_PUTTER, 14, 15]) {
    assert.throws(() => described(requestOf(kind, 1)), RangeError)
  }
  const seen = Array.from({ length: 14 }, (_, kind) => kind).filter(isVisible)
  for (const kind of seen) assert.ok(kind === requests.BLOCKED_PUTTER || described(requestOf(kind, 0)).kind)
})

test('native code, the plain entry and docs have the variables of lib/util/variables.js', () => {
  const { ALL, isEnabled, ...variables } = require('../../lib/util/variables')
  const names = Object.values(variables)
  assert.deepStrictEqual(ALL, names)
  assert.deepStrictEqual(names, Object.keys(variables).map(name => `ATOMICS_WAITASYNC_${name}`))
  const native = list('src').map(textOf).join('\n')
  for (const name of names) assert.ok(native.includes(`"${name}"`), name)
  // Only the plain entry has their names a second time, since it loads no other file.
  const others = list('lib').filter(file => names.some(name => textOf(file).includes(`'${name}'`)))
  assert.deepStrictEqual(others, ['lib/util/variables.js'])
  // All that begin something at load, and no others, make the entry load the library.
  const { env } = process
  for (const name of Object.keys(env)) if (name.startsWith('ATOMICS_WAITASYNC_')) delete env[name]
  const pages = found(textOf('docs/environments.md'), /^\| `(ATOMICS_WAITASYNC_\w+)=/gm).map(([name]) => name)
  const begun = pages.filter(name => {
    env[name] = '1'
    const answer = isEnabled()
    delete env[name]
    return answer
  })
  assert.deepStrictEqual(begun.sort(), names)
})

test('every entry exports what lib/lazy.js and lib/create-entry.js list, by require and by import', () => {
  const names = text => text.match(/\w+/g)
  const late = Object.keys(require('../../lib/lazy').lazy)
  const all = Object.keys(require('../../pure'))
  assert.deepStrictEqual(all.slice(-late.length), late)
  const own = all.slice(0, -late.length)
  const [[listed]] = found(textOf('index.js').replace(/ *\/\/.*/g, ''), /^const NAMES = \[([^]*?)\]/gm)
  assert.deepStrictEqual(names(listed).sort(), all.slice().sort())
  for (const folder of ['', 'force/', 'keep-alive/', 'pure/', 'web-locks/']) {
    const text = textOf(`${folder}index.mjs`)
    const [[functions]] = found(text, /^export const \{([^]*?)\}/gm)
    assert.deepStrictEqual(names(functions).sort(), own.slice().sort(), folder)
    assert.ok(/^export \* from '.*lib\/lazy-exports\.mjs'$/m.test(text), folder)
  }
  const declared = /^export (?:declare )?(?:abstract )?(?:class|function|const|let) (\w+)/gm
  const types = found(textOf('pure/index.d.ts'), declared)
  assert.deepStrictEqual(all.filter(name => !types.some(([type]) => type === name)), [])
})

test('each class on shared memory has its row in the table of tests', () => {
  const text = textOf('lib/lazy.js')
  const classes = found(text, /^lazyClass\((\w+), \(\) => require\('\.\/(?:locks|queue)\b/gm).map(([name]) => name)
  assert.ok(classes.length > 6)
  assert.deepStrictEqual(NAMES.slice().sort(), classes.sort())
})

test('formats of messages have numbers of their own, which have room', () => {
  const numbers = found(textOf('lib/queue/format.js'), /^const (?:CLONE|TEXT|RAW) = (\d+)$/gm)
  assert.deepStrictEqual(numbers.map(([number]) => Number(number)), [0, 1, 2])
  assert.ok(numbers.length <= format.FORMATS_ROOM)
})
