'use strict'

/** The exports of `atomics-waitasync/processes`. An engine's code is loaded when it is made. */

const { readlinkSync, realpathSync: { native: realpath } } = require('fs')
const path = require('path')
const { fileURLToPath } = require('url')
const { TypeError } = require('../util/intrinsics')
const { describe, isTimeoutError } = require('../util/values')
const { ProcessLocks } = require('./process-locks')

const files = (folder, options) => require('./engines/files')(folder, options)
const postgresql = (pg, config, options) => require('./engines/postgresql')(pg, config, options)
const redis = (client, options) => require('./engines/redis')(client, options)
const memory = (folder, options) => require('./engines/memory').memory(folder, options)
const sharedMemory = (file, byteLength) => require('./engines/memory').sharedMemory(file, byteLength)
const etcd = (endpoints, options) => require('./engines/etcd')(endpoints, options)

/** Makes the locks of an engine, or of a folder. */
const processLocks = (engine, options) => new ProcessLocks(typeof engine === 'string' ? files(engine) : engine, options)

/** As many links as Linux follows. More are a circle, which somebody has closed meanwhile. */
const MOST_LINKS = 40

/**
 * Returns the name of a file for its lock: the same one, whichever way the file is spelt. It is the path without links;
 * of a file that does not exist yet, that of the one that opening it would create.
 *
 * The system itself resolves the path. It takes `..` behind a link for the parent of the link's target; and where
 * letters' case does not matter, it gives the file's own.
 * @param {string | URL} file
 * @throws {Error} with the system's code: the folder does not exist, or may not be searched
 */
function pathName (file) {
  let wanted = pathOf(file)
  for (let links = 0; ; links++) {
    try {
      return realpath(wanted)
    } catch (error) {
      if (error.code !== 'ENOENT' || links === MOST_LINKS) throw error
    }
    const folder = realpath(path.dirname(wanted))
    const name = path.join(folder, path.basename(wanted))
    const target = targetOf(name)
    if (target === undefined) return name
    // Not joined: that would take `..` for the parent of a link.
    wanted = path.isAbsolute(target) ? target : folder + path.sep + target
  }
}

function pathOf (file) {
  if (typeof file === 'string' && file !== '') return file
  // Also a URL of another realm.
  if (typeof file === 'object' && file !== null && typeof file.href === 'string') return fileURLToPath(file.href)
  const error = new TypeError('pathName: file must be a path or a URL of a file, not ' + describe(file))
  error.code = 'ERR_INVALID_ARG_TYPE'
  throw error
}

/** Returns where a link leads; undefined: there is none, as it is with a file that exists by now. */
function targetOf (link) {
  try {
    return readlinkSync(link)
  } catch (error) {
    // Windows says UNKNOWN of a file that is no link.
    if (['ENOENT', 'EINVAL', 'UNKNOWN'].includes(error.code)) return undefined
    throw error
  }
}

module.exports = {
  etcd, files, isTimeoutError, memory, pathName, postgresql, processLocks, redis, sharedMemory
}
