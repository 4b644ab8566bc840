'use strict'

// Tables that several files have: lib/, and of Nodes and platforms scripts/, has each once, and `npm run lint -- --fix`
// writes it into the others.

const fs = require('fs')
const path = require('path')
const { lazy } = require('../../lib/lazy')
const { ALL } = require('../../lib/util/variables')
const processes = require('../../lib/processes')
const { NOTIFIED } = require('../../lib/waiting/errors')
const { majors } = require('../nodes')
const { targets } = require('./targets')
const { admits } = require('./test-file')

const root = path.join(__dirname, '..', '..')
const WIDTH = 120

const names = Object.keys(lazy)
const classes = names.filter(name => /^[A-Z]/.test(name))
const quoted = name => `'${name}'`
const notified = new Set(NOTIFIED.map(({ kind }) => kind))
notified.delete('wait')
const kinds = new Set(['AsyncLock', 'RwLock', 'Semaphore', ...notified, 'named', 'wait'])
const rust = ({ kind, mode, part }) => (
  `    ("${kind}", ${mode === undefined ? 'None' : `Some("${mode}")`}, "${part}"),\n`)

/** Joins words to lines that are indented by two spaces. */
function lines (words) {
  const made = []
  for (const word of words.map((word, n) => n < words.length - 1 ? `${word},` : word)) {
    const line = `${made[made.length - 1]} ${word}`
    if (made.length > 0 && line.length <= WIDTH) made[made.length - 1] = line
    else made.push(`  ${word}`)
  }
  return `${made.join('\n')}\n`
}

/** Makes a function that returns a file's text with the table as it should be, between what stays. */
const between = (begin, end, table) => text => {
  const parts = new RegExp(`(${begin})[^]*?(${end})`)
  if (!parts.test(text)) throw new Error(`a file has no place for a table: ${begin}`)
  return text.replace(parts, (_, before, after) => before + table + after)
}

/** The rows of the classes in the README, for the index of docs/: without what happens when a thread dies. */
const rows = fs.readFileSync(path.join(root, 'README.md'), 'utf8').match(/^\| \[`\w+`\]\(docs\/.*$/gm)
const indexRows = rows.map(row => row.replace('(docs/', '(').replace(/^(\|[^|]*\|[^|]*\|).*$/, '$1\n')).join('')

const newest = majors.at(-1)
/** The workflow's tests of platforms: `nodes` behind a target; in containers there is none with an odd number. */
const PLATFORM = /(\btarget: ([\w-]+)(?:$|, os)(?:(?!target:)[^])*?\bnodes: )'([^']*)'/gm
const withNodes = text => text.replace(PLATFORM, (_, before, name, former) => {
  const { nodes: range } = targets[name]
  const all = majors.filter(major => admits(range ? { range } : null, major))
  return `${before}'${former.includes(' ') ? all.filter(major => major % 2 === 0).join(' ') : all.join(',')}'`
})

const union = between('\\n {2}kind: (?=\'AsyncLock\')', '\\n', [...kinds].map(quoted).join(' | '))
const written = [
  ['index.js', between('// Those of lib/lazy\\.js\\.\\n', '\\]\\n', lines(names.map(quoted)))],
  ['index.js', between('const VARIABLES = \\[\\n', '\\]\\n', lines(ALL.map(quoted)))],
  ['lib/lazy-exports.mjs', between('export const \\{\\n', '\\} = ', lines(names))],
  ['core/src/observe/rows.rs', between('const NOTIFIED: .*\\n', '\\];\\n', NOTIFIED.map(rust).join(''))],
  ['pure/index.d.ts', union],
  ['docs/debugging.md', union],
  ['docs/README.md', between('\\| \\[Named locks\\].*\\n', '\\| \\[Repairing ', indexRows)],
  ['docs/entry-points.md', between('\\nclass (?=AsyncLock)', '\\n', classes.join(', '))],
  ['processes/index.mjs', between('export const \\{', '\\} = ', ` ${Object.keys(processes).sort().join(', ')} `)],
  ['README.md', between('Node\\.js 10\\.16 to ', '\\*', newest)],
  ['docs/platforms.md', between('\\nNode\\.js from 10\\.16 to ', '\\.', newest)],
  ['docs/platforms.md', between('the machine itself \\| 10 to ', ' ', newest)],
  ['.github/workflows/engines.yml', text => text.replace(/(node-version: )\d+/g, `$1${newest}`)],
  ['.github/workflows/reliability.yml', between('soak:[^]*?node: \\[', '\\]', majors.join(', '))],
  ['.github/workflows/reliability.yml', between('kills:[^]*?node: \\[14, 20, ', '\\]', majors.slice(-2).join(', '))],
  ['.github/workflows/release.yml', withNodes]
]

module.exports = written.map(([file, corrected]) => [path.join(root, file), corrected])
