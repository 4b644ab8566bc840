'use strict'

// Results as tables in Markdown.

const { VARIANTS, figures } = require('./figures')
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
const factor = value => value === undefined ? ABSENT : `${value < 0.01 ? value.toFixed(4) : value < 10 ? value.toFixed(2) : value.toFixed(0)} ×`

function rows (head, body) {
  return [`| ${head.join(' | ')} |`, `|${head.map((_, n) => n === 0 ? '---|' : '--:|').join('')}`, ...body.map(cells => `| ${cells.join(' | ')} |`)].join('\n')
}

/** Each figure beside the host's and the floor, with what was wanted; undefined if none was measured. */
function main (results) {
  const body = []
  for (const figure of figures) {
    const values = results[figure.id]
    if (values === undefined || figure.group === 'bystanders') continue
    const { ratio, noise, goals } = judge(figure, values)
    const goal = goals.map(({ text, value, reached }) => `${text}${/ × ./.test(text) && value !== undefined ? ` (${factor(value)})` : ''}`).join(', ')
    const reached = goals.map(({ reached, close }) => reached === undefined ? ABSENT : (reached ? 'yes' : '**no**') + (close ? ', within noise' : '')).join(', ')
    body.push([
      figure.title, withUnit(values.host, figure.unit), withUnit(values.ours, figure.unit), withUnit(values.floor, figure.unit),
      factor(ratio), goal || ABSENT, reached || ABSENT, noise === undefined ? ABSENT : `± ${(noise * 100).toFixed(0)} %`
    ])
  }
  if (body.length === 0) return undefined
  return rows(['', 'Node\'s own', 'this package', 'floor', 'ratio', 'to reach', 'reached', 'A/A'], body)
}

/** The locks beside each other; undefined if none was measured. */
function peers (results, failures) {
  const compared = figures.filter(figure => figure.peers !== undefined && results[figure.id] !== undefined)
  if (compared.length === 0) return undefined
  const variants = ['ours', 'host', ...figures.find(figure => figure.peers).peers].filter(variant => compared.some(({ id }) => results[id][variant] !== undefined))
  const body = compared.map((figure) => {
    const values = results[figure.id]
    return [figure.alone || figure.title, ...variants.map(variant => withUnit(values[variant], figure.unit))]
  })
  const notes = Object.entries(failures).map(([variant, reason]) => `${VARIANTS[variant]} failed while two workers contended for it: \`${reason}\`.`)
  return [rows(['', ...variants.map(variant => variant === 'host' ? 'article\'s mutex' : variant === 'ours' ? 'AsyncLock' : VARIANTS[variant])], body), ...notes].join('\n\n')
}

/** What each entry costs a program that does not use it; undefined if it was not measured. */
function bystanders (results) {
  const measured = figures.filter(({ id, group }) => group === 'bystanders' && results[id] !== undefined)
  if (measured.length === 0) return undefined
  const body = measured.map((figure) => {
    const values = results[figure.id]
    const { goals, noise } = judge(figure, values)
    const verdicts = goals.map(({ text, reached, close }) => `${text}: ${reached ? 'yes' : '**no**'}${close ? ', within noise' : ''}`).join('; ')
    return [
      figure.title, ...['host', 'floor', 'index', 'keep-alive', 'ours'].map(variant => withUnit(values[variant], figure.unit)), verdicts || ABSENT,
      noise === undefined ? ABSENT : `± ${(noise * 100).toFixed(0)} %`
    ]
  })
  return rows(['', 'without', 'an empty package', '`-r atomics-waitasync`', '`-r …/keep-alive`', '`-r …/force`', 'to reach', 'A/A'], body)
}

module.exports = { bystanders, main, peers }
