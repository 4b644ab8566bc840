'use strict'

// Locks, read-write locks and semaphores. Laws: one holder at most, or readers only; a holder that died is told of, and only such a
// one; never more permits in use than there are.

const { ACTORS, COUNT, PERMITS } = require('../arena')

/** Takes a token by one of several methods, given the thing, the options and whether the method may block. */
function take (actor, thing, names, options) {
  const [blocking, awaiting, trying] = names
  const dice = actor.random()
  if (trying && dice < 0.1) return thing[trying]() || undefined
  if (blocking === 'lock' && names.length === 4 && actor.blocks && dice < 0.3) return thing.lockIfAvailable(actor.timeout()) || undefined
  return actor.attempt(options, () => actor.blocks && dice < 0.9 ? thing[blocking](options) : thing[awaiting](options))
}

/** The actor holds something alone: `holder` is the field of the ledger that names it. */
function enter (actor, holder, index, ownerDied) {
  const { arena } = actor
  const before = Atomics.exchange(arena.ledger, arena.at(holder, index), actor.number)
  if (before === 0) return
  actor.require(arena.isDying(before), () => `a double grant: ${holder} ${index} is held by actor ${before % ACTORS} of thread ${Math.floor(before / ACTORS)}, which is alive`)
  actor.require(ownerDied !== false, () => `${holder} ${index} was held by a thread that died, and the next holder is not told`)
}

function leave (actor, holder, index) {
  const { arena } = actor
  const before = Atomics.compareExchange(arena.ledger, arena.at(holder, index), actor.number, 0)
  actor.require(before === actor.number, () => `a double grant: ${holder} ${index} was entered by actor ${before % ACTORS} of thread ${Math.floor(before / ACTORS)}`)
}

function inherited (actor, field, index, token) {
  if (!token.ownerDied) return
  const { arena } = actor
  const times = arena.add(field, index, 1)
  actor.count('owner died')
  // Readers are all told of one death.
  actor.require(arena.get('deaths') > 0 && (field !== 'lockInherited' || times <= arena.get('deaths')),
    () => `told of ${times} deaths, and ${arena.get('deaths')} threads died`)
}

// ——— AsyncLock ———

async function holdLock (actor, index, token) {
  const { arena } = actor
  inherited(actor, 'lockInherited', index, token)
  enter(actor, 'lockHolder', index, token.ownerDied)
  arena.add('lockTaken', index, 1)
  await actor.linger()
  leave(actor, 'lockHolder', index)
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
  actor.require(token.unlock(), () => 'a lock was lost')
  actor.require(!token.unlock(), () => 'a lock was released twice')
  return true
}

async function executeLocked (actor, index) {
  const options = actor.options()
  let ran = false
  const result = await actor.attempt(options, () => actor.arena.locks[index].executeLocked(async (token) => {
    ran = true
    await holdLock(actor, index, token)
    if (actor.chance(0.2)) token.unlock()
    return 7
  }, options))
  actor.require(ran === (result === 7), () => `the callback ran: ${ran}, and the result was ${result}`)
  return ran ? true : undefined
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
  enter(actor, 'lockHolder', index, undefined)
  arena.add('lockTaken', index, 1)
  if (actor.chance(0.5)) await actor.linger()
  leave(actor, 'lockHolder', index)
  Atomics.store(arena.words, at, 0)
  Atomics.notify(arena.words, at, 1)
  return true
}

// ——— RwLock ———

function beginToRead (actor, index) {
  const { arena } = actor
  Atomics.or(arena.ledger, arena.at('reads', actor.number), 1 << index)
  const writer = arena.get('writer', index)
  actor.require(writer === 0 || arena.isDying(writer), () => `a reader of ${index} meets the writer ${writer}, which is alive`)
}

function endToRead (actor, index) {
  const { arena } = actor
  Atomics.and(arena.ledger, arena.at('reads', actor.number), ~(1 << index))
}

async function read (actor, index) {
  const options = actor.options()
  const rw = actor.arena.rws[index]
  const body = async (token) => {
    inherited(actor, 'rwInherited', index, token)
    beginToRead(actor, index)
    await actor.linger()
    endToRead(actor, index)
    return true
  }
  if (!actor.blocks && actor.chance(0.3)) return actor.attempt(options, () => rw.executeShared(body, options))
  const token = await take(actor, rw, ['lockShared', 'lockSharedAsync', 'tryLockShared'], options)
  if (token === undefined) return undefined
  await body(token)
  actor.require(token.unlock(), () => 'a share was lost')
  return true
}

async function write (actor, index) {
  const { arena } = actor
  const options = actor.options()
  const rw = arena.rws[index]
  const body = async (token) => {
    inherited(actor, 'rwInherited', index, token)
    enter(actor, 'writer', index, token.ownerDied)
    const used = ACTORS * (arena.get('lastId') + 1)
    for (let other = 0; other < used; other++) {
      const reads = arena.get('reads', other)
      actor.require((reads & (1 << index)) === 0 || other === actor.number || arena.isDying(other), () => `the writer of ${index} meets the reader ${other}, which is alive`)
    }
    arena.add('rwTaken', index, 1)
    await actor.linger()
    leave(actor, 'writer', index)
    return true
  }
  if (!actor.blocks && actor.chance(0.3)) return actor.attempt(options, () => rw.executeLocked(body, options))
  const token = await take(actor, rw, ['lock', 'lockAsync', 'tryLock'], options)
  if (token === undefined) return undefined
  await body(token)
  if (actor.chance(0.3)) {
    const shared = token.downgrade()
    beginToRead(actor, index)
    await actor.linger()
    endToRead(actor, index)
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
  const options = actor.options()
  const amount = 1 + actor.below(PERMITS)
  const cell = arena.at('uses', actor.number * COUNT.semaphore + index)
  const body = async () => {
    // First the sum. The thread may be ended by the call, but not between that one's work and the line behind it.
    arena.add('inUse', index, amount)
    arena.ledger[cell] = amount
    await actor.requireSoon(() => arena.get('inUse', index) <= PERMITS, () => `${arena.get('inUse', index)} permits of ${PERMITS} are in use`)
    arena.add('semaphoreTaken', index, 1)
    await actor.linger()
    arena.add('inUse', index, -amount)
    arena.ledger[cell] = 0
    return true
  }
  // What a dead thread has acquired by other methods does not come back.
  if (!actor.steady || (!actor.blocks && actor.chance(0.5))) return actor.attempt(options, () => semaphore.use(amount, body, options))
  const taken = actor.chance(0.1) ? semaphore.tryAcquire(amount) || undefined
    : await actor.attempt(options, () => actor.blocks ? semaphore.acquire(amount, options) : semaphore.acquireAsync(amount, options))
  if (taken === undefined) return undefined
  await body()
  semaphore.release(amount)
  return true
}

module.exports = [
  { name: 'lock', weight: 12, of: 'lock', bursts: true, run: lock },
  { name: 'executeLocked', weight: 6, of: 'lock', run: executeLocked },
  { name: 'the bare word of a lock', weight: 3, of: 'lock', needs: actor => actor.steady, run: bareLock },
  { name: 'read', weight: 8, of: 'rw', bursts: true, run: read },
  { name: 'write', weight: 6, of: 'rw', bursts: true, run: write },
  { name: 'use permits', weight: 8, of: 'semaphore', bursts: true, run: usePermits }
]
