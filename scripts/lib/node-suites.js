'use strict'

// The test files on one Node: each with every subject that it declares, several at the same time.

const testFile = require('./test-file')
const nodes = require('../nodes')
const { inParallel } = require('./in-parallel')
const { indent } = require('./report')

/**
 * Plans the runs on one version: `{ asked, version, size, runs: { file, subject, task }[], skips: { file, subject }[] }`.
 * `plan` announces a task to the progress. `size` is the TEST_SIZE of the files (see __test__/fixtures/size.js); with `small`, a long
 * file is run with the last of its subjects only.
 */
function plannedSuite (version, files, { subjects, size }, plan) {
  const exact = nodes.resolve(version)
  const suite = { asked: version, version: exact, size, runs: [], skips: [] }
  const wanted = file => subjects.filter(subject => file.subjects.includes(subject)).slice(file.long && size === 'small' ? -1 : 0)
  for (const subject of subjects) {
    for (const file of files.filter(each => wanted(each).includes(subject))) {
      if (testFile.admits(file.nodes, exact)) suite.runs.push({ file, subject, task: plan({ where: `node ${exact}:`, file: file.name }) })
      else suite.skips.push({ file, subject })
    }
  }
  return suite
}

/** Runs the files of a suite and reports them. */
async function runSuite ({ asked, version, size, runs, skips }, { report, progress, jobs }) {
  const node = await nodes.get(asked).catch(error => ({ error }))
  if (node.error || node.skipped) {
    for (const { task } of runs) progress.drop(task)
    const row = report.row(`node ${version}`, '')
    if (node.error) return report.fail(row, 1, `Node ${version} could not be fetched`, node.error.message)
    report.skip(row, 1, node.skipped, `all of Node ${version}`)
    return report.done(row)
  }

  const groups = new Map()
  for (const { subject } of [...runs, ...skips]) {
    if (!groups.has(subject)) groups.set(subject, { row: report.row(`node ${version}`, subject || '-'), left: 0 })
  }
  for (const { file, subject } of skips) report.skip(groups.get(subject).row, 1, file.nodes.reason, file.name, version)
  for (const { subject } of runs) groups.get(subject).left++
  for (const { row, left } of groups.values()) if (left === 0) report.done(row)

  const again = []
  const jobOf = run => () => runFile(run, { node, size, group: groups.get(run.subject), report, progress, again })
  await inParallel(runs.filter(({ file }) => !file.alone).map(jobOf), jobs)
  await inParallel(runs.filter(({ file }) => file.alone).map(jobOf), 1)
  await inParallel(again, 1)
}

/**
 * Runs a file once. A file that fails beside others is put into `again`, and is run once more when no other one runs. If it passes
 * then, its tests that failed at first are listed at the end: a busy machine shall not stop everything, but each of them is a bug.
 */
async function runFile (run, context) {
  const { file, subject, task } = run
  const { node, size, group: { row }, report, progress, again } = context
  progress.begin(task)
  const result = await testFile.run(file, node, subject, { size })
  progress.end(task)
  const where = `${file.name} on Node ${node.version}${subject ? `, ${subject}` : ''}`
  row.seconds += result.seconds
  report.files.push({ name: where, seconds: result.seconds })
  if (result.problem && again) {
    // With its error: if the test passes then, nothing else says why it failed.
    const failures = Array.from(result.output.matchAll(/^not ok \d+ - (.*)(?:\n {4}.*)*$/gm))
    const failed = failures.map(([, name]) => name)
    report.print(`\nONCE MORE ${where}: ${result.problem}\n${indent(failures.map(([text]) => text).join('\n') || result.output)}\n`)
    const repeated = progress.plan({ ...task })
    again.push(async () => {
      const passed = await runFile({ file, subject, task: repeated }, { ...context, again: null })
      if (passed) report.unstable.push(...(failed.length > 0 ? failed : [result.problem]).map(name => `${name} (${where})`))
    })
    return false
  }
  finishFile(run, result, where, context)
  return !result.problem
}

function finishFile ({ file, subject }, result, where, { node, group, report }) {
  const { row } = group
  row.passed += result.passed
  for (const { name, reason } of result.skips) report.skip(row, 1, reason, `${file.name}: ${name}`, node.version)
  const unexplained = result.skipped - result.skips.length
  if (unexplained > 0) report.skip(row, unexplained, 'the file names no reason', file.name, node.version)
  if (result.problem) {
    const command = `npm test -- --no-rust --node ${node.version} --subject ${subject || 'none'} --only ${file.name}`
    report.fail(row, result.failed, `${where}: ${result.problem}`, result.output, command)
  }
  group.left--
  if (group.left === 0) report.done(row)
}

module.exports = { plannedSuite, runSuite }
