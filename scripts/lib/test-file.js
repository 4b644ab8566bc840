'use strict'

// One test file: what it declares about itself, and how one run of it is judged. A run counts as passed only if the
// file says so in its closing line *and* ends as a file that passed does; everything else is a failure with a name.
//
// A file may declare, in comments within its first lines:
//   // subjects: none            tests no subject: run once per Node (or some of them: `// subjects: installed, force`)
//                                Without this, its folder decides (SUBJECTS_OF)
//   // nodes: >=16 (reason)      run only there, elsewhere reported as skipped  (`>=12.22 <16` works too);
//                                `running`: on the Node that runs the tests
//   // oldest: none (reason)     something is different on the oldest Node: `npm test` runs it there, too, with these
//                                subjects
//   // flags: --expose-gc        flags for Node
//   // timeout: 300              seconds for the whole file
//   // alone: reason             nothing else may run at the same time
//   // long: reason              with TEST_SIZE=small it is run with one of its subjects only

const fs = require('fs')
const path = require('path')
const { howItEnded, run: runChild } = require('./child')
const { compareVersions } = require('./versions')
const slowness = require('../../__test__/fixtures/slowness')

const TESTS = path.join(__dirname, '..', '..', '__test__')

const SUBJECTS = ['export', 'installed', 'force']
/**
 * The subjects of a folder's files: of atomics/ all. The locks use the package's own queue, whichever functions the
 * global Atomics has, so one is as good as the other; the last four folders test no subject, but process locks,
 * installs, other programs and tools.
 */
const SUBJECTS_OF = {
  locks: ['force'],
  named: ['force'],
  ends: ['force'],
  soak: ['force'],
  'shared-memory': ['force'],
  processes: [null],
  install: [null],
  company: [null],
  tools: [null]
}
/**
 * Files, by the longest beginning of their names, whose promises each Node may break in its own way, with the reason.
 * `.ci/run` runs them on all of its Nodes, the others on the oldest and the newest of these: there all is alike in
 * between.
 */
const DIFFERENT = {
  atomics: 'hosts differ in Atomics, memories and timers',
  'atomics/stress': null, // All of it waits in the package's own queue.
  company: 'hosts differ in contexts and registries',
  'company/loader': null, // The loader is the system's.
  ends: 'engines end threads, and run out of stack, at other moments',
  'ends/condition-deaths': null, // Threads end themselves, at operations that they count.
  'ends/exhaustion': null,
  'ends/faults': null,
  'ends/name-deaths': null,
  'ends/queue-deaths': null,
  install: 'each host starts Workers in its own way',
  'locks/every-class/async-context': 'hosts differ in AsyncLocalStorage',
  'locks/every-class/hostile': 'hosts differ in the built-ins that a program can replace',
  'locks/observe/dump': 'engines differ in stacks, hosts in inspectors',
  'locks/observe/dump-lines': null, // The same dumps in JSON.
  'locks/observe/frames': 'engines differ in stacks',
  'locks/observe/holder-stacks': 'engines differ in stacks',
  'locks/observe/places': 'engines differ in stacks',
  'locks/optimized-code': 'compilers differ',
  'named/web-locks': 'some hosts have their own'
}
const HEADER_LINES = 10
const DEFAULT_TIMEOUT = 180

/** Returns the names of all test files, relative to __test__; the folders in company/ have files for other programs. */
function names (folder = '') {
  return fs.readdirSync(path.join(TESTS, folder), { withFileTypes: true }).flatMap(entry => {
    const name = path.posix.join(folder, entry.name)
    if (entry.isDirectory()) return folder === 'company' ? [] : names(name)
    return name.endsWith('.test.js') ? [name] : []
  })
}

/** Reads a file by its name in __test__. */
const named = name => read(path.join(TESTS, name), name)

/**
 * Reads the declarations of a file: `{ file, name, subjects, nodes, oldest, flags, timeout, alone, long }`; `subjects`
 * is [null] for none.
 */
function read (file, name = path.basename(file)) {
  const declared = {
    file,
    name,
    subjects: SUBJECTS_OF[name.split('/')[0]] || SUBJECTS,
    nodes: null,
    oldest: null,
    flags: [],
    timeout: DEFAULT_TIMEOUT,
    alone: false,
    long: false
  }
  for (const line of fs.readFileSync(file, 'utf8').split('\n', HEADER_LINES)) {
    const match = /^\/\/ (subjects|nodes|oldest|flags|timeout|alone|long):\s*(.*?)\s*$/.exec(line)
    if (match) declared[match[1]] = parsers[match[1]](match[2], `${name}: ${line.trim()}`)
  }
  return declared
}

/** Returns a declaration and its reason in parentheses; undefined if there is none. */
const withReason = text => /^([^(]*?)\s*(?:\((.*)\))?$/.exec(text).slice(1)

const parsers = {
  subjects (text, where) {
    if (text === 'none') return [null]
    const names = text.split(/[\s,]+/)
    for (const each of names) {
      if (!SUBJECTS.includes(each)) throw new Error(`${where}: '${each}' is not one of none, ${SUBJECTS.join(', ')}`)
    }
    return names
  },
  oldest (text, where) {
    const [subjects, reason] = withReason(text)
    if (!reason) throw new Error(`${where}: a reason in parentheses is needed`)
    return parsers.subjects(subjects, where)
  },
  nodes (text, where) {
    const [range, reason] = withReason(text)
    for (const part of range === 'running' ? [] : range.split(/\s+/)) {
      if (!/^(>=|<)\d+(\.\d+){0,2}$/.test(part))
        throw new Error(`${where}: '${part}' must be like >=16 or <12.22, or running`)
    }
    const needs = `needs ${range === 'running' ? 'the Node that runs the tests' : `Node ${range}`}`
    return { range, reason: reason ? `${needs}: ${reason}` : needs }
  },
  flags: text => text.split(/\s+/),
  timeout (text, where) {
    if (!/^\d+$/.test(text)) throw new Error(`${where}: '${text}' must be a number of seconds`)
    return Number(text)
  },
  alone: () => true,
  long: () => true
}

/** Whether the version is within a file's `nodes`: any is, if it declares none. */
function admits (nodes, version) {
  if (nodes === null) return true
  if (nodes.range === 'running') return version === process.versions.node
  return nodes.range.split(/\s+/).every(part => {
    const [, operator, limit] = /^(>=|<)(.*)$/.exec(part)
    return (compareVersions(version, limit) >= 0) === (operator === '>=')
  })
}

/** Returns the files that are different on the oldest Node: with their subjects there. */
const onOldest = (files) =>
  files.filter(({ oldest }) => oldest !== null).map((file) => ({ ...file, subjects: file.oldest }))

/** Whether each Node may break a file's promises in its own way. */
function isDifferent ({ name }) {
  const [longest] = Object.keys(DIFFERENT).filter(each => name.startsWith(each)).sort().reverse()
  return longest !== undefined && DIFFERENT[longest] !== null
}

/** Returns those of the files that a run on all these versions has on one of them, see DIFFERENT. */
const onEach = (files, version, versions) => files.filter(file => {
  const admitting = versions.filter(each => admits(file.nodes, each)).sort(compareVersions)
  return isDifferent(file) || [admitting[0], admitting[admitting.length - 1]].includes(version)
})

/**
 * Runs a file once.
 * @param {object} declared the result of `read`
 * @param {{ path: string, flags: string[] }} node
 * @param {?string} subject
 * @param {{ size?: string, memory?: number }} options `size`: the TEST_SIZE of the file, see __test__/fixtures/size.js;
 *   `memory`: how many bytes it may take
 * @returns {Promise<{ passed: number, failed: number, skipped: number, skips: { name: string, reason: string }[],
 *   problem: ?string, output: string, seconds: number }>} `problem` is the run's error in one sentence
 */
async function run (declared, node, subject, { size = 'full', memory } = {}) {
  // Options are meant for the Node that runs this, not for the one that is tested.
  const env = { ...process.env, TEST_SIZE: size, SUBJECT: subject ?? undefined, NODE_OPTIONS: undefined }
  const args = [...node.flags, ...declared.flags, declared.file]
  const timeout = slowness * declared.timeout * 1000
  const ended = await runChild(node.path, args, { cwd: path.dirname(declared.file), env, timeout, memory })
  return { ...judge(ended), output: ended.output, seconds: ended.seconds }
}

const SKIP = /^skip \d+ - (.*) # (.*)$/

function judge (ended) {
  const lines = ended.stdout.split(/\r?\n/).filter(line => line.trim() !== '')
  const closing = /^# \{"passed":(\d+),"failed":(\d+),"skipped":(\d+)\}$/.exec(lines[lines.length - 1])
  if (closing === null) {
    const problem = howItEnded(ended) || `ended with exit code ${ended.code}, but without its closing line`
    return { passed: 0, failed: 1, skipped: 0, skips: [], problem }
  }

  const [passed, failed, skipped] = closing.slice(1).map(Number)
  const skips = lines.map(line => SKIP.exec(line)).filter(Boolean).map(([, name, reason]) => ({ name, reason }))
  const result = { passed, failed, skipped, skips, problem: failed > 0 ? `${failed} failed` : null }
  const problem = howItEnded(ended) ||
    (ended.code !== (failed > 0 ? 1 : 0) && `ended with exit code ${ended.code} after its closing line`) ||
    (passed + failed + skipped === 0 && 'ran no test')
  return problem ? { ...result, failed: failed + 1, problem } : result
}

module.exports = { SUBJECTS, DIFFERENT, names, named, onEach, onOldest, read, admits, run }
