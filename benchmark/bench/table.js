'use strict'

// Results as tables in Markdown.

const { ALONE, VARIANTS, figures } = require('./figures')
const { judge } = require('./verdict')

const ABSENT = '–'

function number (value, unit) {
  if (value === undefined || value === null) return ABSENT
  if (unit === '' || unit === '/s') return group(value.toFixed(0))
  const size = Math.abs(value)
  return group(size >= 100 ? value.toFixed(0) : size >= 10 ? value.toFixed(1) : size === 0 ? '0' : value.toFixed(2))
}

/** Thousands apart. */
function group (text) {
  const [whole, rest] = text.split('.')
  return whole.replace(/\B(?=(\d{3})+$)/g, ' ') + (rest ? '.' + rest : '')
}

const withUnit = (value, unit) => value === undefined ? ABSENT : `${number(value, unit)} ${unit}`.trim()
const digits = value => value < 0.01 ? 4 : value < 10 ? 2 : 0
const factor = value => value === undefined ? ABSENT : `${value.toFixed(digits(value))} ×`

function rows (head, body) {
  return [
    `| ${head.join(' | ')} |`,
    `|${head.map((_, n) => (n === 0 ? '---|' : '--:|')).join('')}`,
    ...body.map((cells) => `| ${cells.join(' | ')} |`)
  ].join('\n')
}

/**
 * Figures with some variants of each, and with their goals; undefined if none was measured. `columns`: from variants to
 * titles.
 */
function compared (results, chosen, columns) {
  const body = chosen.filter(({ id }) => results[id] !== undefined).map((figure) => {
    const values = results[figure.id]
    const { ratio, noise, goals } = judge(figure, values)
    const spread = noise === undefined ? ABSENT : `± ${(noise * 100).toFixed(0)} %`
    const cells = Object.keys(columns).map(variant => withUnit(values[variant], figure.unit))
    const [goal, reached] = [goalText, reachedText].map(text => goals.map(text).join(', ') || ABSENT)
    return [figure.title, ...cells, factor(ratio), goal, reached, spread]
  })
  if (body.length === 0) return undefined
  return rows(['', ...Object.values(columns), 'ratio', 'to reach', 'reached', 'A/A'], body)
}

/** Writes a goal; one that is compared with another thing than the host has its value beside it. */
const goalText = ({ text, value }) => text + (/ × ./.test(text) && value !== undefined ? ` (${factor(value)})` : '')

function reachedText ({ reached, close }) {
  if (reached === undefined) return ABSENT
  return (reached ? 'yes' : '**no**') + (close ? ', within noise' : '')
}

/** Figures whose names begin so have a table of their own. */
const APART = ['by-', 'process-']
const [ofBystanders, ofProcesses] = APART.map(start => figures.filter(({ id }) => id.startsWith(start)))
const others = figures.filter(({ id }) => !APART.some(start => id.startsWith(start)))

/** Makes the table of each figure beside the host's and the floor. */
const main = results => compared(results, others, { host: 'Node\'s own', ours: 'this package', floor: 'floor' })

/** Makes the table of each entry's costs for bystanders. */
const bystanders = (results) =>
  compared(results, ofBystanders, {
    host: 'without',
    floor: 'an empty package',
    index: '`-r atomics-waitasync`',
    'keep-alive': '`-r …/keep-alive`',
    ours: '`-r …/force`'
  })

/** Makes the table of the locks of several processes. */
const processes = results => compared(results, ofProcesses, {
  ours: '`files(folder)`', memory: '`memory(folder)`', shared: 'in shared memory, `AsyncLock`',
  'wait-for-lock': 'fs-native-extensions, `waitForLock`', 'proper-lockfile': 'proper-lockfile',
  redis: 'Redis, by hand', 'process.send': 'a server by `process.send`'
})

/** Returns the locks beside each other; undefined if none was measured. */
function peers (results, failures) {
  const measured = figures.filter(figure => figure.peers !== undefined && results[figure.id] !== undefined)
  if (measured.length === 0) return undefined
  const candidates = ['ours', 'host', ...figures.find(figure => figure.peers).peers]
  const variants = candidates.filter(variant => measured.some(({ id }) => results[id][variant] !== undefined))
  const body = measured.map((figure) => {
    const values = results[figure.id]
    return [ALONE[figure.id] || figure.title, ...variants.map(variant => withUnit(values[variant], figure.unit))]
  })
  const notes = Object.entries(failures).map(
    ([variant, reason]) => `${VARIANTS[variant]} failed while two workers contended for it: \`${reason}\`.`
  )
  const titles = { ...VARIANTS, host: 'article\'s mutex', ours: 'AsyncLock' }
  return [rows(['', ...variants.map(variant => titles[variant])], body), ...notes].join('\n\n')
}

module.exports = { bystanders, main, peers, processes }
