'use strict'

// The parts of examples/processes in docs/processes.md: its programs.

const fs = require('fs')
const path = require('path')

const ROOT = path.join(__dirname, '..', '..')
const EXAMPLE = path.join(ROOT, 'examples', 'processes')

const page = path.join(ROOT, 'docs', 'processes.md')

const sourceOf = name => fs.readFileSync(path.join(EXAMPLE, name), 'utf8')

/** Returns a page with the programs of the example. A program that runs has no line with its name. */
function withEmbedded (text) {
  const main = sourceOf('index.mts')
  return text
    .replace(
      /^```ts\n(\/\/ (\w[\w-]*\.mts)\n)?[^]*?^```$/gm,
      (_, head = '', name) => `\`\`\`ts\n${head}${name ? sourceOf(name) : main}\`\`\``
    )
}

/** Returns a program's output, as the page has it below the program. */
function outputOf (text, name) {
  return new RegExp(`^// ${name.replace('.', '\\.')}\\n[^]*?^\`\`\`\\n+\`\`\`text\\n([^]*?)^\`\`\`$`, 'm').exec(text)[1]
}

module.exports = { outputOf, page, withEmbedded }
