'use strict'

// `npm test`: installs and builds what is missing, then runs the linters, the Rust steps, the type tests, every test file of __test__/
// with every subject (see __test__/subject.js) on the oldest, the newest and the running Node, and the tests of what is published.
// `npm run test:all` runs the whole matrix. What is not run is reported with its reason.
// The last line is `N passed, N failed[, N skipped]`; the exit code is 0 only if something ran and nothing failed.

const { command } = require('./lib/arguments')
const { cargo } = require('./lib/cargo')
const { runSuite } = require('./lib/node-suites')
const { Report } = require('./lib/report')
const { plannedSteps, runStep } = require('./lib/steps')
const { parseArguments, sizeOn } = require('./lib/test-arguments')
const testFile = require('./lib/test-file')
const setup = require('./setup')

async function main () {
  const options = parseArguments(process.argv.slice(2))
  const { versions, subjects, jobs, only } = options
  const files = testFile.names().filter(name => only === null || only.test(name)).map(testFile.named)
  const report = new Report()
  const full = versions.filter(version => sizeOn(version, options) === 'full')
  report.print(`Node ${versions.join(', ')}; long tests at their full size on ${full.join(', ') || 'none'}`)

  const steps = plannedSteps(options)
  const runLane = async lane => {
    for (const step of lane) if (!await runStep(step, report) && step.required) return false
    return true
  }
  const runLanes = async lanes => (await Promise.all(lanes.map(runLane))).every(Boolean)
  // Without cargo most steps would fail.
  const prepared = !options.setup || await report.part('setup', setup.installDependencies).then(cargo)
    .then(() => true, error => report.fail(report.row('setup', ''), 1, 'setup', error.message))
  if (prepared && await runLanes(steps.before)) {
    for (const version of versions) {
      await report.part(`node ${version}`, () => runSuite(version, files, { subjects, size: sizeOn(version, options), jobs, report }))
    }
    await runLanes(steps.after)
  }
  if (!report.close()) process.exitCode = 1
}

command(main)
