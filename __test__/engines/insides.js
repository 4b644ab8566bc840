'use strict'

// Looks into the engines, and takes locks away, by clients of the checks.

const fs = require('fs')
const path = require('path')

/** Returns the rows of a query of a PostgreSQL server. `load` is the `require` of the example. */
async function query (load, config, text) {
  const client = new (load('pg').Client)(config)
  await client.connect()
  return client.query(text).finally(() => client.end())
}

/** Sends a command to a Redis server. */
async function command (load, url, args) {
  const client = new (load('ioredis').Redis)(url)
  return client.call(...args).finally(() => client.disconnect())
}

/** Where the table of locks in memory begins in its file: src/mapped/mod.rs. */
const TABLE_AT = 8192

/** How many locks and waits there are, by the engine's first argument; none of them any more if they are taken. */
const insides = {
  files (load, folder, isTaken) {
    for (const file of isTaken ? fs.readdirSync(folder) : []) fs.unlinkSync(path.join(folder, file))
    return 0 // that can be seen
  },
  memory (load, folder, isTaken) {
    if (isTaken) {
      const file = fs.openSync(path.join(folder, 'locks-1.mapped'), 'r+')
      // Behind the header and the slots of processes.
      fs.writeSync(file, Buffer.alloc(fs.fstatSync(file).size - TABLE_AT), 0, undefined, TABLE_AT)
      fs.closeSync(file)
    }
    return 0
  },
  async postgresql (load, config, isTaken) {
    const what = isTaken ? 'pg_terminate_backend(pid)' : 'pid'
    const { rows } = await query(load, config, `SELECT ${what} FROM pg_locks WHERE locktype = 'advisory'`)
    return rows.length
  },
  async redis (load, url, isTaken) {
    const client = new (load('ioredis').Redis)(url)
    const keys = await client.keys('locks:*:lock')
    if (isTaken) await client.del(keys)
    client.disconnect()
    return keys.length
  },
  async etcd (load, url, isTaken) {
    const call = async (path, body) =>
      (await fetch(new URL(path, url), { method: 'POST', body: JSON.stringify(body) })).json()
    const { leases = [] } = await call('/v3/lease/leases', {})
    for (const { ID } of isTaken ? leases : []) await call('/v3/lease/revoke', { ID })
    return leases.length
  }
}

module.exports = { command, insides, query }
