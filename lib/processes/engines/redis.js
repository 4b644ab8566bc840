'use strict'

/**
 * Exclusive locks by a lease on one Redis server. It takes Redis 6.2 or newer.
 *
 * News of releases come by a connection of their own; the channel of a lock is its key. They only save questions. They
 * may be lost, and a server may give none, so who waits asks now and then all the same.
 */

const { createHash } = require('crypto')
const { now: clock } = require('../../util/intrinsics')
const { assertOptions, option } = require('../../util/values')
const { clearTimeout, setTimeout } = require('../../util/timers')
const { readReason, throwIfAborted } = require('../../waiting/errors')
const { ServerEngine, onAbort, within } = require('../built-in-engine')
const { MOST, describeHolder, infoOf, keyOf } = require('./holder')
const { Link } = require('./redis-connection')
const { Lease, assertLease, now } = require('./server-lease')

// Milliseconds between two questions: with news of releases, and without; and until news are tried again.
const WITH_NEWS = 1000
const WITHOUT = 10
const AGAIN = 1000

const LOCK = /:\{([0-9a-f]{64})\}:lock$/

// ——— The scripts, which Redis runs as one ———

// KEYS[1] is the lock, KEYS[2] what outlives it: the last token, `held`, the mark of the holder, and `died`, what that
// holder saw. ARGV[1] is the holder.

/** Makes a script: its text, and the hash by which servers know it. */
const script = text => ({ text, hash: createHash('sha1').update(text).digest('hex') })

/**
 * Gives { token, died }, or the milliseconds until the next question. A holder that asks again gets its own lock.
 * ARGV[2] is the lease. Tokens grow even if the server forgets them, as long as its clock is right.
 */
const TAKE = script(`
  local holder = redis.call('GET', KEYS[1])
  if holder == ARGV[1] then
    redis.call('PEXPIRE', KEYS[1], ARGV[2])
    return redis.call('HMGET', KEYS[2], 'token', 'died')
  end
  if holder then return redis.call('PTTL', KEYS[1]) end
  local time = redis.call('TIME')
  local state = redis.call('HMGET', KEYS[2], 'token', 'held', 'died')
  local last = tonumber(state[1] or 0)
  if not (last and last < ${Number.MAX_SAFE_INTEGER}) then last = 0 end
  local token = math.max(last + 1, time[1] * 1000000 + time[2])
  local died = state[2] and '1' or '0'
  if state[2] == ARGV[1] then died = state[3] end
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
  redis.call('HSET', KEYS[2], 'token', token, 'held', ARGV[1], 'died', died)
  return { token, died }`)

const RENEW = script("return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('PEXPIRE', KEYS[1], ARGV[2]) or 0")

/** Tells who waits. A user may lack the right to do so. */
const TELL = "redis.pcall('PUBLISH', KEYS[1], '')"

/** ARGV[2]: '1' if the mark stays. */
const RELEASE = script(`
  if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
  if ARGV[2] == '0' then redis.call('HDEL', KEYS[2], 'held') end
  redis.call('DEL', KEYS[1])
  ${TELL}
  return 1`)

/** Undoes a TAKE of whose answer nobody has heard: the mark is again as it was before. */
const FORGET = script(`
  if redis.call('GET', KEYS[1]) == ARGV[1] then
    redis.call('DEL', KEYS[1])
    ${TELL}
  end
  if redis.call('HGET', KEYS[2], 'held') ~= ARGV[1] then return 0 end
  if redis.call('HGET', KEYS[2], 'died') == '1' then return redis.call('HSET', KEYS[2], 'held', 'earlier') end
  return redis.call('HDEL', KEYS[2], 'held')`)

// ——— News of releases ———

/** One that listens to a channel. */
class Listener {
  constructor (channel) {
    this.channel = channel
    this.connection = undefined
    this.isNews = false
    this.wake = undefined
  }

  get isOpen () { return this.connection !== undefined && !this.connection.isEnded }

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

/** @param {object} client of ioredis or node-redis; it is duplicated */
module.exports = function redis (client, options) {
  assertOptions(options, ['lease', 'prefix'], 'redis')
  assertClient(client)
  const lease = option(options, 'lease', 10000)
  assertLease(lease, 'redis', 100)
  const { keyPrefix } = client.options || {}
  const prefix = (keyPrefix || '') + option(options, 'prefix', 'locks')
  // What comes later is undone, and that before the lock's lease is over.
  const link = new Link(client, lease / 2)
  const news = new Link(client, lease / 2)
  /** The locks that are being undone. */
  const undoing = new Set()

  async function enter (name, mode, signal, asker, isAttempt) {
    const keys = keysOf(name)
    const holder = describeHolder(name, asker)
    const ask = () => take(keys, holder, signal, asker.maxHold)
    const taken = await ask()
    if (typeof taken !== 'number') return taken
    return isAttempt ? undefined : wait(keys[0], taken, ask, signal)
  }

  function keysOf (name) {
    const key = `${prefix}:{${keyOf(name).toString('hex')}}`
    return [`${key}:lock`, `${key}:state`]
  }

  /** Takes a lock; or gives the milliseconds after which to ask again, if somebody else has it. */
  async function take (keys, holder, signal, maxHold = Infinity) {
    const sent = now()
    let answer
    try {
      answer = await link.ask(server => {
        // A server that has just started may have forgotten locks: it gives none until their leases are over.
        const rest = Math.ceil(lease - server.age)
        if (rest > 0) return Promise.resolve(rest)
        return server.run(TAKE, keys, holder, Math.ceil(Math.min(lease, maxHold)))
      })
    } catch (error) {
      const undone = undo(keys, holder, error.late).finally(() => undoing.delete(undone))
      undoing.add(undone)
      throw error
    }
    if (!Array.isArray(answer)) return Number(answer)
    const [token, died] = answer
    const grant = new Lease(lease, sent, lockOf(link, keys, holder))
      .begin({ token, ownerDied: String(died) === '1', maxHold, from: sent })
    if (!signal.aborted) return grant
    await grant.release(grant.ownerDied)
    throw readReason(signal)
  }

  /** Waits for a lock that is taken. @param {number} left the milliseconds after which to ask again */
  async function wait (channel, left, ask, signal) {
    const listener = new Listener(channel)
    try {
      for (let again = 0, taken = left; ; taken = await ask()) {
        if (typeof taken !== 'number') return taken
        if (!listener.isOpen && clock() >= again) {
          again = clock() + AGAIN
          await listener.open(news)
          throwIfAborted(signal)
          continue // it may have been released meanwhile
        }
        const most = listener.isOpen ? WITH_NEWS : WITHOUT * (0.5 + Math.random())
        // Once its lease is over, it is free without news.
        await listener.next(taken < 0 ? most : Math.min(taken + 10 * Math.random(), most), signal)
      }
    } finally {
      listener.end()
    }
  }

  /**
   * Undoes what a command may do whose answer has not come: by the connection behind it (`late`), where it comes next;
   * otherwise by another one, until the lease would be over.
   */
  async function undo (keys, holder, late) {
    const forget = server => server.run(FORGET, keys, holder)
    try {
      if (late !== undefined) return await forget(late)
    } catch (_) {}
    for (let tries = 0; tries < 10 && !link.isClosed; tries++) {
      try {
        return await link.ask(forget)
      } catch (_) {}
      await new Promise(resolve => setTimeout(resolve, lease / 10).unref())
    }
  }

  async function query (name) {
    const keys = name === undefined ? await allLocks() : keysOf(name).slice(0, 1)
    const values = await Promise.all(keys.map(key => link.ask(server => server.ask(['GETRANGE', key, 0, MOST]))))
    const infos = values.map((value, n) => value && infoOf(String(value), 'exclusive', LOCK.exec(keys[n])[1]))
    return { held: infos.filter(Boolean) }
  }

  async function allLocks () {
    const found = new Set()
    // Others may have keys of any length.
    const pattern = `${escaped(prefix)}:{${'?'.repeat(64)}}:lock`
    let cursor = '0'
    do {
      const scan = ['SCAN', cursor, 'MATCH', pattern, 'COUNT', 1000, 'TYPE', 'string']
      const [next, keys] = await link.ask(server => server.ask(scan))
      for (const key of keys.map(String)) if (LOCK.test(key)) found.add(key)
      cursor = String(next)
    } while (cursor !== '0')
    return Array.from(found)
  }

  return new ServerEngine({
    id: `redis ${addressOf(client)} ${prefix}`,
    modes: ['exclusive'],
    enter,
    query,
    async close () {
      // What is undone by a server that answers.
      await Promise.race([Promise.all(undoing), new Promise(resolve => setTimeout(resolve, 100).unref())])
      await Promise.all([link.close(), news.close()])
    }
  })
}

/** Returns a lock on the server, for its lease. */
function lockOf (link, keys, holder) {
  const run = async (script, argument) =>
    Number(await link.ask(server => server.run(script, keys, holder, argument))) === 1
  return {
    renew: milliseconds => run(RENEW, Math.ceil(milliseconds)),
    // By no script: a server that lacked it would be asked again, behind a release that has been sent meanwhile.
    held: async () => String(await link.ask(server => server.ask(['GET', keys[0]]))) === holder,
    release: died => run(RELEASE, Number(died))
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
