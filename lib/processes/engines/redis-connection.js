'use strict'

/**
 * Connections of our own to a client's server. The client is of ioredis, or of redis (node-redis).
 *
 * Invariants: a connection that has ended is not opened again; another one takes its place. None keeps the process
 * alive: the time of a command that is under way does.
 */

const { now } = require('../../util/intrinsics')
const { setTimeout } = require('../../util/timers')
const { describe } = require('../../util/values')
const { within } = require('../built-in-engine')

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
    unref () { if (copy.stream) copy.stream.unref() }
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
    unref: () => copy.unref()
  }
}

class Connection {
  constructor (client) {
    Object.assign(this, isIoredis(client) ? ofIoredis(client) : ofNodeRedis(client))
    this.hasEnded = false
    this.isOpen = false
    this.isLeft = false
    this.error = undefined
    // When its server had certainly begun to run: another one would have another connection.
    this.began = Infinity
    /** Those that hear of releases, by channel. A name is awaited once, by the named lock in front. */
    this.listeners = new Map()
    // Without a listener for errors, they would end the process.
    this.copy.on('error', error => {
      this.error = error
      this.tellAll()
    })
    this.copy.on('end', () => {
      this.hasEnded = true
      this.tellAll()
    })
    this.onMessage(channel => this.listeners.get(channel)?.hear())
  }

  /** node-redis says nothing of the end where it does not connect again. */
  get isEnded () { return this.hasEnded || (this.isOpen && !this.isReady()) }

  /** Returns for how many milliseconds its server has run, at least. */
  get age () { return now() - this.began }

  /** Tells those that hear that no news come any more. */
  tellAll () { for (const listener of this.listeners.values()) listener.hear() }

  async opened (milliseconds) {
    try {
      await within(milliseconds, this.open().then(() => this.learnAge()), () => lateError(milliseconds))
      this.isOpen = true
      this.unref()
      return this
    } catch (error) {
      this.close()
      // ioredis says why to its listeners only.
      throw asError(this.error || error)
    }
  }

  /**
   * Sends a command: that of a script again, with its text, if the server lacks it. A server that has become a replica
   * may keep its connections: it is left.
   */
  ask (args, text) {
    return this.send(args).then(undefined, error => {
      const message = String(Object(error).message)
      if (/\bREADONLY\b/.test(message)) this.close()
      // What was asked for may have been undone, behind it, if somebody has ceased to wait for it.
      if (text === undefined || this.isLeft || !message.startsWith('NOSCRIPT')) throw error
      return this.ask(['EVAL', text, ...args.slice(2)])
    })
  }

  run ({ text, hash }, keys, ...more) {
    return this.ask(['EVALSHA', hash, keys.length, ...keys, ...more], text)
  }

  /** Asks for the age of its server, in whole seconds. */
  async learnAge () {
    const seconds = Number(/uptime_in_seconds:(\d+)/.exec(await this.ask(['INFO', 'server']))[1])
    this.began = now() - (seconds - 1) * 1000
  }

  close () {
    this.hasEnded = true
    this.end()
  }
}

const isIoredis = client => typeof client.defineCommand === 'function'

const lateError = milliseconds => new Error(`Redis has not answered for ${milliseconds} ms`)

/** A client may reject with anything. */
const asError = error => Object(error) === error ? error : new Error(`Redis has failed with ${describe(error)}`)

/** The current connection. */
class Link {
  /** @param {number} milliseconds a command whose answer is later has failed */
  constructor (client, milliseconds) {
    Object.assign(this, { client, milliseconds })
    this.connection = undefined
    this.opening = undefined
    this.isClosed = false
  }

  /** Returns the current connection, or opens one: also for those that come meanwhile. */
  async get () {
    if (this.isClosed) throw new Error('The locks have been closed')
    if (this.usable !== undefined) return this.usable
    if (this.opening === undefined) {
      // Not by `finally`, which is later: then `connection` would not be set while nothing is opening.
      const ended = () => { this.opening = undefined }
      this.opening = new Connection(this.client).opened(this.milliseconds)
      this.opening.then(ended, ended)
    }
    this.connection = await this.opening
    return this.connection
  }

  get usable () { return this.connection === undefined || this.connection.isEnded ? undefined : this.connection }

  /**
   * Has a command sent, which has to be idempotent: it is sent again where the connection had been there before, and
   * ends.
   * @param {(connection: Connection) => Promise} send
   */
  async ask (send) {
    const { usable } = this
    try {
      return await this.answered(usable || await this.get(), send)
    } catch (error) {
      if (usable === undefined || !usable.isEnded || this.isClosed) throw error
      return this.answered(await this.get(), send)
    }
  }

  /** Sends it by a connection; if the answer is late, the next commands take another one. */
  answered (connection, send) {
    const late = () => {
      this.leave(connection)
      return Object.assign(lateError(this.milliseconds), { late: connection })
    }
    return within(this.milliseconds, send(connection), late).catch(error => { throw asError(error) })
  }

  /** Leaves a silent connection. It ends when the milliseconds are over again. */
  leave (connection) {
    if (this.connection === connection) this.connection = undefined
    connection.isLeft = true
    setTimeout(() => connection.close(), this.milliseconds).unref()
  }

  async close () {
    this.isClosed = true
    try {
      this.connection?.close();
      (await this.opening)?.close()
    } catch (_) {}
  }
}

module.exports = { Link }
