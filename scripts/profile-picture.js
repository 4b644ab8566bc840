'use strict'

// Draws the picture of docs/profiling.md, and writes its table, from a run of examples/contention with
// ATOMICS_WAITASYNC_PROFILE.
//
//   node scripts/profile-picture.js

const fs = require('fs')
const path = require('path')
const readProfile = require('../__test__/fixtures/cpuprofile')
const { command } = require('./lib/arguments')
const { succeed } = require('./lib/child')
const { withScratch } = require('./lib/scratch')

const ROOT = path.join(__dirname, '..')
const EXAMPLE = path.join(ROOT, 'examples', 'contention', 'index.mjs')
const PICTURE = path.join(ROOT, 'docs', 'profiling.svg')
const PAGE = path.join(ROOT, 'docs', 'profiling.md')
/** Between these is the table. */
const TABLE = /(<!-- table: `node scripts\/profile-picture\.js` writes it -->)[^]*?(\n<!-- -->)/

const WIDTH = 860
const MARGIN = 16
const ROW = 24
const DARK = '#1a202c'
const GREY = '#4a5568'
const COLOURS = { all: '#e2e8f0', frame: '#bee3f8', leaf: '#fbd38d' }

const escape = text => text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/"/g, '&quot;')
const milliseconds = time => `${Math.round(time)} ms`
const nameOf = ({ functionName, url, lineNumber }) =>
  `${functionName} ${path.posix.basename(url)}:${lineNumber + 1}`.trim()
/** Node's own frames say nothing of the program. */
const isOfProgram = ({ url }) => /^file:/.test(url)

/** The waits as a tree of `{ label, kind, time, children }`. */
function treeOf (rows) {
  const root = { label: 'all waits', kind: 'all', time: 0, children: [] }
  for (const { leaf, frames, milliseconds } of rows) {
    root.time += milliseconds
    let node = root
    for (const frame of frames.filter(isOfProgram).reverse()) node = childOf(node, nameOf(frame), 'frame', milliseconds)
    childOf(node, leaf, 'leaf', milliseconds)
  }
  return root
}

function childOf (node, label, kind, time) {
  let child = node.children.find(child => child.label === label)
  if (child === undefined) node.children.push(child = { label, kind, time: 0, children: [] })
  child.time += time
  return child
}

/** The boxes of a node and of what is below it; `x` from 0 to 1. */
function boxesOf (node, total, x = 0, depth = 0) {
  const boxes = [{ ...node, x, width: node.time / total, depth }]
  for (const child of node.children.sort((a, b) => b.time - a.time)) {
    boxes.push(...boxesOf(child, total, x, depth + 1))
    x += child.time / total
  }
  return boxes
}

function draw (rows) {
  const tree = treeOf(rows)
  const boxes = boxesOf(tree, tree.time)
  const inner = WIDTH - 2 * MARGIN
  const top = 60
  const height = top + ROW * (1 + Math.max(...boxes.map(({ depth }) => depth))) + MARGIN
  const parts = boxes.map(({ label, kind, time, x, width, depth }) => {
    const [left, y, w] = [MARGIN + x * inner, top + depth * ROW, width * inner]
    const text = `${label}, ${milliseconds(time)}`
    const shown = text.slice(0, Math.max(0, Math.floor((w - 8) / 6.6)))
    return (
      `<g><title>${escape(text)}</title><rect x="${left.toFixed(1)}" y="${y}" ` +
      `width="${Math.max(0.5, w - 1).toFixed(1)}" height="${ROW - 2}" fill="${COLOURS[kind]}"/>` +
      (shown.length < 4
        ? ''
        : `<text x="${(left + 5).toFixed(1)}" y="${y + 15}" fill="${DARK}">${escape(shown)}</text>`) +
        '</g>'
    )
  })
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" ` +
    'font-family="system-ui, sans-serif" font-size="12" role="img">',
    '<title>The time that the threads of examples/contention waited, by the stacks of the calls</title>',
    `<rect width="${WIDTH}" height="${height}" fill="#fff"/>`,
    `<text x="${MARGIN}" y="26" fill="${DARK}" font-size="15" font-weight="600">` +
    'Where three threads waited, and for what</text>',
    `<text x="${MARGIN}" y="46" fill="${GREY}">Width is time waited. ` +
    'Below the lines of the program, the locks that they waited for: examples/contention.</text>',
    ...parts,
    '</svg>\n'
  ].join('\n')
}

/** The heaviest lines, as far as they have a hundredth of the time. */
function tableOf (rows) {
  const total = rows.reduce((sum, { milliseconds }) => sum + milliseconds, 0)
  const shown = rows.filter(({ milliseconds }) => milliseconds >= total / 100)
  return [
    '| waited | of all | line | for |',
    '|--:|--:|---|---|',
    ...shown.map(({ leaf, frames, milliseconds: time }) => {
      const share = Math.round((100 * time) / total)
      return `| ${milliseconds(time)} | ${share} % | \`${nameOf(frames.find(isOfProgram))}\` | ${leaf} |`
    })
  ].join('\n')
}

command(() => withScratch(async scratch => {
  const file = path.join(scratch, 'contention.cpuprofile')
  await succeed(process.execPath, [EXAMPLE], { env: { ...process.env, ATOMICS_WAITASYNC_PROFILE: file } })
  const { rows } = readProfile(file)
  fs.writeFileSync(PICTURE, draw(rows))
  fs.writeFileSync(
    PAGE,
    fs.readFileSync(PAGE, 'utf8').replace(TABLE, (_, begin, end) => `${begin}\n${tableOf(rows)}${end}`)
  )
}))
