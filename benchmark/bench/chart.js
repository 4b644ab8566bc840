'use strict'

// The ratios to the host's own Atomics as a chart: a row for each figure, a dot for each Node, a bar where it is wanted to be.

const { figures } = require('./figures')
const { judge } = require('./verdict')

const COLOURS = ['#2b6cb0', '#c05621', '#2f855a', '#6b46c1', '#b83280']
/** The scale is logarithmic, between these. */
const LEAST = 0.005
const MOST = 5
const TICKS = [0.01, 0.1, 1]
const LEFT = 400
const WIDTH = 860
const TOP = 76
const ROW = 22

const escape = text => text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/`/g, '')
const clamp = ratio => Math.min(MOST, Math.max(LEAST, ratio))
const x = ratio => LEFT + (Math.log(clamp(ratio) / LEAST) / Math.log(MOST / LEAST)) * (WIDTH - LEFT - 20)

/** How much of the host's cost ours is; of a throughput, the inverse. */
function costRatio (figure, values) {
  const { ratio } = judge(figure, values)
  return ratio === undefined || !(ratio > 0) ? undefined : figure.more ? 1 / ratio : ratio
}

function goalRatio (figure) {
  const goal = figure.goals.find(({ to }) => to === 'host')
  return goal === undefined ? undefined : goal.most === undefined ? 1 / goal.least : goal.most
}

/** @param {Object<string, { figures: Object<string, Object<string, number>> }>} runs by Node version, those of which the host has a `waitAsync` */
function chart (runs) {
  const versions = Object.keys(runs)
  const shown = figures.filter(figure => goalRatio(figure) !== undefined && versions.some(version => {
    const values = runs[version].figures[figure.id]
    return values !== undefined && costRatio(figure, values) !== undefined
  }))
  const height = TOP + shown.length * ROW + 24
  const out = [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" font-family="system-ui, sans-serif" font-size="12" role="img">`,
    '<title>What atomics-waitasync costs, as a share of what Node\'s own Atomics cost</title>',
    `<rect width="${WIDTH}" height="${height}" fill="#fff"/>`,
    `<text x="16" y="26" font-size="15" font-weight="600" fill="#1a202c">Cost of atomics-waitasync, as a share of Node's own Atomics</text>`,
    '<text x="16" y="46" fill="#4a5568">Left of 1 × is faster (logarithmic). The grey bar is where it is wanted to be.</text>'
  ]
  versions.forEach((version, n) => {
    out.push(`<circle cx="${WIDTH - 330 + n * 110}" cy="42" r="4.5" fill="${COLOURS[n % COLOURS.length]}"/>`,
      `<text x="${WIDTH - 320 + n * 110}" y="46" fill="#1a202c">Node ${version}</text>`)
  })
  const bottom = TOP + shown.length * ROW
  const middle = n => TOP + n * ROW + ROW / 2
  shown.forEach((figure, n) => {
    out.push(`<rect x="${LEFT}" y="${middle(n) - 7}" width="${(x(goalRatio(figure)) - LEFT).toFixed(1)}" height="14" fill="#edf2f7"/>`)
  })
  for (const tick of TICKS) {
    const at = x(tick).toFixed(1)
    out.push(`<line x1="${at}" y1="${TOP - 8}" x2="${at}" y2="${bottom}" stroke="${tick === 1 ? '#4a5568' : '#cbd5e0'}"/>`,
      `<text x="${at}" y="${bottom + 15}" text-anchor="middle" fill="#4a5568">${tick} ×</text>`)
  }
  shown.forEach((figure, n) => {
    const y = middle(n)
    out.push(`<text x="${LEFT - 12}" y="${y + 4}" text-anchor="end" fill="#1a202c">${escape(figure.label || figure.title)}</text>`)
    versions.forEach((version, k) => {
      const values = runs[version].figures[figure.id]
      const ratio = values && costRatio(figure, values)
      if (ratio === undefined) return
      out.push(`<circle cx="${x(ratio).toFixed(1)}" cy="${y}" r="4.5" fill="${COLOURS[k % COLOURS.length]}" fill-opacity="0.85"><title>Node ${version}: ${ratio.toFixed(2)} ×</title></circle>`)
    })
  })
  out.push('</svg>')
  return out.join('\n') + '\n'
}

module.exports = { chart }
