'use strict'

/**
 * Locks and their family: the exports beside the functions of `Atomics`. The code of each is loaded when its name is
 * read, since most programs use one or two. But `import` reads all names at once: so ES modules get classes that load
 * their code at the first use. None of this code loads the native library before it needs it.
 */

const { lateClass, loadNow } = require('../util/late-class')
const { assertStackToLoad } = require('../util/stack')
const locks = require('./named/manager')

/**
 * The modules that several exports need. Not required at the top level: the linker takes such modules for
 * code that every entry needs.
 */
const loads = {
  lockManager: () => require('./named/lock-manager'),
  token: () => require('./hold/token')
}
const Lock = lateClass('Lock', () => loads.lockManager().Lock)
const LockManager = lateClass('LockManager', () => loads.lockManager().LockManager, Lock)
const UnlockToken = lateClass('UnlockToken', () => loads.token().UnlockToken)
Object.setPrototypeOf(locks, LockManager.prototype)

const ofSnapshots = {
  formatSnapshot: (snapshot) => require('./observe/snapshot').formatSnapshot(snapshot),
  snapshot: () => require('./observe/snapshot').snapshot()
}

const late = {
  AsyncLock: lateClass('AsyncLock', () => require('./async-lock'), UnlockToken),
  Barrier: lateClass('Barrier', () => require('./barrier')),
  Condition: lateClass('Condition', () => require('./condition')),
  Latch: lateClass('Latch', () => require('./latch')),
  Lock,
  LockManager,
  Queue: lateClass('Queue', () => require('./queue')),
  RwLock: lateClass('RwLock', () => require('./rw-lock'), UnlockToken),
  Semaphore: lateClass('Semaphore', () => require('./semaphore'), UnlockToken),
  UnlockToken,
  locks,
  ...ofSnapshots
}

function load (name) {
  if (ofSnapshots[name] !== undefined) {
    assertStackToLoad()
    require('./observe/snapshot')
  } else {
    loadNow(name === 'locks' ? LockManager : late[name])
  }
  return late[name]
}

module.exports = { late, load }
