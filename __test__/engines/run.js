'use strict'

// `npm run test:engines`: the locks of atomics-waitasync/processes on all engines, with several processes, some of
// which are killed or stand still.
//
//   node __test__/engines/run.js [--only redis] [--node 16,26] [--kills 1000] [--few] [--install]
//
// `--only`: the checks in whose names, as they are printed, this is found (a regular expression); `--node`: the Nodes
// that run the processes, one after the other; `--kills`: how many processes are killed while they come and go;
// `--few`: without servers, on the oldest Node and the newest, as `.ci/run` does; `--install`: gets the servers that
// are missing, as packages of Debian.
//
// The servers run on loopback with their data in a scratch folder. POSTGRESQL_URL, REDIS_URL and ETCD_URL name others.
// An engine that is there in neither way is skipped. The clients are those of examples/processes/package-lock.json,
// kept in the user's cache folder.

const fs = require('fs')
const path = require('path')
const { argumentsOf, command, whole } = require('../../scripts/lib/arguments')
const { inParallel } = require('../../scripts/lib/in-parallel')
const { LOCKED, installed } = require('../../scripts/lib/npm')
const { Results } = require('../../scripts/lib/results')
const { withScratch } = require('../../scripts/lib/scratch')
const { checks } = require('./checks')
const { engines } = require('./abilities')
const { perform, placeOf } = require('./place')
const servers = require('./servers')
const nodes = require('../../scripts/nodes')

const EXAMPLE = path.join(__dirname, '..', '..', 'examples', 'processes')
/** The first Node that has the entry. */
const OLDEST = '16'

async function main () {
  const { only, node: asked, kills, few, install } = argumentsOf(__filename, {
    only: { type: 'string', default: '', read: text => new RegExp(text) },
    node: { type: 'string', default: '', read: text => text && nodes.read(text) },
    kills: { type: 'string', default: '10', read: whole },
    few: { type: 'boolean' },
    install: { type: 'boolean' }
  })
  const results = new Results()
  if (install) await servers.install()
  // Engines without servers need no client.
  const modules = few ? undefined : path.join(await installed('processes', EXAMPLE, LOCKED), 'node_modules')
  const versions = asked || (few ? [OLDEST, nodes.versions.at(-1)] : [nodes.versions.at(-1)])
  const options = { modules, kills, few, only, results }
  // Those of servers run one after the other: a check takes all their locks away.
  await inParallel(versions.map(version => async () => checkAll(await nodes.get(version), options)), few ? 2 : 1)
  results.close()
}

async function checkAll (node, { modules, kills, few, only, results }) {
  if (node.skipped) return results.skip(`Node ${node.version}`, node.skipped)
  await withScratch(async scratch => {
    fs.chmodSync(scratch, 0o755) // for the servers' account
    const where = { node: node.path, version: node.version, scratch, modules, example: EXAMPLE, kills }
    const rows = Object.entries(engines).filter(([, { isFew, os = process.platform }]) =>
      (!few || isFew) && os === process.platform)
    // Those of one server run one after the other: it may be the same one, and a check takes all its locks away.
    const lanes = Array.from(new Set(rows.map(([, { server }]) => server)))
    await inParallel(lanes.map(lane => async () => {
      for (const [title, engine] of rows.filter(([, { server }]) => server === lane))
        await checkEngine([`${title} on Node ${node.version}`, engine], where, results, only)
    }), 2)
  })
}

async function checkEngine ([title, engine], where, results, only) {
  const chosen = checks.filter(({ what }) => only.test(`${title}: ${what}`))
  if (chosen.length === 0) return
  const isOld = parseInt(where.version) < engine.first
  const absent = isOld ? `its client needs Node ${engine.first}` : servers.missing(engine.server)
  if (absent) return results.skip(title, absent)
  const place = await placeOf(title, engine, where)
  try {
    for (const check of chosen) await perform(check, place, results)
  } finally {
    if (place.server) await place.server.stop()
  }
}

command(main)
