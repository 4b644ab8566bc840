'use strict'

// subjects: export
// timeout: 300

// A thread that ends at any statement of the short way of a free lock, or stands there while another comes.

const assert = require('assert')
const { test } = require('../harness')
const { Atomics, api: { AsyncLock, snapshot } } = require('../subject')
const { startWorker, until } = require('../fixtures/queue-toolbox')
const { atEachPoint, startVictim, watched } = require('../fixtures/victims')

const [AT, GO] = [1, 2]

/** Others that want the lock: each resolves with whether it was told of a death, and gives the lock back. */
const SURVIVORS = {
  promise: async (t, lock) => {
    const token = await lock.lockAsync()
    const { ownerDied } = token
    assert.strictEqual(token.locked, true)
    token.unlock()
    return ownerDied
  },
  thread: (t, lock) => startWorker(t, lock.sab, ({ api, data }) => {
    const token = new api.AsyncLock(data).lock()
    const { ownerDied } = token
    if (!token.unlock()) throw new Error('it had lost the lock')
    return ownerDied
  }).done()
}

for (const way of ['lock', 'token', 'callback']) {
  for (const kind of Object.keys(SURVIVORS)) {
    for (const dies of [true, false]) {
      const what = dies ? 'ends' : 'stands'
      test(`${way}: beside a ${kind}, a thread that ${what} at any statement loses no lock`, t => (
        atEachPoint(1, async point => {
          const lock = new AsyncLock(new SharedArrayBuffer(4))
          const control = new Int32Array(new SharedArrayBuffer(8))
          const victim = await startVictim(t, 'free-lock-victim.js', { sab: lock.sab, control, dies, way, point })
          victim.begin()
          await until(() => Atomics.load(control, 0) === AT || victim.isOver, 'it stands there, or is over')
          if (victim.isOver) return victim.isDone
          const wasHeld = control[1] === AsyncLock.LOCKED
          const survivor = watched(SURVIVORS[kind](t, lock))
          if (wasHeld) await until(() => lock.waiters === 1, 'it waits')
          Atomics.store(control, 0, GO)
          Atomics.notify(control, 0)
          await victim.over()
          if (dies) await victim.ended
          await survivor.ended
          assert.strictEqual(survivor.value, dies && wasHeld, `point ${point}`)
          const { held, waiting } = snapshot()
          assert.deepStrictEqual([held, waiting], [[], []], `point ${point}`)
          const next = lock.tryLock()
          assert.strictEqual(next !== null && next.ownerDied, false, `point ${point}`)
          next.unlock()
          if (!dies) victim.terminate()
          return false
        })
      ))
    }
  }
}

test('the next holder is told of a thread that ended at a statement where it had the lock', async t => {
  const told = []
  await atEachPoint(1, async point => {
    const lock = new AsyncLock(new SharedArrayBuffer(4))
    const control = new Int32Array(new SharedArrayBuffer(8))
    const settings = { sab: lock.sab, control, dies: true, way: 'lock', point }
    const victim = await startVictim(t, 'free-lock-victim.js', settings)
    victim.begin()
    await until(() => Atomics.load(control, 0) === AT || victim.isOver, 'it stands there, or is over')
    if (victim.isOver) return victim.isDone
    Atomics.store(control, 0, GO)
    Atomics.notify(control, 0)
    await victim.ended
    const token = lock.tryLock()
    assert.strictEqual(token.ownerDied, control[1] === AsyncLock.LOCKED, `point ${point}`)
    told.push(token.ownerDied)
    token.unlock()
    return false
  }, 1)
  // Before it took the lock, while it had it, and behind the release.
  assert.ok(told.indexOf(true) > 3 && told.lastIndexOf(true) < told.length - 3, told.join())
})
