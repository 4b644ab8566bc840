'use strict'

/** The exports of `atomics-waitasync/processes`. An engine's code is loaded when it is made. */

const { isTimeoutError } = require('../util/values')
const { pathName } = require('./path-name')
const { ProcessLocks } = require('./process-locks')

const files = (folder, options) => require('./engines/files')(folder, options)
const postgresql = (pg, config, options) => require('./engines/postgresql')(pg, config, options)
const redis = (client, options) => require('./engines/redis')(client, options)
const memory = (folder, options) => require('./engines/memory')(folder, options)
const sharedMemory = (file, byteLength) => require('./shared-memory')(file, byteLength)
const etcd = (endpoints, options) => require('./engines/etcd')(endpoints, options)

/** Makes the locks of an engine, or of a folder. */
const processLocks = (engine, options) => new ProcessLocks(typeof engine === 'string' ? files(engine) : engine, options)

module.exports = {
  etcd, files, isTimeoutError, memory, pathName, postgresql, processLocks, redis, sharedMemory
}
