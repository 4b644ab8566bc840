'use strict'

// A holder's death is remembered exactly while the lock's memory exists.

const assert = require('assert')
const { test } = require('../harness')
const { runChild } = require('../fixtures/queue-toolbox')
const slowness = require('../fixtures/slowness')

const WITHOUT = typeof WeakRef !== 'function' && 'this Node does not tell when an object has been collected'

/** The error of a program whose premise the system's allocator does not fulfil. */
const NEVER_AGAIN = 'no address has come again'

/** Runs `program(scope)` in a process, with functions that these programs share. */
async function run (t, program) {
  const { code, lines, stderr } = await runChild(t, `async (scope) => {
    const { api: { AsyncLock }, require, sleep, startWorker } = scope
    const binding = ${JSON.stringify(require.resolve('../../lib/agent/load-binding'))}
    const addressOf = (buffer) => require(binding).load().addressOf(new Uint8Array(buffer))
    // A thread that takes a lock on each of the buffers, and ends.
    const dieHolding = (buffers, kind = 'AsyncLock') => startWorker([buffers, kind], ({ api, data }) => {
      const [buffers, kind] = data
      for (const buffer of buffers) {
        const lock = new api[kind](buffer)
        lock.lock()
      }
      process.exit()
    }).exited
    const collect = async () => {
      for (let n = 0; n < 8; n++) {
        await sleep(10)
        global.gc()
      }
    }
    // Makes locks until some of them lie where others have lain. How many of those say that their holder has died.
    const locksAt = async (addresses, bytes, kind = AsyncLock) => {
      const reused = []
      for (let rounds = 0; reused.length === 0; rounds++) {
        if (rounds === 50) throw new Error(${JSON.stringify(NEVER_AGAIN)})
        await collect()
        const buffers = buffersOf(10, bytes)
        for (const buffer of buffers) {
          if (addresses.has(addressOf(buffer))) reused.push(new kind(buffer).tryLock().ownerDied)
        }
      }
      return reused.filter(Boolean).length
    }
    const buffersOf = (count, bytes) => Array.from({ length: count }, () => new SharedArrayBuffer(bytes))
    const LARGE = ${JSON.stringify(LARGE)}
    const own = { AsyncLock, LARGE, addressOf, binding, dieHolding, collect, locksAt, buffersOf }
    await (${program})(Object.assign(scope, own))
  }`, undefined, { execArgv: ['--expose-gc'] })
  const mayNotComeAgain = process.platform !== 'linux' || slowness > 1
  if (mayNotComeAgain && stderr.includes(`Error: ${NEVER_AGAIN}`))
    t.skip(`of this system, or its emulator: ${NEVER_AGAIN}`)
  assert.strictEqual(stderr, '')
  assert.strictEqual(code, 0)
  return lines
}

/** Tests that a program prints these lines. */
function says (title, skip, lines, program) {
  test(title, { skip, timeout: 60000 }, async t => assert.deepStrictEqual(await run(t, program), lines))
}

// As much memory as here, of which nothing is touched but the locks, is asked of the system and given back to it each
// time: so the same addresses soon come again. In the last page there is no room left: musl would place each block
// differently in what it has to spare.
const LARGE = [40, 41].map(megabytes => (megabytes << 20) - 32)

/** Makes 8 locks whose holder and memory go, and locks there. */
async function locksOnReusedMemory (scope) {
  const { LARGE, addressOf, api, buffersOf, dieHolding, locksAt, say } = scope
  for (const [n, kind] of ['AsyncLock', 'RwLock'].entries()) {
    const bytes = LARGE[n]
    const addresses = new Set()
    // In a function of its own, which leaves nothing on the stack.
    await (async () => {
      const buffers = buffersOf(8, bytes)
      const locks = buffers.map(buffer => new api[kind](buffer))
      for (const buffer of buffers) addresses.add(addressOf(buffer))
      await dieHolding(buffers, kind)
      say('told ' + locks[0].tryLock().ownerDied)
    })()
    say('told ' + await locksAt(addresses, bytes, api[kind]) + ' times')
  }
}

const TOLD_ONCE = ['told true', 'told 0 times', 'told true', 'told 0 times']

says(
  'a lock where a dead thread left another one, whose memory is gone, has no dead holder',
  WITHOUT,
  TOLD_ONCE,
  locksOnReusedMemory
)

says(
  'a fake setImmediate at the first lock holds up no report once it has gone',
  WITHOUT,
  ['true true'],
  async ({ AsyncLock, buffersOf, collect, require, say }) => {
    const timers = require('timers')
    const { setImmediate } = timers
    const isUsed = async use => {
      let isCalled = false
      timers.setImmediate = callback => {
        isCalled = true
        use(callback)
      }
      for (let n = 0; n < 50 && !isCalled; n++) {
        for (const buffer of buffersOf(4, 1024)) new AsyncLock(buffer).tryLock().unlock()
        await collect()
      }
      return isCalled
    }
    const fake = await isUsed(() => {})
    say(`${fake} ${await isUsed(setImmediate)}`)
  }
)

test('replacing WeakRef and FinalizationRegistry after the load changes nothing', { skip: WITHOUT }, async t => {
  const program = `async (scope) => {
    // Before Node 16, Node's own code uses the methods of the program's WeakMap.
    for (const name of ['WeakSet', 'WeakRef', 'FinalizationRegistry']) {
      if (typeof global[name] !== 'function') continue
      const { prototype } = global[name]
      for (const key of Object.getOwnPropertyNames(prototype)) {
        if (key !== 'constructor') prototype[key] = () => { throw new Error('called ' + key) }
      }
      global[name] = function () { throw new Error('made a ' + name) }
    }
    await (${locksOnReusedMemory})(scope)
  }`
  assert.deepStrictEqual(await run(t, program), TOLD_ONCE)
})

says(
  'a lock that is granted after a time limit of vm is held, and keeps its memory',
  WITHOUT,
  ['1 true true'],
  async scope => {
    const { AsyncLock, say, sleep, startWorker } = scope
    // On a busy machine, a short limit comes before the thread waits.
    for (let limit = 40; ; limit *= 2) {
      const sab = new SharedArrayBuffer(4)
      const lock = new AsyncLock(sab)
      const token = lock.tryLock()
      const thread = startWorker(limit, async ({ api, data: limit, post, receive, require, sleep }) => {
        const { threadId } = require('worker_threads')
        const held = () => api.snapshot().held.filter(hold => hold.threadId === threadId).length
        const contend = sab => {
          const context = require('vm').createContext({ lock: new api.AsyncLock(sab) })
          let isLate = false
          try {
            require('vm').runInContext('lock.lock()', context, { timeout: limit })
          } catch (error) {
            isLate = true
          }
          return { buffer: new global.WeakRef(sab), hit: isLate && held() === 1 }
        }
        // In calls of their own, which leave nothing on the stack.
        const arrived = receive().then(contend)
        post('ready')
        const { buffer, hit } = await arrived
        // Another claim, which waits in vain.
        try {
          new api.Semaphore(new SharedArrayBuffer(4)).acquire(1, { timeout: 1 })
        } catch (error) {}
        for (let n = 0; hit && n < 8; n++) {
          await sleep(10)
          global.gc()
        }
        return hit && { held: held(), kept: buffer.deref() !== undefined }
      })
      await thread.next()
      thread.worker.postMessage(sab)
      let outcome
      const over = thread.done().then(value => {
        outcome = value
      })
      while (lock.waiters === 0 && outcome === undefined) await sleep(1)
      // The thread sleeps past its limit.
      await sleep(limit + 15)
      token.unlock()
      await over
      await thread.exited
      if (!outcome) continue
      say([outcome.held, outcome.kept, lock.tryLock().ownerDied].join(' '))
      break
    }
  }
)

says(
  'the next lock on a memory sees the death, though no living thread made one',
  false,
  ['true,true,true'],
  async scope => {
    const { AsyncLock, buffersOf, collect, dieHolding, say } = scope
    const buffers = buffersOf(3, 4096)
    await dieHolding(buffers)
    await collect()
    // The next worker sees the death, and dies as well: the one after it sees that, too.
    await dieHolding(buffers.slice(0, 1))
    await collect()
    say(buffers.map(buffer => new AsyncLock(buffer).tryLock().ownerDied).join())
  }
)

says('a memory is not gone as long as one of its buffer objects is there', false, ['true'], async scope => {
  const { AsyncLock, addressOf, collect, dieHolding, require, say } = scope
  const { MessageChannel } = require('worker_threads')
  const { port1, port2 } = new MessageChannel()
  const lock = new AsyncLock(new SharedArrayBuffer(4096))
  const copy = () => new Promise(resolve => {
    port2.once('message', resolve)
    port1.postMessage(lock.sab)
  })
  await dieHolding([lock.sab])
  for (let n = 0; n < 20; n++) {
    const other = await copy()
    if (other === lock.sab || addressOf(other) !== addressOf(lock.sab)) throw new Error('it is not the same memory')
    String(new AsyncLock(other).locked)
  }
  await collect()
  say(String(lock.tryLock().ownerDied))
  port1.close()
})

says(
  'a thread that hears last of its memory does not see a death in an earlier one',
  WITHOUT,
  ['0 times'],
  async scope => {
    const { AsyncLock, LARGE, addressOf, buffersOf, collect, locksAt, say, startWorker } = scope
    const addresses = new Set()
    const worker = await (async () => {
      const buffers = buffersOf(8, LARGE[0])
      for (const buffer of buffers) {
        new AsyncLock(buffer) // eslint-disable-line no-new
        addresses.add(addressOf(buffer))
      }
      const worker = startWorker(buffers, ({ api, data, post }) => {
        global.tokens = data.map(buffer => new api.AsyncLock(buffer).lock())
        post('locked')
        setInterval(() => {}, 1000)
      })
      await worker.next()
      return buffers.length === 8 && worker
    })()
    await collect()
    await worker.terminate()
    say((await locksAt(addresses, LARGE[0])) + ' times')
  }
)

says(
  'a death is told as long as any thread keeps the memory, although it has made no lock there',
  false,
  ['true'],
  async scope => {
    const { AsyncLock, collect, dieHolding, say, startWorker } = scope
    const keeper = await (async () => {
      const lock = new AsyncLock(new SharedArrayBuffer(4096))
      const keeper = startWorker(lock.sab, async ({ data, post, receive }) => {
        await receive()
        post(data)
      })
      await dieHolding([lock.sab])
      return keeper
    })()
    await collect()
    keeper.worker.postMessage('give it')
    const next = startWorker(await keeper.next(), ({ api, data, post }) => {
      post(new api.AsyncLock(data).lock().ownerDied)
    })
    say(String(await next.next()))
  }
)

const many = { skip: WITHOUT, timeout: 120000 }

test('the end of many memories costs each no more than that of few, and is spread over many turns', many, async t => {
  const [line] = await run(t, async ({ AsyncLock, binding, buffersOf, collect, now, require, say }) => {
    const native = require(binding).load()
    const { loseMemory } = native
    const { setImmediate } = require('timers')
    const times = []
    let thisTurn = 0
    let mostInATurn = 0
    native.loseMemory = (base, objects) => {
      if (thisTurn++ === 0) setImmediate(() => { thisTurn = 0 })
      mostInATurn = Math.max(mostInATurn, thisTurn)
      const start = now()
      const result = loseMemory(base, objects)
      times.push(now() - start)
      return result
    }
    const drop = async (count) => {
      times.length = mostInATurn = 0
      for (const buffer of buffersOf(count, 4)) new AsyncLock(buffer).tryLock().abandon()
      while (times.length < 0.8 * count) {
        await collect()
        // Where nothing reports a collected object, it is found when locks are made on others.
        for (const buffer of times.length < 0.8 * count ? buffersOf(count / 4, 4) : [])
          String(new AsyncLock(buffer).locked)
      }
      times.sort((a, b) => a - b)
      return { median: times[times.length >> 1], mostInATurn }
    }
    say(JSON.stringify({ few: await drop(1000), many: await drop(40000) }))
  })
  const { few, many } = JSON.parse(line)
  assert.ok(many.median < 10 * few.median, line)
  assert.ok(many.mostInATurn < 40000 / 2, line)
})

const WITHOUT_PROOF = process.platform !== 'linux' && 'the system does not tell what is mapped'

for (const bytes of [4096, 1 << 20, 16 << 20]) {
  test(
    `a worker with ${bytes} bytes does not see the death of one that had others`,
    { skip: WITHOUT_PROOF },
    async t => {
      assert.deepStrictEqual(
        await run(
          t,
          `async ({ binding, say, startWorker }) => {
      const addresses = new Set()
      let reused = 0
      let told = 0
      for (let rounds = 0; reused < 4; rounds++) {
        if (rounds === 200) throw new Error(${JSON.stringify(NEVER_AGAIN)})
        const worker = startWorker({ binding, bytes: ${bytes} }, ({ api, data: { binding, bytes }, post, require }) => {
          // With one each, Node 10 needs up to 70 workers.
          const locks = Array.from({ length: 8 }, () => new api.AsyncLock(new SharedArrayBuffer(bytes)))
          post(locks.map(lock => [require(binding).load().addressOf(lock.i32a), lock.lock().ownerDied]))
          setTimeout(() => process.exit(), 1)
        })
        const seen = await worker.next()
        await worker.exited
        for (const [address, ownerDied] of seen) {
          if (addresses.has(address)) reused++
          if (ownerDied) told++
          addresses.add(address)
        }
      }
      say('told ' + told + ' times')
    }`
        ),
        ['told 0 times']
      )
    }
  )
}
