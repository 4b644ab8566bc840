'use strict'

/**
 * Sessions of a PostgreSQL server: those that are free are used again.
 *
 * Invariants: a session runs one statement at a time. One whose statement has failed is ended, and with it every lock
 * that it has. None keeps the process alive: the time of a statement does, and the lease of a lock.
 */

const { within } = require('../built-in-engine')

const ANSWER = 10000 // milliseconds, for statements that never wait: one that takes longer has failed
const MOST_FREE = 4
const TOO_MANY = '53300'
/** Leaves values as the server writes them: a program may have changed how `pg` reads them. */
const TEXT = { getTypeParser: () => text => text }

/** Settings that notice dead clients, also while they wait. A server on another system may refuse one of them. */
const WATCHFUL = `('client_connection_check_interval', '1s'),
  ('tcp_keepalives_idle', '5'), ('tcp_keepalives_interval', '5'), ('tcp_keepalives_count', '2')`

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
      FOR setting IN SELECT * FROM (VALUES ${WATCHFUL}) AS all_of_them (name, value) LOOP
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

class Session {
  constructor (client) {
    this.client = client
    /** Why it has ended. */
    this.error = undefined
    /** That of the lock that it has. */
    this.lease = undefined
    this.isUsed = false
    this.last = Promise.resolve()
    // Without a listener for errors, they would end the process.
    client.on('error', error => this.lose(error))
    client.on('end', () => this.lose(new Error('The connection has ended')))
  }

  get isLost () { return this.error !== undefined }

  lose (error) {
    if (this.isLost) return
    this.error = error
    if (this.lease !== undefined) this.lease.lose(error)
  }

  /** @param {string} create the statement that makes the table, if that is not there */
  async open (lease, create) {
    try {
      await within(ANSWER, this.client.connect(), () => new Error('The server has not answered for ' + ANSWER + ' ms'))
      this.client.unref()
      const results = await this.ask(begin(lease))
      const [{ pid, is_standby: isStandby, most }] = results[results.length - 1].rows
      // A standby grants shared locks, of which its primary knows nothing.
      if (isStandby !== 'f') {
        throw new Error('The server is a standby (pg_is_in_recovery() is true): locks need the primary')
      }
      await this.ask(create)
      Object.assign(this, { pid, most })
      return this
    } catch (error) {
      this.end()
      throw error
    }
  }

  /** Runs a statement after those before it. */
  ask (text, values, milliseconds = ANSWER) {
    const run = () => this.run({ text, values, types: TEXT, query_timeout: milliseconds })
    const result = this.last.then(run, run)
    this.last = result
    return result
  }

  async run (query) {
    try {
      return await this.client.query(query)
    } catch (error) {
      this.end()
      throw error
    }
  }

  /** Does not wait for a server that may not answer. */
  end () {
    this.client.connection.stream.destroy()
    this.lose(new Error('The session has been ended'))
  }
}

class Sessions {
  constructor (createClient, lease, create) {
    Object.assign(this, { createClient, lease, create })
    this.free = []
    this.most = undefined
    /** The processes of sessions that are to be ended. */
    this.doomed = this.terminating = undefined
    this.isClosed = false
  }

  /** Returns one that was free (`isUsed`), or a new one. */
  async get () {
    const used = this.takeFree()
    if (used !== undefined) return used
    try {
      const session = await new Session(this.createClient(ANSWER)).open(this.lease, this.create)
      this.most = session.most
      return session
    } catch (error) {
      if (error.code !== TOO_MANY) throw error
      const freed = this.takeFree()
      if (freed === undefined) throw this.tooMany(error)
      return freed
    }
  }

  takeFree () {
    this.free = this.free.filter(({ isLost }) => !isLost)
    return this.free.pop()
  }

  tooMany (cause) {
    const most = this.most === undefined ? '' : ` = ${this.most}`
    const error = new Error(cause.message + ': each name that is held or awaited has a connection of its own; ' +
      `max_connections${most} of the server, or CONNECTION LIMIT of the role or the database, allows no further one`)
    return Object.assign(error, { code: cause.code, cause })
  }

  /** Takes one back that has no lock. */
  keep (session) {
    session.isUsed = true
    if (!this.isClosed && this.free.length < MOST_FREE) this.free.push(session)
    else session.end()
  }

  /** Ends those that are free. */
  drop () {
    for (const session of this.free.splice(0)) session.end()
  }

  /** Has the server end a session that waits: it may not notice its client's end. One session says so for many. */
  terminate ({ pid }) {
    if (this.doomed === undefined) this.terminating = this.terminateAll(this.doomed = [])
    this.doomed.push(pid)
    return this.terminating
  }

  async terminateAll (doomed) {
    try {
      const session = await this.get()
      this.doomed = undefined
      await session.ask('SELECT pg_terminate_backend(pid) FROM unnest($1::int[]) AS pid', [doomed])
      this.keep(session)
    } catch (_) {
      this.doomed = undefined
    }
  }

  close () {
    this.isClosed = true
    this.drop()
  }
}

module.exports = { Sessions, idle }
