'use strict'

// The parts of examples/processes in docs/processes.md: the programs, and the table of the measured figures.

const fs = require('fs')
const path = require('path')

const ROOT = path.join(__dirname, '..', '..')
const EXAMPLE = path.join(ROOT, 'examples', 'processes')
const FIGURES = /(<!-- figures -->\n)[^]*?(?=\n\n)/

const page = path.join(ROOT, 'docs', 'processes.md')

const sourceOf = name => fs.readFileSync(path.join(EXAMPLE, name), 'utf8')

/** Returns a page with the programs and the table of the example. A program that runs has no line with its name. */
function withEmbedded (text) {
  const main = sourceOf('index.mts')
  return text
    .replace(
      /^```ts\n(\/\/ (\w[\w-]*\.mts)\n)?[^]*?^```$/gm,
      (_, head = '', name) => `\`\`\`ts\n${head}${name ? sourceOf(name) : main}\`\`\``
    )
    .replace(FIGURES, (_, marker) => marker + table(JSON.parse(sourceOf('figure/figures.json'))))
}

/** Makes the table: with the named lock in front, and in brackets without it. */
function table ({ engines }) {
  const number = value => String(value).replace(/\B(?=(\d{3})+$)/g, ' ')
  const row = (name, { front, alone }) => {
    const cell = (value, round = 0) =>
      `${number(Number(front[value].toFixed(round)))} (${number(Number(alone[value].toFixed(round)))})`
    return `| ${name} | ${cell('free', 2)} | ${cell('grants')} | ${cell('next')} |`
  }
  return [
    '| with the named lock in front (without it) | a free lock, ms | locks a second | kill -9 to the next, ms |',
    '|---|--:|--:|--:|',
    ...Object.entries(engines).map(([name, values]) => row(name, values))
  ].join('\n')
}

/** Returns a program's output, as the page has it below the program. */
function outputOf (text, name) {
  return new RegExp(`^// ${name.replace('.', '\\.')}\\n[^]*?^\`\`\`\\n+\`\`\`text\\n([^]*?)^\`\`\`$`, 'm').exec(text)[1]
}

module.exports = { outputOf, page, withEmbedded }
