'use strict'

// What each engine can do: the checks go by this table.

const path = require('path')

const LEASE = 2000 // milliseconds

const both = ['exclusive', 'shared']

/**
 * - `module`: the file, and the function in it; `args(where, lease)`: its arguments, `where` being a folder or the URL
 *   of `server`.
 * - `modes`: those that it has. `lease`: milliseconds after which a holder that stands still has lost the lock; 0: it
 *   keeps it.
 * - `isInLine`: first come, first served among processes.
 * - `atCut`: when a holder notices that its connection has ended: 'at once' or with the end of the 'lease'.
 * - `atRestart`: whether a holder keeps its lock when the server is killed and started anew.
 */
const engines = {
  sqlite: { module: 'sqlite', args: (folder) => [path.join(folder, 'locks')], modes: both, lease: 0 },
  files: { module: 'files', args: (folder) => [path.join(folder, 'locks')], modes: both, lease: 0 },
  postgresql: {
    module: 'postgresql',
    server: 'postgresql',
    args: (connectionString) => [{ connectionString }],
    modes: both,
    lease: 0,
    isInLine: true,
    atCut: 'at once',
    atRestart: 'lost'
  },
  'postgresql with a lease': {
    module: 'postgresql',
    server: 'postgresql',
    args: (connectionString, lease = LEASE) => [{ connectionString }, { lease }],
    modes: both,
    lease: LEASE,
    isInLine: true,
    atCut: 'at once',
    atRestart: 'lost'
  },
  redis: {
    module: 'redis',
    server: 'redis',
    args: (url, lease = LEASE) => [url, { lease }],
    modes: ['exclusive'],
    lease: LEASE,
    atCut: 'lease',
    atRestart: 'lost'
  },
  etcd: {
    module: 'etcd',
    server: 'etcd',
    args: (url, lease = LEASE) => [url, { lease }],
    modes: ['exclusive'],
    lease: LEASE,
    isInLine: true,
    atCut: 'lease',
    atRestart: 'kept'
  }
}

module.exports = { engines, LEASE }
