'use strict'

// Downloads that are kept outside the tree, in the user's cache folder: Node binaries, npm releases, the cross
// compiler.
//
// Invariant: a folder that is there is complete. It is made elsewhere and then moved into place, so two runs at once do
// not disturb each other and an interrupted one leaves nothing that looks finished.

const fs = require('fs')
const os = require('os')
const path = require('path')

/** The error of a thing that this machine cannot have: as opposed to a failure that may pass. */
class Unavailable extends Error {}

/** Returns the absolute path of a folder of the cache. */
function folder (...names) {
  return path.join(root(), 'atomics-waitasync', ...names)
}

function root () {
  if (process.env.XDG_CACHE_HOME) return process.env.XDG_CACHE_HOME
  if (process.platform === 'win32') return process.env.LOCALAPPDATA || path.join(os.homedir(), 'AppData', 'Local')
  return path.join(os.homedir(), ...(process.platform === 'darwin' ? ['Library', 'Caches'] : ['.cache']))
}

/**
 * Makes a folder of the cache unless it is there.
 * @param {string} target the result of `folder`, and of this
 * @param {(scratch: string) => Promise<string>} make gives the absolute path, within `scratch`, of the thing that shall
 *   stand at `target`
 */
async function fill (target, make) {
  if (fs.existsSync(target)) return target
  const store = path.dirname(target)
  fs.mkdirSync(store, { recursive: true })
  const scratch = fs.mkdtempSync(path.join(store, '.fetching-'))
  try {
    moveIntoPlace(await make(scratch), target)
    return target
  } finally {
    fs.rmSync(scratch, { recursive: true, force: true, maxRetries: 5 })
  }
}

function moveIntoPlace (fresh, target) {
  try {
    fs.renameSync(fresh, target)
  } catch (error) {
    // Another run may have been quicker: then its folder is as good as ours.
    if (!fs.existsSync(target)) throw error
  }
}

module.exports = { Unavailable, folder, fill }
