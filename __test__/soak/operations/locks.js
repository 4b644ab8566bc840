'use strict'

// Locks, read-write locks and semaphores. Laws: one holder at most, or readers only; a holder that died is told of, and
// only such a one; `holder` is the thread that holds; never more permits in use than there are.

const { COUNT, PERMITS } = require('../arena')
const { Atomics } = require('../subject')
const { beginToHold, beginToRead, beginToWrite, endToHold, endToRead, execute } = require('./holding')

/**
 * Holds something for a while: `begin(token)`, some time, `end()`, and then it is released; mostly by `release(token)`,
 * otherwise by the end of a callback.
 *
 * @param {string[]} names of methods that give a token: one that blocks, one that awaits, one that tries
 * @param {string} executing the method that runs a callback; with `Sync` behind its name it blocks
 * @param {any[]} [args] the methods' first ones
 */
async function hold (actor, thing, names, executing, { args = [], begin, end, release = releaseBy(actor) }) {
  if (actor.chance(0.3)) return execute(actor, (name, ...more) => thing[name](...args, ...more), executing, begin, end)
  const token = await take(actor, thing, names, args)
  if (token === undefined) return
  await begin(token)
  await actor.linger()
  end()
  await release(token)
}

const releaseBy = actor => token => actor.require(token.unlock(), () => 'what was held was lost')

/** Returns the result of one of several methods; undefined if it gave up. */
function take (actor, thing, [blocking, awaiting, trying], args) {
  const dice = actor.random()
  if (dice < 0.1) return thing[trying](...args) || undefined
  if (actor.blocks && thing.lockIfAvailable && dice < 0.3) return thing.lockIfAvailable(actor.timeout()) || undefined
  const options = actor.options()
  return actor.attempt(options, () => thing[actor.blocks && dice < 0.9 ? blocking : awaiting](...args, options))
}

// ——— AsyncLock ———

function beginToLock (actor, index, token) {
  const lock = actor.arena.locks[index]
  beginToHold(actor, 'lock', index, token)
  assertHolder(actor, lock)
  if (actor.blocks && actor.chance(0.05)) assertDeadlock(actor, lock)
}

/** Spends some time with a held lock. */
async function holdLock (actor, index, token) {
  beginToLock(actor, index, token)
  await actor.linger()
  endToHold(actor, 'lock', index)
}

function assertHolder (actor, { holder, waiters }) {
  actor.require(
    holder === actor.threadId && waiters >= 0,
    () => `thread ${actor.threadId} holds a lock whose holder is ${holder}, with ${waiters} waiters`
  )
}

function assertDeadlock (actor, lock) {
  try {
    lock.lock()
  } catch (error) {
    if (error.code !== 'ERR_DEADLOCK') throw error
    return
  }
  actor.violation('a thread has got a lock that it held')
}

function lock (actor, index) {
  const { locks } = actor.arena
  return hold(actor, locks[index], ['lock', 'lockAsync', 'tryLock'], 'executeLocked', {
    begin: token => beginToLock(actor, index, token),
    end: () => endToHold(actor, 'lock', index),
    async release (token) {
      // Another one behind it in the order of all.
      if (index + 1 < COUNT.lock && actor.chance(0.1)) {
        const inner = actor.blocks ? locks[index + 1].lock() : await locks[index + 1].lockAsync()
        await holdLock(actor, index + 1, inner)
        actor.require(inner.unlock(), () => 'a lock was lost')
      }
      release(actor, locks[index], token)
    }
  })
}

/** Unlocks by the token or by the lock, or abandons: that counts as a death. */
function release (actor, lock, token) {
  const dice = actor.random()
  if (dice < 0.05) actor.arena.add('deaths', 0, 1)
  if (dice > 0.8) lock.unlock()
  else actor.require(dice < 0.05 ? token.abandon() : token.unlock(), () => 'a lock was lost')
  actor.require(!token.locked && !token.unlock(), () => 'a lock was released twice')
}

/** Waits for the word of a lock that is locked. */
async function waitForWord (actor, at, timeout) {
  const { words } = actor.arena
  const { async, value } = actor.blocks
    ? { async: false, value: Atomics.wait(words, at, 1, timeout) }
    : Atomics.waitAsync(words, at, 1, timeout)
  if (async) await value
}

/** Locks as code does that knows nothing of the class. */
async function bareLock (actor, index) {
  const { arena } = actor
  const at = arena.place('lock', index)
  while (Atomics.compareExchange(arena.words, at, 0, 1) !== 0) await waitForWord(actor, at)
  beginToHold(actor, 'lock', index, undefined)
  // A thread that tries to take it may be told for as long as it is suspended there.
  actor.assertBefore(
    () => arena.locks[index].holder === null,
    () => `a lock that was taken by its bare word is held by ${arena.locks[index].holder}`
  )
  if (actor.chance(0.5)) await actor.linger()
  endToHold(actor, 'lock', index)
  Atomics.store(arena.words, at, 0)
  Atomics.notify(arena.words, at, 1)
}

/** Waits at the word as bare code does: until the lock may be free. */
async function waitAtWord (actor, index) {
  const { arena } = actor
  await waitForWord(actor, arena.place('lock', index), actor.random() * 2)
  // It may have been notified in the place of others.
  const token = arena.locks[index].tryLock()
  if (token === null) return
  await holdLock(actor, index, token)
  release(actor, arena.locks[index], token)
}

// ——— RwLock ———

function read (actor, index) {
  return hold(actor, actor.arena.rws[index], ['lockShared', 'lockSharedAsync', 'tryLockShared'], 'executeShared', {
    begin: token => beginToRead(actor, 'rw', index, token),
    end: () => endToRead(actor, 'rw', index)
  })
}

function write (actor, index) {
  const rw = actor.arena.rws[index]
  return hold(actor, rw, ['lock', 'lockAsync', 'tryLock'], 'executeLocked', {
    begin (token) {
      beginToWrite(actor, 'rw', index, token)
      assertHolder(actor, rw)
    },
    end: () => endToHold(actor, 'rw', index),
    async release (token) {
      if (actor.chance(0.7)) return actor.require(token.unlock(), () => 'a lock was lost')
      const shared = token.downgrade()
      beginToRead(actor, 'rw', index, { ownerDied: false })
      await actor.linger()
      endToRead(actor, 'rw', index)
      actor.require(!token.locked && shared.unlock(), () => 'a share was lost after a downgrade')
    }
  })
}

// ——— Semaphore ———

function usePermits (actor, index) {
  const { arena } = actor
  const semaphore = arena.semaphores[index]
  const amount = 1 + actor.below(PERMITS)
  const cell = arena.at('uses', actor.number * COUNT.semaphore + index)
  // Permits that a dead thread has acquired without a token do not come back, and nothing is acquired of a limit.
  const withToken = !actor.steady || semaphore.permits !== undefined || actor.chance(0.5)
  const methods = withToken ? ['hold', 'holdAsync', 'tryHold'] : ['acquire', 'acquireAsync', 'tryAcquire']
  return hold(actor, semaphore, methods, 'use', {
    args: [amount],
    begin () {
      // First the sum. The thread may be ended by the call, but not between that one's work and the line behind it.
      arena.add('inUse', index, amount)
      arena.ledger[cell] = amount
      arena.add('semaphoreTaken', index, 1)
      const inUse = () => arena.get('inUse', index)
      return actor.assertSoon(() => inUse() <= PERMITS, () => `${inUse()} permits of ${PERMITS} are in use`)
    },
    end () {
      arena.add('inUse', index, -amount)
      arena.ledger[cell] = 0
    },
    release (token) {
      if (withToken) actor.require(token.locked && token.unlock() && !token.unlock(), () => 'permits were lost')
      else semaphore.release(amount)
    }
  })
}

module.exports = [
  { name: 'lock', weight: 18, of: 'lock', bursts: true, run: lock },
  { name: 'the bare word of a lock', weight: 3, of: 'lock', needs: actor => actor.steady, run: bareLock },
  { name: 'wait at the word of a lock', weight: 2, of: 'lock', needs: actor => actor.steady, run: waitAtWord },
  { name: 'read', weight: 8, of: 'rw', bursts: true, run: read },
  { name: 'write', weight: 6, of: 'rw', bursts: true, run: write },
  { name: 'use permits', weight: 8, of: 'semaphore', bursts: true, run: usePermits }
]
