'use strict'

/**
 * Exclusive locks by a lease in an etcd cluster. First come, first served.
 *
 * - A name has a line of keys, one for each that holds or awaits it, which end with its lease. The one that was created
 *   first has the lock; each other one watches the one before it.
 * - `held` is a key without a lease: the mark of the holder. It is written in a transaction that makes sure that the
 *   holder's key is there, and deleted with that key.
 */

const { randomBytes } = require('crypto')
const { assertOptions, option } = require('../../util/values')
const { readReason, throwIfAborted } = require('../../waiting/errors')
const { ServerEngine, onAbort, sleep } = require('../built-in-engine')
const { Cluster } = require('./etcd-cluster')
const { describeHolder, infoOf, keyOf } = require('./holder')
const { Lease, assertLease, now } = require('./server-lease')

const AGAIN = 100 // milliseconds after a failure while waiting
const LEAST_ANSWER = 1000 // milliseconds
const EXISTS = 'etcdserver: lease already exists'

const base64 = text => Buffer.from(text).toString('base64')
const decoded = text => String(Buffer.from(text, 'base64'))
/** A range of keys. They begin with a text that ends with a slash. */
const rangeOf = text => ({ key: base64(text), range_end: base64(text.slice(0, -1) + '0') })
/** The revision before another one. */
const before = revision => String(BigInt(revision) - 1n)
/** What is compared in a transaction: whether a key is there. */
const isThere = key => ({ key, target: 'CREATE', result: 'GREATER', create_revision: '0' })
const deletion = key => ({ request_delete_range: { key } })

/** A place in the line of a name: a key with a lease. */
class Place {
  constructor ({ cluster, ending, lease, prefix }, name, { label, maxHold = Infinity, threadId }) {
    const hash = keyOf(name).toString('hex')
    const line = `${prefix}/line/${hash}/`
    this.cluster = cluster
    this.ending = ending
    this.maxHold = maxHold
    this.TTL = Math.ceil(Math.min(lease, maxHold) / 1000)
    this.ID = String(randomBytes(8).readBigUInt64BE() >> 1n || 1n)
    this.line = rangeOf(line)
    this.key = base64(line + this.ID)
    this.mark = base64(`${prefix}/held/${hash}`)
    this.value = base64(describeHolder(name, { label, threadId }))
    /** The lease. */
    this.kept = undefined
    /** The last question whether it is there. */
    this.asked = undefined
  }

  call (path, body, more) { return this.cluster.call(path, body, more) }

  txn (compare, success, failure = []) { return this.call('kv/txn', { compare: [compare], success, failure }) }

  /** Joins the line. An attempt stays out of one that is not empty. */
  async enter (signal, isAttempt) {
    const sent = now()
    const TTL = await this.grantLease()
    this.kept = new Lease(TTL * 1000, sent, this)
    try {
      const state = await this.take(isAttempt)
      if (state.isBehind && isAttempt) {
        this.end()
        return undefined
      }
      if (state.isBehind) await this.wait(state.revision, signal)
      const { token, ownerDied } = state.granted || await this.takeAsFirst()
      const grant = this.kept.begin({ token, ownerDied, maxHold: this.maxHold, from: now() })
      if (!signal.aborted) return grant
      await grant.release(grant.ownerDied)
    } catch (error) {
      this.end(this.undo())
      throw signal.aborted ? readReason(signal) : error
    }
    throw readReason(signal)
  }

  async grantLease () {
    const { ID, TTL } = this
    try {
      return Number((await this.call('lease/grant', { TTL, ID })).TTL)
    } catch (error) {
      // A member that did not answer had done it.
      if (error.message.endsWith(EXISTS)) return TTL
      throw error
    }
  }

  async renew () { return Number((await this.call('lease/keepalive', { ID: this.ID })).TTL || 0) > 0 }

  /** Ends the lease, and its key with it, after what comes before: or that ends by itself. */
  end (earlier = Promise.resolve()) {
    this.kept.stop()
    const revoke = () => this.call('lease/revoke', { ID: this.ID })
    const done = earlier.then(revoke, revoke).catch(() => {}).then(() => this.ending.delete(done))
    this.ending.add(done)
  }

  /** Removes a mark of whose answer nobody has heard. Meanwhile the key keeps others out. */
  async undo () {
    const { mark: key } = this
    const { kvs: [found] = [] } = await this.call('kv/range', { key })
    const value = base64(this.ID)
    if (found === undefined || found.value !== value || await this.wasThere(found)) return
    await this.txn({ key, target: 'VALUE', result: 'EQUAL', value }, [deletion(key)])
  }

  get putMark () { return { request_put: { key: this.mark, value: base64(this.ID), prev_kv: true } } }

  /** One transaction for a free lock: the key, and the mark. */
  async take (isAttempt) {
    const { ID, line, key, value, putMark } = this
    const isEmpty = { ...line, target: 'CREATE', result: 'EQUAL', create_revision: '0' }
    const put = { request_put: { key, value, lease: ID } }
    const own = { request_range: { key } }
    const first = { request_range: { ...line, sort_target: 'CREATE', sort_order: 'ASCEND', limit: 1 } }
    const { succeeded, header, responses } = await this.txn(
      isEmpty, [put, putMark], [...(isAttempt ? [] : [put]), own, first]
    )
    if (succeeded) {
      const ownerDied = responses[1].response_put.prev_kv !== undefined
      return { isBehind: false, granted: { token: header.revision, ownerDied } }
    }
    const [{ kvs: [mine] = [] }, { kvs: [head] = [] }] = responses.slice(-2).map(({ response_range: range }) => range)
    // It is the first if a member that did not answer had done it, or the others have left meanwhile.
    return { isBehind: !(mine && head && head.key === mine.key), revision: mine && mine.create_revision }
  }

  /** Takes the lock as the first in line. */
  async takeAsFirst () {
    const { succeeded, header, responses } = await this.txn(isThere(this.key), [this.putMark])
    if (!succeeded) throw new Error('The lease ended before the lock was given')
    const { prev_kv: earlier } = responses[0].response_put
    const isOurs = earlier !== undefined && earlier.value === base64(this.ID)
    return { token: header.revision, ownerDied: isOurs ? await this.wasThere(earlier) : earlier !== undefined }
  }

  /** Whether there was a mark before a call that was not answered. */
  async wasThere ({ mod_revision: revision }) {
    try {
      const range = { key: this.mark, revision: before(revision), count_only: true }
      return (await this.call('kv/range', range)).count > 0
    } catch (_) {
      return true // it has been compacted
    }
  }

  /** Waits until those before it have left the line. Failures may pass while the lease lasts. */
  async wait (revision, signal) {
    const { lost } = this.kept
    const stop = new AbortController()
    const ignore = [signal, lost].map(each => onAbort(each, () => stop.abort()))
    const last = {
      ...this.line, max_create_revision: before(revision), sort_target: 'CREATE', sort_order: 'DESCEND', limit: 1,
      keys_only: true
    }
    let failure
    try {
      for (;;) {
        throwIfAborted(signal)
        if (lost.aborted) throw Object.assign(new Error('The lease ended while it waited in line'), { cause: failure })
        try {
          const { kvs: [next] = [], header } = await this.call('kv/range', last, stop)
          if (next === undefined) return
          await this.gone(next.key, header.revision, stop.signal)
        } catch (error) {
          if (!error.isOfMember && !stop.signal.aborted) throw error
          failure = error
          if (!stop.signal.aborted) await sleep(AGAIN, stop.signal).catch(() => {})
        }
      }
    } finally {
      for (const each of ignore) each()
    }
  }

  /** Waits until a key is deleted, or for some time: a member may have fallen silent. */
  gone (key, revision, signal) {
    const start = String(BigInt(revision) + 1n)
    const isOpen = ({ events, canceled }) => Boolean(canceled) || (events !== undefined && events.length > 0)
    const create = { key, start_revision: start, filters: ['NOPUT'] }
    return this.call('watch', { create_request: create }, { signal, isOpen })
  }

  async held () { return (await (this.asked = this.txn(isThere(this.key), []))).succeeded === true }

  async release (died) {
    const { key, mark } = this
    try {
      // By another connection it could come before that question.
      await Promise.allSettled([this.asked])
      const answer = await this.txn(isThere(key), (died ? [key] : [mark, key]).map(deletion))
      // If the lease is there, only a call that was not answered can have deleted the key.
      return answer.succeeded === true || (answer.isRepeated && await this.renew())
    } finally {
      this.end()
    }
  }
}

/** Lists the keys of one line, or of all. */
async function query ({ cluster, prefix }, name) {
  const all = `${prefix}/line/`
  const [held, pending] = [[], []]
  const seen = new Set()
  const keys = rangeOf(name === undefined ? all : `${all}${keyOf(name).toString('hex')}/`)
  const { kvs = [] } = await cluster.call('kv/range', { ...keys, sort_target: 'CREATE', sort_order: 'ASCEND' })
  for (const { key, value = '' } of kvs) {
    const [hash] = decoded(key).slice(all.length).split('/')
    if (!/^[0-9a-f]{64}$/.test(hash)) continue
    const list = seen.has(hash) ? pending : held
    seen.add(hash)
    list.push(infoOf(decoded(value), 'exclusive', hash))
  }
  return { held, pending }
}

/** @throws {TypeError} there is none, or one has another protocol than HTTP and HTTPS */
function readEndpoints (urls) {
  const endpoints = [].concat(urls).map(url => new URL(url))
  const odd = endpoints.find(({ protocol }) => protocol !== 'http:' && protocol !== 'https:')
  if (odd !== undefined) throw new TypeError(`etcd: endpoints must begin with http:// or https://, not ${odd.protocol}`)
  if (endpoints.length === 0) throw new TypeError('etcd: endpoints must have a URL at least')
  return endpoints
}

/** @throws {TypeError} it is given and not `{ username, password }` */
function readAuth (auth) {
  if (auth === undefined) return undefined
  const { username, password } = Object(auth)
  if (typeof username === 'string' && typeof password === 'string') return { username, password }
  throw new TypeError('etcd: auth must have a username and a password')
}

/** @param {string | string[]} urls of the members */
module.exports = function etcd (urls, options) {
  assertOptions(options, ['lease', 'prefix', 'tls', 'auth'], 'etcd')
  const lease = option(options, 'lease', 10000)
  assertLease(lease, 'etcd', 1000)
  const endpoints = readEndpoints(urls)
  const cluster = new Cluster(endpoints, {
    tls: option(options, 'tls'),
    auth: readAuth(option(options, 'auth')),
    // So that a silent member leaves time for another one.
    milliseconds: Math.max(LEAST_ANSWER, lease / (endpoints.length === 1 ? 1 : endpoints.length + 1))
  })
  const locks = { cluster, ending: new Set(), lease, prefix: option(options, 'prefix', 'locks') }
  return new ServerEngine({
    id: `etcd ${endpoints.map(({ host }) => host).sort().join()} ${locks.prefix}`,
    modes: ['exclusive'],
    enter: (name, mode, signal, asker, isAttempt) => new Place(locks, name, asker).enter(signal, isAttempt),
    query: name => query(locks, name),
    async close () {
      await Promise.all(locks.ending)
      cluster.close()
    }
  })
}
