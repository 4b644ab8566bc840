'use strict'

// `npm run test:engines`: the locks of examples/processes on the engines that they are for, with several processes,
// some of which are killed or stand still.
//
//   node scripts/engines.js [--only redis] [--node 26] [--kills 1000] [--few] [--install]
//
// `--only`: the checks in whose names, as they are printed, this is found (a regular expression); `--node`: the Node
// that runs the processes; `--kills`: how many processes are killed while they come and go; `--few`: without servers,
// as `.ci/run` does; `--install`: gets the servers that are missing, as packages of Debian.
//
// The servers run on loopback with their data in a scratch folder. POSTGRESQL_URL, REDIS_URL and ETCD_URL name others.
// An engine that is there in neither way is skipped. The clients are those of examples/processes/package-lock.json,
// kept in the user's cache folder.

const fs = require('fs')
const path = require('path')
const { argumentsOf, command, whole } = require('./lib/arguments')
const { succeed } = require('./lib/child')
const { copyExample } = require('./lib/example')
const { inParallel } = require('./lib/in-parallel')
const { LOCKED, installed } = require('./lib/npm')
const { Results } = require('./lib/results')
const { withScratch } = require('./lib/scratch')
const { checks } = require('./engines/checks')
const { engines } = require('./engines/abilities')
const { perform, placeOf } = require('./engines/place')
const servers = require('./engines/servers')
const nodes = require('./nodes')

const EXAMPLE = path.join(__dirname, '..', 'examples', 'processes')

async function main () {
  const { only, node: version, kills, few, install } = argumentsOf(__filename, {
    only: { type: 'string', default: '', read: text => new RegExp(text) },
    node: { type: 'string', default: nodes.versions.at(-1), read: nodes.resolve },
    kills: { type: 'string', default: '10', read: whole },
    few: { type: 'boolean' },
    install: { type: 'boolean' }
  })
  const results = new Results()
  const node = await nodes.get(version)
  if (node.skipped) {
    results.skip('the engines', node.skipped)
    return results.close()
  }
  if (install) await servers.install()
  const modules = path.join(await installed('processes', EXAMPLE, LOCKED), 'node_modules')
  await withScratch(async scratch => {
    fs.chmodSync(scratch, 0o755) // for the servers' account
    const where = { node: node.path, scratch, modules, example: EXAMPLE, kills }
    await checkCommonPart(where, results, only)
    const rows = Object.entries(engines).filter(([, { module }]) => !few || !servers.has(module))
    // Those of one server run one after the other: it may be the same one, and a check takes all its locks away.
    const lanes = Array.from(new Set(rows.map(([, { module }]) => module)))
    await inParallel(lanes.map(lane => async () => {
      for (const row of rows.filter(([, { module }]) => module === lane)) await checkEngine(row, where, results, only)
    }), 2)
  })
  results.close()
}

async function checkCommonPart ({ node, scratch, modules, example }, results, only) {
  const what = 'the common part, over an engine that does as it is told'
  if (!only.test(what)) return
  const home = copyExample(path.join(scratch, 'common-part'), modules, example)
  const program = path.join(__dirname, 'engines', 'common-part.mjs')
  await results.of(what, async () =>
    (await succeed(node, ['--no-warnings', program, home], { timeout: 5 * 60 * 1000 })).trim()
  )
}

async function checkEngine ([title, engine], where, results, only) {
  const chosen = checks.filter(({ what }) => only.test(`${title}: ${what}`))
  if (chosen.length === 0) return
  const absent = servers.missing(engine.module)
  if (absent) return results.skip(title, absent)
  const place = await placeOf(title, engine, where)
  try {
    for (const check of chosen) await perform(check, place, results)
  } finally {
    if (place.server) await place.server.stop()
  }
}

command(main)
