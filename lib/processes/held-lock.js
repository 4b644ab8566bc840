'use strict'

/** Locks that are held until `unlock()`. */

const showState = require('../util/inspect')
const observer = require('../waiting/observer')

// Not on every Node.
const { asyncDispose, dispose } = Symbol

/** Lets `util.inspect` show the locks of a class. */
function showLock (Class) {
  showState(Class, ({ name, names, mode, token, tokens, permit, ownerDied, isLost }) => {
    if (names !== undefined) return { names, mode, tokens, ownerDied, isLost }
    return { name, mode, token, ...permit !== undefined && { permit }, ownerDied, isLost }
  })
}

/**
 * Holds what a request gives to its callback, until `unlock()`. Resolves with null if that is null.
 * @param {(callback: (lock: object | null) => unknown) => Promise<void>} begin calls back in a later job
 */
function held (begin) {
  let settle, done
  // It begins in no executor: reports have few frames for the stack of a call.
  const promise = new Promise((resolve, reject) => { settle = { resolve, reject } })
  try {
    done = begin((lock) => {
      if (lock === null) return settle.resolve(null)
      observer.keepsHold()
      return new Promise((resolve) => {
        const unlock = async () => {
          resolve()
          await done
        }
        settle.resolve(withUnlock(lock, unlock, asyncDispose))
      })
    })
    done.catch(settle.reject)
  } catch (error) {
    settle.reject(error)
  }
  return promise
}

/**
 * Gives `unlock` to the argument of a callback.
 * @param {() => unknown} unlock gives the lock back at the first call; each fails if it was not held until then
 */
function withUnlock (lock, unlock, using) {
  lock.unlock = unlock
  if (using !== undefined) lock[using] = unlock
  return lock
}

/** @param {() => void} unlock as that of `withUnlock` */
const heldSync = (lock, unlock) => withUnlock(lock, unlock, dispose)

module.exports = { held, heldSync, showLock }
