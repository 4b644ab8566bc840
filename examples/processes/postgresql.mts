import { setTimeout } from 'node:timers/promises'
import pg from 'pg'
import { Lease } from './lease.mts'
import type { Engine, Grant, Mode } from './process-locks.mts'
import { keyOf } from './tools.mts'

/**
 * With a lease, a session that says nothing for so long ends. Dead clients are noticed, while they wait, too. The rest
 * undoes settings of a role or a database that would end a wait, or disturb a write.
 */
const settings = (lease: number) => `
  SET idle_session_timeout = ${lease};
  SET client_connection_check_interval = '1s';
  SET tcp_keepalives_idle = 5; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 2;
  SET default_transaction_isolation = 'read committed'; SET default_transaction_read_only = off;
  SELECT set_config(name, '0', false) FROM pg_settings
    WHERE name IN ('statement_timeout', 'lock_timeout', 'transaction_timeout');
  SELECT pg_backend_pid() AS pid`

/**
 * Under a lock: two that create a table at the same time disturb each other. If it is there, no right to create one is
 * needed.
 */
const CREATE = `
  DO $$ BEGIN
    IF to_regclass('process_locks') IS NULL THEN
      PERFORM pg_advisory_xact_lock(hashtext('process_locks'));
      CREATE TABLE IF NOT EXISTS process_locks (key bigint PRIMARY KEY, token bigint NOT NULL, held boolean NOT NULL);
    END IF;
  END $$`

/** Gives the new token, and whether the name was held. */
const TAKE = `
  WITH before AS (SELECT held FROM process_locks WHERE key = $1)
  INSERT INTO process_locks AS mine VALUES ($1, 1, true)
    ON CONFLICT (key) DO UPDATE SET token = mine.token + 1, held = true
  RETURNING token, coalesce((SELECT held FROM before), false) AS held`
const LOOK = 'SELECT token, held FROM process_locks WHERE key = $1'

/** Milliseconds for queries that never wait. A client that asks in vain for longer counts its lock as lost. */
const ANSWER = 10_000
const FOREVER = 2 ** 31 - 1

interface Connection { client: pg.Client, pid: number, lost: AbortSignal }

/**
 * Locks of the processes of several machines, by the session's advisory locks of PostgreSQL (14 or newer): first come,
 * first served. Each name that is held or awaited has a connection of its own, which must lead to the server itself;
 * `idle` of them are kept for later. Without a `lease` (milliseconds), a process that stands still has its locks until
 * it goes on or ends.
 */
export function postgresql (config: pg.ClientConfig, { prefix = 'locks', lease = 0, idle: most = 4 } = {}): Engine {
  const { host, port, database } = new pg.Client(config)
  const idle: Connection[] = []
  let isReady: Promise<unknown> | undefined

  async function connect (): Promise<Connection> {
    for (let used = idle.pop(); used !== undefined; used = idle.pop()) if (!used.lost.aborted) return used
    const settings = { keepAlive: true, keepAliveInitialDelayMillis: 5000, connectionTimeoutMillis: ANSWER, ...config }
    const connection = await open(settings, lease)
    try {
      await (isReady ??= short(connection.client, CREATE))
      return connection
    } catch (error) {
      isReady = undefined
      end(connection)
      throw error
    }
  }

  function keep (connection: Connection) {
    if (idle.length < most) idle.push(connection)
    else end(connection)
  }

  /** Ends a wait. A server that has not begun with it yet does not heed that, so it is told until the wait is over. */
  async function cancel ({ pid }: Connection, isOver: () => boolean) {
    const other = await connect()
    try {
      while (!isOver()) {
        await short(other.client, 'SELECT pg_cancel_backend($1)', [pid])
        await setTimeout(10)
      }
      keep(other)
    } catch (error) {
      end(other)
      throw error
    }
  }

  async function acquire (name: string, mode: Mode, signal: AbortSignal): Promise<Grant> {
    const key = String(keyOf(JSON.stringify([prefix, name])).readBigInt64BE())
    const connection = await connect()
    let isOver = false
    let cancelled: Promise<void> | undefined
    // Where that fails, too, the end of the connection ends the wait.
    const abort = () => { cancelled = cancel(connection, () => isOver).catch(() => end(connection)) }
    const settle = () => {
      isOver = true
      signal.removeEventListener('abort', abort)
      return cancelled
    }
    try {
      signal.throwIfAborted()
      signal.addEventListener('abort', abort)
      // It passes nobody by. And it finds out whether a connection that was idle still leads to the server.
      const attempt = `SELECT pg_try_advisory_lock${suffix(mode)}($1) AS granted`
      const { rows: [{ granted }] } = await short(connection.client, attempt, [key])
      if (!granted) await ask(connection.client, FOREVER, `SELECT pg_advisory_lock${suffix(mode)}($1)`, [key])
      const sent = performance.now()
      const { rows: [state] } = await short(connection.client, mode === 'exclusive' ? TAKE : LOOK, [key])
      await settle()
      return grantOf(connection, key, mode, state ?? { token: 0, held: false }, sent)
    } catch (error) {
      await settle()
      end(connection) // and with it every lock that it has
      throw error
    }
  }

  function grantOf (
    connection: Connection, key: string, mode: Mode, state: { token: string | number, held: boolean }, sent: number
  ): Grant {
    const { client, lost } = connection
    const token = Number(state.token)
    const look = async () => (await short(client, 'SELECT true AS there')).rows[0].there
    const kept = lease > 0 ? new Lease(lease, sent, look) : undefined
    const lose = () => kept?.lose(lost.reason)
    lost.addEventListener('abort', lose)
    if (lost.aborted) lose()
    const clear = `BEGIN; UPDATE process_locks SET held = false WHERE key = ${key} AND token = ${token}; COMMIT;`
    return {
      token,
      ownerDied: state.held,
      lost: kept?.lost ?? lost,
      held: look, // as long as there is the session, there is its lock
      async release (died) {
        kept?.rest()
        try {
          // One message, but not one transaction: the mark has to be cleared for all to see before another session has
          // the lock.
          const first = mode === 'exclusive' && !died ? clear : ''
          const results = await short(client, `${first} SELECT pg_advisory_unlock${suffix(mode)}(${key}) AS was_ours`)
          keep(connection)
          return [results].flat().at(-1)!.rows[0].was_ours
        } catch (error) {
          end(connection)
          throw error
        } finally {
          kept?.stop()
          lost.removeEventListener('abort', lose)
        }
      }
    }
  }

  async function close () {
    for (const connection of idle.splice(0)) end(connection)
  }

  return { id: `postgresql ${host}:${port}/${database} ${prefix}`, modes: ['exclusive', 'shared'], acquire, close }
}

function ask (client: pg.Client, milliseconds: number, text: string, values?: unknown[]): Promise<any> {
  return client.query({ text, values, query_timeout: milliseconds } as pg.QueryConfig)
}
const short = (client: pg.Client, text: string, values?: unknown[]) => ask(client, ANSWER, text, values)
const suffix = (mode: Mode) => mode === 'shared' ? '_shared' : ''

async function open (config: pg.ClientConfig, lease: number): Promise<Connection> {
  const client = new pg.Client(config)
  const lost = new AbortController()
  // Without a listener for errors, they would end the process.
  client.on('error', error => lost.abort(error)).on('end', () => lost.abort(new Error('The connection has ended')))
  const connection = { client, pid: 0, lost: lost.signal }
  try {
    await client.connect()
    const results = await short(client, settings(lease))
    return { ...connection, pid: results.at(-1).rows[0].pid }
  } catch (error) {
    end(connection)
    throw error
  }
}

/** Does not wait for a server that may not answer. */
function end ({ client }: Connection) {
  client.connection.stream.destroy()
}
