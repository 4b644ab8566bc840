'use strict'

// The abilities of each engine: the checks go by this table.

const path = require('path')

const LEASE = 2000 // milliseconds

const both = ['exclusive', 'shared']
const inFolder = folder => [path.join(folder, 'locks')]
const byLease = (url, lease = LEASE) => [url, { lease }]
const postgresql = { module: 'postgresql', modes: both, isInLine: true }

/**
 * - `module`: the file, and the function in it; also the name of its server, if servers.js has that. `args(where,
 *   lease)`: its arguments, `where` being a folder or the URL of its server.
 * - `modes`: those that it has. `lease`: milliseconds after which a holder that stands still has lost the lock; 0: it
 *   keeps it.
 * - `isInLine`: first come, first served among processes.
 * - `outlives`: a holder keeps its lock when the server is killed and started anew.
 */
const engines = {
  sqlite: { module: 'sqlite', args: inFolder, modes: both, lease: 0 },
  files: { module: 'files', args: inFolder, modes: both, lease: 0 },
  postgresql: { ...postgresql, args: connectionString => [{ connectionString }], lease: 0 },
  'postgresql with a lease': {
    ...postgresql,
    args: (connectionString, lease = LEASE) => [{ connectionString }, { lease }],
    lease: LEASE
  },
  redis: { module: 'redis', args: byLease, modes: ['exclusive'], lease: LEASE },
  etcd: { module: 'etcd', args: byLease, modes: ['exclusive'], lease: LEASE, isInLine: true, outlives: true }
}

module.exports = { engines, LEASE }
