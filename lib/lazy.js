'use strict'

/**
 * Locks and their family: the exports beside the functions of `Atomics`. The code of each is loaded when its name is
 * read, since most programs use one or two. But `import` reads all names at once: so ES modules get classes that load
 * their code at the first use. None of this code loads the native library before it needs it.
 */

const { constructLazily, lazyClass, loadNow } = require('./util/lazy-class')
const { assertStackToLoad } = require('./util/stack')
const { isTimeoutError } = require('./util/values')
const locks = require('./named/manager')

class AsyncLock { constructor () { return constructLazily(AsyncLock, arguments, new.target) } }
class Barrier { constructor () { return constructLazily(Barrier, arguments, new.target) } }
class Condition { constructor () { return constructLazily(Condition, arguments, new.target) } }
class Latch { constructor () { return constructLazily(Latch, arguments, new.target) } }
class Lock { constructor () { return constructLazily(Lock, arguments, new.target) } }
class LockManager { constructor () { return constructLazily(LockManager, arguments, new.target) } }
class Queue { constructor () { return constructLazily(Queue, arguments, new.target) } }
class RwLock { constructor () { return constructLazily(RwLock, arguments, new.target) } }
class Semaphore { constructor () { return constructLazily(Semaphore, arguments, new.target) } }
class UnlockToken { constructor () { return constructLazily(UnlockToken, arguments, new.target) } }

lazyClass(Lock, () => require('./named/lock-manager').lockOf(Lock.prototype))
lazyClass(LockManager, () => require('./named/lock-manager').LockManager, Lock)
lazyClass(UnlockToken, () => require('./holding/token').UnlockToken)
lazyClass(AsyncLock, () => require('./locks/async-lock'), UnlockToken)
lazyClass(Barrier, () => require('./locks/barrier'))
lazyClass(Condition, () => require('./locks/condition'))
lazyClass(Latch, () => require('./locks/latch'))
lazyClass(Queue, () => require('./queue'))
lazyClass(RwLock, () => require('./locks/rw-lock'), UnlockToken)
lazyClass(Semaphore, () => require('./locks/semaphore'), UnlockToken)
Object.setPrototypeOf(locks, LockManager.prototype)

const ofSnapshots = {
  formatSnapshot: (snapshot) => require('./observe/snapshot').formatSnapshot(snapshot),
  snapshot: () => require('./observe/snapshot').snapshot()
}

const lazy = {
  AsyncLock, Barrier, Condition, Latch, Lock, LockManager, Queue, RwLock, Semaphore, UnlockToken, locks, ...ofSnapshots,
  isTimeoutError
}

function load (name) {
  if (ofSnapshots[name] !== undefined) {
    assertStackToLoad()
    require('./observe/snapshot')
  } else if (name !== 'isTimeoutError') {
    loadNow(name === 'locks' ? LockManager : lazy[name])
  }
  return lazy[name]
}

module.exports = { lazy, load }
