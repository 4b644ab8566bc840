'use strict'

/**
 * Locks and their family: the exports beside the functions of `Atomics`. The code of each is loaded when its name is
 * read, since most programs use one or two. But `import` reads all names at once: so ES modules get classes that load
 * their code at the first use. None of this code loads the native library before it needs it.
 */

const { constructLate, lateClass, loadNow } = require('./util/late-class')
const { assertStackToLoad } = require('./util/stack')
const locks = require('./named/manager')

/**
 * The modules that several exports need. Not required at the top level: the linker takes such modules for
 * code that every entry needs.
 */
const loads = {
  lockManager: () => require('./named/lock-manager'),
  token: () => require('./holding/token')
}

class AsyncLock { constructor () { return constructLate(AsyncLock, arguments, new.target) } }
class Barrier { constructor () { return constructLate(Barrier, arguments, new.target) } }
class Condition { constructor () { return constructLate(Condition, arguments, new.target) } }
class Latch { constructor () { return constructLate(Latch, arguments, new.target) } }
class Lock { constructor () { return constructLate(Lock, arguments, new.target) } }
class LockManager { constructor () { return constructLate(LockManager, arguments, new.target) } }
class Queue { constructor () { return constructLate(Queue, arguments, new.target) } }
class RwLock { constructor () { return constructLate(RwLock, arguments, new.target) } }
class Semaphore { constructor () { return constructLate(Semaphore, arguments, new.target) } }
class UnlockToken { constructor () { return constructLate(UnlockToken, arguments, new.target) } }

lateClass(Lock, () => loads.lockManager().lockOf(Lock.prototype))
lateClass(LockManager, () => loads.lockManager().LockManager, Lock)
lateClass(UnlockToken, () => loads.token().UnlockToken)
lateClass(AsyncLock, () => require('./locks/async-lock'), UnlockToken)
lateClass(Barrier, () => require('./locks/barrier'))
lateClass(Condition, () => require('./locks/condition'))
lateClass(Latch, () => require('./locks/latch'))
lateClass(Queue, () => require('./queue'))
lateClass(RwLock, () => require('./locks/rw-lock'), UnlockToken)
lateClass(Semaphore, () => require('./locks/semaphore'), UnlockToken)
Object.setPrototypeOf(locks, LockManager.prototype)

const ofSnapshots = {
  formatSnapshot: (snapshot) => require('./observe/snapshot').formatSnapshot(snapshot),
  snapshot: () => require('./observe/snapshot').snapshot()
}

const late = {
  AsyncLock,
  Barrier,
  Condition,
  Latch,
  Lock,
  LockManager,
  Queue,
  RwLock,
  Semaphore,
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
