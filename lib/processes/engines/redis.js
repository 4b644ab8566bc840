'use strict'

/** Exclusive locks by a lease on one Redis server. It takes Redis 6.2 or newer. */

const { assertOptions, option } = require('../../util/options')
const { readReason, throwIfAborted } = require('../../waiting/errors')
const { sleep } = require('./aborts')
const { describeHolder, infoOf, keyOf } = require('./holder')
const { Lease, assertLease, now } = require('./lease')
const { Link, isIoredis } = require('./redis-connection')
const { FORGET, HELD, RELEASE, RENEW, TAKE } = require('./redis-scripts')

const POLL = 10 // milliseconds

/** @param {object} client of ioredis or node-redis; it is duplicated */
module.exports = function redis (client, options) {
  assertOptions(options, ['lease', 'prefix'], 'redis')
  assertClient(client)
  const lease = option(options, 'lease', 10000)
  assertLease(lease, 'redis', 100)
  const prefix = ((isIoredis(client) && client.options.keyPrefix) || '') + option(options, 'prefix', 'locks')
  // What comes later is undone, and that before the lock's lease is over.
  const link = new Link(client, lease / 2)
  /** The locks that are being undone. */
  const undoing = new Set()

  const keysOf = name => {
    const key = `${prefix}:{${keyOf(name).toString('hex')}}`
    return [`${key}:lock`, `${key}:state`]
  }
  const command = (script, keys, ...args) => ['EVAL', script, 2, ...keys, ...args]

  /** Takes a lock unless somebody else has it. */
  async function take (keys, holder, signal) {
    const sent = now()
    let answer
    try {
      answer = await link.ask(command(TAKE, keys, holder, lease))
    } catch (error) {
      track(undo(keys, holder, error.late))
      throw error
    }
    if (answer === null) return undefined
    const grant = grantOf(keys, holder, answer, sent)
    if (!signal.aborted) return grant
    await grant.release(grant.ownerDied)
    throw readReason(signal)
  }

  function grantOf (keys, holder, [token, died], sent) {
    const ask = async (script, ...more) => Number(await link.ask(command(script, keys, holder, ...more))) === 1
    const kept = new Lease(lease, sent, () => ask(RENEW, lease))
    return {
      token: Number(token),
      ownerDied: String(died) === '1',
      lost: kept.lost,
      remaining: () => kept.remaining(),
      held: () => ask(HELD),
      async release (died) {
        kept.rest()
        try {
          return await ask(RELEASE, Number(died))
        } finally {
          kept.stop()
        }
      }
    }
  }

  /**
   * Undoes what a command may do whose answer has not come: by the connection behind it (`late`), where it comes next;
   * otherwise by another one, until the lease would be over.
   */
  async function undo (keys, holder, late) {
    const args = command(FORGET, keys, holder)
    try {
      if (late !== undefined) return await late.ask(args)
    } catch (_) {}
    for (let tries = 0; tries < 10 && !link.isClosed; tries++) {
      try {
        return await link.ask(args)
      } catch (_) {}
      await new Promise(resolve => setTimeout(resolve, lease / 10).unref())
    }
  }

  function track (promise) {
    undoing.add(promise)
    promise.finally(() => undoing.delete(promise))
  }

  async function acquire (name, mode, signal, who) {
    const keys = keysOf(name)
    const holder = describeHolder(name, who)
    for (;;) {
      throwIfAborted(signal)
      const grant = await take(keys, holder, signal)
      if (grant !== undefined) return grant
      await sleep(POLL * (0.5 + Math.random()), signal)
    }
  }

  async function query (name) {
    const keys = name === undefined ? await allLocks() : keysOf(name).slice(0, 1)
    const values = await Promise.all(keys.map(key => link.ask(['GET', key])))
    return { held: values.filter(value => value !== null).map(value => infoOf(String(value), 'exclusive')) }
  }

  async function allLocks () {
    const found = new Set()
    let cursor = '0'
    do {
      const [next, keys] = await link.ask(['SCAN', cursor, 'MATCH', `${escaped(prefix)}:{*}:lock`, 'COUNT', 1000])
      for (const key of keys) found.add(String(key))
      cursor = String(next)
    } while (cursor !== '0')
    return Array.from(found)
  }

  return {
    id: `redis ${addressOf(client)} ${prefix}`,
    modes: ['exclusive'],
    acquire,
    attempt: (name, mode, signal, who) => take(keysOf(name), describeHolder(name, who), signal),
    query,
    async close () {
      // What is undone by a server that answers.
      await Promise.race([Promise.all(undoing), new Promise(resolve => setTimeout(resolve, 100).unref())])
      await link.close()
    }
  }
}

/** @throws {TypeError} it is no client of one server */
function assertClient (client) {
  const isClient = typeof client === 'object' && client !== null && typeof client.duplicate === 'function'
  if (!isClient) throw new TypeError('redis: client must be a client of ioredis or node-redis')
  if (client.isCluster || typeof client.nodes === 'function' || client.masters !== undefined) {
    throw new TypeError('redis: client must be one of a single server, not of a cluster')
  }
}

function addressOf ({ options }) {
  if (!options) return ''
  const { host, port, path } = options.socket || options
  return `${path || `${host || 'localhost'}:${port || 6379}`}/${options.db || options.database || 0}`
}

/** Escapes a text for a pattern of SCAN. */
const escaped = text => text.replace(/[*?[\]\\^-]/g, '\\$&')
