'use strict'

// Texts of programs and of users: ten times as many characters take at most some ten times as long, whatever they are.

const assert = require('assert')
const { test } = require('../harness')
const { onAQuietMachine } = require('../fixtures/queue-toolbox')
const letStart = require('../../lib/install/workers/by-message/source')
const { createException } = require('../../lib/named/arguments')
const { nounOf } = require('../../lib/waiting/errors')
const { assertOptions, describe } = require('../../lib/util/values')

const [SHORT, LONG] = [10000, 100000]
/** A quadratic cost would be that of a hundred times as many characters. */
const MOST = 40

/** Repeats a text, up to a number of characters. */
const filled = (text) => (length) => text.repeat(Math.ceil(length / text.length)).slice(0, length)
const between = (before, text, after) => (length) => before + filled(text)(length) + after

/**
 * The beginnings of what the package looks for in a text, each many times; none of them compiles as a script, which
 * would end the search.
 */
const TEXTS = {
  'blank lines': between('', '\n', ';export{'),
  'blank lines of Windows': between('', '\r\n', ';export{'),
  'other ends of lines': between('', '\u2028\u2029', ';export{'),
  spaces: between('', ' ', ';export{'),
  'lines of spaces': between('', '          \n', ';export{'),
  'line comments': between('', '// import\n', ';export{'),
  'block comments': between('', '/* export */', ';export{'),
  'a comment that is not closed': between('/*', ' import\n', ''),
  'a string that is not closed': between('import "', 'a', ''),
  'a template that is not closed': between('import `', '${', ''),
  'a regular expression that is not closed': between('import /', '[', ''),
  'a hashbang': between('#!', ' ', '\nimport {'),
  'blank lines behind a word': between('import', '\n', '('),
  'blank lines behind a point': between('.', '\n', 'constructor import {'),
  words: filled('import '),
  'words with a parenthesis': filled('import\n(\n'),
  'words with a point': filled('import . '),
  'points and spaces': filled('. '),
  points: filled('.'),
  commas: filled(','),
  'percent signs': filled('%'),
  parentheses: filled('(')
}

/** Messages that start a Worker with a text. */
const MESSAGES = {
  'a script or module': text => ({ doEval: true, filename: text }),
  'a module': text => ({ doEval: 'module', filename: text }),
  'a data: URL': text => ({
    doEval: 'data-url',
    filename: 'data:text/javascript,import.meta;' + encodeURIComponent(text)
  }),
  'an odd data: URL': text => ({
    doEval: 'data-url',
    filename: 'data:text/javascript' + text.replace(/[\r\n\u2028\u2029]/g, ';base64')
  }),
  'a Worker as in browsers': text => ({
    doEval: 'classic',
    filename: 'x.js',
    webWorkerData: { type: 'classic', source: text }
  })
}

/** Returns the milliseconds of processor time: the least of three, since other work only adds to it. */
function timeOf (run) {
  const times = [0, 1, 2].map(() => {
    const begin = process.cpuUsage()
    run()
    const { user, system } = process.cpuUsage(begin)
    return (user + system) / 1e3
  })
  return Math.min(...times)
}

/** Checks the cost of `run`, given texts of a kind. Less than a millisecond is none. */
const assertLinear = (textOf, run, what) => onAQuietMachine(() => {
  const [short, long] = [SHORT, LONG].map(length => {
    const text = textOf(length)
    return timeOf(() => run(text))
  })
  assert.ok(long < MOST * Math.max(short, 1), `${what}: ${SHORT} characters ${short} ms, ${LONG} characters ${long} ms`)
})

for (const how of Object.keys(MESSAGES)) {
  test(`a Worker of a long text, as ${how}`, async () => {
    for (const kind of Object.keys(TEXTS))
      await assertLinear(TEXTS[kind], text => letStart(MESSAGES[how](text), ['force.js']), kind)
  })
}

test('long texts in errors', async () => {
  const message = (run) => { try { run() } catch (error) { return error.message } }
  const uses = {
    'an unknown option': (text) => message(() => assertOptions({ [text]: 1 }, ['timeout'], 'lock')),
    'a value': (text) => describe(text),
    'a name': (text) => nounOf({ kind: 'named', name: text }),
    'a DOMException': (text) => createException('AbortError', describe(text))
  }
  for (const use of Object.keys(uses)) {
    for (const kind of Object.keys(TEXTS)) await assertLinear(TEXTS[kind], uses[use], `${use}, ${kind}`)
  }
})
