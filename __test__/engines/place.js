'use strict'

// Where the checks of an engine take place: its server, and a folder with the packages.

const { createRequire } = require('module')
const path = require('path')
const { copyExample } = require('../../scripts/lib/example')
const { command, insides, query } = require('./insides')
const { Relay } = require('./relay')
const servers = require('./servers')
const { Team } = require('./team')

/** `patient`: the engine's arguments with a lease, if it has one, that outlasts a busy machine and a restart. */
async function placeOf (title, engine, { node, scratch, modules, example, kills }) {
  const folder = path.join(scratch, title.replace(/ /g, '-'))
  const home = copyExample(folder, modules, example)
  const load = createRequire(path.join(home, 'package.json'))
  const server = engine.server ? await servers.start(engine.server, folder) : undefined
  const where = server ? server.url : folder
  const args = engine.args(where)
  return {
    title, engine, node, kills, folder, home, server, args,
    patient: engine.lease > 0 ? engine.args(where, 5 * engine.lease) : args,
    /** Its arguments with another URL. */
    argsWith (change) {
      const url = new URL(where)
      change(url)
      return engine.args(String(url))
    },
    argsOf: engine.args,
    inside: isTaken => insides[engine.server || engine.module](load, args[0], isTaken),
    query: text => query(load, args[0], text),
    command: (...words) => command(load, args[0], words),
    forget: () => command(load, args[0], ['FLUSHALL'])
  }
}

let performed = 0

/** Runs a check, and records its result, if it concerns the place. */
async function perform ({ what, when, check }, place, results) {
  const { title, engine, args, server, argsWith } = place
  const concerns = when(place)
  if (concerns === false) return
  if (concerns !== true) return results.skip(`${title}: ${what}`, concerns)
  const team = new Team({ node: place.node, home: place.home, module: engine.module, args })
  const relay = server && await Relay.start(new URL(server.url))
  const behind = relay && argsWith(url => { url.host = `127.0.0.1:${relay.port}` })
  await results.of(`${title}: ${what}`, async () => {
    try {
      return await check({ ...place, team, relay, behind, name: `${process.pid} ${++performed}` })
    } finally {
      await team.end()
      if (relay) await relay.close()
    }
  })
}

module.exports = { perform, placeOf }
