'use strict'
// nodes: >=16 (older ones lack what the engines need)
// subjects: none

// What a process that waits does meanwhile: it sleeps, but looks each second in case that nobody could ring it.

const assert = require('assert')
const fs = require('fs')
const path = require('path')
const { test } = require('../harness')
const inside = require('../fixtures/inside')
const { runForJSON } = require('../fixtures/run-node')
const { unavailable } = require('../fixtures/shared-memory')
const { startProcesses, until } = require('../fixtures/shared-memory-process')

const LENGTH = 65536
/** The fields of a record, in units of four bytes: see core/src/mapped/words/mod.rs. */
const [OWNER, WAITING, WAITS] = [2, 4, 74]
/** Where a file has its records, how many those are, and how many bytes each has; behind them are the news of each. */
const [RECORDS_AT, RECORDS, RECORD] = [8192, 1024, 832]

const start = (t, count) => startProcesses(t, LENGTH, count)

/** How often the process's threads for waiting have gone to sleep. */
function sleepsOf (pid) {
  return fs.readdirSync(`/proc/${pid}/task`).reduce((sum, thread) => {
    const status = fs.readFileSync(`/proc/${pid}/task/${thread}/status`, 'utf8')
    const [, name] = /^Name:\s*(.+)$/m.exec(status)
    if (!name.startsWith('atomics-')) return sum
    return sum + Number(/^voluntary_ctxt_switches:\s*(\d+)/m.exec(status)[1])
  }, 0)
}

/** The record of the first word, which others write now as if they had been stopped before they rang. */
function recordOf (words) {
  const { binding, floats } = inside('agent/find-agent').agent().native
  const record = new Int32Array(binding.shareWord(binding.addressOf(words.subarray(0, 1))))
  return { record, owning: floats[inside('agent/registers').COUNT] }
}

for (const count of [1, 1000]) {
  test(`a process that waits for ${count} of another's locks wakes once a second`, async t => {
    if (unavailable) return t.skip(unavailable)
    const { processes: [holder, waiter] } = await start(t, 2)
    const lockAll = ({ api, memory, kept }, count) => {
      const locks = Array.from({ length: count }, (_, n) => new api.AsyncLock(memory, { byteOffset: 4 * n }))
      kept.claims = locks.map(lock => lock.lockAsync())
    }
    await holder.run(lockAll, count)
    await waiter.run(lockAll, count)
    // The service looks once at the words of new claims.
    await new Promise(resolve => setTimeout(resolve, 500))
    const before = sleepsOf(waiter.pid)
    await new Promise(resolve => setTimeout(resolve, 3000))
    const sleeps = sleepsOf(waiter.pid) - before
    assert.ok(sleeps > 0 && sleeps <= 5, `${sleeps} in three seconds`)
  })
}

test('a lock whose holder is stopped before it rings goes on all the same', async t => {
  if (unavailable) return t.skip(unavailable)
  const { words, processes: [other] } = await start(t, 1)
  const { record, owning } = recordOf(words)
  record[OWNER] = owning
  words[0] = 1
  const locked = other.run(({ api, memory }) => new api.AsyncLock(memory).lockAsync().then(() => 'locked'))
  await until(() => record[WAITING] !== 0)
  words[0] = 0
  record[OWNER] = 0
  assert.strictEqual(await locked, 'locked')
})

test('a notification whose process is stopped before it rings arrives all the same', async t => {
  if (unavailable) return t.skip(unavailable)
  const { words, processes: [other] } = await start(t, 1)
  const { record } = recordOf(words)
  const notified = other.run(({ api, words }) => api.waitAsync(words, 0, 0).value)
  const waits = record.subarray(WAITS, WAITS + 2 * 64)
  await until(() => waits.indexOf(1) >= 0)
  const process = waits.indexOf(1)
  waits[process + 1] = 1
  assert.strictEqual(await notified, 'ok')
  assert.deepStrictEqual([waits[process], waits[process + 1]], [0, 0])
})

test('news of a process that is killed before it rings do not silence those of others', async t => {
  if (unavailable) return t.skip(unavailable)
  const { file, memory, words, processes: [other] } = await start(t, 1)
  const { AsyncLock } = require('../..')
  const lock = new AsyncLock(memory)
  const token = lock.tryLock()
  const { record } = recordOf(words)
  const locked = other.run(({ api, memory }) => new api.AsyncLock(memory).lockAsync().then(() => 'locked'))
  await until(() => record[WAITING] !== 0 || record[WAITING + 1] !== 0)
  const process = record[WAITING] !== 0 ? Math.log2(record[WAITING] >>> 0) : 32 + Math.log2(record[WAITING + 1] >>> 0)
  const bytes = fs.readFileSync(file)
  const index = Array.from({ length: RECORDS }).findIndex((_, n) => bytes[RECORDS_AT + n * RECORD] !== 0)
  const at = RECORDS_AT + RECORDS * RECORD + 8 * index + (process >> 3)
  const opened = fs.openSync(file, 'r+')
  t.after(() => fs.closeSync(opened))
  const news = Buffer.alloc(1)
  for (let n = 0; n < 3; n++) {
    news[0] = 1 << (process & 7)
    fs.writeSync(opened, news, 0, 1, at)
    await until(() => fs.readSync(opened, news, 0, 1, at) === 1 && news[0] === 0)
  }
  token.unlock()
  assert.strictEqual(await locked, 'locked')
})

test('the thread of a process that asked for memory in vain sleeps', async t => {
  if (unavailable) return t.skip(unavailable)
  const states = await runForJSON(t, ['-e', `
    const fs = require('fs')
    const { sharedMemory } = require(${JSON.stringify(path.join(__dirname, '..', '..', 'processes'))})
    try { sharedMemory('/nowhere/memory', 8) } catch ({ code }) { if (code !== 'ENOENT') throw new Error(code) }
    const look = () => fs.readdirSync('/proc/self/task')
      .map(thread => fs.readFileSync('/proc/self/task/' + thread + '/status', 'latin1'))
      .filter(status => /^Name:\\s*atomics-watcher$/m.test(status)).map(status => /^State:\\s*(.)/m.exec(status)[1])
    const states = []
    const looks = setInterval(() => {
      states.push(...look())
      if (states.length < 20) return
      clearInterval(looks)
      console.log(JSON.stringify(states))
    }, 20)`])
  assert.ok(states.slice(10).includes('S'), states.join(' '))
})
