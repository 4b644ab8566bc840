'use strict'

// `npm run lint`: rustfmt, clippy, cargo deny, and the linter of JavaScript; `npm run lint -- --fix` lets them mend. A linter that is not
// installed is skipped; with `--all`, as continuous integration runs it, that is a failure.

const fs = require('fs')
const path = require('path')
const { argumentsOf, command } = require('./lib/arguments')
const { cargo, environment } = require('./lib/cargo')
const { run } = require('./lib/child')
const { javascriptLint } = require('./lib/javascript-lint')
const { rustSteps, isMissing } = require('./lib/rust-steps')
const { architecture, withMap } = require('./lib/lib-map')
const setup = require('./setup')

const root = path.join(__dirname, '..')

async function main () {
  const { fix, all } = argumentsOf('npm run lint [-- --fix] [--all]', { fix: { type: 'boolean' }, all: { type: 'boolean' } })
  await setup.installDependencies()

  const say = (name, state, output = '') => {
    console.log(`${state.padEnd(8)}${name}${output.trim() && `\n${output.trim()}\n`}`)
    if (state === 'failed' || (state === 'skipped' && all)) process.exitCode = 1
  }
  if (fix) fs.writeFileSync(architecture, withMap(fs.readFileSync(architecture, 'utf8')))
  const { args, skipped } = javascriptLint({ fix })
  if (skipped) say('javascript', 'skipped', skipped)
  else judge('javascript', await run(process.execPath, args, { cwd: root }))

  for (const step of rustSteps.filter(({ lint }) => lint)) {
    const ended = await run(cargo(), fix && step.name === 'fmt' ? ['fmt'] : step.args, { cwd: root, env: environment() })
    if (isMissing(step, ended)) say(step.name, 'skipped', `this toolchain has no cargo ${step.args[0]}`)
    else judge(step.name, ended)
  }

  function judge (name, { error, code, output }) {
    if (error || code !== 0) say(name, 'failed', error ? error.message : output)
    else say(name, 'passed')
  }
}

command(main)
