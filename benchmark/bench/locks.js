'use strict'

// The locks that are compared, each brought into one form. `open(name, { sab })` gives a view of the lock on these bytes:
//
//   execute(callback)  runs the callback once the lock is held, and gives a promise of that being over
//   block()            blocks until the lock is held; undefined if it has no such form
//   release()          ends what `block` began
//
// `host` is the article's mutex over the host's Atomics, `floor` the least that an uncontended mutex needs. `lock`, where
// it is given, is the object itself.

const path = require('path')
const createArticleLock = require('../../__test__/fixtures/lock-article')
const { host, hostHasWaitAsync } = require('./queues')

/** The host's Atomics, whatever has been installed since. */
const hostAtomics = Object.assign({ compareExchange: Atomics.compareExchange }, host)

/** The article's does not wait for what the callback promises. Here it does, as all that it is compared with do. */
class ArticleLock extends createArticleLock(hostAtomics) {
  async lockAsync () {
    while (!this.tryLock()) {
      const { async, value } = hostAtomics.waitAsync(this.i32a, 0, 1)
      if (async) await value
    }
  }

  async executeLocked (callback) {
    while (!this.tryLock()) {
      const { async, value } = hostAtomics.waitAsync(this.i32a, 0, 1)
      if (async) await value
    }
    try {
      return await callback()
    } finally {
      this.unlock()
    }
  }
}

/** How many bytes the largest of them takes, and insists on. */
const BYTES = 12

const major = parseInt(process.versions.node, 10)

/** @param {string} entry the entry point that the thread loads: it decides whether the host's queue is in use, too */
async function open (name, { sab, entry = 'pure' }) {
  switch (name) {
    case 'ours':
    case 'again': return openOurs(new (require(path.join('..', '..', entry)).AsyncLock)(sab))
    case 'host': return openArticle(new ArticleLock(sab))
    case 'article': return openArticle(new (createArticleLock(hostAtomics))(sab))
    case 'floor': return openFloor(new Int32Array(sab))
    case 'async-mutex': return openAsyncMutex()
    case 'multithreading': return openMultithreading(sab)
    case 'worker-mutex': return openWorkerMutex(sab)
    case 'web-locks': return openWebLocks()
  }
  throw new Error(`there is no lock ${name}`)
}

function openOurs (lock) {
  let token
  return {
    lock,
    execute: callback => lock.executeLocked(callback),
    block () { token = lock.lock() },
    release () { token.unlock() }
  }
}

function openArticle (lock) {
  return {
    lock,
    execute: callback => lock.executeLocked(callback),
    block: () => lock.lock(),
    release: () => lock.unlock()
  }
}

/** Two atomic operations, and no queue: a thread that finds it locked tries again and again. */
function openFloor (array) {
  const { compareExchange, store } = Atomics
  return {
    async execute (callback) {
      while (compareExchange(array, 0, 0, 1) !== 0);
      try {
        return await callback()
      } finally {
        store(array, 0, 0)
      }
    },
    block () { while (compareExchange(array, 0, 0, 1) !== 0); },
    release () { store(array, 0, 0) }
  }
}

/** Knows of one thread only: each thread has a mutex of its own. */
function openAsyncMutex () {
  const { Mutex } = require('async-mutex')
  const mutex = new Mutex()
  return { execute: callback => mutex.runExclusive(callback) }
}

async function openMultithreading (sab) {
  const { Mutex } = await import('multithreading')
  // The second argument is what its pool of workers makes the other threads' views with.
  const mutex = new Mutex(undefined, sab)
  let guard
  return {
    async execute (callback) {
      const guard = await mutex.lock()
      try {
        return await callback()
      } finally {
        guard.dispose()
      }
    },
    block () { guard = mutex.blockingLock() },
    release () { guard.dispose() }
  }
}

function openWorkerMutex (sab) {
  const { WorkerMutex } = require('worker-mutex')
  const mutex = new WorkerMutex(sab)
  return {
    async execute (callback) {
      await mutex.lockAsync()
      try {
        return await callback()
      } finally {
        mutex.unlock()
      }
    },
    block: () => mutex.lock(),
    release: () => mutex.unlock()
  }
}

function openWebLocks () {
  const { locks } = navigator
  return { execute: callback => locks.request('benchmark', callback) }
}

/** Why a lock cannot be used on this Node; undefined if it can. */
function missing (name) {
  switch (name) {
    case 'article':
    case 'host': return hostHasWaitAsync ? undefined : 'Node has no Atomics.waitAsync'
    case 'async-mutex':
    case 'worker-mutex': return installed(name)
    case 'multithreading': return major < 22 ? 'needs Node 22' : installed(name)
    case 'web-locks': return typeof navigator === 'object' && navigator.locks ? undefined : 'Node has no Web Locks'
  }
  return undefined
}

function installed (name) {
  return require('fs').existsSync(path.join(__dirname, '..', 'node_modules', name)) ? undefined : 'is not installed'
}

const available = names => names.filter(name => missing(name) === undefined)

module.exports = { BYTES, available, missing, open }
