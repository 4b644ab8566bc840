'use strict'
// nodes: >=16 (older ones lack what the engines need)

// The lines of locks of files: their order, what gives up, who is suspended, and more waits than there is room for.

const assert = require('assert')
const fs = require('fs')
const path = require('path')
const { test } = require('../harness')
const { ENTRY, NO_ORDER, scratchFolder, startMember, startMembers } = require('../fixtures/lock-processes')

const PROC = process.platform !== 'linux' && 'only Linux lists threads and descriptors, and says who is suspended'
const shared = { mode: 'shared' }

/** Resolves once a condition holds. */
async function until (condition) {
  while (!await condition()) await new Promise(resolve => setTimeout(resolve, 5))
}

/** Counts the threads and descriptors of a process. */
const rooms = ({ pid }) => ['task', 'fd'].map(what => fs.readdirSync(`/proc/${pid}/${what}`).length)

/** Counts how often each thread of a name has gone to sleep. */
function sleeps ({ pid }, name) {
  const folder = `/proc/${pid}/task`
  const textOf = (thread, file) => fs.readFileSync(path.join(folder, thread, file), 'utf8')
  const threads = fs.readdirSync(folder).filter(thread => textOf(thread, 'comm').trim() === name)
  return threads.map(thread => Number(/^voluntary_ctxt_switches:\s*(\d+)/m.exec(textOf(thread, 'status'))[1]))
}

/** Holds so many names. */
const holdAll = ({ locks, kept }, names) => Promise.all(Array.from({ length: names }, async (_, n) => {
  kept[`name ${n}`] = await locks.hold(`name ${n}`)
}))

test('processes of both modes get the lock in the order in which they came', { skip: NO_ORDER }, async t => {
  const folder = scratchFolder(t)
  const modes = ['shared', 'shared', 'exclusive', 'shared', 'exclusive', 'shared', 'shared']
  const [holder, ...members] = await startMembers(t, folder, 1 + modes.length)
  await holder.hold('a')
  const all = []
  for (const [n, member] of members.entries()) {
    all.push(member.run(async ({ locks, fs, folder, sleep }, mode, number) => {
      await locks.request('a', { mode }, async () => {
        fs.appendFileSync(`${folder}/order`, number + ' ')
        await sleep(20)
      })
    }, modes[n], n))
    await member.waits('a')
  }
  await holder.release('a')
  await Promise.all(all)
  const order = fs.readFileSync(path.join(folder, 'order'), 'utf8').trim().split(' ').map(Number)
  // Those that share it write at the same time.
  const groups = [order.slice(0, 2).sort(), order[2], order[3], order[4], order.slice(5).sort()]
  assert.deepStrictEqual(groups, [[0, 1], 2, 3, 4, [5, 6]])
})

test('a writer that gave up once is passed by no reader when it waits again', async t => {
  const folder = scratchFolder(t)
  const [reader, writer, late] = await startMembers(t, folder, 3)
  await reader.hold('a', shared)
  for (const end of ['timeout', 'abort']) {
    await writer.run(({ locks }, how) => {
      const controller = new AbortController()
      if (how === 'abort') setTimeout(() => controller.abort(), 20)
      const options = how === 'abort' ? { signal: controller.signal } : { timeout: 20 }
      return locks.request('a', options, () => {}).catch(() => {})
    }, end)
    const writing = writer.pass('a')
    await writer.waits('a')
    assert.strictEqual(await late.pass('a', { mode: 'shared', ifAvailable: true }), null, end)
    const reading = late.hold('a', shared)
    await late.waits('a')
    await reader.release('a')
    const { token } = await writing
    assert.strictEqual((await reading).token, token, end)
    await reader.hold('a', shared)
    await late.release('a')
  }
})

test('a request that gave up leaves no thread, no descriptor and no place in the line', { skip: PROC }, async t => {
  const folder = scratchFolder(t)
  const NAMES = 40
  const [holder, waiter] = await startMembers(t, folder, 2)
  await holder.run(holdAll, NAMES)
  // With the thread that goes round, and its descriptors.
  await waiter.run(({ locks }) => locks.request('name 0', { timeout: 10 }, () => {}).catch(() => {}))
  await until(async () => (await waiter.run(({ locks }) => locks.query())).pending.length === 0)
  const [threads, descriptors] = rooms(waiter)
  const giveUp = {
    timeout: ({ locks }, name) => locks.request(name, { timeout: 10 }, () => {}).catch(() => {}),
    abort: async ({ locks, sleep }, name) => {
      const controller = new AbortController()
      const waiting = locks.request(name, { signal: controller.signal }, () => {}).catch(() => {})
      await sleep(5)
      controller.abort()
      await waiting
    },
    close: async ({ api, engine, sleep }, name) => {
      const locks = api.processLocks(engine)
      const waiting = locks.hold(name, shared).catch(() => {})
      await sleep(5)
      await locks.close()
      await waiting
    },
    requestSync: ({ require, folder }, name, entry) => new Promise((resolve, reject) => {
      const { Worker } = require('worker_threads')
      const worker = new Worker(`const { parentPort, workerData: [entry, folder, name] } = require('worker_threads')
        try {
          require(entry).processLocks(folder).requestSync(name, { timeout: 20 }, () => {})
        } catch ({ code }) {
          parentPort.postMessage(code)
        }`, { eval: true, workerData: [entry, folder, name] })
      worker.once('message', code => { if (code !== 'ERR_TIMEOUT') reject(new Error(code)) })
      worker.on('error', reject).on('exit', resolve)
    })
  }
  for (const [how, fn] of Object.entries(giveUp)) {
    const body = how === 'close' ? String(fn).replace('shared', '{ mode: "shared" }') : String(fn)
    const all = how === 'requestSync' ? 4 : NAMES
    for (let n = 0; n < all; n++) {
      await waiter.run(eval(`(${body})`), `name ${n}`, ENTRY) // eslint-disable-line no-eval
    }
    // A thread may not have been idle when the next request came.
    await until(() => rooms(waiter)[0] <= threads + 2 && rooms(waiter)[1] <= descriptors)
    assert.deepStrictEqual((await waiter.run(({ locks }) => locks.query())).pending, [], how)
  }
  assert.strictEqual((await holder.run(({ locks }) => locks.query())).held.length, NAMES)
})

/** Whether all threads of a process are suspended. */
function isSuspended (pid) {
  const threads = `/proc/${pid}/task`
  const statusOf = thread => fs.readFileSync(`${threads}/${thread}/status`, 'utf8')
  return fs.readdirSync(threads).every(thread => /^State:\s+T/m.test(statusOf(thread)))
}

test('a lock that is free is taken although the first in line is suspended', { skip: PROC }, async t => {
  const folder = scratchFolder(t)
  const [holder, first, next, last] = await startMembers(t, folder, 4)
  for (const options of [{}, shared]) {
    await holder.hold('a')
    const waiting = first.pass('a', options)
    await first.waits('a')
    const behind = next.hold('a')
    await next.waits('a')
    first.child.kill('SIGSTOP')
    // On a busy machine its threads go on for a moment.
    await until(() => isSuspended(first.pid))
    // It passes nobody as long as the lock is held.
    assert.strictEqual(await last.pass('a', { ...options, ifAvailable: true }), null)
    await holder.release('a')
    await behind
    await next.release('a')
    assert.notStrictEqual(await last.pass('a', { ifAvailable: true }), null)
    assert.notStrictEqual(await last.pass('a', { mode: 'shared', ifAvailable: true }), null)
    assert.notStrictEqual(await last.pass('a', { mode: 'shared' }), null)
    first.child.kill('SIGCONT')
    assert.strictEqual((await waiting).ownerDied, false)
  }
})

test('more names are awaited than half of the descriptors allow: each has its turn, and the program its own', {
  skip: PROC
}, async t => {
  const folder = scratchFolder(t)
  const NAMES = 100
  const [holder, ...rivals] = await startMembers(t, folder, 3)
  const waiter = await startMember(t, folder, {}, undefined, 128)
  await holder.run(holdAll, NAMES)
  await waiter.run(({ locks, kept }, names) => {
    kept.waits = Array.from({ length: names }, (_, n) => locks.request(`name ${n}`, () => n))
  }, NAMES)
  await until(async () => (await waiter.run(({ locks }) => locks.query())).pending.length > 0)
  const left = await waiter.run(({ fs }) => {
    const opened = Array.from({ length: 20 }, () => fs.openSync('/dev/null'))
    for (const descriptor of opened) fs.closeSync(descriptor)
    return fs.readdirSync('/proc/self/fd').length
  })
  assert.ok(left < 100, `${left} descriptors`)
  assert.ok(await waiter.pass('free') !== null)

  // One of those that have come last, and one that others use all the time.
  const loops = rivals.map(rival => rival.run(async ({ locks, kept }) => {
    while (!kept.isOver) await locks.request('z', () => new Promise(resolve => setTimeout(resolve, 5)))
  }))
  for (let n = 0; n < 3; n++) await waiter.pass('z')
  await Promise.all(rivals.map(rival => rival.run(({ kept }) => { kept.isOver = true })))
  await Promise.all(loops)
  await holder.release(`name ${NAMES - 1}`)
  await waiter.run(({ kept }, last) => kept.waits[last], NAMES - 1)

  await holder.run(({ kept }) => Promise.all(Object.values(kept).map(lock => lock.unlock()).slice(0, -1)))
  const all = await waiter.run(({ kept }) => Promise.all(kept.waits))
  assert.deepStrictEqual(all, Array.from({ length: NAMES }, (_, n) => n))
  await waiter.run(({ locks }) => locks.close())
  waiter.child.disconnect()
  assert.deepStrictEqual(await waiter.ended, { code: 0, signal: null })
})

test('a process that waits wakes only to look at the files', { skip: PROC }, async t => {
  const [holder, waiter] = await startMembers(t, scratchFolder(t), 2)
  await holder.hold('a')
  const wait = waiter.pass('a')
  // One blocks, another one looks. The service has nothing to do: here it may not even have begun.
  const ofThreads = () => sleeps(waiter, 'waitasync files')
  const looks = async (count) => {
    const before = Math.max(...ofThreads())
    await until(() => Math.max(...ofThreads()) >= before + count)
  }
  await until(() => ofThreads().length > 1)
  await looks(2)
  const [before = 0] = sleeps(waiter, 'atomics-service')
  await looks(3)
  const [after = 0] = sleeps(waiter, 'atomics-service')
  assert.ok(after - before <= 1, `${after - before} wake-ups of the service`)
  await holder.release('a')
  await wait
})
