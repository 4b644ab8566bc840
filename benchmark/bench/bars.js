'use strict'

// What users see of a lock and of time-outs, in absolute units, beside other locks: a bar for each that was measured on one Node.

const { figures } = require('./figures')

const PANELS = [
  { id: 'lock-workers', title: 'Two workers take one lock in loops', unit: 'thousand locks per second', better: 'more' },
  { id: 'lock-main-p99', title: 'Meanwhile main awaits it every millisecond: main\'s wait, 99th percentile', unit: 'milliseconds', better: 'less' },
  { id: 'late', title: '100 000 waits due within 100 ms: the last is late by', unit: 'milliseconds', better: 'less' }
]

/** In the order of the bars. What a figure has no value of has no bar. */
const NAMES = {
  ours: 'atomics-waitasync',
  host: { 'lock-workers': 'mutex of V8\'s article', 'lock-main-p99': 'mutex of V8\'s article', late: 'Node\'s own waitAsync' },
  multithreading: 'multithreading',
  'web-locks': 'Web Locks (Node\'s own)'
}

const WIDTH = 860
const LEFT = 190
const RIGHT = 90
const TOP = 52
const BAR = 20
const HEAD = 34
const OURS = '#2b6cb0'
const OTHER = '#a0aec0'

/** The kind of system and of processor, without the kernel's version. */
const platform = system => system.replace(/ .* /, ' ')

const escape = text => text.replace(/&/g, '&amp;').replace(/</g, '&lt;')
const short = value => value >= 100 ? Math.round(value).toLocaleString('en').replace(/,/g, ' ') : value.toPrecision(2)

/** @param {Object<string, { figures: Object<string, Object<string, number>>, machine: object }>} runs by Node version: the latest is shown */
function bars (runs) {
  const version = Object.keys(runs).sort((a, b) => parseInt(a) - parseInt(b)).pop()
  const { figures: values, machine } = runs[version]
  const out = []
  let y = TOP
  for (const { id, title, unit, better } of PANELS) {
    if (!figures.some(figure => figure.id === id)) throw new Error(`there is no figure ${id}`)
    const measured = Object.keys(NAMES).filter(name => values[id] !== undefined && values[id][name] !== undefined)
    const most = Math.max(...measured.map(name => values[id][name]))
    y += HEAD
    out.push(`<text x="16" y="${y - 10}" font-weight="600" fill="#1a202c">${escape(title)}</text>`,
      `<text x="${WIDTH - 16}" y="${y - 10}" text-anchor="end" fill="#4a5568">${unit}, ${better} is better</text>`)
    for (const name of measured) {
      const value = values[id][name]
      const width = Math.max(1, value / most * (WIDTH - LEFT - RIGHT))
      const label = typeof NAMES[name] === 'string' ? NAMES[name] : NAMES[name][id]
      out.push(`<text x="${LEFT - 10}" y="${y + 13}" text-anchor="end" fill="#1a202c">${escape(label)}</text>`,
        `<rect x="${LEFT}" y="${y + 2}" width="${width.toFixed(1)}" height="${BAR - 5}" fill="${name === 'ours' ? OURS : OTHER}"/>`,
        `<text x="${(LEFT + width + 8).toFixed(1)}" y="${y + 13}" fill="#1a202c">${short(value)}</text>`)
      y += BAR
    }
  }
  const height = y + 16
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" font-family="system-ui, sans-serif" font-size="12" role="img">`,
    '<title>Locks and time-outs of atomics-waitasync beside others</title>',
    `<rect width="${WIDTH}" height="${height}" fill="#fff"/>`,
    '<text x="16" y="26" font-size="15" font-weight="600" fill="#1a202c">Locks and time-outs, beside others</text>',
    `<text x="16" y="46" fill="#4a5568">${escape(`Node ${version}, ${platform(machine.system)}, ${machine.cores} cores, about 1 µs inside the lock; measured ${machine.date.slice(0, 10)}`)}</text>`,
    ...out,
    '</svg>'
  ].join('\n') + '\n'
}

module.exports = { bars }
