'use strict'

// The arguments of `npm test`.

const os = require('os')
const { argumentsOf, oneOf, someOf, whole } = require('./arguments')
const { SUBJECTS } = require('./test-file')
const nodes = require('../nodes')

const USAGE = `npm test -- [--all] [--node 14.21.3[,..]] [--subject force[,..]] [--only pattern] [--size full|small] [--jobs n] [--no-rust]
                    [--no-setup]
  --all       every supported Node, and the slow steps (npm run test:all)
  --node      these Nodes: full versions, major ones of the list, or current (the Node that runs this)
  --subject   these subjects: ${SUBJECTS.join(', ')}, none (the files that test no subject)
  --only      the files whose path in __test__ matches a regular expression (locks/queue), and nothing else but Rust
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
  const { all, node, subject, only = null, size = null, jobs, ...without } = argumentsOf(USAGE, OPTIONS, { args })
  return {
    all,
    versions: node || (all ? nodes.versions : shortList(nodes.versions)),
    subjects: subject.map(name => name === 'none' ? null : name),
    only,
    size,
    jobs,
    rust: !without['no-rust'],
    setup: !without['no-setup']
  }
}

const NAMES = ['none', ...SUBJECTS]
const OPTIONS = {
  all: { type: 'boolean', default: false },
  node: { type: 'string', read: nodes.read },
  subject: { type: 'string', default: NAMES.join(','), read: someOf(NAMES) },
  only: { type: 'string', read: text => new RegExp(text) },
  size: { type: 'string', read: oneOf(['full', 'small']) },
  jobs: { type: 'string', default: String(os.availableParallelism()), read: whole },
  'no-rust': { type: 'boolean' },
  'no-setup': { type: 'boolean' }
}

/** The oldest version, the newest, and the one that runs this. */
function shortList (versions, running = process.versions.node) {
  const [oldest, newest] = [versions[0], versions[versions.length - 1]]
  return [oldest, ...(running === oldest || running === newest ? [] : [running]), newest]
}

/** The TEST_SIZE on one of the versions that `parseArguments` gave. */
function sizeOn (version, { all, size }) {
  return size || (all && shortList(nodes.versions).includes(nodes.resolve(version)) ? 'full' : 'small')
}

module.exports = { parseArguments, shortList, sizeOn }
