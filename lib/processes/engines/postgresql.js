'use strict'

/**
 * Locks by the advisory locks of PostgreSQL's sessions, first come, first served.
 *
 * Each name that is held or awaited has a session of its own, which must lead to the server itself (14 or newer).
 * Without a `lease` (milliseconds), a process that is suspended has its locks until it goes on or ends.
 */

const { assertOptions, option } = require('../../util/values')
const { LONGEST_TIMER } = require('../../util/timers')
const { readReason, throwIfAborted } = require('../../waiting/errors')
const { ServerEngine, onAbort } = require('../built-in-engine')
const {
  HOST, MOST, ascii, birth, describeHolder, entry, infoOf, keyOf, nameFor, parsed, shorten
} = require('./holder')
const { Lease, assertLease, now } = require('./server-lease')
const { Sessions, idle } = require('./postgresql-sessions')

/** How the server writes a boolean. */
const [TRUE, FALSE] = ['t', 'f']

const MODES = { AccessShareLock: 'shared', ShareLock: 'shared', ExclusiveLock: 'exclusive' }

// ——— SQL. Tokens are bigint: on JavaScript's side they stay below 2 ** 53 until the year 2255 ———

const quoted = name => `"${name.replace(/"/g, '""')}"`
const literal = text => `'${text.replace(/'/g, "''")}'`

/**
 * Returns the statements for the table of a schema.
 *
 * - `create`: under a lock, for two that create a table at the same time disturb each other. If the table is there, no
 *   right to create one is needed.
 * - `take` and `look` give the token, and whether the name has the mark of a holder: $1 is the key, $2 the name, $3 the
 *   holder. `look` gives none, and makes the row, if the name has none.
 */
function statementsOf (schema) {
  const table = `${quoted(schema)}.atomics_waitasync_locks`
  return {
    create: `
      DO $$ BEGIN
        IF to_regclass(${literal(table)}) IS NULL THEN
          PERFORM pg_advisory_xact_lock(hashtext('atomics_waitasync_locks'));
          IF to_regnamespace(${literal(quoted(schema))}) IS NULL THEN CREATE SCHEMA ${quoted(schema)}; END IF;
          CREATE TABLE IF NOT EXISTS ${table} (
            key bigint PRIMARY KEY, token bigint NOT NULL, held boolean NOT NULL, name text NOT NULL, holder text);
        END IF;
      END $$`.replace(/\$\$/g, '$atomics_waitasync$'),
    take: `
      WITH before AS (SELECT held FROM ${table} WHERE key = $1)
      INSERT INTO ${table} AS mine
        VALUES ($1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, true, $2, $3)
        ON CONFLICT (key) DO UPDATE
          SET token = greatest(CASE WHEN mine.token < ${Number.MAX_SAFE_INTEGER} THEN mine.token + 1 END,
            excluded.token), held = true, name = excluded.name,
            holder = excluded.holder
      RETURNING token, coalesce((SELECT held FROM before), false) AS held`,
    look: `
      WITH known AS (SELECT token, held FROM ${table} WHERE key = $1),
        made AS (INSERT INTO ${table} SELECT $1, 0, false, $2 WHERE NOT EXISTS (TABLE known) ON CONFLICT DO NOTHING)
      TABLE known`,
    /**
     * One message, but not one transaction: all have to see the cleared mark before another session has the lock. It is
     * not flushed: if the server crashes just then, the next holder learns of a death.
     */
    release (key, mode, token) {
      const clear = `BEGIN; SET LOCAL synchronous_commit = off;
        UPDATE ${table} SET held = false WHERE key = ${key} AND token = ${token}; COMMIT;`
      return `${token === undefined ? '' : clear} SELECT pg_advisory_unlock${suffix(mode)}(${key}) AS was_ours`
    },
    /** $1: a key, or null for all. Locks by a key of 64 bits have 1 for `objsubid`. */
    query: `
      SELECT locks.granted, locks.mode, known.key, left(known.name, ${MOST}) AS name, activity.application_name,
        floor(extract(epoch FROM locks.waitstart) * 1000) AS waitstart,
        CASE WHEN known.held AND locks.granted AND locks.mode = 'ExclusiveLock'
          THEN left(known.holder, ${MOST}) END AS holder
      FROM pg_locks AS locks
        JOIN ${table} AS known ON known.key = (locks.classid::bigint << 32) | locks.objid::bigint
        LEFT JOIN pg_stat_activity AS activity USING (pid)
      WHERE locks.locktype = 'advisory' AND locks.objsubid = 1 AND ($1::bigint IS NULL OR known.key = $1)
        AND locks.database = (SELECT oid FROM pg_database WHERE datname = current_database())
      ORDER BY locks.waitstart`
  }
}

const suffix = mode => mode === 'shared' ? '_shared' : ''

/** Takes the advisory lock unless another session has it; it passes nobody by. Says who asks, for `query`. */
const attempt = mode =>
  `SELECT set_config('application_name', $2, false), pg_try_advisory_lock${suffix(mode)}($1) AS granted`
const wait = mode => `SELECT pg_advisory_lock${suffix(mode)}($1)`

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
      const session = await sessions.get()
      try {
        const { rows: [{ granted }] } = await session.ask(attempt(mode), [key, nameOf(asker)])
        return { session, granted: granted === TRUE }
      } catch (error) {
        if (!session.isUsed) throw error
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
    const session = await sessions.get()
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
