'use strict'

// Locks, read-write locks and semaphores. Laws: one holder at most, or readers only; a holder that died is told of, and only such a
// one; `holder` is the thread that holds; never more permits in use than there are.

const { COUNT, PERMITS } = require('../arena')
const { Atomics } = require('../subject')
const { beginToHold, beginToRead, beginToWrite, endToHold, endToRead } = require('./holding')

/** What a callback gives. */
const DONE = 7
/** What a callback throws. */
const FAILURE = new Error('thrown by a callback of the soak')

/** Takes a token by one of several methods, given the thing, the options and whether the method may block. */
function take (actor, thing, names, options) {
  const [blocking, awaiting, trying] = names
  const dice = actor.random()
  if (trying && dice < 0.1) return thing[trying]() || undefined
  if (blocking === 'lock' && names.length === 4 && actor.blocks && dice < 0.3) return thing.lockIfAvailable(actor.timeout()) || undefined
  return actor.attempt(options, () => actor.blocks && dice < 0.9 ? thing[blocking](options) : thing[awaiting](options))
}

/** Runs a callback with something held, by a method that blocks or by one that awaits: `begin(token)`, some time, `end(token)`. */
async function execute (actor, [blocking, awaiting], begin, end) {
  const options = actor.options()
  const fails = actor.chance(0.1)
  let ran = false
  const finish = (token) => {
    end(token)
    if (!fails) return DONE
    // The next holder is told of a death that this one was told of.
    if (token && token.ownerDied) actor.arena.add('deaths', 0, 1)
    throw FAILURE
  }
  const result = await actor.attempt(options, () => {
    if (!actor.blocks || actor.chance(0.1)) {
      return awaiting(async (token) => {
        ran = true
        await begin(token)
        await actor.linger()
        return finish(token)
      }, options)
    }
    return blocking((token) => {
      ran = true
      begin(token)
      actor.lingerSync()
      return finish(token)
    }, options)
  }).catch(error => {
    if (error !== FAILURE || !fails) throw error
    return DONE
  })
  actor.require(ran === (result === DONE), () => `the callback ran: ${ran}, and the result was ${result}`)
  return ran ? true : undefined
}

/** The methods of a thing that take a callback, and that block or await. */
const methods = (thing, name, ...first) => [`${name}Sync`, name].map(method => (...more) => thing[method](...first, ...more))

// ——— AsyncLock ———

/** Some time with a lock that is held. */
async function holdLock (actor, index, token) {
  beginToHold(actor, 'lock', index, token)
  requireHolder(actor, actor.arena.locks[index])
  if (actor.blocks && actor.chance(0.05)) requireDeadlock(actor, actor.arena.locks[index])
  await actor.linger()
  endToHold(actor, 'lock', index)
}

function requireHolder (actor, { holder, waiters }) {
  actor.require(holder === actor.threadId && waiters >= 0, () => `thread ${actor.threadId} holds a lock whose holder is ${holder}, with ${waiters} waiters`)
}

function requireDeadlock (actor, lock) {
  try {
    lock.lock()
  } catch (error) {
    if (error.code !== 'ERR_DEADLOCK') throw error
    return
  }
  actor.violation('a thread has got a lock that it held')
}

async function lock (actor, index) {
  const { arena } = actor
  const options = actor.options()
  const token = await take(actor, arena.locks[index], ['lock', 'lockAsync', 'tryLock', 'lockIfAvailable'], options)
  if (token === undefined) return undefined
  await holdLock(actor, index, token)
  // Another one behind it in the order of all.
  if (index + 1 < COUNT.lock && actor.chance(0.1)) {
    const inner = actor.blocks ? arena.locks[index + 1].lock() : await arena.locks[index + 1].lockAsync()
    await holdLock(actor, index + 1, inner)
    actor.require(inner.unlock(), () => 'a lock was lost')
  }
  release(actor, arena.locks[index], token)
  return true
}

/** Unlocks by the token or by the lock, or abandons the lock, which counts as a death. */
function release (actor, lock, token) {
  const dice = actor.random()
  if (dice < 0.05) actor.arena.add('deaths', 0, 1)
  if (dice > 0.8) lock.unlock()
  else actor.require(dice < 0.05 ? token.abandon() : token.unlock(), () => 'a lock was lost')
  actor.require(!token.locked && !token.unlock(), () => 'a lock was released twice')
}

function executeLocked (actor, index) {
  const thing = actor.arena.locks[index]
  const begin = (token) => {
    beginToHold(actor, 'lock', index, token)
    requireHolder(actor, thing)
  }
  return execute(actor, methods(thing, 'executeLocked'), begin, (token) => {
    endToHold(actor, 'lock', index)
    if (actor.chance(0.2)) token.unlock()
  })
}

/** As code does that knows nothing of the class. */
async function bareLock (actor, index) {
  const { arena } = actor
  const at = arena.place('lock', index)
  while (Atomics.compareExchange(arena.words, at, 0, 1) !== 0) {
    if (actor.blocks) {
      Atomics.wait(arena.words, at, 1)
    } else {
      const { async, value } = Atomics.waitAsync(arena.words, at, 1)
      if (async) await value
    }
  }
  beginToHold(actor, 'lock', index, undefined)
  // A thread that tries to take it may be told for as long as it is suspended there.
  actor.requireBefore(() => arena.locks[index].holder === null, () => `a lock that was taken by its bare word is held by ${arena.locks[index].holder}`)
  if (actor.chance(0.5)) await actor.linger()
  endToHold(actor, 'lock', index)
  Atomics.store(arena.words, at, 0)
  Atomics.notify(arena.words, at, 1)
  return true
}

/** As code does that waits at the word until the lock may be free. */
async function waitAtWord (actor, index) {
  const { arena } = actor
  const at = arena.place('lock', index)
  const timeout = actor.random() * 2
  if (actor.blocks) {
    Atomics.wait(arena.words, at, 1, timeout)
  } else {
    const { async, value } = Atomics.waitAsync(arena.words, at, 1, timeout)
    if (async) await value
  }
  // It may have been notified in the place of others.
  const token = arena.locks[index].tryLock()
  if (token === null) return undefined
  await holdLock(actor, index, token)
  release(actor, arena.locks[index], token)
  return true
}

// ——— RwLock ———

async function read (actor, index) {
  const rw = actor.arena.rws[index]
  const begin = token => beginToRead(actor, 'rw', index, token)
  const end = () => endToRead(actor, 'rw', index)
  if (actor.chance(0.3)) return execute(actor, methods(rw, 'executeShared'), begin, end)
  const token = await take(actor, rw, ['lockShared', 'lockSharedAsync', 'tryLockShared'], actor.options())
  if (token === undefined) return undefined
  begin(token)
  await actor.linger()
  end()
  actor.require(token.unlock(), () => 'a share was lost')
  return true
}

async function write (actor, index) {
  const rw = actor.arena.rws[index]
  const begin = (token) => {
    beginToWrite(actor, 'rw', index, token)
    requireHolder(actor, rw)
  }
  const end = () => endToHold(actor, 'rw', index)
  if (actor.chance(0.3)) return execute(actor, methods(rw, 'executeLocked'), begin, end)
  const token = await take(actor, rw, ['lock', 'lockAsync', 'tryLock'], actor.options())
  if (token === undefined) return undefined
  begin(token)
  await actor.linger()
  end()
  if (actor.chance(0.3)) {
    const shared = token.downgrade()
    beginToRead(actor, 'rw', index, { ownerDied: false })
    await actor.linger()
    endToRead(actor, 'rw', index)
    actor.require(!token.locked && shared.unlock(), () => 'a share was lost after a downgrade')
  } else {
    actor.require(token.unlock(), () => 'a lock was lost')
  }
  return true
}

// ——— Semaphore ———

async function usePermits (actor, index) {
  const { arena } = actor
  const semaphore = arena.semaphores[index]
  const amount = 1 + actor.below(PERMITS)
  const cell = arena.at('uses', actor.number * COUNT.semaphore + index)
  const begin = () => {
    // First the sum. The thread may be ended by the call, but not between that one's work and the line behind it.
    arena.add('inUse', index, amount)
    arena.ledger[cell] = amount
    const law = [() => arena.get('inUse', index) <= PERMITS, () => `${arena.get('inUse', index)} permits of ${PERMITS} are in use`]
    arena.add('semaphoreTaken', index, 1)
    return actor.blocks ? actor.requireSoonSync(...law) : actor.requireSoon(...law)
  }
  const end = () => {
    arena.add('inUse', index, -amount)
    arena.ledger[cell] = 0
  }
  if (actor.chance(0.3)) return execute(actor, methods(semaphore, 'use', amount), begin, end)
  // What a dead thread has acquired without a token does not come back.
  const holds = !actor.steady || actor.chance(0.5)
  const token = await takePermits(actor, semaphore, amount, holds)
  if (token === undefined) return undefined
  await begin()
  await actor.linger()
  end()
  if (holds) actor.require(token.locked && token.unlock() && !token.unlock(), () => 'permits were lost')
  else semaphore.release(amount)
  return true
}

/** Gives a token if `holds`, else true; undefined if it gave up. */
function takePermits (actor, semaphore, amount, holds) {
  const [blocking, awaiting, trying] = holds ? ['hold', 'holdAsync', 'tryHold'] : ['acquire', 'acquireAsync', 'tryAcquire']
  if (actor.chance(0.1)) return semaphore[trying](amount) || undefined
  const options = actor.options()
  return actor.attempt(options, () => semaphore[actor.blocks && actor.chance(0.9) ? blocking : awaiting](amount, options))
}

module.exports = [
  { name: 'lock', weight: 12, of: 'lock', bursts: true, run: lock },
  { name: 'executeLocked', weight: 6, of: 'lock', run: executeLocked },
  { name: 'the bare word of a lock', weight: 3, of: 'lock', needs: actor => actor.steady, run: bareLock },
  { name: 'wait at the word of a lock', weight: 2, of: 'lock', needs: actor => actor.steady, run: waitAtWord },
  { name: 'read', weight: 8, of: 'rw', bursts: true, run: read },
  { name: 'write', weight: 6, of: 'rw', bursts: true, run: write },
  { name: 'use permits', weight: 8, of: 'semaphore', bursts: true, run: usePermits }
]
