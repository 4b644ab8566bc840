'use strict'

// The locks that are compared, each brought into one form. An entry has
//
//   title()           what it is called in the table of lock-behaviour
//   missing()         why it cannot be used on this Node, if it cannot
//   open(sab, entry, load)  a view of the lock on these bytes, or a promise of it:
//     execute(callback)  runs the callback once the lock is held, and gives a promise of that being over
//     acquire(options)   a promise of `{ release(), told }`; `told`: whether it was told that the former holder died.
//                        `release()` may give a promise: then it is over when that is
//     byCallback         whether `acquire` was made out of `execute`
//     patience(ms)       options of `acquire` by which a request is given up after so long; undefined if there are none
//     block()            blocks until the lock is held; undefined if it has no such form
//     release()          ends what `block` began
//     lock               the object itself, for what only some have
//   watch(worker, sab)  what its documentation asks for when a worker is started, if anything
//
// `host` is the article's mutex over the host's Atomics, `floor` the least that an uncontended mutex needs.

const fs = require('fs')
const path = require('path')
const createArticleLock = require('../../__test__/fixtures/lock-article')
const { host, hostHasWaitAsync } = require('./queues')

/** How many bytes the largest of them takes, and insists on. */
const BYTES = 12

const major = parseInt(process.versions.node, 10)
const folderOf = name => path.join(__dirname, '..', 'node_modules', name)
const versionOf = name => require(path.join(folderOf(name), 'package.json')).version
const isInstalled = name => fs.existsSync(folderOf(name))
const unlessInstalled = (name) =>
  isInstalled(name) ? undefined : `the npm package ${name} is not installed in benchmark/`
const unlessWaitAsync = () => hostHasWaitAsync ? undefined : 'Node has no Atomics.waitAsync'

/** The host's Atomics, whatever has been installed since. */
const hostAtomics = Object.assign({ compareExchange: Atomics.compareExchange }, host)

/** The article's does not await the callback's promise. Here it does, as all its peers do. */
class ArticleLock extends createArticleLock(hostAtomics) {
  async lockAsync () {
    while (!this.tryLock()) {
      const { async, value } = hostAtomics.waitAsync(this.i32a, 0, 1)
      if (async) await value
    }
  }

  async executeLocked (callback) {
    await this.lockAsync()
    try {
      return await callback()
    } finally {
      this.unlock()
    }
  }
}

const ours = {
  title: () => `\`AsyncLock\` of atomics-waitasync ${require('../../package.json').version}`,
  missing () {},
  /**
   * `entry`: the entry point that the thread loads, which decides whether the host's queue is in use, too. `load` loads
   * another package than this one.
   */
  open (sab, entry = 'pure', load = entry => require(path.join('..', '..', entry))) {
    const lock = new (load(entry).AsyncLock)(sab)
    let token
    return {
      lock,
      execute: callback => lock.executeLocked(callback),
      async acquire (options) {
        const token = await lock.lockAsync(options)
        return { release: () => token.unlock(), told: token.ownerDied }
      },
      patience: timeout => ({ timeout }),
      block () { token = lock.lock() },
      release () { token.unlock() }
    }
  }
}

/** Returns the forms of a mutex: `lock` gives a promise of the argument of `unlock`, which `block` gives itself. */
const formsOf = ({ lock, unlock, block }) => {
  let held
  return {
    async execute (callback) {
      const held = await lock()
      try {
        return await callback()
      } finally {
        unlock(held)
      }
    },
    async acquire () {
      const held = await lock()
      return { release: () => unlock(held), told: false }
    },
    block: () => { held = block() },
    release: () => unlock(held)
  }
}

const article = Class => ({
  title: () => 'the article\'s mutex over Node\'s own `Atomics`',
  missing: unlessWaitAsync,
  open (sab) {
    const lock = new (Class())(sab)
    const forms = formsOf({ lock: () => lock.lockAsync(), unlock: () => lock.unlock(), block: () => lock.lock() })
    return { ...forms, lock, execute: callback => lock.executeLocked(callback), byCallback: true }
  }
})

const locks = {
  ours,
  again: ours,
  'web-locks': {
    title: () => 'Web Locks (`navigator.locks`)',
    missing: () => (typeof navigator === 'object' && navigator.locks ? undefined : 'Node has no Web Locks'),
    open: () => ({
      execute: callback => navigator.locks.request('benchmark', callback),
      acquire: (options = {}) => new Promise((resolve, reject) => {
        const over = navigator.locks.request('benchmark', options, () => new Promise((end) => {
          const release = () => {
            end()
            return over
          }
          resolve({ release, told: false })
        }))
        over.catch(reject)
      }),
      patience: timeout => ({ signal: AbortSignal.timeout(timeout) })
    })
  },
  named: {
    missing () {},
    open: () => ({ execute: (callback) => require('../../pure').locks.request('benchmark', callback) })
  },
  host: article(() => ArticleLock),
  article: article(() => createArticleLock(hostAtomics)),
  'article-ours': { ...article(() => createArticleLock({ ...hostAtomics, ...require('../../pure') })), missing () {} },
  /** Two atomic operations, and no queue: a thread that finds it locked tries again and again. */
  floor: {
    missing () {},
    open (sab) {
      const { compareExchange, store } = Atomics
      const array = new Int32Array(sab)
      const block = () => { while (compareExchange(array, 0, 0, 1) !== 0); }
      const release = () => { store(array, 0, 0) }
      return {
        async execute (callback) {
          block()
          try {
            return await callback()
          } finally {
            release()
          }
        },
        block,
        release
      }
    }
  },
  multithreading: {
    title: () => `\`Mutex\` of multithreading ${versionOf('multithreading')}`,
    missing: () => (major < 22 ? 'needs Node 22' : unlessInstalled('multithreading')),
    async open (sab) {
      const { Mutex } = await import('multithreading')
      // With the second argument its own pool of workers makes the other threads' views.
      const mutex = new Mutex(undefined, sab)
      return formsOf({ lock: () => mutex.lock(), unlock: guard => guard.dispose(), block: () => mutex.blockingLock() })
    }
  },
  'worker-mutex': {
    title: () => `\`WorkerMutex\` of worker-mutex ${versionOf('worker-mutex')}`,
    missing: () => unlessInstalled('worker-mutex'),
    open (sab) {
      const { WorkerMutex } = require('worker-mutex')
      const mutex = new WorkerMutex(sab)
      return formsOf({ lock: () => mutex.lockAsync(), unlock: () => mutex.unlock(), block: () => mutex.lock() })
    },
    watch: (worker, sab) => require('worker-mutex').WorkerMutex.bindWorkerExit(worker, sab)
  },
  /** Knows of one thread only: each thread has a mutex of its own. */
  'async-mutex': {
    title: () => `\`Mutex\` of async-mutex ${versionOf('async-mutex')} (of one thread)`,
    missing: () => unlessInstalled('async-mutex'),
    open () {
      const { Mutex, withTimeout } = require('async-mutex')
      const mutex = new Mutex()
      return {
        execute: (callback) => mutex.runExclusive(callback),
        async acquire ({ timeout } = {}) {
          return { release: await (timeout === undefined ? mutex : withTimeout(mutex, timeout)).acquire(), told: false }
        },
        patience: (timeout) => ({ timeout })
      }
    }
  }
}

const open = async (name, { sab, entry, load }) => locks[name].open(sab, entry, load)
const available = names => names.filter(name => locks[name].missing() === undefined)

module.exports = { BYTES, available, isInstalled, locks, open }
