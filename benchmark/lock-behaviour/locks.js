'use strict'

// The locks that are compared, each brought into one form:
//
//   title()           what it is called in the table
//   missing()         why it cannot be used here, if it cannot
//   bytes             how much shared memory it wants
//   open(shared)      in any thread, a promise of
//     acquire(options)  a promise of `{ release(), told }`; `told`: whether it was told that the former holder died.
//                       `release()` may give a promise: then it is over when that is
//     execute(callback) if that is the only such form that it has, out of which `acquire` was made
//     block()           the same, blocking, and not by a promise; undefined if there is no such form
//     patience(ms)      options of `acquire` by which a request is given up after so long; undefined if there are none
//   watch(worker, shared)   what its documentation asks for when a worker is started, if anything

const createArticleLock = require('../../__test__/fixtures/lock-article')

const major = Number(process.versions.node.split('.')[0])
const hasWaitAsync = () => typeof Atomics.waitAsync === 'function' ? undefined : `Node ${major} has no Atomics.waitAsync`

/** The version of an npm package that is installed, undefined if it is not. */
function installed (name) {
  try {
    return require(`../node_modules/${name}/package.json`).version
  } catch (_) {}
}

const unlessInstalled = name => installed(name) ? undefined : `the npm package ${name} is not installed in benchmark/`

const ours = {
  title: () => `\`AsyncLock\` of atomics-waitasync ${require('../../package.json').version}`,
  missing () {},
  bytes: 4,
  async open (shared) {
    const { AsyncLock } = require('../../pure')
    const lock = new AsyncLock(shared)
    const held = token => ({ release: () => token.unlock(), told: token.ownerDied })
    return {
      acquire: async options => held(await lock.lockAsync(options)),
      block: () => held(lock.lock()),
      patience: timeout => ({ timeout })
    }
  }
}

const web = {
  title: () => 'Web Locks (`navigator.locks`)',
  missing: () => typeof navigator === 'object' && navigator.locks ? undefined : `Node ${major} has no navigator.locks`,
  bytes: 4, // which it does not need
  async open () {
    return {
      acquire: options => new Promise((resolve, reject) => {
        const over = navigator.locks.request('lock', options || {}, () => new Promise(end => {
          const release = () => {
            end()
            return over
          }
          resolve({ release, told: false })
        }))
        over.catch(reject)
      }),
      patience: timeout => ({ signal: AbortSignal.timeout(timeout) })
    }
  }
}

const article = {
  title: () => 'the article\'s mutex over Node\'s own `Atomics`',
  missing: hasWaitAsync,
  bytes: 4,
  async open (shared) {
    const mutex = new (createArticleLock(Atomics))(shared)
    const held = { release: () => mutex.unlock(), told: false }
    return {
      // Its executeLocked, cut in two where it calls the callback.
      async acquire () {
        while (!mutex.tryLock()) {
          const { async, value } = Atomics.waitAsync(mutex.i32a, 0, mutex.constructor.LOCKED)
          if (async) await value
        }
        return held
      },
      execute: callback => mutex.executeLocked(callback),
      block () {
        mutex.lock()
        return held
      }
    }
  }
}

const multithreading = {
  title: () => `\`Mutex\` of multithreading ${installed('multithreading')}`,
  missing: () => hasWaitAsync() || unlessInstalled('multithreading'),
  bytes: 4,
  async open (shared) {
    const { Mutex } = await import('multithreading')
    // The second argument is what its own pool of workers makes the other threads' views with.
    const mutex = new Mutex(undefined, shared)
    const held = guard => ({ release: () => guard.dispose(), told: false })
    return {
      acquire: async () => held(await mutex.lock()),
      block: () => held(mutex.blockingLock())
    }
  }
}

const workerMutex = {
  title: () => `\`WorkerMutex\` of worker-mutex ${installed('worker-mutex')}`,
  missing: () => unlessInstalled('worker-mutex'),
  bytes: 12,
  async open (shared) {
    const { WorkerMutex } = require('worker-mutex')
    const mutex = new WorkerMutex(shared)
    const held = { release: () => mutex.unlock(), told: false }
    return {
      async acquire () {
        await mutex.lockAsync()
        return held
      },
      block () {
        mutex.lock()
        return held
      }
    }
  },
  watch: (worker, shared) => require('worker-mutex').WorkerMutex.bindWorkerExit(worker, shared)
}

const asyncMutex = {
  title: () => `\`Mutex\` of async-mutex ${installed('async-mutex')} (of one thread)`,
  missing: () => unlessInstalled('async-mutex'),
  bytes: 4, // which it does not know
  async open () {
    const { Mutex, withTimeout } = require('async-mutex')
    const mutex = new Mutex()
    return {
      async acquire ({ timeout } = {}) {
        return { release: await (timeout === undefined ? mutex : withTimeout(mutex, timeout)).acquire(), told: false }
      },
      patience: timeout => ({ timeout })
    }
  }
}

module.exports = { ours, web, article, multithreading, workerMutex, asyncMutex }
