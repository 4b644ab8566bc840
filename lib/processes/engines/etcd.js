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
const { assertOptions, option } = require('../../util/options')
const { readReason, throwIfAborted } = require('../../waiting/errors')
const { onAbort, sleep } = require('./aborts')
const { Cluster } = require('./etcd-cluster')
const { describeHolder, infoOf, keyOf } = require('./holder')
const { Lease, assertLease, now } = require('./server-lease')

const AGAIN = 100 // milliseconds after a failure while waiting
const LEAST_ANSWER = 1000 // milliseconds
const EXISTS = 'etcdserver: lease already exists'
const PAGE = 500 // keys of an answer

const base64 = text => Buffer.from(text).toString('base64')
const decoded = text => String(Buffer.from(text, 'base64'))
/** The end of a range of keys. They begin with a text that ends with a slash. */
const endOf = text => base64(text.slice(0, -1) + '0')

/** @param {string | string[]} urls of the members */
module.exports = function etcd (urls, options) {
  assertOptions(options, ['lease', 'prefix', 'tls', 'auth'], 'etcd')
  const lease = option(options, 'lease', 10000)
  assertLease(lease, 'etcd', 1000)
  const prefix = option(options, 'prefix', 'locks')
  const endpoints = readEndpoints(urls)
  const cluster = new Cluster(endpoints, {
    tls: option(options, 'tls'),
    auth: readAuth(option(options, 'auth')),
    // So that a silent member leaves time for another one.
    milliseconds: Math.max(LEAST_ANSWER, lease / (endpoints.length === 1 ? 1 : endpoints.length + 1))
  })
  const ending = new Set()
  const call = (path, body, more) => cluster.call(path, body, more)

  /** Joins the line of a name. An attempt stays out of one that is not empty. */
  async function enter (name, signal, who, isAttempt) {
    throwIfAborted(signal)
    const place = placeOf(name, who)
    const sent = now()
    const TTL = await grantLease(place.ID)
    const kept = new Lease(TTL * 1000, sent, () => renew(place.ID))
    try {
      const state = await takePlace(place, isAttempt)
      if (state.isBehind && isAttempt) {
        end(kept, place.ID)
        return undefined
      }
      if (state.isBehind) await wait(place, state.revision, signal, kept.lost)
      const grant = grantOf(place, state.granted || await take(place), kept)
      if (!signal.aborted) return grant
      await grant.release(grant.ownerDied)
    } catch (error) {
      end(kept, place.ID, undo(place))
      throw signal.aborted ? readReason(signal) : error
    }
    throw readReason(signal)
  }

  function placeOf (name, who) {
    const ID = String(randomBytes(8).readBigUInt64BE() >> 1n || 1n)
    const hash = keyOf(name).toString('hex')
    const line = `${prefix}/line/${hash}/`
    return {
      ID, line: base64(line), end: endOf(line), key: base64(line + ID), mark: base64(`${prefix}/held/${hash}`),
      value: base64(describeHolder(name, who))
    }
  }

  async function grantLease (ID) {
    const TTL = Math.ceil(lease / 1000)
    try {
      return Number((await call('lease/grant', { TTL, ID })).TTL)
    } catch (error) {
      // A member that did not answer had done it.
      if (error.message.endsWith(EXISTS)) return TTL
      throw error
    }
  }

  const renew = async ID => Number((await call('lease/keepalive', { ID })).TTL || 0) > 0

  /** Ends a lease, and its key with it, after what comes before: or that ends by itself. */
  function end (kept, ID, before = Promise.resolve()) {
    kept.stop()
    const revoke = () => call('lease/revoke', { ID })
    const done = before.then(revoke, revoke).catch(() => {}).then(() => ending.delete(done))
    ending.add(done)
  }

  /** Removes a mark of whose answer nobody has heard. Meanwhile the key keeps others out. */
  async function undo ({ ID, mark }) {
    const { kvs: [found] = [] } = await call('kv/range', { key: mark })
    const value = base64(ID)
    if (found === undefined || found.value !== value || await wasThere(mark, found)) return
    await txn({ key: mark, target: 'VALUE', result: 'EQUAL', value }, [{ request_delete_range: { key: mark } }])
  }

  const isThere = key => ({ key, target: 'CREATE', result: 'GREATER', create_revision: '0' })
  const txn = (compare, success, failure = []) => call('kv/txn', { compare: [compare], success, failure })

  /** One transaction for a free lock: the key, and the mark. */
  async function takePlace ({ ID, line, end: lineEnd, key, mark, value }, isAttempt) {
    const isEmpty = { key: line, range_end: lineEnd, target: 'CREATE', result: 'EQUAL', create_revision: '0' }
    const put = { request_put: { key, value, lease: ID } }
    const own = { request_range: { key } }
    const inOrder = { sort_target: 'CREATE', sort_order: 'ASCEND' }
    const first = { request_range: { key: line, range_end: lineEnd, ...inOrder, limit: 1 } }
    const { succeeded, header, responses } = await txn(
      isEmpty, [put, putMark(mark, ID)], [...(isAttempt ? [] : [put]), own, first]
    )
    if (succeeded) return { isBehind: false, granted: { token: header.revision, ownerDied: hadMark(responses[1]) } }
    const [{ kvs: [mine] = [] }, { kvs: [head] = [] }] = responses.slice(-2).map(({ response_range: range }) => range)
    // It is the first if a member that did not answer had done it, or the others have left meanwhile.
    return { isBehind: !(mine && head && head.key === mine.key), revision: mine && mine.create_revision }
  }

  const putMark = (mark, ID) => ({ request_put: { key: mark, value: base64(ID), prev_kv: true } })
  const hadMark = ({ response_put: { prev_kv: before } }) => before !== undefined

  /** Takes the lock as the first in line. */
  async function take ({ ID, key, mark }) {
    const { succeeded, header, responses } = await txn(isThere(key), [putMark(mark, ID)])
    if (!succeeded) throw new Error('The lease ended before the lock was given')
    const { prev_kv: before } = responses[0].response_put
    const isOurs = before !== undefined && before.value === base64(ID)
    return { token: header.revision, ownerDied: isOurs ? await wasThere(mark, before) : before !== undefined }
  }

  /** Whether a key was there before a call that was not answered. */
  async function wasThere (key, { mod_revision: revision }) {
    try {
      return (await call('kv/range', { key, revision: String(BigInt(revision) - 1n), count_only: true })).count > 0
    } catch (_) {
      return true // it has been compacted
    }
  }

  /** Waits until those before it have left the line. Failures may pass while the lease lasts. */
  async function wait ({ line, end: lineEnd, key }, revision, signal, lost) {
    const stop = new AbortController()
    const ignore = [signal, lost].map(each => onAbort(each, () => stop.abort()))
    const before = {
      key: line, range_end: lineEnd, max_create_revision: String(BigInt(revision) - 1n), sort_target: 'CREATE',
      sort_order: 'DESCEND', limit: 1, keys_only: true
    }
    let failure
    try {
      for (;;) {
        throwIfAborted(signal)
        if (lost.aborted) throw Object.assign(new Error('The lease ended while it waited in line'), { cause: failure })
        try {
          const { kvs: [next] = [], header } = await call('kv/range', before, stop)
          if (next === undefined) return
          await gone(next.key, header.revision, stop.signal)
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
  function gone (key, revision, signal) {
    const start = String(BigInt(revision) + 1n)
    const isOpen = ({ events, canceled }) => Boolean(canceled) || (events !== undefined && events.length > 0)
    return call('watch', { create_request: { key, start_revision: start, filters: ['NOPUT'] } }, { signal, isOpen })
  }

  function grantOf ({ ID, key, mark }, { token, ownerDied }, kept) {
    return {
      token: Number(token),
      ownerDied,
      lost: kept.lost,
      remaining: () => kept.remaining(),
      held: async () => (await txn(isThere(key), [])).succeeded === true,
      async release (died) {
        kept.rest()
        try {
          const keys = died ? [key] : [mark, key]
          const answer = await txn(isThere(key), keys.map(each => ({ request_delete_range: { key: each } })))
          // If the lease is there, only a call that was not answered can have deleted the key.
          return answer.succeeded === true || (answer.isRepeated && await renew(ID))
        } finally {
          end(kept, ID)
        }
      }
    }
  }

  async function query (name) {
    const line = name === undefined ? `${prefix}/line/` : `${prefix}/line/${keyOf(name).toString('hex')}/`
    const [held, pending] = [[], []]
    const seen = new Set()
    for (const { key, value = '' } of await created({ key: base64(line), range_end: endOf(line) })) {
      const [hash] = decoded(key).slice(prefix.length + '/line/'.length).split('/')
      if (!/^[0-9a-f]{64}$/.test(hash)) continue
      const list = seen.has(hash) ? pending : held
      seen.add(hash)
      list.push(infoOf(decoded(value), 'exclusive', hash))
    }
    return { held, pending }
  }

  /** Returns the keys of a range, in the order of their creation. */
  async function created (range) {
    const all = []
    for (let next = range.key; next !== undefined;) {
      const { kvs = [], more } = await call('kv/range', { ...range, key: next, limit: PAGE })
      all.push(...kvs)
      // The next key is the last one with a 0 behind it.
      next = more ? base64(Buffer.concat([Buffer.from(kvs[kvs.length - 1].key, 'base64'), Buffer.alloc(1)])) : undefined
    }
    return all.sort((one, other) => one.create_revision - other.create_revision)
  }

  return {
    id: `etcd ${endpoints.map(({ host }) => host).sort().join()} ${prefix}`,
    modes: ['exclusive'],
    acquire: (name, mode, signal, who) => enter(name, signal, who, false),
    attempt: (name, mode, signal, who) => enter(name, signal, who, true),
    query,
    async close () {
      await Promise.all(ending)
      cluster.close()
    }
  }
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
