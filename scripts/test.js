'use strict'

// `npm test`: installs and builds missing parts, then runs, beside each other, the linters, the Rust steps, the type
// tests, the files of __test__ with every subject (see __test__/subject.js) on the running Node, those that the oldest
// Node makes different on that one, the tests of the packed package, and those of process locks that need no server.
// `.ci/run` runs on more Nodes what may differ there, `npm run test:all` all on all. Skips are reported with their
// reasons. The last line is `N passed, N failed[, N skipped]`; the exit code is 0 only if something ran and nothing
// failed.

const { command } = require('./lib/arguments')
const { cargo } = require('./lib/cargo')
const { runSuites } = require('./lib/node-suites')
const { Report } = require('./lib/report')
const { plannedSteps } = require('./lib/steps')
const { parseArguments, sizeOn } = require('./lib/test-arguments')
const testFile = require('./lib/test-file')
const setup = require('./setup')

async function main () {
  const options = parseArguments(process.argv.slice(2))
  const { suites, subjects, jobs, only } = options
  const files = testFile.names().filter(name => only === null || only.test(name)).map(testFile.named)
  const report = new Report()
  for (const line of introduction(options)) report.print(line)

  // Without cargo most steps would fail.
  const prepared = !options.setup || await report.part('setup', setup.installDependencies).then(cargo)
    .then(() => true, error => report.fail(report.row('setup', ''), 1, 'setup', error.message))
  if (prepared) {
    const planned = suites.map(({ version, filesOf }) =>
      ({ version, files: filesOf(files), subjects, size: sizeOn(version, options) })
    )
    await runSuites(planned, { ...plannedSteps(options), jobs, report })
  }
  if (!report.close()) process.exitCode = 1
}

/** Says which runs come, and how to repeat them. */
function introduction (options) {
  const { suites, daily } = options
  const full = suites.filter(({ version }) => sizeOn(version, options) === 'full').map(({ version }) => version)
  const names = suites.map(({ version, note = '' }) => version + note)
  return [
    `Node ${names.join(', ')}`,
    ...(daily.length > 0
      ? [`today's are ${daily.join(' and ')}: .ci/run --node ${daily.join(',')} takes them again`]
      : []),
    ...(full.length > 0 ? [`long tests at their full size on ${full.join(', ')}`] : [])
  ]
}

command(main)
