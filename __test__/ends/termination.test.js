'use strict'
// subjects: export, installed, force

// long: it starts hundreds of workers

// The end of a thread, and of the process, while it waits: blocked, with promises pending, or in the middle of either.

const assert = require('assert')
const fs = require('fs')
const { Worker } = require('worker_threads')
const { test } = require('../harness')
const { Atomics, api } = require('../subject')
const size = require('../fixtures/size')
const slowness = require('../fixtures/slowness')
const watched = require('../fixtures/watched')
const {
  MAJOR, busy, median, now, onAQuietMachine, runChild, sleep, starved, startWorker, until, words
} = require('../fixtures/queue-toolbox')

// Where a blocked thread cannot watch its event loop's descriptor, it checks every 30 ms whether it has been
// terminated.
const PROMPTLY = watched ? 5 : 50

const NOT_WATCHED = !watched && 'it is not watched here'

/** How many times workers are loaded and terminated, and how often it is tried whether one takes a notification. */
const ROUNDS = Number(process.env.ROUNDS || size(300, 30))
const TRIES = size(10, 5)

/** Starts `count` threads, and waits until they block on a word. */
async function blockedThreads (t, array, count) {
  const threads = []
  for (let n = 0; n < count; n++) threads.push(startWorker(t, array, ({ Atomics, data }) => Atomics.wait(data, 0, 0)))
  await until(() => api.waiterCount(array, 0) === count, `${count} threads are blocked`)
  return threads
}

/** Tests bounds on time. */
function timed (title, skip, attempt = skip) {
  test(title, { timeout: 90000, skip: skip !== attempt && skip }, t => onAQuietMachine(() => attempt(t)))
}

async function timeOf (ending) {
  const start = now()
  await ending()
  return now() - start
}

timed('terminate() ends a blocked thread within 50 ms', async t => {
  const array = words(1)
  const blocked = []
  const idle = []
  const before = starved()
  for (let round = 0; round < 5; round++) {
    const [thread] = await blockedThreads(t, array, 1)
    const other = startWorker(t, () => { setTimeout(() => {}, 60000) })
    await other.done()
    await sleep(40 + 13 * round) // it has blocked for some time, not always the same
    blocked.push(await timeOf(thread.terminate))
    idle.push(await timeOf(other.terminate))
    assert.strictEqual(api.waiterCount(array, 0), 0)
  }
  const stall = (starved() - before) / 10
  assert.ok(Math.max.apply(null, blocked) < 5000, `${blocked} ms`)
  const times = `${blocked} ms; not blocked: ${idle} ms; no core: ${stall} ms`
  assert.ok(median(blocked) <= 50 + median(idle) + stall, times)
})

timed('terminate() ends a thread that has just blocked within 50 ms, even if none did for a while', async t => {
  const array = words(1)
  const blocked = []
  const before = starved()
  // The clock's thread stops after a second without sleepers.
  for (const idle of [1300, 0, 0, 1300, 0]) {
    await sleep(idle)
    const [thread] = await blockedThreads(t, array, 1)
    blocked.push(await timeOf(thread.terminate))
    assert.strictEqual(api.waiterCount(array, 0), 0)
  }
  assert.ok(Math.max.apply(null, blocked) < 5000, `${blocked} ms`)
  assert.ok(median(blocked) <= 50 + (starved() - before) / 5, `${blocked} ms`)
})

/** Whether another thread of the process runs, or would if it had a core. False where the system does not say. */
function anotherRuns () {
  if (!watched) return false
  const others = fs.readdirSync('/proc/self/task').filter(id => Number(id) !== process.pid)
  return others.some(id => {
    try {
      return /\) R/.test(fs.readFileSync(`/proc/self/task/${id}/stat`, 'utf8'))
    } catch (_) {
      return false // It has ended.
    }
  })
}

/** Whether a thread takes a notification soon after its termination, once no thread lacks a core any more. */
async function takesNotifications (array, start) {
  let taken = 0
  for (let round = 0; round < TRIES; round++) {
    const thread = await start()
    const ended = thread.terminate()
    busy(PROMPTLY)
    for (const end = now() + 5000; anotherRuns() && now() < end;) busy(1)
    taken += Atomics.notify(array, 0, 1)
    await ended
  }
  assert.ok(taken <= TRIES / 5, `${taken} of ${TRIES}`)
}

for (const blockedFor of [0, 5, 100]) {
  const what = `a thread that is terminated takes no notification ${PROMPTLY} ms later`
  timed(`${what}, blocked for ${blockedFor} ms before`, async t => {
    const array = words(1)
    return takesNotifications(array, async () => {
      const [thread] = await blockedThreads(t, array, 1)
      busy(blockedFor)
      return thread
    })
  })
}

// A heap snapshot signals the event loop as a termination does. As the loop of a blocked thread does not run, that
// signal stays, and the next one is not seen.
const NO_SNAPSHOT =
  typeof Worker.prototype.getHeapSnapshot !== 'function' && 'this Node takes no heap snapshot of a worker'
timed('terminate() ends a blocked thread within half a second after a heap snapshot of it', NO_SNAPSHOT, async t => {
  const array = words(1)
  const [thread] = await blockedThreads(t, array, 1)
  const snapshot = await thread.worker.getHeapSnapshot()
  await new Promise(resolve => snapshot.on('end', resolve).resume())
  await sleep(1600) // the slices of its sleep are as long as they get after that
  const before = starved()
  const time = await timeOf(thread.terminate)
  assert.ok(time <= 500 + starved() - before, `${time} ms`)
})

test('a blocked thread whose event loop gets many messages sleeps on', { timeout: 60000 }, async t => {
  const array = words(2)
  const thread = startWorker(t, array, ({ Atomics, data }) => Atomics.wait(data, 0, 0))
  await until(() => api.waiterCount(array, 0) === 1)
  for (let n = 0; n < 200; n++) {
    thread.worker.postMessage(n)
    if (n % 20 === 0) await sleep(2)
  }
  assert.strictEqual(api.waiterCount(array, 0), 1)
  assert.strictEqual(Atomics.notify(array, 0), 1)
  assert.strictEqual(await thread.done(), 'ok')
})

timed('a thread whose event loop turns between its waits is terminated as promptly', async t => {
  const array = words(1)
  return takesNotifications(array, async () => {
    const thread = startWorker(t, array, async ({ Atomics, data, sleep }) => {
      for (let n = 0; n < 3; n++) {
        Atomics.wait(data, 0, 0, 3)
        await sleep(3)
      }
      Atomics.wait(data, 0, 0)
    })
    await sleep(80)
    await until(() => api.waiterCount(array, 0) === 1)
    return thread
  })
})

timed('terminate() ends a blocked thread as promptly while timeouts follow one another', NOT_WATCHED, async t => {
  const array = words(2)
  const threads = await blockedThreads(t, array, 3)
  const timed = []
  for (let n = 0; n < 10000; n++) timed.push(Atomics.waitAsync(array, 1, 0, 500 + n).value)
  // Their slices have become long.
  await sleep(2500)
  const before = starved()
  const took = []
  for (const thread of threads) took.push(await timeOf(thread.terminate))
  const stall = starved() - before
  Atomics.notify(array, 1)
  await Promise.all(timed)
  assert.ok(Math.max(...took) < 100 + stall, `${took} ms; no core for ${stall} ms`)
})

test('a long wait leaves no task to the event loop', async t => {
  const array = words(1)
  const tasks = await startWorker(t, array, ({ Atomics, data, require }) => {
    const tasks = []
    const hook = require('async_hooks').createHook({ init (id, type) { tasks.push(type) } }).enable()
    for (let n = 0; n < 3; n++) Atomics.wait(data, 0, 0, 100)
    hook.disable()
    return tasks
  }).done()
  assert.deepStrictEqual(tasks, [])
})

const NO_NAMES = process.platform !== 'linux' && 'only Linux names the threads of a process'

test('one service thread serves all others', { skip: NO_NAMES }, async t => {
  const array = words(1)
  const [thread] = await blockedThreads(t, array, 1)
  await Atomics.waitAsync(array, 0, 0, 50).value
  await sleep(50)
  const nameOf = id => fs.readFileSync(`/proc/self/task/${id}/comm`, 'utf8').trim()
  const names = fs.readdirSync('/proc/self/task').map(nameOf)
  assert.deepStrictEqual(names.filter(name => /^atomics/.test(name)), ['atomics-service'])
  await thread.terminate()
})

timed('terminate() ends threads that wake each other again and again', async t => {
  const array = words(1)
  const times = []
  const before = starved()
  for (let round = 0; round < 3; round++) {
    array[0] = 0
    const threads = [0, 1].map(me => startWorker(t, { array, me }, ({ Atomics, data: { array, me } }) => {
      for (;;) {
        let turn
        while ((turn = Atomics.load(array, 0)) % 2 === me) Atomics.wait(array, 0, turn)
        Atomics.add(array, 0, 1)
        Atomics.notify(array, 0)
      }
    }))
    await until(() => Atomics.load(array, 0) > 1000, 'they do')
    times.push(await timeOf(() => Promise.all(threads.map(thread => thread.terminate()))))
    assert.strictEqual(api.waiterCount(array, 0), 0)
  }
  assert.ok(median(times) <= 150 + starved() - before, `${times} ms`)
})

timed('terminate() ends a thread that blocks again and again', async t => {
  const array = words(2)
  const times = []
  const before = starved()
  for (let round = 0; round < 3; round++) {
    array[1] = 0
    const thread = startWorker(t, array, ({ Atomics, data }) => {
      for (;;) {
        Atomics.wait(data, 0, 0, 0.2)
        Atomics.store(data, 1, 1)
      }
    })
    await until(() => array[1] === 1, 'the thread waits')
    await sleep(20)
    times.push(await timeOf(thread.terminate))
    assert.strictEqual(api.waiterCount(array, 0), 0)
  }
  assert.ok(median(times) <= 150 + starved() - before, `${times} ms`)
})

/** How many threads a process has that ends. */
const MANY = 8

/** Ends a process with blocked threads, by 'exit' or 'throw' in main. */
function endOfProcess (t, threads, how) {
  return runChild(t, async ({ Atomics, api, say, sleep, startWorker, until, words, data: { MANY, threads, how } }) => {
    const array = words(1)
    // As many threads that are not blocked, to end as well.
    const alive = () => { setTimeout(() => {}, 60000) }
    const others = Array.from({ length: MANY - threads }, () => startWorker(alive).done())
    for (let n = 0; n < threads; n++) {
      startWorker(array, ({ Atomics, data }) => { Atomics.wait(data, 0, 0, 60000) })
      // They do not check at the same moments whether they are to end.
      await sleep(7)
    }
    await Promise.all(others)
    await until(() => api.waiterCount(array, 0) === threads, 'all threads are blocked')
    await sleep(80)
    say('now')
    if (how === 'exit') process.exit(7)
    throw new Error('uncaught in main')
  }, { MANY, threads, how })
}

for (const how of ['exit', 'throw']) {
  const what = how === 'exit' ? 'process.exit()' : 'an uncaught exception in main'
  // The least of all attempts: other work only adds to a time.
  const times = { 0: Infinity, 1: Infinity, [MANY]: Infinity }
  timed(`${what} ends the process promptly although threads are blocked`, async t => {
    for (const threads of [0, 1, MANY]) {
      const { code, signal, stderr, heard, ended } = await endOfProcess(t, threads, how)
      assert.strictEqual(signal, null, stderr)
      assert.strictEqual(code, how === 'exit' ? 7 : 1, stderr)
      if (how === 'throw') assert.ok(/uncaught in main/.test(stderr), stderr)
      times[threads] = Math.min(times[threads], ended - heard[0])
    }
    assert.ok(times[1] <= times[0] + slowness * 50, JSON.stringify(times))
    // Where none is watched, one that ends makes the others check. Otherwise they would do so one after the other: 0.24
    // seconds in all.
    assert.ok(times[MANY] <= times[0] + slowness * (watched ? 50 : 100), JSON.stringify(times))
  })
}

/** Returns how often the process's other threads have gone to sleep. */
function timesSlept () {
  const others = fs.readdirSync('/proc/self/task').filter(id => Number(id) !== process.pid)
  const status = id => fs.readFileSync(`/proc/self/task/${id}/status`, 'utf8')
  return others.reduce((sum, id) => sum + Number(/^voluntary_ctxt_switches:\s*(\d+)$/m.exec(status(id))[1]), 0)
}

timed('20 threads that have just blocked cost less than 5 % of a core, and wake 100 times a second', async t => {
  const array = words(1)
  const threads = await blockedThreads(t, array, 20)
  await sleep(200) // what a start-up leaves behind
  // Their number is the package's; the processor time of one is the machine's, from 0.02 to 0.7 ms.
  const [slept, begin] = [watched && timesSlept(), now()]
  const shares = []
  for (let window = 0; window < 4; window++) {
    const start = now()
    const before = process.cpuUsage()
    await sleep(500)
    const { user, system } = process.cpuUsage(before)
    shares.push((user + system) / 1e3 / (now() - start))
  }
  const perSecond = watched && ((timesSlept() - slept) / (now() - begin)) * 1000
  const ended = await timeOf(() => Promise.all(threads.map(thread => thread.terminate())))
  const share = Math.min.apply(null, shares) // other work in the process only adds to it
  // Emulated instructions take a multiple of the time.
  assert.ok(share < slowness * 0.05, shares.map(share => `${(100 * share).toFixed(2)} %`).join(', '))
  if (!watched) return
  assert.ok(perSecond <= 100, `${perSecond}`)
  // They have not read the messages of their start, which must not hide the end.
  assert.ok(ended < slowness * 2000, `${ended} ms`)
})

timed('20 threads that have been blocked for long wake 5 times a second together', NOT_WATCHED, async t => {
  // A thread whose event loop is signalled after it has blocked sleeps in shorter slices: what its start still sends
  // comes before.
  const array = words(1)
  const block = ({ Atomics, data, sleep }) => sleep(1000).then(() => Atomics.wait(data, 0, 0))
  const threads = Array.from({ length: 20 }, () => startWorker(t, array, block))
  await until(() => api.waiterCount(array, 0) === 20, 'all threads are blocked')
  // Until then the slices of their sleep double.
  await sleep(9000)
  const [before, begin] = [timesSlept(), now()]
  await sleep(5000)
  const perSecond = ((timesSlept() - before) / (now() - begin)) * 1000
  await Promise.all(threads.map(thread => thread.terminate()))
  assert.ok(perSecond <= 5, `${perSecond}`)
})

test('the waiters of a dead thread are neither counted nor woken, and the waiters behind them are served', async t => {
  const array = words(1)
  const victims = [
    ({ Atomics, data }) => { for (let n = 0; n < 3; n++) Atomics.waitAsync(data, 0, 0) },
    ({ Atomics, data }) => { Atomics.wait(data, 0, 0) },
    ({ Atomics, data }) => { for (let n = 0; n < 3; n++) Atomics.waitAsync(data, 0, 0, 60000) }
  ].map(fn => startWorker(t, array, fn))
  await until(() => api.waiterCount(array, 0) === 7, 'all wait')
  const live = Atomics.waitAsync(array, 0, 0).value
  assert.strictEqual(api.waiterCount(array, 0), 8)
  for (const victim of victims) await victim.terminate()
  assert.strictEqual(api.waiterCount(array, 0), 1)
  assert.strictEqual(Atomics.notify(array, 0, 1), 1)
  assert.strictEqual(await live, 'ok')
  assert.strictEqual(Atomics.notify(array, 0), 0)
})

const ends = {
  'process.exit() in it': ({ Atomics, data, words }) => {
    for (const timeout of [undefined, 60000, 1]) Atomics.waitAsync(data, 0, 0, timeout)
    process.exit(0)
  },
  'process.exit() when a promise of it has settled': async ({ Atomics, data, words }) => {
    for (let n = 0; n < 50; n++) Atomics.waitAsync(data, 0, 0, 60000)
    const mine = words(1)
    const { value } = Atomics.waitAsync(mine, 0, 0)
    for (let n = 0; n < 5000; n++) Atomics.waitAsync(mine, 0, 0)
    Atomics.notify(mine, 0)
    await value
    process.exit(0)
  },
  'an uncaught exception': ({ Atomics, data }) => {
    Atomics.waitAsync(data, 0, 0)
    setImmediate(() => { throw new Error('as expected') })
  },
  'an uncaught exception where a promise settles': async ({ Atomics, data }) => {
    Atomics.waitAsync(data, 0, 0)
    await Atomics.waitAsync(data, 0, 0, 1).value
    process.nextTick(() => { throw new Error('as expected') })
  },
  'running out of work': ({ Atomics, api, data }) => {
    for (const timeout of [undefined, 60000]) api.unref(Atomics.waitAsync(data, 0, 0, timeout).value)
  }
}
for (const how of Object.keys(ends)) {
  test(`a thread that ends by ${how} leaves no waiter`, async t => {
    const array = words(1)
    const thread = startWorker(t, array, ends[how])
    thread.done().catch(error => assert.ok(/as expected|the thread ended/.test(error.message), error.stack))
    await thread.exited
    assert.strictEqual(api.waiterCount(array, 0), 0)
    assert.strictEqual(Atomics.notify(array, 0), 0)
  })
}

test('a thread that is terminated between its notification and its wake harms no other thread', async t => {
  const array = words(2)
  for (let round = 0; round < 5; round++) {
    const thread = startWorker(t, array, ({ Atomics, data, busy }) => {
      for (let n = 0; n < 1000; n++) Atomics.waitAsync(data, 0, 0)
      Atomics.notify(data, 1)
      busy(10000)
    })
    await Atomics.waitAsync(array, 1, 0).value
    assert.strictEqual(Atomics.notify(array, 0, 600), 600)
    await thread.terminate()
    assert.strictEqual(api.waiterCount(array, 0), 0)
  }
})

test('the process may end while promises are pending, notified, or due', async t => {
  for (const how of ['exit', 'throw', 'run dry']) {
    const { code, signal, stderr } = await runChild(t, ({ Atomics, api, busy, data, startWorker, words }) => {
      const array = words(3)
      for (let n = 0; n < 20000; n++) {
        const { value } = Atomics.waitAsync(array, n % 3, 0, n % 2 ? 1 + n % 7 : undefined)
        if (data === 'run dry') api.unref(value)
      }
      Atomics.notify(array, 0)
      if (data === 'run dry') return
      busy(4)
      if (data === 'throw') throw new Error('as expected')
      process.exit(0)
    }, how)
    assert.strictEqual(signal, null, stderr)
    assert.strictEqual(code, how === 'throw' ? 1 : 0, stderr)
  }
})

const timeout = 60000 + 300 * ROUNDS
test(`${ROUNDS} rounds of workers that end, with waits pending and notifications in flight`, { timeout }, async t => {
  const seed = Number(process.env.SEED || Date.now() % 1e9)
  console.log(`# seed ${seed}`)
  const { code, signal, lines, stderr } = await runChild(t, async scope => {
    const { Atomics, api, data: { MAJOR, ROUNDS, seed }, randomFrom, say, sleep, startWorker, words } = scope
    const WORDS = 16
    const AT_ONCE = 6
    const array = words(WORDS + 1) // the last one: whether it is over
    const random = randomFrom(seed)

    // Notifies as long as it lives, and blocks now and then.
    const notifier = startWorker(array, ({ Atomics, data: array, randomFrom }) => {
      const random = randomFrom(array.length)
      while (Atomics.load(array, array.length - 1) === 0) {
        for (let n = 0; n < 50; n++) Atomics.notify(array, Math.floor(16 * random()), 1 + Math.floor(3 * random()))
        Atomics.wait(array, Math.floor(16 * random()), 0, 0.3 * random())
      }
    })

    const victim = ({ Atomics, api, data: { array, seed }, randomFrom }) => {
      const random = randomFrom(seed)
      const index = () => Math.floor(16 * random())
      const lineUp = (count) => {
        for (let n = 0; n < count; n++) Atomics.waitAsync(array, index(), 0, random() < 0.5 ? 30 * random() : undefined)
      }
      const loop = () => {
        lineUp(10)
        Atomics.notify(array, index(), 3)
        setImmediate(loop)
      }
      lineUp(50)
      switch (seed % 6) {
        case 0: return
        case 1: for (;;) Atomics.wait(array, index(), 0, random() < 0.5 ? 5 * random() : undefined)
        case 2: return loop()
        case 3: return process.exit(0)
        case 4: throw new Error('as expected')
        case 5: for (let n = 0; n < 50; n++) api.unref(Atomics.waitAsync(array, index(), 0, 1000 * random()).value)
      }
    }

    let started = 0
    const succession = async () => {
      while (started < ROUNDS) {
        started++
        const thread = startWorker({ array, seed: Math.floor(2 ** 31 * random()) }, victim)
        thread.done().catch(error => {
          if (!/as expected|the thread ended/.test(error.message)) throw error
        })
        // Node 10 cannot terminate a thread that has not started yet: now and then "fn is not a function" ends the
        // process.
        const online = new Promise(resolve => thread.worker.once('online', resolve))
        if (MAJOR < 12) await Promise.race([thread.exited, online])
        // Before it has loaded the package, while it does, or later.
        const patience = 120 * random() ** 2
        await Promise.race([thread.exited, sleep(patience)])
        await thread.terminate()
      }
    }
    let over = false
    const keepNotifying = async () => {
      while (!over) {
        Atomics.notify(array, Math.floor(WORDS * random()), 2)
        if (random() < 0.1) await Atomics.waitAsync(array, Math.floor(WORDS * random()), 0, 2 * random()).value
        else await new Promise(resolve => setImmediate(resolve))
      }
    }
    const notifying = keepNotifying()
    await Promise.all(Array.from({ length: AT_ONCE }, succession))
    over = true
    await notifying
    Atomics.store(array, WORDS, 1)
    await notifier.exited
    let left = 0
    for (let index = 0; index <= WORDS; index++) left += api.waiterCount(array, index) + Atomics.notify(array, index)
    say(`${started} ${left}`)
  }, { MAJOR, ROUNDS, seed })
  assert.strictEqual(signal, null, `seed ${seed}: ${stderr}`)
  assert.strictEqual(code, 0, `seed ${seed}: ${stderr}`)
  assert.deepStrictEqual(lines, [`${ROUNDS} 0`], `seed ${seed}: ${stderr}`)
})
