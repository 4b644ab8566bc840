'use strict'

// `npm run lint`: the budget of lines, rustfmt, clippy, cargo deny, and the linter of JavaScript; with `-- --fix` they
// mend what they can. A linter that is not installed is skipped; with `--all`, as continuous integration runs it, that
// is a failure.

const fs = require('fs')
const path = require('path')
const { argumentsOf, command } = require('./lib/arguments')
const { cargo, environment } = require('./lib/cargo')
const { run, succeed, succeeded } = require('./lib/child')
const { Results } = require('./lib/results')
const { rustSteps, isMissing } = require('./lib/rust-steps')
const { ESLINT } = require('./lib/steps')
const budget = require('./lib/budget')
const generated = require('./lib/generated')
const setup = require('./setup')

const root = path.join(__dirname, '..')

async function main () {
  const { fix, all } = argumentsOf(__filename, { fix: { type: 'boolean' }, all: { type: 'boolean' } })
  await setup.installDependencies()

  for (const [file, corrected] of fix ? generated : []) fs.writeFileSync(file, corrected(fs.readFileSync(file, 'utf8')))
  const results = new Results()
  await results.of('javascript', async () => {
    await succeed(process.execPath, [...ESLINT, ...(fix ? ['--fix'] : [])], { cwd: root })
  })
  await results.of('lines', () => budget.check())
  for (const step of rustSteps.filter(({ lint }) => lint)) {
    const words = fix && step.name === 'fmt' ? ['fmt', '--all'] : step.args
    const ended = await run(cargo(), words, { cwd: root, env: environment() })
    const reason = isMissing(step, ended) && `this toolchain has no cargo ${words[0]}`
    await results.of(step.name, () => { succeeded(ended, ['cargo', ...words]) }, reason)
  }
  results.close()
  if (all && results.skipped > 0) process.exitCode = 1
}

command(main)
