'use strict'

// The arguments of `npm test`, and the Nodes that they mean.

const os = require('os')
const { argumentsOf, oneOf, someOf, whole } = require('./arguments')
const testFile = require('./test-file')
const { compareVersions } = require('./versions')
const nodes = require('../nodes')

const USAGE = `npm test -- [--ci | --all] [--node 14.21.3[,..]] [--only pattern] [--subject force[,..]]
                    [--size full|small] [--jobs n] [--no-rust] [--no-setup]
  --ci        then also the suites on the oldest, the newest and two other Nodes, which change every day (.ci/run): on
              all of them what each Node may break in its own way, the rest on the oldest and the newest
  --all       every supported Node, and the slow steps (npm run test:all)
  --node      these Nodes: full versions, major ones of the list, or current (the Node that runs this); with --ci
              instead of the two that change
  --only      the files whose path in __test__ matches a regular expression (locks/queue), and nothing else; on the
              running Node unless others are given
  --subject   these subjects: ${testFile.SUBJECTS.join(', ')}, none (the files that test no subject)
  --size      of the long tests (small unless given; with --all full on the oldest, the newest and the running Node)
  --jobs      how many files run at the same time (two for each core and one unless given: a file uses half of one)
  --no-rust   without the Rust steps, and without the tests of the packages, for which the library is built
  --no-setup  with the dependencies and the binary that are there`

/**
 * Reads the arguments.
 * @returns {{ all: boolean, ci: boolean, suites: { version: string, filesOf: Function, note: ?string }[], daily:
 *   string[], subjects: (?string)[], only: ?RegExp, size: ?string, jobs: number, rust: boolean, setup: boolean }}
 *   `filesOf`: those of the files that run there, if not all with a `note`; `daily`: those of the Nodes that change
 *   every day; `null` among the subjects means the files that test none
 * @throws {Error} with the usage
 */
function parseArguments (args) {
  const { all, ci, node, subject, only = null, size = null, jobs, ...without } = argumentsOf(USAGE, OPTIONS, { args })
  const daily = ci ? node || nodesOfTheDay(nodes.versions) : []
  return {
    all,
    ci,
    suites: suitesOf({ all, ci, node, only, daily }),
    daily,
    subjects: subject.map(name => name === 'none' ? null : name),
    only,
    size,
    jobs,
    rust: !without['no-rust'],
    setup: !without['no-setup']
  }
}

const NAMES = ['none', ...testFile.SUBJECTS]
const OPTIONS = {
  all: { type: 'boolean', default: false },
  ci: { type: 'boolean', default: false },
  node: { type: 'string', read: nodes.read },
  subject: { type: 'string', default: NAMES.join(','), read: someOf(NAMES) },
  only: { type: 'string', read: text => new RegExp(text) },
  size: { type: 'string', read: oneOf(['full', 'small']) },
  jobs: { type: 'string', default: String(2 * os.availableParallelism() + 1), read: whole },
  'no-rust': { type: 'boolean' },
  'no-setup': { type: 'boolean' }
}

function suitesOf ({ all, ci, node, only, daily }) {
  const whole = versions => [...new Set(versions)].map(version => ({ version, filesOf: files => files }))
  const [oldest, running, newest] = shortList(nodes.versions)
  if (ci) return shared([running, oldest, newest, ...daily])
  if (node || all) return whole(node || nodes.versions)
  const different = { version: oldest, filesOf: testFile.onOldest, note: ' (only what is different there)' }
  return only ? whole([running]) : [...whole([running]), different]
}

/** Plans the suites so that what is the same on all these Nodes runs on the oldest and the newest of them. */
function shared (names) {
  const nameOf = new Map(names.map(name => [nodes.resolve(name), name]))
  const versions = [...nameOf.keys()].sort(compareVersions)
  return versions.map((version, place) => {
    const note = place > 0 && place < versions.length - 1 ? ' (what each may break in its own way)' : undefined
    return { version: nameOf.get(version), filesOf: files => testFile.onEach(files, version, versions), note }
  })
}

/** Returns the oldest version, the one that runs this, and the newest. */
const shortList = (versions, running = process.versions.node) => [versions[0], running, versions[versions.length - 1]]

/**
 * Returns two of the versions that would not run otherwise. The multiples of the golden ratio lie evenly between two
 * whole numbers, whichever days are left out: so each version comes soon, whether this runs every day or every week.
 */
function nodesOfTheDay (versions, { running = process.versions.node, day = Math.floor(Date.now() / 86400000) } = {}) {
  const others = versions.filter(version => !shortList(versions, running).includes(version))
  const { length } = others
  const first = Math.floor(day * (Math.sqrt(5) - 1) / 2 % 1 * length)
  return [others[first], others[(first + (length >> 1)) % length]]
}

/** Returns the TEST_SIZE on one of the versions that `parseArguments` gave. */
function sizeOn (version, { all, size }) {
  return size || (all && shortList(nodes.versions).includes(nodes.resolve(version)) ? 'full' : 'small')
}

module.exports = { nodesOfTheDay, parseArguments, sizeOn }
