'use strict'

// The budget of lines: docs/internals/workshop.md has that of each wing, and `npm run lint` compares.

const fs = require('fs')
const path = require('path')

const ROOT = path.join(__dirname, '..', '..')
const PAGE = path.join(ROOT, 'docs', 'internals', 'workshop.md')
/** A row: the wing, its folders and files, and how many lines it may have. */
const ROW = /^\| (\w+) \| ((?:`[\w./-]+`(?:, )?)+) \| ([\d ]+) \|/gm

/** Returns the wings of the page, each with the paths of its files: `{ name, paths, most }`. */
function wingsOf (page = fs.readFileSync(PAGE, 'utf8')) {
  return Array.from(page.matchAll(ROW), ([, name, paths, most]) =>
    ({ name, paths: paths.replace(/`/g, '').split(', '), most: Number(most.replace(/ /g, '')) }))
}

/** Returns the lines of each source file, by its path. */
function linesOfFiles () {
  const folders = ['benchmark', 'core/src', 'lib', 'scripts', 'src']
  const namesIn = folder => fs.readdirSync(path.join(ROOT, folder), { recursive: true })
  const names = folders.flatMap(folder => namesIn(folder).map(name => path.join(folder, name)))
  const sources = names.filter(name => /\.(m?js|rs)$/.test(name) && !name.includes('node_modules'))
  const linesOf = name => fs.readFileSync(path.join(ROOT, name), 'utf8').split('\n').length - 1
  return new Map(sources.map(name => [name.split(path.sep).join('/'), linesOf(name)]))
}

/** Adds up the lines of each wing; a file is in that of the longest path. Throws with the files that are in none. */
function sizes (wings = wingsOf(), lines = linesOfFiles()) {
  const longestFirst = (one, other) => other.path.length - one.path.length
  const paths = wings.flatMap(wing => wing.paths.map(path => ({ path, wing }))).sort(longestFirst)
  const sum = new Map(wings.map(wing => [wing, 0]))
  for (const [name, count] of lines) {
    const found = paths.find(({ path }) => `${name}/`.startsWith(`${path}/`))
    if (found === undefined) throw new Error(`${name} is in no wing of docs/internals/workshop.md`)
    sum.set(found.wing, sum.get(found.wing) + count)
  }
  return sum
}

/** Checks the budgets, and says how much of each is used. */
function check (sum = sizes()) {
  const said = pairs => pairs.map(([{ name, most }, lines]) => `${name} ${lines} of ${most}`).join(', ')
  const over = [...sum].filter(([{ most }, lines]) => lines > most)
  if (over.length > 0) throw new Error(`more lines than docs/internals/workshop.md allows: ${said(over)}`)
  return said([...sum])
}

module.exports = { check, sizes, wingsOf }
