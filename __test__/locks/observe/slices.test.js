'use strict'
// timeout: 180

// Between two slices of a thread's sleep runs code that a program can reach. Whatever that does, the wait ends as it
// must.

const assert = require('assert')
const path = require('path')
const { test } = require('../../harness')
const { scratchFolder } = require('../../fixtures/entries/folders')
const { run } = require('../../fixtures/programs')

/** Blocks a thread in each of these, with a getter of the program's that is called between two slices. */
const OPERATIONS = ['AsyncLock', 'name', 'Condition', 'Latch', 'Queue']

/** Runs one thread per operation. `data`: the names, and what the getter does. */
async function attack ({ api, data: [operations, act], startWorker, tell, until, words }) {
  for (const operation of operations) {
    const [lock, own, condition] = [new api.AsyncLock(), new api.AsyncLock(), new api.Condition()]
    const latch = api.Latch.create({ count: 1 })
    const queue = api.Queue.create({ capacity: 1, messageSize: 16 })
    const token = lock.tryLock()
    const name = api.locks.tryHold('held')
    // How often the getter was called in a sleep; whether the wait has been interrupted; whether the thread sleeps.
    const seen = words(3)
    const data = { act, operation, seen, lock, own, condition, latch, queue }
    const thread = startWorker(data, ({ api, data, require }) => {
      const { act, operation, seen, lock, own, condition, latch, queue } = data
      Object.defineProperty(process, 'pid', {
        get () {
          if (Atomics.load(seen, 2) === 0) return 1
          Atomics.add(seen, 0, 1)
          // What Node-API makes of a termination, too.
          // eslint-disable-next-line no-throw-literal
          if (act === 'throws') throw null
          for (;;);
        }
      })
      const waits = {
        AsyncLock: () => new api.AsyncLock(lock).lock().locked,
        name: () => api.locks.hold('held').locked,
        Condition: () => new api.AsyncLock(own).executeLockedSync(token => new api.Condition(condition).wait(token)),
        Latch: () => new api.Latch(latch).wait() === undefined,
        Queue: () => new api.Queue(queue).take() === 'a message'
      }
      global.blocked = waits[operation]
      if (act !== 'is interrupted') return global.blocked()
      while (Atomics.load(seen, 0) === 0) {
        try {
          require('vm').runInThisContext('blocked()', { timeout: 1000 })
        } catch (error) {
          if (!/timed out/.test(error.message)) throw error
        }
      }
      Atomics.store(seen, 1, 1)
    })
    const waiting = () => api.snapshot().waiting.length
    await until(() => waiting() === 1, () => `${operation} waits`)
    Atomics.store(seen, 2, 1)
    await until(() => Atomics.load(seen, 0) > 0, () => `${operation} has a slice`)
    if (act === 'is terminated') await thread.terminate()
    if (act === 'is interrupted') await until(() => Atomics.load(seen, 1) === 1, operation)
    if (act !== 'throws' && waiting() > 0) throw new Error(`${operation} waits on`)
    token.unlock()
    name.unlock()
    condition.notify()
    latch.countDown()
    queue.tryPut('a message')
    if (act === 'throws') {
      tell(await thread.done())
    } else {
      // Nothing was given to the thread that does not wait any more.
      const free = [lock.tryLock(), own.tryLock(), api.locks.tryHold('held')]
      tell(free.every(token => token !== null && token.unlock()) && queue.tryTake() !== null)
    }
    await thread.terminate()
  }
}

for (const act of ['throws', 'is interrupted', 'is terminated']) {
  for (const profiles of [false, true]) {
    const title = `a function that is called between slices ${act}${profiles ? ', and waits are recorded' : ''}`
    test(title, async t => {
      const env = Object.assign({ ATOMICS_WAITASYNC_STALL: '20' },
        profiles && { ATOMICS_WAITASYNC_PROFILE: path.join(scratchFolder(t), 'waits.cpuprofile') })
      const { code, lines, stderr } = await run(t, { env, data: [OPERATIONS, act] }, attack)
      assert.deepStrictEqual([code, lines], [0, OPERATIONS.map(() => 'true')], stderr)
    })
  }
}
