'use strict'

/**
 * Connections of our own to a client's server. The client is of ioredis, or of redis (node-redis).
 *
 * Invariants: a connection that has ended is not opened again; another one takes its place. One keeps the process
 * alive only while a command is under way.
 */

const { setTimeout } = require('../../util/timers')
const { within } = require('./aborts')

/** Duplicates a client of ioredis. It must not queue, retry or send again what may have been done. */
function ofIoredis (client) {
  const copy = client.duplicate({
    lazyConnect: true, retryStrategy: null, reconnectOnError: null, sentinelRetryStrategy: null, keyPrefix: '',
    autoResendUnfulfilledCommands: false, maxRetriesPerRequest: 0, commandTimeout: undefined
  })
  return {
    copy,
    open: () => copy.connect(),
    send: args => copy.call(...args),
    end: () => copy.disconnect(),
    isReady: () => copy.status !== 'close' && copy.status !== 'end',
    subscribe: channel => copy.subscribe(channel),
    unsubscribe: channel => copy.unsubscribe(channel),
    onMessage: hear => copy.on('message', hear),
    keepAlive (isNeeded) { if (copy.stream) copy.stream[isNeeded ? 'ref' : 'unref']() }
  }
}

/** Duplicates a client of node-redis. */
function ofNodeRedis (client) {
  const copy = client.duplicate({
    socket: { ...client.options?.socket, reconnectStrategy: false }, pingInterval: undefined, RESP: undefined
  })
  let heard
  return {
    copy,
    open: () => copy.connect(),
    send: args => copy.sendCommand(args.map(String)),
    subscribe: channel => copy.subscribe(channel, (_, from) => heard(from)),
    unsubscribe: channel => copy.unsubscribe(channel),
    onMessage (hear) { heard = hear },
    // `destroy` since version 5; without a connection, both throw.
    end () { try { (copy.destroy || copy.disconnect).call(copy) } catch (_) {} },
    isReady: () => copy.isReady,
    keepAlive (isNeeded) { copy[isNeeded ? 'ref' : 'unref']() }
  }
}

class Connection {
  constructor (client) {
    Object.assign(this, isIoredis(client) ? ofIoredis(client) : ofNodeRedis(client))
    this.hasEnded = false
    this.isOpen = false
    this.pending = 0
    this.error = undefined
    // Without a listener for errors, they would end the process.
    this.copy.on('error', error => { this.error = error })
    this.copy.on('end', () => { this.hasEnded = true })
  }

  /** node-redis says nothing of the end where it does not connect again. */
  get isEnded () { return this.hasEnded || (this.isOpen && !this.isReady()) }

  onEnd (callback) { this.copy.on('end', callback).on('error', callback) }

  async opened (milliseconds) {
    try {
      await within(milliseconds, this.open(), () => new Error(`Redis has not answered for ${milliseconds} ms`))
      this.isOpen = true
      if (this.pending === 0) this.keepAlive(false)
      return this
    } catch (error) {
      this.close()
      // ioredis says why to its listeners only.
      throw this.error || error
    }
  }

  /** Sends a command. */
  async ask (args) {
    if (this.pending++ === 0) this.keepAlive(true)
    try {
      return await this.send(args)
    } finally {
      if (--this.pending === 0 && !this.isEnded) this.keepAlive(false)
    }
  }

  close () {
    this.hasEnded = true
    this.end()
  }
}

const isIoredis = client => typeof client.defineCommand === 'function'

/** The current connection. */
class Link {
  /** @param {number} milliseconds a command whose answer is later has failed */
  constructor (client, milliseconds) {
    Object.assign(this, { client, milliseconds })
    this.current = undefined
    this.isClosed = false
  }

  /** Returns the current connection, or opens one. `isNew`: it was opened for this. */
  async get () {
    const { current } = this
    if (current !== undefined) {
      const connection = await current
      if (!connection.isEnded) return { connection, isNew: false }
      this.forget(connection)
      return this.get()
    }
    if (this.isClosed) throw new Error('The locks have been closed')
    const connection = new Connection(this.client)
    this.current = connection.opening = connection.opened(this.milliseconds)
    try {
      return { connection: await connection.opening, isNew: true }
    } catch (error) {
      this.forget(connection)
      throw error
    }
  }

  /**
   * Sends a command, which has to be idempotent: it is sent again where the connection had been there before, and ends.
   */
  async ask (args, milliseconds = this.milliseconds) {
    const { connection, isNew } = await this.get()
    try {
      return await this.answered(connection, args, milliseconds)
    } catch (error) {
      if (isNew || !connection.isEnded || this.isClosed) throw error
      const { connection: next } = await this.get()
      return this.answered(next, args, milliseconds)
    }
  }

  /** Sends it by a connection; if the answer is late, the next commands take another one. */
  async answered (connection, args, milliseconds) {
    const late = () => {
      this.leave(connection)
      return Object.assign(new Error(`Redis has not answered for ${milliseconds} ms`), { late: connection })
    }
    return within(milliseconds, connection.ask(args), late)
  }

  /** Leaves a silent connection. It ends when the milliseconds are over again. */
  leave (connection) {
    this.forget(connection)
    connection.keepAlive(false)
    setTimeout(() => connection.close(), this.milliseconds).unref()
  }

  forget ({ opening }) {
    if (this.current === opening) this.current = undefined
  }

  async close () {
    this.isClosed = true
    const { current } = this
    this.current = undefined
    try {
      (await current)?.close()
    } catch (_) {}
  }
}

module.exports = { Connection, Link }
