'use strict'

// The test files on the Nodes of a run, each with every subject that it declares, and the steps beside them.

const testFile = require('./test-file')
const nodes = require('../nodes')
const { inParallel } = require('./in-parallel')
const { indent } = require('./report')
const { runStep } = require('./steps')

/** Returns the subjects of a file in a suite; of a long file in a small run, the last one only. */
function subjectsOf (file, subjects, size) {
  return subjects.filter(subject => file.subjects.includes(subject)).slice(file.long && size === 'small' ? -1 : 0)
}

/**
 * Runs and reports the files of all suites and the steps beside them, `jobs` at a time: first the lanes of steps, then
 * the files, the longest first, so that none is left alone at the end. What needs the library waits for it.
 * @param {{ version: string, files: object[], subjects: (?string)[], size: string }[]} suites `size`: the TEST_SIZE of
 *   the files (see __test__/fixtures/size.js)
 * @param {{ build: ?object, lanes: object[][] }} steps see `plannedSteps`
 */
async function runSuites (suites, { build = null, lanes = [], jobs, report }) {
  const built = build === null ? Promise.resolve(true) : runStep(build, report)
  const tasks = { together: [], alone: [], again: [] }
  const rows = []
  for (const suite of suites) rows.push(...await planSuite(suite, tasks, report))
  tasks.together.sort((one, other) => other.most - one.most)

  const withLibrary = files => files.map(({ run }) => async () => { if (await built) await run() })
  const runLane = async lane => {
    for (const step of lane) if (!step.needsLibrary || await built) await runStep(step, report)
  }
  await inParallel([...lanes.map(lane => () => runLane(lane)), ...withLibrary(tasks.together)], jobs)
  await inParallel(withLibrary(tasks.alone), 1)
  await inParallel(tasks.again, 1)
  for (const row of rows) report.done(row)
}

/** Returns the seconds that a file may take; twice as many if all that it does is long. */
const mostOf = file => file.timeout * (file.long ? 2 : 1)

/** Adds the runs of a suite to the tasks; its rows in the report. */
async function planSuite ({ version, files, subjects, size }, tasks, report) {
  const node = await nodes.get(version).catch(error => ({ version, error }))
  const where = `node ${node.version}`
  if (node.error || node.skipped) {
    const row = report.row(where, '')
    if (node.error) report.fail(row, 1, `Node ${version} could not be fetched`, node.error.message)
    else report.skip(row, 1, node.skipped, `all of Node ${node.version}`)
    return [row]
  }
  const rows = new Map()
  for (const subject of subjects) {
    for (const file of files.filter(file => subjectsOf(file, subjects, size).includes(subject))) {
      if (!rows.has(subject)) rows.set(subject, report.row(where, subject || '-'))
      const row = rows.get(subject)
      const context = { node, size, row, report, again: tasks.again }
      if (!testFile.admits(file.nodes, node.version)) report.skip(row, 1, file.nodes.reason, file.name, node.version)
      else {
        const run = () => runFile(file, subject, context)
        tasks[file.alone ? 'alone' : 'together'].push({ most: mostOf(file), run })
      }
    }
  }
  return rows.values()
}

/**
 * Runs a file once. A file that fails beside others is put into `again`, and is run once more when no other one runs.
 * If it passes then, its tests that failed at first are listed at the end: a busy machine shall not stop everything,
 * but each of them is a bug.
 */
async function runFile (file, subject, context) {
  const { node, size, row, report, again } = context
  const where = `${file.name} on Node ${node.version}${subject ? `, ${subject}` : ''}`
  const result = await report.part(where, () => testFile.run(file, node, subject, { size }), report.files)
  row.seconds += result.seconds
  if (result.problem && again) {
    // With its error: if the test passes then, nothing else says why it failed.
    const failures = Array.from(result.output.matchAll(/^not ok \d+ - (.*)(?:\n {4}.*)*$/gm))
    const failed = failures.map(([, name]) => name)
    report.print(
      `\nONCE MORE ${where}: ${result.problem}\n${indent(failures.map(([text]) => text).join('\n') || result.output)}\n`
    )
    again.push(async () => {
      const passed = await runFile(file, subject, { ...context, again: null })
      if (passed)
        report.unstable.push(...(failed.length > 0 ? failed : [result.problem]).map((name) => `${name} (${where})`))
    })
    return false
  }
  row.passed += result.passed
  for (const { name, reason } of result.skips) report.skip(row, 1, reason, `${file.name}: ${name}`, node.version)
  const unexplained = result.skipped - result.skips.length
  if (unexplained > 0) report.skip(row, unexplained, 'the file names no reason', file.name, node.version)
  if (!result.problem) return true
  const command = `npm test -- --no-rust --node ${node.version} --subject ${subject || 'none'} --only ${file.name}`
  report.fail(row, result.failed, `${where}: ${result.problem}`, result.output, command)
  return false
}

module.exports = { runSuites, subjectsOf }
