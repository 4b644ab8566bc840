'use strict'

/**
 * Installs `Atomics.waitAsync`, with its `wait` and `notify`, where there is none.
 *
 * Elsewhere it changes nothing, and loads nothing before its first export is used: with `-r` it
 * is loaded in each Worker.
 */
const NAMES = [
  'wait', 'notify', 'waitAsync', 'install', 'uninstall', 'engine', 'ref', 'unref', 'waiterCount',
  // Those of lib/lazy.js.
  'AsyncLock', 'Barrier', 'Condition', 'Latch', 'Lock', 'LockManager', 'Queue', 'RwLock', 'Semaphore', 'UnlockToken',
  'locks', 'formatSnapshot', 'snapshot', 'isTimeoutError'
]
/** Those of lib/util/variables.js. */
const VARIABLES = [
  'ATOMICS_WAITASYNC_DUMP', 'ATOMICS_WAITASYNC_PROFILE', 'ATOMICS_WAITASYNC_STALL'
]

// Taken now: a test may put fake ones in place.
const { hrtime, nextTick } = process

// As REQUIRE_MAKES_PROMISES of lib/util/quirks.js: a hook of async_hooks may be there at the first use.
if (/^v1[6-9]\./.test(process.version)) require('./lib/util/require-builtins.js')()

const load = () => require('./lib/entry-point.js')('index', { hrtime, nextTick })

/**
 * Whether the environment asks for something that begins now. As in lib/util/variables.js: only this file is loaded.
 */
function isEnabled () {
  try {
    const { env } = process
    for (let n = 0; n < VARIABLES.length; n++) if (env[VARIABLES[n]]) return true
  } catch (_) {
    // As there.
  }
  return false
}

/**
 * Makes an object that loads the exports at its first use. When a property is read or written, it gets all of them; if
 * it is frozen, it passes each use on.
 */
function createLater () {
  // eslint-disable-next-line no-restricted-syntax -- only this file is loaded
  const { defineProperty, getOwnPropertyDescriptor } = Reflect
  const later = {}
  // Only the own fields of a descriptor count.
  const define = (name, descriptor) => defineProperty(later, name, Object.assign({ __proto__: null }, descriptor))
  let loaded
  const become = () => {
    if (loaded === undefined) {
      const entry = load()
      // A hook of async_hooks may have used one meanwhile.
      if (loaded !== undefined) return loaded
      loaded = entry
      for (const name of NAMES) define(name, getOwnPropertyDescriptor(loaded, name))
    }
    return loaded
  }
  for (const name of NAMES) {
    define(name, {
      get: () => become()[name],
      set (value) {
        if (!define(name, getOwnPropertyDescriptor(become(), name))) {
          throw new TypeError(name + ' cannot be replaced: the exports are frozen')
        }
        later[name] = value
      },
      enumerable: true,
      configurable: true
    })
  }
  return later
}

module.exports = Atomics.waitAsync === undefined || isEnabled() ? load() : createLater()
