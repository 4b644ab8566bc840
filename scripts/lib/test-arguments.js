'use strict'

// The arguments of `npm test`.

const os = require('os')
const { SUBJECTS } = require('./test-file')
const nodes = require('../nodes')

const USAGE = `usage: npm test -- [--all] [--node 14.21.3[,..]] [--subject force[,..]] [--only pattern] [--size full|small] [--jobs n] [--no-rust]
                    [--no-setup]
  --all       every supported Node, and the slow steps (npm run test:all)
  --node      these Nodes: full versions, major ones of the list, or current (the Node that runs this)
  --subject   these subjects: ${SUBJECTS.join(', ')}, none (the files that test no subject)
  --only      the files of __test__ whose name matches a regular expression, and nothing else but Rust
  --size      of the long tests (small unless given; with --all full on the oldest, the newest and the running Node)
  --jobs      how many files run at the same time (one per core unless given)
  --no-rust   without the Rust steps, and without the tests of what is published, for which the library is built
  --no-setup  with the dependencies and the binary that are there`

/**
 * Reads the arguments.
 * @returns {{ all: boolean, versions: string[], subjects: (?string)[], only: ?RegExp, size: ?string, jobs: number, rust: boolean,
 *   setup: boolean }} `null` among the subjects means the files that test none
 * @throws {Error} with the usage
 */
function parseArguments (args) {
  const options = {
    all: false,
    versions: null,
    subjects: [null, ...SUBJECTS],
    only: null,
    size: null,
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
    if (name === '--all') options.all = true
    else if (name === '--node') options.versions = value(name).split(',')
    else if (name === '--subject') options.subjects = value(name).split(',').map(subjectNamed)
    else if (name === '--only') options.only = new RegExp(value(name))
    else if (name === '--size') options.size = sizeNamed(value(name))
    else if (name === '--jobs') options.jobs = Math.max(1, Number(value(name)) || 1)
    else if (name === '--no-rust') options.rust = false
    else if (name === '--no-setup') options.setup = false
    else throw new Error(`unknown argument ${name}\n${USAGE}`)
  }
  return { ...options, versions: options.versions || (options.all ? nodes.versions : shortList(nodes.versions)) }
}

/** The oldest version, the newest, and the one that runs this. */
function shortList (versions, running = process.versions.node) {
  const [oldest, newest] = [versions[0], versions[versions.length - 1]]
  return [oldest, ...(running === oldest || running === newest ? [] : [running]), newest]
}

function subjectNamed (name) {
  if (name === 'none') return null
  if (!SUBJECTS.includes(name)) throw new Error(`no subject '${name}'\n${USAGE}`)
  return name
}

function sizeNamed (name) {
  if (!['full', 'small'].includes(name)) throw new Error(`no size '${name}'\n${USAGE}`)
  return name
}

/** The TEST_SIZE on one of the versions that `parseArguments` gave. */
function sizeOn (version, { all, size }) {
  return size || (all && shortList(nodes.versions).includes(nodes.resolve(version)) ? 'full' : 'small')
}

module.exports = { parseArguments, shortList, sizeOn }
