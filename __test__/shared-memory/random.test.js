'use strict'
// nodes: >=16 (older ones lack what the engines need)
// subjects: none
// timeout: 300

// Four processes with two threads each do what they like on shared memory, while they are killed, stopped, and their
// Workers terminated; see fixtures/shared-memory-actor.js. For longer: `npm run soak -- --only memory --minutes 10`.

const assert = require('assert')
const { fork } = require('child_process')
const path = require('path')
const { test } = require('../harness')
const api = require('../..')
const { AT, LATCHES, NUMBERS, PERMITS, latchAt } = require('../fixtures/shared-memory-actor')
const { memoryFolder, unavailable } = require('../fixtures/shared-memory')
const size = require('../fixtures/size')

const ACTOR = path.join(__dirname, '..', 'fixtures', 'shared-memory-actor.js')
const PROCESSES = 4
const minutes = process.argv.indexOf('--minutes')
const MILLISECONDS = minutes > 0 ? Number(process.argv[minutes + 1]) * 60000 : size(8000, 4000)
const GRACE = 90000

const random = below => Math.floor(Math.random() * below)
const sleep = milliseconds => new Promise(resolve => setTimeout(resolve, milliseconds))

const operationsOf = words => words.subarray(AT.COUNTS, AT.DOOMED).reduce((sum, count) => sum + count, 0)

/** Runs processes at random. Resolves to the memory, and what the processes said. */
async function run (t, milliseconds, takesLocks) {
  const file = path.join(memoryFolder(t), 'memory')
  const memory = require('../../processes').sharedMemory(file, 4 * AT.LENGTH)
  const words = new Int32Array(memory)
  const locks = [new api.AsyncLock(memory), new api.RwLock(memory, { byteOffset: 4 * AT.RW })]
  let [number, said, kills, stops] = [1, '', 0, 0]
  const living = new Set()
  const start = () => {
    const args = [file, 4 * AT.LENGTH, number, takesLocks].map(String)
    const child = fork(ACTOR, args, { stdio: ['ignore', 'inherit', 'pipe', 'ipc'] })
    child.number = number
    number += NUMBERS
    living.add(child)
    child.stderr.on('data', data => { said += data })
    child.ended = new Promise(resolve => child.on('exit', (code, signal) => {
      living.delete(child)
      if (signal !== 'SIGKILL' && code !== 0) said += `\nprocess ${child.pid} ended with ${signal || code}`
      resolve()
    }))
    t.after(() => child.kill('SIGKILL'))
  }
  /** Every actor of the process may be dead from now on. */
  const doom = child => {
    Atomics.add(words, AT.DEATHS, 2)
    for (let n = 0; n < NUMBERS; n++) Atomics.store(words, AT.DOOMED + child.number + n, 1)
  }
  for (let n = 0; n < PROCESSES; n++) start()
  const begin = Date.now()
  const goesOn = () => {
    const time = Date.now() - begin
    return words[AT.BROKEN] === 0 && (time < milliseconds || (time < GRACE && operationsOf(words) < 200))
  }
  while (goesOn()) {
    await sleep(random(100))
    // In case that all wait for one another.
    Atomics.add(words, AT.EPOCH, 1)
    api.notify(words, AT.EPOCH)
    if (words[AT.LATCH] < LATCHES) latchAt(api, memory, words[AT.LATCH]).countDown()
    // One that has just started does nothing yet.
    const active = [...living].filter(child => words[AT.COUNTS + child.number] > 0)
    if (active.length === 0) continue
    const lock = locks[random(locks.length)]
    for (let n = 0; n < 100 && lock.owner === null; n++) await new Promise(setImmediate)
    const { owner } = lock
    const isHolder = ({ pid }) => owner !== null && pid === owner.pid
    const child = active.find(isHolder) || active[random(active.length)]
    const way = random(5)
    if (way < 2 && takesLocks) {
      doom(child)
      child.kill('SIGKILL')
      await child.ended
      start()
      kills++
    } else if (way === 2) {
      child.kill('SIGSTOP')
      await sleep(random(10) === 0 ? 1500 : random(60))
      child.kill('SIGCONT')
      stops++
    } else if (child.connected) {
      child.send('terminate', () => {})
    }
  }
  words[AT.OVER] = 1
  const late = setTimeout(() => {
    said += `\n${living.size} processes do not end`
    for (const child of living) child.kill('SIGKILL')
  }, GRACE)
  await Promise.all([...living].map(child => child.ended))
  clearTimeout(late)
  return { memory, words, said, kills, stops }
}

test('four processes at random: the locks exclude, nothing is lost, and each death is told', {
  skip: unavailable, timeout: MILLISECONDS + 3 * GRACE
}, async t => {
  const { memory, words, said, kills, stops } = await run(t, MILLISECONDS, true)
  assert.strictEqual(said, '')
  assert.strictEqual(words[AT.BROKEN], 0)
  const operations = operationsOf(words)
  if (minutes > 0) console.log({ operations, kills, stops, deaths: words[AT.DEATHS], told: words[AT.TOLD] })
  assert.ok(kills > 0 && operations >= 200, `${operations} operations, ${kills} kills`)
  const options = { timeout: 5000 }
  const lock = new api.AsyncLock(memory)
  const rw = new api.RwLock(memory, { byteOffset: 4 * AT.RW })
  const semaphore = new api.Semaphore(memory, { byteOffset: 4 * AT.SEMAPHORE, permits: PERMITS })
  for (const [token, first] of [
    [await lock.lockAsync(options), AT.LOCKED], [await rw.lockAsync(options), AT.WRITTEN]
  ]) {
    if (!token.ownerDied) assert.strictEqual(words[first + 1], words[first + 2])
    token.unlock()
  }
  ;(await semaphore.holdAsync(PERMITS, options)).unlock()
  for (const told of [AT.TOLD, AT.REWRITTEN]) assert.ok(words[told] <= words[AT.DEATHS], 'who is told of no death')
  assert.deepStrictEqual([lock.waiters, rw.waiters, semaphore.waiters], [0, 0, 0])
  assert.deepStrictEqual(Array.from([AT.LOCK, AT.RW, AT.SEMAPHORE], word => words[word]), [0, 0, 0])
})

test('without locks they are caught at once', { skip: unavailable, timeout: GRACE }, async t => {
  const { words } = await run(t, GRACE / 2, false)
  assert.strictEqual(words[AT.BROKEN], 1)
})
