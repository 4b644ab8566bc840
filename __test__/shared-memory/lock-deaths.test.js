'use strict'
// nodes: >=16 (older ones lack what the engines need)
// subjects: force
// timeout: 300

// A thread that ends at any statement by which JavaScript takes and frees a lock in memory of several processes, or
// stands there while another process comes.

const assert = require('assert')
const path = require('path')
const { test } = require('../harness')
const { api: { AsyncLock, snapshot } } = require('../subject')
const { until } = require('../fixtures/queue-toolbox')
const { memoryFolder, unavailable } = require('../fixtures/shared-memory')
const { startProcess } = require('../fixtures/shared-memory-process')
const { atEachPoint, startVictim } = require('../fixtures/victims')
const { sharedMemory } = require('../../processes')

const [AT, GO] = [1, 2]
const LENGTH = 64

for (const way of ['lock', 'token', 'callback']) {
  for (const dies of [true, false]) {
    const what = dies ? 'ends' : 'stands'
    const options = { skip: unavailable, timeout: 120000 }
    test(`${way}: beside another process, a thread that ${what} at any statement loses no lock`, options, async t => {
      const told = []
      const file = path.join(memoryFolder(t), 'memory')
      const lock = new AsyncLock(sharedMemory(file, LENGTH))
      const other = await startProcess(t, file, LENGTH)
      await atEachPoint(1, async point => {
        const control = new Int32Array(new SharedArrayBuffer(8))
        const settings = { sab: lock.sab, control, dies, way, point, shared: true }
        const victim = await startVictim(t, 'free-lock-victim.js', settings)
        victim.begin()
        await until(() => Atomics.load(control, 0) === AT || victim.isOver, 'it stands there, or is over')
        if (victim.isOver) return victim.isDone
        const wasHeld = control[1] === AsyncLock.LOCKED
        const ownerDied = other.run(async ({ api, memory }) => {
          const token = await new api.AsyncLock(memory).lockAsync()
          const { ownerDied } = token
          token.unlock()
          return ownerDied
        })
        Atomics.store(control, 0, GO)
        Atomics.notify(control, 0)
        await victim.over()
        if (dies) await victim.ended
        assert.strictEqual(await ownerDied, dies && wasHeld, `point ${point}`)
        told.push(wasHeld)
        const { held, waiting } = snapshot()
        assert.deepStrictEqual([held, waiting], [[], []], `point ${point}`)
        const next = lock.tryLock()
        assert.strictEqual(next !== null && next.ownerDied, false, `point ${point}`)
        next.unlock()
        assert.strictEqual(lock.owner, null)
        if (!dies) victim.terminate()
        return false
      })
      // Before it took the lock, while it had it, and behind the release.
      assert.ok(!told[0] && told.includes(true) && !told[told.length - 1], told.join())
    })
  }
}
