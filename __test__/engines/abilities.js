'use strict'

// The abilities of each engine: the checks go by this table.

const path = require('path')

const LEASE = 2000 // milliseconds

const both = ['exclusive', 'shared']
const inFolder = folder => [path.join(folder, 'locks')]
const byLease = (url, lease = LEASE) => [url, { lease }]
const postgresql = { module: 'postgresql', server: 'postgresql', modes: both, isInLine: true }
const redis = { server: 'redis', args: byLease, modes: ['exclusive'], lease: LEASE }

/**
 * - `module`: the function of engine-of.js that makes it. `args(where, lease)`: its arguments, `where` being a folder
 *   or the URL of its `server`, of servers.js.
 * - `modes`: those that it has. `lease`: milliseconds after which a holder that stands still has lost the lock; 0: it
 *   keeps it.
 * - `isInLine`: first come, first served among processes.
 * - `outlives`: a holder keeps its lock when the server is killed and started anew.
 * - `isFew`: it is checked by `npm test`, too.
 * - `os`: the only system that has it.
 * - `first`: the first major version of Node that its client runs on.
 */
const engines = {
  files: { module: 'files', args: inFolder, modes: both, lease: 0, isInLine: true, isFew: true },
  memory: { module: 'memory', args: inFolder, modes: both, lease: 0, isInLine: true, isFew: true, os: 'linux' },
  'files that are flushed': {
    module: 'files', args: folder => [...inFolder(folder), { durable: true }], modes: both, lease: 0, isInLine: true
  },
  postgresql: { ...postgresql, args: connectionString => [{ connectionString }], lease: 0 },
  'postgresql with a lease': {
    ...postgresql,
    args: (connectionString, lease = LEASE) => [{ connectionString }, { lease }],
    lease: LEASE
  },
  redis: { ...redis, module: 'redis', first: 20 },
  'node-redis': { ...redis, module: 'node-redis', first: 20 },
  etcd: {
    module: 'etcd', server: 'etcd', args: byLease, modes: ['exclusive'], lease: LEASE, isInLine: true, outlives: true
  }
}

module.exports = { engines, LEASE }
