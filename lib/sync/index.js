'use strict'

/**
 * Locks and their family, for any mix of threads: what every entry point exports beside the functions of `Atomics`. Each is
 * loaded when it is first asked for, since most programs use one or two.
 */

const { define, keys } = require('../intrinsics')

const load = {
  AsyncLock: () => require('./async-lock'),
  Barrier: () => require('./barrier'),
  Condition: () => require('./condition'),
  Latch: () => require('./latch'),
  RwLock: () => require('./rw-lock'),
  Semaphore: () => require('./semaphore'),
  UnlockToken: () => require('./token').UnlockToken
}

for (const name of keys(load)) {
  const become = (object, value) => define(object, name, value, true, true)
  Object.defineProperty(exports, name, {
    get () {
      const value = load[name]()
      become(this, value)
      return value
    },
    set (value) { become(this, value) },
    enumerable: true,
    configurable: true
  })
}
