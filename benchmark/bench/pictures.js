'use strict'

// The picture of the results: what users see of a lock and of timeouts, in absolute units, beside other locks. It has a
// bar for each that was measured on one Node.

const WIDTH = 860
const DARK = '#1a202c'
const GREY = '#4a5568'

const escape = text => text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/`/g, '')

const text = (x, y, fill, content, more = '') =>
  `<text x="${x}" y="${y}"${more} fill="${fill}">${escape(content)}</text>`
const rect = (x, y, width, height, fill) =>
  `<rect x="${x}" y="${y}" width="${width.toFixed(1)}" height="${height}" fill="${fill}"/>`
const AT_END = ' text-anchor="end"'

const MAIN_WAITS = "Meanwhile main awaits it every millisecond: main's wait, 99th percentile"
/** Each: the figure, its title and its unit. */
const PANELS = [
  ['lock-workers', 'Two workers take one lock in loops', 'thousand locks per second, more is better'],
  ['lock-main-p99', MAIN_WAITS, 'milliseconds, less is better'],
  ['late', '100 000 waits due within 100 ms: the last is late by', 'milliseconds, less is better']
]

/** In the order of the bars. A variant without a value has no bar. */
const NAMES = {
  ours: () => 'atomics-waitasync',
  host: id => id === 'late' ? 'Node\'s own waitAsync' : 'mutex of V8\'s article',
  multithreading: () => 'multithreading',
  'web-locks': () => 'Web Locks (Node\'s own)'
}

const short = value => value >= 100 ? Math.round(value).toLocaleString('en').replace(/,/g, ' ') : value.toPrecision(2)

/**
 * @param {Object<string, { figures: Object<string, Object<string, number>>, machine: object }>} runs by Node version:
 * the latest is shown
 */
function bars (runs) {
  const [left, right, bar] = [190, 90, 20]
  const version = Object.keys(runs).sort((a, b) => parseInt(a) - parseInt(b)).pop()
  const { figures: values, machine } = runs[version]
  const parts = []
  let y = 52
  for (const [id, title, unit] of PANELS) {
    const measured = Object.keys(NAMES).filter(name => values[id] !== undefined && values[id][name] !== undefined)
    const most = Math.max(...measured.map(name => values[id][name]))
    y += 34
    parts.push(
      text(16, y - 10, DARK, title, ' font-weight="600"'),
      text(WIDTH - 16, y - 10, GREY, unit, AT_END)
    )
    for (const name of measured) {
      const value = values[id][name]
      const width = Math.max(1, value / most * (WIDTH - left - right))
      parts.push(
        text(left - 10, y + 13, DARK, NAMES[name](id), AT_END),
        rect(left, y + 2, width, bar - 5, name === 'ours' ? '#2b6cb0' : '#a0aec0'),
        text((left + width + 8).toFixed(1), y + 13, DARK, short(value))
      )
      y += bar
    }
  }
  // The kind of system, without the kernel's version.
  const where = `Node ${version}, ${machine.system.replace(/ .* /, ' ')}, ${machine.cores} cores`
  const subtitle = `${where}, about 1 µs inside the lock; measured ${machine.date.slice(0, 10)}`
  const height = y + 16
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" ` +
    'font-family="system-ui, sans-serif" font-size="12" role="img">',
    '<title>Locks and timeouts of atomics-waitasync beside others</title>',
    `<rect width="${WIDTH}" height="${height}" fill="#fff"/>`,
    text(16, 26, DARK, 'Locks and timeouts, beside others', ' font-size="15" font-weight="600"'),
    text(16, 46, GREY, subtitle),
    ...parts,
    '</svg>\n'
  ].join('\n')
}

module.exports = { bars }
