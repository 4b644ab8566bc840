'use strict'

// A relay on loopback that disturbs the connections of a server's clients.

const net = require('net')

class Relay {
  /** Resolves once it takes connections, for the server at a URL. */
  static start ({ hostname, port }) {
    const relay = new Relay()
    relay.pairs = new Set()
    relay.isOpen = true
    relay.connections = 0
    /** How many pieces clients have sent. */
    relay.messages = 0
    relay.server = net.createServer(client => relay.connect(client, { host: hostname, port }))
    return new Promise(resolve => relay.server.listen(0, '127.0.0.1', () => resolve(relay)))
  }

  get port () { return this.server.address().port }

  connect (client, server) {
    if (!this.isOpen) return client.destroy()
    if (this.isSilent) return this.pairs.add([client.pause().on('error', () => {})])
    this.connections++
    const pair = [client, net.connect(server)]
    this.pairs.add(pair)
    client.on('data', () => { this.messages++ })
    for (const [from, to] of [pair, [pair[1], client]]) {
      from.on('error', () => {}).on('close', () => {
        this.pairs.delete(pair)
        if (!this.isSilent) to.destroy()
      }).pipe(to)
    }
  }

  /** Ends the connections, and takes no more. */
  cut () {
    this.isOpen = false
    for (const pair of this.pairs) for (const socket of pair) socket.destroy()
  }

  /** Forwards nothing more, and says so to nobody: as if a cable had been pulled. */
  fallSilent () {
    this.isSilent = true
    for (const pair of this.pairs) for (const socket of pair) socket.unpipe().pause()
  }

  /** Keeps what the server says on the connections that are there, until the function that it returns is called. */
  withhold () {
    const pairs = Array.from(this.pairs)
    for (const [client, server] of pairs) server.unpipe(client).pause()
    return () => { for (const [client, server] of pairs) server.pipe(client) }
  }

  close () {
    this.isSilent = false
    this.cut()
    return new Promise(resolve => this.server.close(resolve))
  }
}

module.exports = { Relay }
