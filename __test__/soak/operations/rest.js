'use strict'

// Disturbances: long pauses, garbage collections, memory that grows, installs, snapshots. Laws: a snapshot agrees with
// itself, tells of no thread that is gone, and of what this thread holds.

const { look } = require('../snapshot')
const { api } = require('../subject')
const { beginToHold, endToHold } = require('./holding')

module.exports = [
  {
    name: 'snapshot',
    weight: 0.5,
    of: 'lock',
    run (actor, index) {
      const token = actor.arena.locks[index].tryLock()
      if (token !== null) beginToHold(actor, 'lock', index, token)
      const { held, problem } = look(actor.arena)
      actor.require(problem === undefined, () => problem)
      if (token === null) return
      const isTold = held.some(
        ({ kind, mode, threadId }) => kind === 'AsyncLock' && mode === 'exclusive' && threadId === actor.threadId
      )
      actor.require(isTold, () => `a snapshot does not tell of lock ${index}, which its caller holds`)
      endToHold(actor, 'lock', index)
      actor.require(token.unlock(), () => 'a lock was lost')
    }
  },
  { name: 'pause', weight: 0.05, run (actor) { actor.pause() } },
  { name: 'collect garbage', weight: 0.1, run () { if (global.gc) global.gc() } },
  {
    name: 'grow',
    weight: 0.2,
    run (actor) {
      const { words } = actor.arena.buffers
      const length = words.byteLength + 4096
      if (!words.growable || length > words.maxByteLength) return
      try {
        words.grow(length)
      } catch (error) {
        actor.require(words.byteLength > length, () => `no other thread has grown it: ${error.message}`)
      }
    }
  },
  {
    name: 'install and uninstall',
    weight: 0.5,
    run (actor) {
      const target = {}
      actor.require(
        api.install({ target, force: true }) && typeof target.waitAsync === 'function',
        () => 'install changed nothing'
      )
      actor.require(api.uninstall(target) && target.waitAsync === undefined, () => 'uninstall changed nothing')
    }
  },
  {
    name: 'mistaken unlock',
    weight: 0.5,
    of: 'lock',
    // Locks whose words nobody takes barely: those of the queues.
    run (actor, index) {
      const { lock } = actor.arena.queues[index % actor.arena.queues.length]
      // Its own threads' locks may be released so: only a thread with one actor knows that it holds none.
      if (!actor.alone) return
      try {
        lock.unlock()
      } catch (error) {
        if (error.code !== 'ERR_NOT_LOCKED') throw error
        return
      }
      actor.violation('the lock of another thread was released by mistake')
    }
  },
  { name: 'die', weight: 0.3, needs: actor => !actor.steady, run: actor => actor.mayDie(1) }
]
