'use strict'

// The page and the picture of each Node's latest complete run; those are kept in results.json.

const fs = require('fs')
const path = require('path')
const { bars } = require('./pictures')
const table = require('./table')

const FOLDER = path.join(__dirname, '..')
const STORE = path.join(FOLDER, 'results.json')

/** Loads the results by Node version, the oldest first. */
function load () {
  return fs.existsSync(STORE) ? JSON.parse(fs.readFileSync(STORE, 'utf8')) : {}
}

function save (version, run) {
  const runs = { ...load(), [version]: run }
  const sorted = Object.fromEntries(
    Object.keys(runs)
      .sort((a, b) => parseInt(a) - parseInt(b))
      .map((key) => [key, runs[key]])
  )
  fs.writeFileSync(STORE, stored(sorted))
  fs.writeFileSync(path.join(FOLDER, 'RESULTS.md'), page(sorted))
  fs.writeFileSync(path.join(FOLDER, 'beside-others.svg'), bars(sorted))
}

/** Returns the last complete run with later figures of one with `--only`. */
function over (version, only, { machine: { commit, date, rounds }, figures }) {
  const last = load()[version]
  if (last === undefined) throw new Error(`Node ${version} has no complete run yet`)
  const machine = { ...last.machine, later: { ...last.machine.later, [only]: { commit, date, rounds } } }
  return { ...last, machine, figures: { ...last.figures, ...figures } }
}

const samplesOf = rounds => rounds === 1 ? '' : `; ${rounds} × the usual number of samples`
const laterOf = ([only, { commit, date, rounds }]) => (
  ` Later, ${only}: commit ${commit}; ${date} UTC${samplesOf(rounds)}.`)

function section (version, { machine, figures, failures }) {
  const peers = Object.entries(machine.peers).map(([name, version]) => `${name} ${version}`).join(', ')
  return [
    `## Node ${version}`,
    `atomics-waitasync ${machine.package} (commit ${machine.commit}), V8 ${machine.v8}; ${machine.system}, ` +
    `${machine.processor}, ${machine.cores} cores, load ${machine.load.toFixed(1)} when it began; ${machine.date} UTC` +
    `${peers ? `; ${peers}` : ''}${samplesOf(machine.rounds)}.` +
    Object.entries(machine.later || {}).map(laterOf).join(''),
    table.main(figures),
    ...titled('Locks', table.peers(figures, failures)),
    ...titled('Locks of several processes', table.processes(figures)),
    ...titled('What an install costs everybody else', table.bystanders(figures))
  ].filter(Boolean).join('\n\n')
}

/** Returns the text of results.json: a line for each figure. */
function stored (runs) {
  const text = (value, depth, indent = ' '.repeat(depth)) => {
    if (depth > 3 || typeof value !== 'object') return JSON.stringify(value)
    const member = ([key, each]) => `${indent}${JSON.stringify(key)}: ${text(each, depth + 1)}`
    const members = Object.entries(value).map(member)
    return `{\n${members.join(',\n')}\n${indent.slice(1)}}`
  }
  return `${text(runs, 1)}\n`
}

const titled = (title, text) => text === undefined ? [] : [`### ${title}`, text]

function page (runs) {
  return `# Results

The cost of this package beside Node's own \`Atomics\`, and of its locks beside others. \`npm run bench\` writes
this page; each section is the latest complete run on its Node.

How to read it:

- *Node's own* is \`Atomics\` before anything was installed; for locks, the mutex of the article
  [Atomics.wait, Atomics.notify, Atomics.waitAsync](https://v8.dev/features/atomics) over it. A dash: this Node has
  none.
- *floor* is the least that JavaScript needs, without a queue: creating and resolving the promise, a turn of the
  event loop, two atomic operations, a spinning loop, messages there and back; of processes, bare futexes.
- *ratio* is this package's figure divided by Node's own, both from the same process, where they took turns. Values are
  medians; what an install costs everybody else is the least of the samples.
- *A/A* is the noise: how far two figures of this package are apart. If a figure is nearer than that to its goal, the
  verdict says *within noise*.
- [What is not reached](../docs/internals/benchmark-limits.md) has the reasons, as far as they were measured, and
  what was tried.
- Times are nanoseconds for each wait, call or promise unless another unit is given. More is better for figures
  per second, and for *8 threads*.

${Object.entries(runs).map(([version, run]) => section(version, run)).join('\n\n')}
`
}

module.exports = { over, save, section }
