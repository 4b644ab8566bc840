'use strict'

/** Locks and their family, for any mix of threads: what every entry point exports beside the functions of `Atomics`. */
module.exports = {
  AsyncLock: require('./async-lock'),
  Barrier: require('./barrier'),
  Condition: require('./condition'),
  Latch: require('./latch'),
  RwLock: require('./rw-lock'),
  Semaphore: require('./semaphore'),
  UnlockToken: require('./token').UnlockToken
}
