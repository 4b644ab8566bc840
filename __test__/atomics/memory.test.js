'use strict'

// long: it allocates much

// The memory and time that waits cost, and that no memory stays behind after them.

const assert = require('assert')
const { test } = require('../harness')
const { Atomics, api } = require('../subject')
const {
  linesOf,
  median,
  now,
  onAQuietMachine,
  prints,
  startWorker,
  until,
  words
} = require('../fixtures/queue-toolbox')
const size = require('../fixtures/size')

/**
 * Measures the growth of a process that calls `round(scope)` over and over: by how many MB memory outside of the heap,
 * and the heap, have grown from the time it has got used to it.
 */
async function growth (t, round, { warmUp = 3, rounds = size(7, 4) } = {}) {
  const [outside, heap] = await linesOf(t, async (scope) => {
    const { data: { source, warmUp, rounds }, require, say, sleep } = scope
    const round = require('vm').runInThisContext(`(${source})`)
    const array = scope.words(64)
    const notifyAll = () => array.forEach((_, index) => scope.Atomics.notify(array, index))
    const measure = async (times) => {
      for (let n = 0; n < times; n++) await round(Object.assign({ array, notifyAll }, scope))
      for (let pass = 0; pass < 3; pass++) {
        global.gc()
        await sleep(1)
      }
      return process.memoryUsage()
    }
    const before = await measure(warmUp)
    const between = await measure(rounds)
    const after = await measure(rounds)
    if (array.some((_, index) => scope.api.waiterCount(array, index) !== 0)) throw new Error('a waiter is left')
    // V8 reserves and returns memory of its heap at any time, above all for young objects, hence the flag.
    const outside = ({ rss, heapTotal }) => rss - heapTotal
    const inside = ({ heapUsed }) => heapUsed
    for (const size of [outside, inside]) {
      // A leak grows each time; memory that an allocator keeps for later does not.
      say(Math.min(size(between) - size(before), size(after) - size(between)) / 2 ** 20)
    }
  }, { source: String(round), warmUp, rounds }, { execArgv: ['--expose-gc', '--max-semi-space-size=2'] })
  return { outside: Number(outside), heap: Number(heap) }
}

const kinds = {
  'waits that were notified': async ({ Atomics, array, notifyAll }) => {
    const all = []
    for (let n = 0; n < 40000; n++) all.push(Atomics.waitAsync(array, n % 64, 0).value)
    notifyAll()
    await Promise.all(all)
  },
  'waits that were notified an hour before their timeouts': async ({ Atomics, array, notifyAll }) => {
    const all = []
    for (let n = 0; n < 40000; n++) all.push(Atomics.waitAsync(array, n % 64, 0, 3600000 + n % 1000).value)
    notifyAll()
    await Promise.all(all)
  },
  'pending waits that were let go and taken back': async ({ Atomics, api, array, notifyAll }) => {
    const all = []
    for (let n = 0; n < 40000; n++) all.push(Atomics.waitAsync(array, n % 64, 0, 3600000).value)
    for (const promise of all) api.unref(promise)
    for (const promise of all) api.ref(promise)
    notifyAll()
    await Promise.all(all)
  },
  'waits that timed out': async ({ Atomics, array }) => {
    const all = []
    for (let n = 0; n < 40000; n++) all.push(Atomics.waitAsync(array, n % 64, 0, 1 + n % 20).value)
    await Promise.all(all)
  },
  'waits that ended while their signal lives on': async ({ require, array }) => {
    // Of every subject: an entry on the host's queue takes no signal.
    const api = require('../../pure')
    if (global.livingSignal === undefined) global.livingSignal = { aborted: false, addEventListener () {} }
    const options = { signal: global.livingSignal }
    const all = []
    for (let n = 0; n < 20000; n++) {
      all.push(
        api.waitAsync(array, n % 64, 0, 1 + (n % 20), options).value,
        api.waitAsync(array, n % 64, 0, undefined, options).value
      )
    }
    for (let index = 0; index < 64; index++) api.notify(array, index, 400)
    for (let index = 0; index < 64; index++) api.notify(array, index)
    await Promise.all(all)
  },
  'waits that did not have to wait': ({ Atomics, array }) => {
    for (let n = 0; n < 100000; n++) Atomics.waitAsync(array, n % 64, 1, 1000)
    for (let n = 0; n < 100000; n++) Atomics.waitAsync(array, n % 64, 0, 0)
    for (let n = 0; n < 100000; n++) Atomics.notify(array, n % 64)
  },
  'buffers and arrays that were waited on': async ({ Atomics, sleep }) => {
    const all = []
    for (let n = 0; n < 1500; n++) {
      const buffer = new SharedArrayBuffer(8192)
      for (let offset = 0; offset < 40; offset += 4) {
        const array = new Int32Array(buffer, offset)
        all.push(Atomics.waitAsync(array, 0, 0).value)
        Atomics.notify(array, 0)
      }
    }
    await Promise.all(all)
    global.gc()
    await sleep(1)
  }
}
for (const kind of Object.keys(kinds)) {
  test(`no memory stays behind ${kind}`, { timeout: 60000 }, t => onAQuietMachine(async () => {
    const grown = await growth(t, kinds[kind])
    // 280 000 (160 000) leaked waits of 100 (125) bytes each would need 28 (20) MB.
    assert.ok(grown.outside < 20 && grown.heap < 4, JSON.stringify(grown))
  }))
}

const HAS_WEAK_REFERENCES = typeof WeakRef === 'function' && typeof FinalizationRegistry === 'function'
const NO_WEAK_REFERENCES = !HAS_WEAK_REFERENCES && 'this Node has no weak references'

test('the array that was used last is not kept', { skip: NO_WEAK_REFERENCES, timeout: 60000 }, t =>
  prints(t, ['0', '0', '0'], async ({ Atomics, sleep, say }) => {
    const use = (...lengths) => lengths.map((length) => {
      const array = new Int32Array(new SharedArrayBuffer(length))
      for (let n = 0; n < 3; n++) {
        Atomics.notify(array, 0)
        Atomics.waitAsync(array, 0, 1)
      }
      return new global.WeakRef(array.buffer)
    })
    // Each time anew.
    for (let round = 0; round < 3; round++) {
      const buffers = use(4, 1 << 20, 4096)
      const kept = () => buffers.filter(buffer => buffer.deref() !== undefined).length
      for (let pass = 0; pass < 100 && kept() > 0; pass++) {
        await sleep(1)
        global.gc()
      }
      say(kept())
    }
  }, undefined, { execArgv: ['--expose-gc'] }))

test('the memory that 100 000 named locks needed is given back when they are released', { timeout: 60000 }, t =>
  prints(t, ['true', 'true', 'name 0'], async ({ api: { locks }, sleep, say }) => {
    const outside = () => process.memoryUsage().external
    const free = async () => {
      await sleep(1)
      await locks.request('another', () => {})
      global.gc()
    }
    await free()
    const before = outside()
    let release
    const held = new Promise(resolve => { release = resolve })
    const requests = Array.from({ length: 100000 }, (_, n) => locks.request(`name ${n}`, () => held))
    say(outside() - before > 2e6)
    release()
    await Promise.all(requests)
    for (let pass = 0; pass < 100 && outside() - before > 2e5; pass++) await free()
    say(outside() - before < 2e5)
    await locks.request('name 0', lock => { say(lock.name) })
  }, undefined, { execArgv: ['--expose-gc'] }))

const MANY = size(1000000, 200000)

test(
  `${MANY} waiters on a word: one is woken as fast as ever, and all end with their thread`,
  { timeout: 120000 },
  async t => {
    const array = words(2)
    const crowd = startWorker(t, { array, MANY }, ({ Atomics, data: { array, MANY } }) => {
      for (let n = 0; n < MANY; n++) Atomics.waitAsync(array, 0, 0, n % 3 === 0 ? 3600000 + n : undefined)
    })
    await crowd.done()
    assert.strictEqual(api.waiterCount(array, 0), MANY)

    let left = MANY
    await onAQuietMachine(() => {
      const time = index => {
        const start = now()
        const woken = Atomics.notify(array, index, 1)
        const elapsed = now() - start
        assert.strictEqual(woken, 1)
        return elapsed
      }
      const inCrowd = median(Array.from({ length: 500 }, () => time(0)))
      left -= 500
      const alone = median(Array.from({ length: 500 }, () => Atomics.waitAsync(array, 1, 0) && time(1)))
      assert.ok(inCrowd < 50 * alone + 0.05, `${inCrowd} ms instead of ${alone} ms`)
    })
    assert.strictEqual(api.waiterCount(array, 0), left)

    // One behind them all.
    const last = Atomics.waitAsync(array, 0, 0).value
    assert.strictEqual(api.waiterCount(array, 0), left + 1)
    const start = now()
    const ended = crowd.terminate()
    let longest = 0
    let over = false
    ended.then(() => {
      over = true
    })
    while (!over) {
      const start = now()
      Atomics.notify(array, 1)
      longest = Math.max(longest, now() - start)
      await new Promise(resolve => setImmediate(resolve))
    }
    assert.ok(now() - start < 20000, `${now() - start} ms`) // quadratic would be hours
    assert.ok(longest < 1000, `a notification of another word took ${longest} ms`)
    assert.strictEqual(api.waiterCount(array, 0), 1)
    assert.strictEqual(Atomics.notify(array, 0, 1), 1)
    assert.strictEqual(await last, 'ok')
  }
)

test('the end of a thread removes its waits from among those of another', { timeout: 60000 }, async t => {
  const array = words(2)
  const COUNT = 20000
  const [victim, other] = [0, 1].map(mine => startWorker(t, { array, COUNT, mine }, ({ Atomics, data }) => {
    const { array, COUNT, mine } = data
    for (let n = 0; n < COUNT / 10; n++) {
      // They take turns, ten each.
      while (Atomics.load(array, 1) % 2 !== mine) Atomics.wait(array, 1, Atomics.load(array, 1), 1)
      for (let each = 0; each < 10; each++) Atomics.waitAsync(array, 0, 0)
      Atomics.add(array, 1, 1)
      Atomics.notify(array, 1)
    }
  }))
  await Promise.all([victim.done(), other.done()])
  await until(() => api.waiterCount(array, 0) === 2 * COUNT, 'all are lined up')
  await victim.terminate()
  assert.strictEqual(api.waiterCount(array, 0), COUNT)
  assert.strictEqual(Atomics.notify(array, 0, COUNT - 1), COUNT - 1)
  assert.strictEqual(Atomics.notify(array, 0), 1)
})
