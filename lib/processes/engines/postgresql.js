'use strict'

/**
 * Locks by the advisory locks of PostgreSQL's sessions, first come, first served.
 *
 * Each name that is held or awaited has a session of its own, which must lead to the server itself (14 or newer).
 * Without a `lease` (milliseconds), a process that is suspended has its locks until it goes on or ends.
 */

const { assertOptions, option } = require('../../util/options')
const { LONGEST_TIMER } = require('../../util/timers')
const { readReason, throwIfAborted } = require('../../waiting/errors')
const { ServerEngine } = require('../built-in-engine')
const { onAbort } = require('./aborts')
const { HOST, ascii, birth, describeHolder, entry, infoOf, keyOf, nameFor, parsed, shorten } = require('./holder')
const { Lease, assertLease, now } = require('./server-lease')
const { Sessions } = require('./postgresql-sessions')
const { attempt, idle, statementsOf, wait } = require('./postgresql-statements')

/** How the server writes a boolean. */
const [TRUE, FALSE] = ['t', 'f']

const MODES = { AccessShareLock: 'shared', ShareLock: 'shared', ExclusiveLock: 'exclusive' }

/**
 * @param {{ Client: Function }} pg the package `pg`
 * @param {string | object} config of its Client
 */
module.exports = function postgresql (pg, config, options) {
  assertOptions(options, ['schema', 'lease'], 'postgresql')
  const schema = option(options, 'schema', 'public')
  const lease = option(options, 'lease', 0)
  if (typeof schema !== 'string' || schema === '' || schema.includes('\0')) {
    throw new TypeError('postgresql: schema must be the name of a schema')
  }
  assertLease(lease, 'postgresql', 0)
  const { Client } = clientOf(pg)
  const settings = typeof config === 'string' ? { connectionString: config } : config
  const { host, port, database } = new Client(settings)
  const create = answer => new Client({
    keepAlive: true, keepAliveInitialDelayMillis: 5000, connectionTimeoutMillis: answer, ...settings
  })
  const statements = statementsOf(schema)
  const sessions = new Sessions(create, lease, statements.create)

  async function enter (name, mode, signal, asker, isAttempt) {
    const key = sqlKeyOf(schema, name)
    const { session, granted } = await ask(key, mode, asker)
    if (!granted && (isAttempt || signal.aborted)) sessions.keep(session)
    else if (!granted) await waitInLine(session, key, mode, signal)
    else if (signal.aborted) session.end()
    throwIfAborted(signal)
    return granted || !isAttempt ? grant(session, key, name, mode, asker) : undefined
  }

  /** Asks once for the advisory lock. The session was free, or is a new one. */
  async function ask (key, mode, asker) {
    for (;;) {
      const { session, isNew } = await sessions.get()
      try {
        const { rows: [{ granted }] } = await session.ask(attempt(mode), [key, nameOf(asker)])
        return { session, granted: granted === TRUE }
      } catch (error) {
        if (isNew) throw error
        sessions.drop() // they are as old
      }
    }
  }

  /** Waits in the server's line. An abort ends the session, since the server may heed it late. */
  async function waitInLine (session, key, mode, signal) {
    const ignore = onAbort(signal, () => sessions.terminate(session).then(() => session.end()))
    try {
      await session.ask(wait(mode), [key], LONGEST_TIMER)
    } catch (error) {
      throw signal.aborted ? readReason(signal) : error
    } finally {
      ignore()
      if (signal.aborted) session.end()
    }
  }

  /** Makes the grant of an advisory lock. */
  async function grant (session, key, name, mode, { label, maxHold, threadId }) {
    const row = [key, ascii(shorten(name))]
    const sent = now()
    let state = { token: 0 }
    if (mode === 'exclusive') {
      const { rows } = await session.ask(statements.take, [...row, describeHolder(name, { label, threadId })])
      state = rows[0]
      // Behind it: the server might end the session before.
      if (maxHold !== undefined) await session.ask(idle(Math.min(lease || Infinity, maxHold)))
    } else {
      const { rows } = await session.ask(statements.look, row)
      if (rows.length > 0) state = rows[0]
    }
    // As long as there is the session, there is its lock; a pooler may give us another one.
    const held = async () => (await session.ask('SELECT pg_backend_pid() AS pid')).rows[0].pid === session.pid
    const release = async died => {
      const mark = mode === 'exclusive' && !died ? Number(state.token) : undefined
      const asked = session.ask((maxHold === undefined ? '' : idle(lease)) + statements.release(key, mode, mark))
      const results = [].concat(await asked.finally(() => { session.lease = undefined }))
      sessions.keep(session)
      return results[results.length - 1].rows[0].was_ours === TRUE
    }
    const kept = new Lease(lease || Infinity, sent, { held, renew: held, release })
    session.lease = kept
    if (session.isLost) kept.lose(session.error)
    return kept.begin({ token: state.token, ownerDied: state.held === TRUE, maxHold, from: sent })
  }

  async function query (name) {
    const { session } = await sessions.get()
    const { rows } = await session.ask(statements.query, [name === undefined ? null : sqlKeyOf(schema, name)])
    sessions.keep(session)
    const entries = isGranted => rows.filter(({ granted }) => granted === isGranted).map(row => entryOf(schema, row))
    return { held: entries(TRUE), pending: entries(FALSE) }
  }

  return new ServerEngine({
    id: `postgresql ${host}:${port}/${database} ${schema}`,
    modes: ['exclusive', 'shared'],
    enter,
    query,
    async close () { sessions.close() }
  })
}

/** @throws {TypeError} it is not the package `pg` */
function clientOf (pg) {
  const found = [pg, pg && pg.default].find(each => Boolean(each) && typeof each.Client === 'function')
  if (found === undefined) throw new TypeError("postgresql: pg must be the package 'pg', which has a class Client")
  return found
}

/** Returns the key of an advisory lock: 64 bits, as text. */
const sqlKeyOf = (schema, name) =>
  String(keyOf(JSON.stringify(['atomics-waitasync', schema, name])).readBigInt64BE())

/**
 * The name of a session's application. PostgreSQL keeps 63 bytes of ASCII of it, and refuses a NUL, and characters that
 * the encoding of the database lacks.
 */
const nameOf = ({ label = '', threadId = 0 }) =>
  `atomics-waitasync ${process.pid}/${threadId}/${birth()} ${HOST} ${label}`.replace(/[^ -~]/g, '?').trim()
const NAME = /^atomics-waitasync (\d+)\/(\d+)\/(\S*) (\S+)(?: (.+))?$/

/** Returns an entry of `query`: by the holder's description, or the name of the session's application. */
function entryOf (schema, { key, name: row, mode: kind, waitstart, holder, application_name: application }) {
  const mode = MODES[kind]
  const name = nameFor(parsed(row), key, found => sqlKeyOf(schema, found))
  const info = infoOf(holder || '', mode)
  if (info.pid !== undefined) return { ...info, name }
  const [, pid, threadId, birth, host, label] = NAME.exec(application || '') || []
  const since = waitstart === null ? undefined : Number(waitstart)
  return { ...entry({ pid: Number(pid), threadId: Number(threadId), host, label, since, birth }, mode), name }
}
