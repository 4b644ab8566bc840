'use strict'

/**
 * News of releases, by a connection of their own. The channel of a lock is its key.
 *
 * They only save questions. News may be lost, and a server may give none, so who waits asks now and then all the same.
 */

const { clearTimeout, setTimeout } = require('../../util/timers')
const { onAbort, within } = require('./aborts')
const { throwIfAborted } = require('../../waiting/errors')

/** One that listens to a channel. */
class Listener {
  constructor (channel) {
    this.channel = channel
    this.connection = undefined
    this.isNews = false
    this.wake = undefined
  }

  get isOpen () { return this.connection !== undefined }

  /** Listens from now on, if that is possible. @param {import('./redis-connection').Link} link that of the news */
  async open (link) {
    const { channel } = this
    try {
      const connection = this.connection = await link.get()
      connection.listeners.set(channel, this)
      await within(link.milliseconds, connection.subscribe(channel), () => new Error('Redis has not answered'))
    } catch (_) {
      this.end()
    }
  }

  /** Notes that no news come any more. */
  close () {
    this.connection = undefined
    this.hear()
  }

  end () {
    const { channel, connection } = this
    this.connection = undefined
    if (connection === undefined) return
    connection.listeners.delete(channel)
    // A client may throw at once.
    new Promise(resolve => resolve(connection.unsubscribe(channel))).catch(() => {})
  }

  hear () {
    this.isNews = true
    if (this.wake !== undefined) this.wake()
  }

  /** Waits for news, also those since the last time, or some milliseconds; or rejects with the signal's reason. */
  async next (milliseconds, signal) {
    let timer, ignore
    await new Promise(resolve => {
      this.wake = resolve
      // The timer keeps the process alive.
      timer = setTimeout(resolve, milliseconds)
      ignore = onAbort(signal, resolve)
      if (this.isNews || signal.aborted) resolve()
    })
    clearTimeout(timer)
    ignore()
    this.isNews = false
    throwIfAborted(signal)
  }
}

module.exports = { Listener }
