'use strict'

// The test files on the Nodes of a run: each with every subject that it declares, several at the same time.

const testFile = require('./test-file')
const nodes = require('../nodes')
const { inParallel } = require('./in-parallel')
const { indent } = require('./report')

/** Returns the subjects of a file in a suite; of a long file in a small run, the last one only. */
function subjectsOf (file, subjects, size) {
  return subjects.filter(subject => file.subjects.includes(subject)).slice(file.long && size === 'small' ? -1 : 0)
}

/**
 * Runs and reports the files of all suites, `jobs` at a time. `beside`: longer tasks that begin with the first.
 * @param {{ version: string, files: object[], subjects: (?string)[], size: string }[]} suites `size`: the TEST_SIZE of
 *   the files (see __test__/fixtures/size.js)
 */
async function runSuites (suites, { beside = [], jobs, report }) {
  const tasks = { together: [...beside], alone: [], again: [] }
  const rows = []
  for (const suite of suites) rows.push(...await planSuite(suite, tasks, report))
  await inParallel(tasks.together, jobs)
  await inParallel(tasks.alone, 1)
  await inParallel(tasks.again, 1)
  for (const row of rows) report.done(row)
}

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
      else tasks[file.alone ? 'alone' : 'together'].push(() => runFile(file, subject, context))
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
