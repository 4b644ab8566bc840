'use strict'

// The two pictures of the results.

const { figures } = require('./figures')
const { judge } = require('./verdict')

const WIDTH = 860
const DARK = '#1a202c'
const GREY = '#4a5568'

const escape = text => text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/`/g, '')

const text = (x, y, fill, content, more = '') => `<text x="${x}" y="${y}"${more} fill="${fill}">${escape(content)}</text>`
const rect = (x, y, width, height, fill) => `<rect x="${x}" y="${y}" width="${width.toFixed(1)}" height="${height}" fill="${fill}"/>`
const AT_END = ' text-anchor="end"'

function picture (height, name, title, subtitle, parts) {
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" font-family="system-ui, sans-serif" font-size="12" role="img">`,
    `<title>${name}</title>`,
    `<rect width="${WIDTH}" height="${height}" fill="#fff"/>`,
    text(16, 26, DARK, title, ' font-size="15" font-weight="600"'),
    text(16, 46, GREY, subtitle),
    ...parts,
    '</svg>\n'
  ].join('\n')
}

// ——— what users see of a lock and of time-outs, in absolute units, beside other locks: a bar for each that was measured on one Node ———

const PANELS = [
  { id: 'lock-workers', title: 'Two workers take one lock in loops', unit: 'thousand locks per second', better: 'more' },
  { id: 'lock-main-p99', title: 'Meanwhile main awaits it every millisecond: main\'s wait, 99th percentile', unit: 'milliseconds', better: 'less' },
  { id: 'late', title: '100 000 waits due within 100 ms: the last is late by', unit: 'milliseconds', better: 'less' }
]

/** In the order of the bars. What a figure has no value of has no bar. */
const NAMES = {
  ours: () => 'atomics-waitasync',
  host: id => id === 'late' ? 'Node\'s own waitAsync' : 'mutex of V8\'s article',
  multithreading: () => 'multithreading',
  'web-locks': () => 'Web Locks (Node\'s own)'
}

const short = value => value >= 100 ? Math.round(value).toLocaleString('en').replace(/,/g, ' ') : value.toPrecision(2)

/** @param {Object<string, { figures: Object<string, Object<string, number>>, machine: object }>} runs by Node version: the latest is shown */
function bars (runs) {
  const [left, right, bar] = [190, 90, 20]
  const version = Object.keys(runs).sort((a, b) => parseInt(a) - parseInt(b)).pop()
  const { figures: values, machine } = runs[version]
  const parts = []
  let y = 52
  for (const { id, title, unit, better } of PANELS) {
    const measured = Object.keys(NAMES).filter(name => values[id] !== undefined && values[id][name] !== undefined)
    const most = Math.max(...measured.map(name => values[id][name]))
    y += 34
    parts.push(text(16, y - 10, DARK, title, ' font-weight="600"'), text(WIDTH - 16, y - 10, GREY, `${unit}, ${better} is better`, AT_END))
    for (const name of measured) {
      const value = values[id][name]
      const width = Math.max(1, value / most * (WIDTH - left - right))
      parts.push(text(left - 10, y + 13, DARK, NAMES[name](id), AT_END), rect(left, y + 2, width, bar - 5, name === 'ours' ? '#2b6cb0' : '#a0aec0'),
        text((left + width + 8).toFixed(1), y + 13, DARK, short(value)))
      y += bar
    }
  }
  // The kind of system, without the kernel's version.
  const subtitle = `Node ${version}, ${machine.system.replace(/ .* /, ' ')}, ${machine.cores} cores, about 1 µs inside the lock; measured ${machine.date.slice(0, 10)}`
  return picture(y + 16, 'Locks and time-outs of atomics-waitasync beside others', 'Locks and time-outs, beside others', subtitle, parts)
}

// ——— the ratios to the host's own Atomics: a row for each figure, a dot for each Node, a bar where it is wanted to be ———

const COLOURS = ['#2b6cb0', '#c05621', '#2f855a', '#6b46c1', '#b83280']
/** The scale is logarithmic, between these. */
const LEAST = 0.005
const MOST = 5
const LEFT = 400
const TOP = 76
const ROW = 22

const clamp = ratio => Math.min(MOST, Math.max(LEAST, ratio))
const place = ratio => LEFT + (Math.log(clamp(ratio) / LEAST) / Math.log(MOST / LEAST)) * (WIDTH - LEFT - 20)
const dot = (x, y, n, more = '/>') => `<circle cx="${x}" cy="${y}" r="4.5" fill="${COLOURS[n % COLOURS.length]}"${more}`

/** How much of the host's cost ours is; of a throughput, the inverse. */
function costRatio (figure, values) {
  const { ratio } = values === undefined ? {} : judge(figure, values)
  return ratio === undefined || !(ratio > 0) ? undefined : figure.more ? 1 / ratio : ratio
}

function goalRatio (figure) {
  const goal = figure.goals.find(({ to }) => to === 'host')
  return goal === undefined ? undefined : goal.most === undefined ? 1 / goal.least : goal.most
}

/** @param {Object<string, { figures: Object<string, Object<string, number>> }>} runs by Node version, those of which the host has a `waitAsync` */
function chart (runs) {
  const versions = Object.keys(runs)
  const ratios = figures.filter(figure => goalRatio(figure) !== undefined)
    .map(figure => ({ figure, ratios: versions.map(version => costRatio(figure, runs[version].figures[figure.id])) }))
    .filter(({ ratios }) => ratios.some(ratio => ratio !== undefined))
  const bottom = TOP + ratios.length * ROW
  const middle = n => TOP + n * ROW + ROW / 2
  const legend = versions.flatMap((version, n) => [dot(WIDTH - 330 + n * 110, 42, n), text(WIDTH - 320 + n * 110, 46, DARK, `Node ${version}`)])
  const goals = ratios.map(({ figure }, n) => rect(LEFT, middle(n) - 7, place(goalRatio(figure)) - LEFT, 14, '#edf2f7'))
  const ticks = [0.01, 0.1, 1].flatMap(tick => {
    const x = place(tick).toFixed(1)
    return [`<line x1="${x}" y1="${TOP - 8}" x2="${x}" y2="${bottom}" stroke="${tick === 1 ? GREY : '#cbd5e0'}"/>`, text(x, bottom + 15, GREY, `${tick} ×`, ' text-anchor="middle"')]
  })
  const rows = ratios.flatMap(({ figure, ratios }, n) => [
    text(LEFT - 12, middle(n) + 4, DARK, figure.label || figure.title, AT_END),
    ...ratios.map((ratio, k) => ratio && dot(place(ratio).toFixed(1), middle(n), k, ` fill-opacity="0.85"><title>Node ${versions[k]}: ${ratio.toFixed(2)} ×</title></circle>`)).filter(Boolean)
  ])
  return picture(bottom + 24, 'What atomics-waitasync costs, as a share of what Node\'s own Atomics cost', 'Cost of atomics-waitasync, as a share of Node\'s own Atomics',
    'Left of 1 × is faster (logarithmic). The grey bar is where it is wanted to be.', [...legend, ...goals, ...ticks, ...rows])
}

module.exports = { bars, chart }
