'use strict'

/** The SQL of the locks. Tokens are bigint: on JavaScript's side they stay below 2 ** 53 until the year 2255. */

const { MOST } = require('./holder')

const quoted = name => `"${name.replace(/"/g, '""')}"`
const literal = text => `'${text.replace(/'/g, "''")}'`

/** Settings that notice dead clients, also while they wait. A server on another system may refuse one of them. */
const WATCHFUL = {
  client_connection_check_interval: '1s',
  tcp_keepalives_idle: '5',
  tcp_keepalives_interval: '5',
  tcp_keepalives_count: '2'
}

const SETTINGS = Object.entries(WATCHFUL).map(([name, value]) => `('${name}', '${value}')`).join(', ')

/** Has the server end a session that says nothing for so long; 0: it need not say anything. */
const idle = milliseconds => `SET idle_session_timeout = ${Math.ceil(milliseconds)};`

/**
 * Returns what a new session begins with. It undoes settings of a role or a database that would end a wait, forget a
 * token in a crash, or disturb a write.
 */
const begin = lease => `
  ${idle(lease)}
  SET default_transaction_isolation = 'read committed'; SET default_transaction_read_only = off;
  SET standard_conforming_strings = on;
  DO $$
    DECLARE setting record;
    BEGIN
      FOR setting IN SELECT * FROM (VALUES ${SETTINGS}) AS all_of_them (name, value) LOOP
        BEGIN
          PERFORM set_config(setting.name, setting.value, false);
        EXCEPTION WHEN OTHERS THEN
        END;
      END LOOP;
    END
  $$;
  SELECT set_config(name, '0', false) FROM pg_settings
    WHERE name IN ('statement_timeout', 'lock_timeout', 'transaction_timeout');
  SELECT set_config(name, 'on', false) FROM pg_settings
    WHERE name = 'synchronous_commit' AND setting IN ('off', 'local');
  SELECT pg_backend_pid() AS pid, pg_is_in_recovery() AS is_standby, current_setting('max_connections') AS most`

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

module.exports = { attempt, begin, idle, statementsOf, wait }
