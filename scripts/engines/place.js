'use strict'

// Where the checks of an engine take place: its server, and a folder with the example and what it imports.

const path = require('path')
const { copyExample } = require('../lib/example')
const { Relay } = require('./relay')
const { Team } = require('./team')
const servers = require('./servers')

class Place {
  static async make ({ name, engine, node, scratch, modules, example }) {
    const folder = path.join(scratch, name.replace(/ /g, '-'))
    const home = copyExample(folder, modules, example)
    return new Place({
      name,
      engine,
      node,
      folder,
      home,
      server: engine.server && (await servers.start(engine.server, folder))
    })
  }

  constructor (facts) {
    Object.assign(this, facts)
    this.performed = 0
  }

  get args () { return this.engine.args(this.server ? this.server.url : this.folder) }

  /** The engine's arguments for clients that go through a relay. */
  argsBehind (relay) {
    const url = new URL(this.server.url)
    url.host = `127.0.0.1:${relay.port}`
    return this.engine.args(String(url))
  }

  /** Runs a check and records its result. */
  async perform ({ what, check, needs = () => undefined }, results, options) {
    const title = `${this.name}: ${what}`
    const reason = needs(this)
    if (reason !== undefined) return results.skip(title, reason)
    const { engine, folder, home, node, server } = this
    const name = `${process.pid} ${++this.performed}`
    const team = new Team({ node, home, module: engine.module, args: this.args })
    const relay = server && await Relay.start(new URL(server.url))
    await results.of(title, async () => {
      try {
        return await check({
          ...options, team, name, engine, folder, home, node, server, relay,
          resource: path.join(folder, `account-${this.performed}.db`),
          argsBehind: relay => this.argsBehind(relay),
          /** Resolves once the engine has so many locks and waits. */
          left: async number => {
            const teller = await team.process()
            for (let there; there !== number;) there = (await teller.result('left', 'left')).number
          },
          takeAway: async () => (await team.process()).result('takeAway', 'taken')
        })
      } finally {
        await team.end()
        if (relay) await relay.close()
      }
    })
  }

  async close () {
    if (this.server) await this.server.stop()
  }
}

module.exports = { Place }
