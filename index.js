'use strict'

/**
 * Installs `Atomics.waitAsync`, with the `wait` and `notify` that belong to it, where there is none.
 *
 * Elsewhere it changes nothing. Then it loads nothing either, before its first export is used: with `-r` it is loaded in each Worker.
 */
const NAMES = [
  'wait', 'notify', 'waitAsync', 'install', 'uninstall', 'engine', 'ref', 'unref', 'waiterCount',
  'AsyncLock', 'Barrier', 'Condition', 'Latch', 'Lock', 'LockManager', 'Queue', 'RwLock', 'Semaphore', 'UnlockToken', 'formatSnapshot', 'locks',
  'snapshot'
]

const load = () => require('./lib/entry.js')('index')

/** Whether the environment asks for something that begins now: as in lib/util/is-asked.js, but only this file is loaded. */
function isAsked () {
  try {
    return Boolean(process.env.ATOMICS_WAITASYNC_DUMP || process.env.ATOMICS_WAITASYNC_PROFILE)
  } catch (_) {
    return false
  }
}

/** An object that becomes what `load` returns when a property of it is read or written; if it is frozen, it passes that on. */
function createLater () {
  // eslint-disable-next-line no-restricted-syntax -- only this file is loaded
  const { defineProperty, getOwnPropertyDescriptor } = Reflect
  const later = {}
  // Only the own fields of a descriptor count.
  const define = (name, descriptor) => defineProperty(later, name, Object.assign({ __proto__: null }, descriptor))
  let loaded
  const become = () => {
    if (loaded === undefined) {
      loaded = load()
      for (const name of NAMES) define(name, getOwnPropertyDescriptor(loaded, name))
    }
    return loaded
  }
  for (const name of NAMES) {
    define(name, {
      get: () => become()[name],
      set (value) {
        if (!define(name, getOwnPropertyDescriptor(become(), name))) throw new TypeError(name + ' cannot be replaced: the exports are frozen')
        later[name] = value
      },
      enumerable: true,
      configurable: true
    })
  }
  return later
}

module.exports = Atomics.waitAsync === undefined || isAsked() ? load() : createLater()
