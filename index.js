'use strict'

/**
 * Installs `Atomics.waitAsync`, with the `wait` and `notify` that belong to it, where there is none.
 *
 * Elsewhere it changes nothing. Then it loads nothing either, before its first export is used: with `-r` it is loaded in each Worker.
 */
const NAMES = [
  'wait', 'notify', 'waitAsync', 'install', 'uninstall', 'engine', 'ref', 'unref', 'waiterCount',
  'AsyncLock', 'Barrier', 'Condition', 'Latch', 'Lock', 'LockManager', 'RwLock', 'Semaphore', 'UnlockToken', 'locks', 'snapshot'
]

const load = () => require('./lib/entry.js')('index')

/** An object that becomes what `load` returns when a property of it is read or written. */
function createLater () {
  const later = {}
  const become = () => Object.defineProperties(later, Object.getOwnPropertyDescriptors(load()))
  for (const name of NAMES) {
    Object.defineProperty(later, name, {
      get: () => become()[name],
      set (value) { become()[name] = value },
      enumerable: true,
      configurable: true
    })
  }
  return later
}

module.exports = Atomics.waitAsync === undefined ? load() : createLater()
