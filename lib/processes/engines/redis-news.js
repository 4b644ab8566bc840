'use strict'

/**
 * News of releases, by a connection of their own. The channel of a lock is its key.
 *
 * They only save questions. News may be lost, and a server may give none, so who waits asks now and then all the same.
 */

const { clearTimeout, setTimeout } = require('../../util/timers')
const { onAbort, within } = require('./aborts')
const { Connection } = require('./redis-connection')
const { readReason, throwIfAborted } = require('../../waiting/errors')

/** One that listens to a channel. */
class Listener {
  constructor (end) {
    this.end = end
    this.isOpen = true
    this.isNews = false
    this.hear = () => { this.isNews = true }
  }

  /** Waits for news, also those since the last time, or some milliseconds; or rejects with the signal's reason. */
  next (milliseconds, signal) {
    return new Promise((resolve, reject) => {
      throwIfAborted(signal)
      const done = (settle) => {
        clearTimeout(timer)
        ignore()
        this.isNews = false
        this.hear = () => { this.isNews = true }
        settle()
      }
      // The timer keeps the process alive.
      const timer = setTimeout(() => done(resolve), milliseconds)
      const ignore = onAbort(signal, () => done(() => reject(readReason(signal))))
      this.hear = () => done(resolve)
      if (this.isNews) this.hear()
    })
  }
}

class News {
  /** @param {number} milliseconds a command whose answer is later has failed */
  constructor (client, milliseconds) {
    Object.assign(this, { client, milliseconds })
    this.current = undefined
    /** By channel. A name is awaited once, by the named lock in front. */
    this.listeners = new Map()
  }

  /** Listens to a channel. Undefined if that is not possible. */
  async listen (channel) {
    const listener = new Listener(() => {
      if (this.listeners.get(channel) !== listener) return
      this.listeners.delete(channel)
      if (listener.isOpen) connection.unsubscribe(channel).catch(() => {})
    })
    this.listeners.set(channel, listener)
    let connection
    try {
      connection = await this.connection()
      await within(this.milliseconds, connection.subscribe(channel), () => new Error('Redis has not answered'))
      return listener
    } catch (_) {
      listener.isOpen = false
      listener.end()
      return undefined
    }
  }

  /** Returns the connection, or opens one. It keeps no process alive. */
  async connection () {
    const opening = this.current || (this.current = this.open())
    let connection
    try {
      connection = await opening
      if (!connection.isEnded) return connection
    } finally {
      if ((connection === undefined || connection.isEnded) && this.current === opening) this.current = undefined
    }
    return this.connection()
  }

  open () {
    const connection = new Connection(this.client)
    connection.onMessage(channel => {
      const listener = this.listeners.get(channel)
      if (listener !== undefined) listener.hear()
    })
    connection.onEnd(() => {
      for (const listener of this.listeners.values()) {
        listener.isOpen = false
        listener.hear()
      }
    })
    return connection.opened(this.milliseconds)
  }

  async close () {
    try {
      (await this.current)?.close()
    } catch (_) {}
  }
}

module.exports = { News }
