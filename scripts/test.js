'use strict'

// `npm test`: installs and builds what is missing, then runs the linters, the Rust steps, the type tests, every __test__/*.test.js with
// every subject (see __test__/subject.js) on the oldest, the newest and the running Node, and the tests of what is published.
// `npm run test:all` runs the whole matrix. What is not run is reported with its reason.
// The last line is `N passed, N failed[, N skipped]`; the exit code is 0 only if something ran and nothing failed.

const fs = require('fs')
const path = require('path')
const { plannedSuite, runSuite } = require('./lib/node-suites')
const { Progress } = require('./lib/progress')
const { Report } = require('./lib/report')
const { plannedSteps, runStep } = require('./lib/steps')
const { parseArguments, sizeOn } = require('./lib/test-arguments')
const testFile = require('./lib/test-file')
const nodes = require('./nodes')
const setup = require('./setup')

const TESTS = path.join(__dirname, '..', '__test__')

async function main () {
  const options = parseArguments(process.argv.slice(2))
  const files = testFiles(options.only)
  const progress = new Progress()
  const report = new Report(text => progress.print(text))
  const plan = task => progress.plan(task)
  const full = options.versions.filter(version => sizeOn(version, options) === 'full')
  report.print(`Node ${options.versions.join(', ')}; long tests at their full size on ${full.join(', ') || 'none'}`)
  report.notes.push(...declaredSubjects(files))
  if (!options.all) report.notes.push(onlyInAll(files))

  // The binaries come in while the Rust part is built; `runSuite` reports what goes wrong.
  fetchAhead(options.versions)
  const prepare = { where: 'setup' }
  const steps = plannedSteps(options)
  const planned = version => plannedSuite(version, files, { subjects: options.subjects, size: sizeOn(version, options) }, plan)
  const suites = options.versions.map(planned)
  const runLane = async lane => {
    for (const step of lane) {
      progress.begin(step)
      await report.part([step.where, step.what].filter(Boolean).join(' '), () => runStep(step, report))
      progress.end(step)
    }
  }
  const runLanes = lanes => Promise.all(lanes.map(runLane))

  progress.begin(prepare)
  const prepared = !options.setup || await report.part('setup', () => prepareTree(report))
  progress.end(prepare)
  if (prepared) {
    await runLanes(steps.before)
    if (!await anyRunnable(options.versions)) suites.push(planned('current'))
    for (const suite of suites) {
      await report.part(`node ${suite.version}`, () => runSuite(suite, { report, progress, jobs: options.jobs }))
    }
    await runLanes(steps.after)
  }
  progress.close()
  return report.close()
}

function testFiles (only) {
  return fs.readdirSync(TESTS)
    .filter(name => name.endsWith('.test.js') && (only === null || only.test(name)))
    .map(name => testFile.read(path.join(TESTS, name)))
}

/** Files that ask not to be run with every subject are no skipped tests, but are listed. */
function declaredSubjects (files) {
  const groups = new Map()
  for (const { name, subjects } of files) {
    if (subjects === testFile.SUBJECTS) continue
    const key = subjects[0] === null ? 'without a subject, once per Node' : `only with ${subjects.join(', ')}`
    groups.set(key, [...(groups.get(key) || []), name])
  }
  return [...groups].map(([key, names]) => `by their own declaration run ${key}: ${names.length} files (${names.join(', ')})`)
}

/** The difference between `npm test` and `npm run test:all`. */
function onlyInAll (files) {
  const long = files.filter(file => file.long).map(({ name }) => name)
  return ['`npm run test:all` also runs the other versions of Node, the long tests at their full size on these, the models of the queue, the counts of instructions, more of what is published',
    ...(long.length > 0 ? [`and these files with every subject: ${long.join(', ')}`] : [])].join(', ')
}

async function prepareTree (report) {
  try {
    await setup.run()
    return true
  } catch (error) {
    report.fail(report.row('setup', ''), 1, 'setup', error.message)
    return false
  }
}

async function fetchAhead (versions) {
  for (const version of versions) await getNode(version)
}

/** Where none of the binaries can be fetched, the suites run on the Node at hand. */
async function anyRunnable (versions) {
  for (const version of versions) {
    if (!(await getNode(version)).skipped) return true
  }
  return false
}

async function getNode (version) {
  return Promise.resolve(version).then(nodes.get).catch(error => ({ error }))
}

/** Ends the process after everything is printed, without waiting for downloads that are no longer needed. */
function end (ok) {
  process.stdout.write('', () => process.exit(ok ? 0 : 1))
}

main().then(end, error => {
  console.error(error.message)
  end(false)
})
