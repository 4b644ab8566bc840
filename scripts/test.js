'use strict'

// `npm test`: installs and builds what is missing, then runs the linters, the Rust steps, the count of instructions, the type
// tests, every __test__/*.test.js on every supported Node, with every subject (see __test__/subject.js), and the tests of what is
// published. Whatever is not run is reported with its reason.
// The last line is `N passed, N failed[, N skipped]`; the exit code is 0 only if something ran and nothing failed.

const fs = require('fs')
const os = require('os')
const path = require('path')
const { cargo, environment } = require('./lib/cargo')
const { run: runChild } = require('./lib/child')
const { javascriptLint } = require('./lib/javascript-lint')
const { rustSteps, isMissing } = require('./lib/rust-steps')
const testFile = require('./lib/test-file')
const nodes = require('./nodes')
const setup = require('./setup')

const USAGE = `usage: npm test -- [--node 14.21.3[,..]] [--subject force[,..]] [--only pattern] [--jobs n] [--no-rust] [--no-setup]
  --node      these instead of all: full versions, major ones of the list, or current (the Node that runs this)
  --subject   these instead of all: ${testFile.SUBJECTS.join(', ')}, none (the files that test no subject)
  --only      the files of __test__ whose name matches (a regular expression), and nothing else but Rust
  --jobs      how many files run at the same time (unless given, one per core)
  --no-rust   without the Rust steps, and without what is published, whose library is built for it
  --no-setup  with the dependencies and the binary that are there`

const root = path.join(__dirname, '..')
const TESTS = path.join(root, '__test__')
const STEP_TIMEOUT = 30 * 60 * 1000

function parseArguments (args) {
  const options = {
    versions: nodes.versions,
    subjects: [null, ...testFile.SUBJECTS],
    only: null,
    jobs: os.availableParallelism ? os.availableParallelism() : os.cpus().length,
    rust: true,
    setup: true
  }
  const rest = [...args]
  const value = name => {
    const text = rest.shift()
    if (!text) throw new Error(`${name} needs a value\n${USAGE}`)
    return text
  }
  while (rest.length > 0) {
    const name = rest.shift()
    if (name === '--node') options.versions = value(name).split(',')
    else if (name === '--subject') options.subjects = value(name).split(',').map(subjectNamed)
    else if (name === '--only') options.only = new RegExp(value(name))
    else if (name === '--jobs') options.jobs = Math.max(1, Number(value(name)) || 1)
    else if (name === '--no-rust') options.rust = false
    else if (name === '--no-setup') options.setup = false
    else throw new Error(`unknown argument ${name}\n${USAGE}`)
  }
  return options
}

function subjectNamed (name) {
  if (name === 'none') return null
  if (!testFile.SUBJECTS.includes(name)) throw new Error(`no subject '${name}'\n${USAGE}`)
  return name
}

/** What has been done so far: one row for each line of the table at the end. */
class Report {
  constructor () {
    this.rows = []
    this.failures = []
    this.skips = new Map() // reason -> what -> how often and where
    this.notes = []
    this.unstable = []
  }

  row (where, what) {
    const row = { where, what, passed: 0, failed: 0, skipped: 0, seconds: 0 }
    this.rows.push(row)
    return row
  }

  /** Something that takes long begins: whoever watches sees what. */
  begin (where, what) {
    if (process.stdout.isTTY) process.stdout.write(`${label({ where, what })}...\r`)
  }

  fail (row, count, summary, output, again) {
    row.failed += count
    this.failures.push(summary)
    console.log(`\nFAILED ${summary}${again ? `\n       again: ${again}` : ''}\n${indent(output)}\n`)
  }

  /** `what` was not run `where` (a Node version, or nothing if that says nothing more). */
  skip (row, count, reason, what, where) {
    row.skipped += count
    if (!this.skips.has(reason)) this.skips.set(reason, new Map())
    const entries = this.skips.get(reason)
    if (!entries.has(what)) entries.set(what, { count: 0, places: new Set() })
    const entry = entries.get(what)
    entry.count += count
    if (where) entry.places.add(where)
  }

  done (row) {
    const skipped = row.skipped > 0 ? `, ${row.skipped} skipped` : ''
    console.log(`${label(row)}  ${row.passed} passed, ${row.failed} failed${skipped}  ${row.seconds.toFixed(1)} s`)
  }

  /** Prints the summary; true if all is well. */
  close () {
    const total = { passed: 0, failed: 0, skipped: 0 }
    console.log(`\n${label({ where: '', what: '' })}${['passed', 'failed', 'skipped', 'seconds'].map(cell).join('')}`)
    for (const row of this.rows) {
      console.log(`${label(row)}${[row.passed, row.failed, row.skipped, row.seconds.toFixed(1)].map(cell).join('')}`)
      for (const key of Object.keys(total)) total[key] += row[key]
    }
    if (this.skips.size > 0) console.log('\nskipped:')
    for (const [reason, entries] of this.skips) {
      console.log(`  ${reason}`)
      for (const [what, { count, places }] of entries) {
        console.log(`    ${count} × ${what}${places.size > 0 ? ` on ${[...places].join(', ')}` : ''}`)
      }
    }
    for (const note of this.notes) console.log(`\n${note}`)
    if (this.unstable.length > 0) {
      console.log(`\npassed only when run again, alone:\n${this.unstable.map(each => `  ${each}`).join('\n')}`)
    }
    if (this.failures.length > 0) console.log(`\nfailed:\n${this.failures.map(each => `  ${each}`).join('\n')}`)
    const ran = total.passed + total.failed > 0
    if (!ran) console.log('\nno test ran')
    const skipped = total.skipped > 0 ? `, ${total.skipped} skipped` : ''
    console.log(`\n${total.passed} passed, ${total.failed} failed${skipped}`)
    return ran && total.failed === 0
  }
}

const label = ({ where, what }) => `${where.padEnd(14)}${what.padEnd(10)}`
const cell = value => String(value).padStart(9)
const indent = text => text.trimEnd().replace(/^/gm, '  | ')

async function runRust (report) {
  for (const step of rustSteps) {
    if (step.when && !step.when()) continue
    const { args, count } = step
    report.begin('rust', step.name)
    const ended = await runChild(cargo(), args, { cwd: root, env: environment(), timeout: STEP_TIMEOUT })
    const missing = isMissing(step, ended) && `this toolchain has no cargo ${args[0]}`
    judgeStep(report, 'rust', step.name, ended, `cargo ${args.join(' ')}`, { count, missing })
  }
}

async function runLint (report) {
  const { args, skipped } = javascriptLint()
  if (skipped) {
    const row = report.row('lint', '')
    report.skip(row, 1, skipped, 'lint')
    return report.done(row)
  }
  report.begin('lint', '')
  const ended = await runChild(process.execPath, args, { cwd: root, timeout: STEP_TIMEOUT })
  judgeStep(report, 'lint', '', ended, 'npx eslint .', {})
}

/** Runs a script of this folder that counts its tests itself. */
async function runScript (report, where) {
  const script = path.join(__dirname, `${where}.js`)
  report.begin(where, '')
  const ended = await runChild(process.execPath, [script], { cwd: root, timeout: STEP_TIMEOUT })
  judgeStep(report, where, '', ended, `node scripts/${where}.js`, { count: countScript })
}

// Its last line: `N passed, N failed[, N skipped]`, and a line `skip - what # reason` for each that it skipped.
function countScript (output) {
  const closing = /^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$/.exec(output.trimEnd().split('\n').pop())
  const skips = Array.from(output.matchAll(/^skip - (.*) # (.*)$/gm), ([, what, reason]) => ({ what, reason }))
  return closing && { passed: Number(closing[1]), failed: Number(closing[2]), skipped: Number(closing[3] || 0), skips }
}

// A step without a count of its own is one test.
function judgeStep (report, where, what, ended, command, { count, missing }) {
  const row = report.row(where, what)
  row.seconds = ended.seconds
  if (missing) {
    report.skip(row, 1, missing, `${where} ${what}`)
    return report.done(row)
  }
  const good = ended.code === 0 && !ended.timedOut
  const counted = count ? count(ended.output) : good && { passed: 1, failed: 0, skipped: 0 }
  if (counted) {
    row.passed = counted.passed
    const { skips = [] } = counted
    for (const { what, reason } of skips) report.skip(row, 1, reason, `${where}: ${what}`)
    const ignored = counted.skipped - skips.length
    if (ignored > 0) report.skip(row, ignored, 'ignored in the source', `${where} ${what}`)
  }
  if (!good || !counted || counted.failed > 0) {
    let problem = `exit code ${ended.code === null ? ended.signal : ended.code}`
    if (ended.error) problem = ended.error.message
    else if (ended.timedOut) problem = `not over after ${STEP_TIMEOUT / 1000} s`
    else if (good && !counted) problem = 'its output does not say how many tests there were'
    report.fail(row, (counted && counted.failed) || 1, `${command}: ${problem}`, ended.output)
  }
  report.done(row)
}

async function runNode (report, version, files, { subjects, jobs }) {
  const row = what => report.row(`node ${version}`, what)
  let node
  try {
    node = await nodes.get(version)
  } catch (error) {
    report.fail(row(''), 1, `Node ${version} could not be fetched`, error.message)
    return
  }
  if (node.skipped) {
    const skipped = row('')
    report.skip(skipped, 1, node.skipped, `all of Node ${node.version}`)
    return report.done(skipped)
  }

  version = node.version
  const together = []
  const alone = []
  const again = []
  for (const subject of subjects) {
    const concerned = files.filter(file => file.subjects.includes(subject))
    if (concerned.length === 0) continue
    const group = { row: row(subject || '-'), left: 0 }
    for (const file of concerned) {
      if (testFile.admits(file.nodes, version)) {
        group.left++
        const list = file.alone ? alone : together
        list.push(() => runFile(report, group, file, node, subject, again))
      } else {
        report.skip(group.row, 1, file.nodes.reason, file.name, version)
      }
    }
    if (group.left === 0) report.done(group.row)
  }
  await inParallel(together, jobs)
  await inParallel(alone, 1)
  await inParallel(again, 1)
}

// A file that fails beside others is run once more, alone. If it passes then, that is said at the end with what failed at first:
// such a test, or what it tests, is to be looked into, but a busy machine shall not stop everything.
async function runFile (report, group, file, node, subject, again) {
  const { row } = group
  const result = await testFile.run(file, node, subject)
  const where = `${file.name} on Node ${node.version}${subject ? `, ${subject}` : ''}`
  if (result.problem && again) {
    row.seconds += result.seconds
    const failed = result.output.match(/^not ok .*$/gm) || []
    console.log(`\nONCE MORE ${where}: ${result.problem}\n${indent(failed.join('\n') || result.output)}\n`)
    again.push(() => runFile(report, group, file, node, subject, null).then(passed => {
      if (passed) report.unstable.push(`${where}: ${[result.problem, ...failed].join('; ')}`)
    }))
    return
  }
  row.passed += result.passed
  row.seconds += result.seconds
  for (const { name, reason } of result.skips) report.skip(row, 1, reason, `${file.name}: ${name}`, node.version)
  const unexplained = result.skipped - result.skips.length
  if (unexplained > 0) report.skip(row, unexplained, 'the file names no reason', file.name, node.version)
  if (result.problem) {
    const command = `npm test -- --no-rust --node ${node.version} --subject ${subject || 'none'} --only ${file.name}`
    report.fail(row, result.failed, `${where}: ${result.problem}`, result.output, command)
  }
  group.left--
  if (group.left === 0) report.done(row)
  return !result.problem
}

async function inParallel (tasks, limit) {
  const queue = [...tasks]
  const lane = async () => {
    while (queue.length > 0) await queue.shift()()
  }
  await Promise.all(Array.from({ length: limit }, lane))
}

function testFiles (only) {
  return fs.readdirSync(TESTS)
    .filter(name => name.endsWith('.test.js') && (only === null || only.test(name)))
    .map(name => testFile.read(path.join(TESTS, name)))
}

// Files that are not run with every subject by their own wish are no skipped tests, but no secret either.
function declaredSubjects (files) {
  const groups = new Map()
  for (const { name, subjects } of files) {
    if (subjects === testFile.SUBJECTS) continue
    const key = subjects[0] === null ? 'without a subject, once per Node' : `only with ${subjects.join(', ')}`
    groups.set(key, [...(groups.get(key) || []), name])
  }
  return [...groups].map(([key, names]) => `by their own declaration run ${key}: ${names.length} files (${names.join(', ')})`)
}

async function main () {
  const options = parseArguments(process.argv.slice(2))
  const files = testFiles(options.only)
  const report = new Report()
  report.notes.push(...declaredSubjects(files))

  // The binaries come in while the Rust part is built; what goes wrong with one is told when it is its turn.
  fetchAhead(options.versions)
  if (!options.setup || await prepare(report)) {
    const everything = options.only === null
    if (everything) await runLint(report)
    if (options.rust) {
      await runRust(report)
      await runScript(report, 'instructions')
    }
    if (everything) await runScript(report, 'types')
    for (const version of await runnable(options.versions)) await runNode(report, version, files, options)
    // What is published is built, so with Rust or not at all.
    if (everything && options.rust) for (const script of ['tarballs', 'consumers']) await runScript(report, script)
  }
  return report.close()
}

async function prepare (report) {
  try {
    await setup.run()
    return true
  } catch (error) {
    report.fail(report.row('setup', ''), 1, 'setup', error.message)
    return false
  }
}

async function fetchAhead (versions) {
  for (const version of versions) {
    try {
      await nodes.get(version)
    } catch {
      // `runNode` gets the same error.
    }
  }
}

// Where none of the binaries can be had, the Node at hand is still there to test on.
async function runnable (versions) {
  for (const version of versions) {
    const node = await Promise.resolve(version).then(nodes.get).catch(error => ({ error }))
    if (!node.skipped) return versions
  }
  return [...versions, 'current']
}

// Not before everything is printed, and without waiting for downloads that nobody needs any more.
function end (ok) {
  process.stdout.write('', () => process.exit(ok ? 0 : 1))
}

main().then(end, error => {
  console.error(error.message)
  end(false)
})
