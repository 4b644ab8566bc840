'use strict'
// timeout: 180

// ATOMICS_WAITASYNC_DUMP_FORMAT=json: a dump as lines of JSON; and how large dumps are, in either format.

const assert = require('assert')
const { test } = require('../../harness')
const { run } = require('../../fixtures/programs')

const needsSignals = { skip: process.platform === 'win32' && 'Windows has no such signals' }

/** Runs a program until a dump is written, and kills it. It gets the signal when it writes `signal`. */
async function dumpOf (t, { format = 'json', env = {}, data, isWhole }, fn) {
  let isSent = false
  let isOver = false
  const settings = { ATOMICS_WAITASYNC_DUMP: 'SIGQUIT', ATOMICS_WAITASYNC_DUMP_FORMAT: format }
  const result = await run(t, {
    env: Object.assign(settings, env),
    data,
    onOutput ({ child, lines, stderr }) {
      if (!isSent && lines.includes('signal')) {
        isSent = true
        child.kill('SIGQUIT')
      }
      if (isSent && !isOver && isWhole(stderr)) {
        isOver = true
        child.kill('SIGKILL')
      }
    }
  }, fn)
  assert.strictEqual(result.signal, 'SIGKILL', result.stderr.slice(-2000))
  return result
}

/** Makes a function that says whether as many lines are there as the first one says. It reads each part once. */
function linesOf () {
  let [read, found, expected] = [0, 0, NaN]
  return (stderr) => {
    const end = stderr.lastIndexOf('\n') + 1
    // A thread that is short of processor time may have been reported meanwhile.
    const lines = stderr.slice(read, end).split('\n').filter(line => line.startsWith('{'))
    read = end
    if (isNaN(expected) && lines.length > 0) {
      const { held, waiting, cycles } = JSON.parse(lines[0])
      expected = 1 + held + waiting + cycles
    }
    found += lines.length
    return found === expected
  }
}

test('each entry is a line with the fields that it has in a snapshot', needsSignals, async t => {
  for (const stall of ['0', '100']) {
    const env = { ATOMICS_WAITASYNC_STALL: stall }
    const { lines, stderr } = await dumpOf(t, { env, isWhole: linesOf() }, async scope => {
      const { api, heldLock, newLock, say, sleep, startWorker, tell, until } = scope
      const latch = api.Latch.create({ count: 1 })
      await startWorker(latch, ({ api, data, keep }) => { keep(new api.Latch(data)) }).exited
      const [a, b] = [heldLock('acc"ou\nnts\u202e'), newLock('orders')]
      const held = api.Semaphore.create({ permits: 3 }).tryHold(2)
      startWorker([b, a], ({ api, data }) => { for (const lock of data) new api.AsyncLock(lock).lock() })
      await until(() => a.waiters === 1)
      b.lockAsync()
      api.locks.request('a name', () => new Promise(() => {}))
      latch.waitAsync()
      process.removeAllListeners('warning')
      await until(() => api.snapshot().cycles.length === 1)
      await sleep(10)
      tell(api.snapshot())
      say('signal')
      setInterval(() => held, 1e6)
    })
    const json = stderr.split('\n').filter(line => line.startsWith('{')).map(line => JSON.parse(line))
    const expected = JSON.parse(lines[0])
    const [{ pid, dump, ...counts }, ...entries] = json
    assert.ok(pid > 0 && dump === 1)
    const sizes = { held: expected.held.length, waiting: expected.waiting.length, cycles: 1 }
    assert.deepStrictEqual(counts, sizes)
    const found = { held: [], waiting: [], cycles: [] }
    for (const { pid: its, dump: number, list, ...entry } of entries) {
      assert.deepStrictEqual([its, number], [pid, 1])
      found[list].push(list === 'cycles' ? entry.links : entry)
    }
    const untimed = value => JSON.parse(JSON.stringify(value), (key, value) => (
      key === 'milliseconds' && value !== null ? 'T' : value))
    assert.deepStrictEqual(untimed(found), untimed(expected), stderr)
    const ended = found.waiting.filter(({ ended }) => ended !== undefined)
    assert.deepStrictEqual(ended.map(({ kind, ended: [{ how }] }) => [kind, how]), [['Latch', 'end']], stderr)
    assert.strictEqual(found.held.every(({ taken }) => typeof taken === 'string'), stall !== '0', stderr)
  }
})

test('without holds and waits it is one line; another format is the text', needsSignals, async t => {
  const first = stderr => stderr.includes('\n')
  for (const [format, expected] of [
    [' JSON ', /^\{"pid":\d+,"dump":1,"held":0,"waiting":0,"cycles":0\}\n$/],
    ['', /^\(node:\d+\) \[ATOMICS_WAITASYNC_DUMP\] 0 held, 0 awaited\n$/],
    ['text', /^\(node:\d+\) \[ATOMICS_WAITASYNC_DUMP\] 0 held, 0 awaited\n$/]
  ]) {
    const { stderr } = await dumpOf(t, { format, isWhole: first }, ({ api, say }) => {
      api.snapshot()
      setInterval(() => {}, 1e6)
      say('signal')
    })
    assert.ok(expected.test(stderr), stderr)
  }
})

/** Waits for so many locks, so often in all, until it is killed. */
function waitForLocks ({ data: [count, locks], newLock, say }) {
  const all = Array.from({ length: locks }, () => newLock())
  for (const lock of all) lock.tryLock()
  for (let n = 0; n < count; n++) all[n % locks].lockAsync()
  setInterval(() => all, 1e6)
  say('signal')
}

for (const count of [10000, 100000]) {
  // On a busy machine a process that makes so many takes long.
  const options = Object.assign({ timeout: 120000 }, needsSignals)

  for (const locks of [1, 10000]) {
    test(`${count} waiters, ${locks} held: the text stays small`, options, async t => {
      // Its last line is one that is shown of all that are alike.
      const isWhole = stderr => /\n {2}awaited by .*\n\nATOMICS_WAITASYNC_STALL=.*\n$/.test(stderr)
      const { stderr } = await dumpOf(t, { format: 'text', data: [count, locks], isWhole }, waitForLocks)
      assert.ok(stderr.includes(`] ${locks} held, ${count} awaited\n`), stderr.slice(0, 200))
      const others = locks === 1 ? `(${count} times)` : `and ${locks - 1} more like it`
      assert.ok(stderr.includes(others), stderr.slice(0, 2000))
      assert.ok(stderr.length < 1000, `${count} ${locks}: ${stderr.length}`)
    })
  }

  test(`${count} waiters: JSON has a line for each`, options, async t => {
    const { stderr } = await dumpOf(t, { data: [count, 1], isWhole: linesOf() }, waitForLocks)
    assert.ok(stderr.length < 250 * count, `${count}: ${stderr.length}`)
  })
}
