'use strict'

// The steps of `npm test` that are one program each: linters, cargo, and the scripts of this folder that count their
// own tests.

const path = require('path')
const { cargo, environment } = require('./cargo')
const { howItEnded, run } = require('./child')
const { rustSteps, isMissing } = require('./rust-steps')
const { majors } = require('../nodes')

const root = path.join(__dirname, '..', '..')
const TIMEOUT = 30 * 60 * 1000

/**
 * Returns the step that builds the library, or null, and those beside the suites, in lanes: those of a lane run one
 * after the other, the lanes beside each other. A step: `where` and `what` name its row, `shown` is its command for a
 * reader, `command()` gives `{ command, args, env }`, `count` reads from its output how many tests there were; a step
 * without `count` is one test. One that `needsLibrary` begins when that is built, and is not run without it.
 */
function plannedSteps ({ all, ci, only, rust, setup, size }) {
  const everything = only === null
  const few = all ? [] : ['--few']
  // What the oldest Node makes different of them, .ci/run sees.
  const fewer = all || ci ? few : ['--few', '--node', majors.at(-1)]
  const native = [
    // Beside the build they would only delay it, and with it the suites.
    ...rustSteps.filter(({ slow }) => all || !slow).map(cargoStep),
    ...(all ? [scriptStep('spec', [], '__test__/spec/run.js'), scriptStep('instructions')] : [])
  ]
  const packages = [
    scriptStep('tarballs', fewer),
    scriptStep('engines', fewer, '__test__/engines/run.js'),
    ...(all || ci ? [scriptStep('consumers', few)] : []),
    ...(all ? [scriptStep('programs'), scriptStep('runtimes', ['--size', size || 'small'])] : [])
  ]
  // The library is built for the packages: with Rust or not at all. Types are compared with the exports of the entries.
  const [second, first] = [[scriptStep('types', few), ...(rust ? packages : [])], rust ? native : []]
  const lanes = everything ? [[lintStep, ...second.map(needing)], first.map(needing)] : []
  return { build: setup ? buildStep(everything ? [] : ['--profile', 'dev']) : null, lanes }
}

const needing = step => ({ ...step, needsLibrary: true })

const CACHE = ['--cache', '--cache-strategy=content', '--cache-location=target/eslint/']
/** The linter of JavaScript, which is its formatter, too: what it is given is in eslint.config.js. */
const ESLINT = [path.join(root, 'node_modules', 'eslint', 'bin', 'eslint.js'), root, '--max-warnings=0', ...CACHE]

const lintStep = {
  where: 'lint',
  what: '',
  shown: 'npx eslint .',
  command: () => ({ command: process.execPath, args: ESLINT })
}

const buildStep = (options) => ({ ...scriptStep('build', options), count: undefined })

function cargoStep (step) {
  const { name, args, count } = step
  return {
    where: 'rust',
    what: name,
    count,
    shown: `cargo ${args.join(' ')}`,
    command: () => ({ command: cargo(), args, env: environment() }),
    missing: ended => isMissing(step, ended) && `this toolchain has no cargo ${args[0]}`
  }
}

function scriptStep (where, args = [], script = `scripts/${where}.js`) {
  return {
    where,
    what: '',
    count: countScript,
    shown: ['node', script, ...args].join(' '),
    command: () => ({ command: process.execPath, args: [path.join(root, script), ...args] })
  }
}

/**
 * Reads the counts in the last line, and the skipped tests. It is `N passed, N failed[, N skipped]`; of each skipped
 * test there is a line `skip - what # reason`.
 */
function countScript (output) {
  const closing = /^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$/.exec(output.trimEnd().split('\n').pop())
  const skips = Array.from(output.matchAll(/^skip - (.*) # (.*)$/gm), ([, what, reason]) => ({ what, reason }))
  return closing && { passed: Number(closing[1]), failed: Number(closing[2]), skipped: Number(closing[3] || 0), skips }
}

/** Runs a step and reports it. Resolves to whether it did not fail. */
async function runStep ({ where, what, shown, count, command, missing = () => false }, report) {
  const name = [where, what].filter(Boolean).join(' ')
  const row = report.row(where, what)
  const { command: program, args, env } = command()
  const ended = await report.part(name, () => run(program, args, { cwd: root, env, timeout: TIMEOUT }))
  row.seconds = ended.seconds
  const reason = missing(ended)
  if (reason) {
    report.skip(row, 1, reason, name)
    report.done(row)
    return true
  }
  const good = ended.code === 0 && !ended.timedOut
  const counted = (count ? count(ended.output) : good && { passed: 1, failed: 0 }) || {}
  const { passed, failed, skipped: all = 0, skips = [] } = counted
  row.passed = passed || 0
  for (const { what, reason } of skips) report.skip(row, 1, reason, `${where}: ${what}`)
  if (all > skips.length) report.skip(row, all - skips.length, 'ignored in the source', name)
  if (!good || failed !== 0) {
    const uncounted = failed === undefined && 'its output does not say how many tests there were'
    const problem = howItEnded(ended) || (good && uncounted) || `exit code ${ended.code}`
    report.fail(row, failed || 1, `${shown}: ${problem}`, ended.output)
  }
  report.done(row)
  return row.failed === 0
}

module.exports = { ESLINT, plannedSteps, runStep, countScript }
