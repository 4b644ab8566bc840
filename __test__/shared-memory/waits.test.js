'use strict'
// subjects: export, installed, force
// nodes: >=16 (older ones lack what the engines need)

// `wait`, `notify` and `waitAsync` on memory of several processes.

const assert = require('assert')
const path = require('path')
const { test } = require('../harness')
const { runForJSON } = require('../fixtures/run-node')
const { unavailable } = require('../fixtures/shared-memory')
const { startProcesses, until } = require('../fixtures/shared-memory-process')
const { api } = require('../subject')

const LENGTH = 4096

const start = (t, count) => startProcesses(t, LENGTH, count)

/** In another process: waits by so many promises at the word, and counts their results. */
function waitTimes ({ api, words, kept }, index, times, timeout) {
  kept.results = { ok: 0, 'timed-out': 0, 'not-equal': 0 }
  kept.all = Promise.all(Array.from({ length: times }, () => {
    const { async, value } = api.waitAsync(words, index, 0, timeout)
    return Promise.resolve(value).then(result => { kept.results[result]++ }, () => {}).then(() => async)
  }))
}
const resultsOf = ({ kept }) => kept.all.then(() => kept.results)
const resultsSoFar = ({ kept }) => kept.results

test('a promise and a blocked thread of another process are notified and counted', async t => {
  if (unavailable) return t.skip(unavailable)
  const { words, processes: [other] } = await start(t, 1)
  for (const view of [words, new BigInt64Array(words.buffer)]) {
    const wide = view !== words
    const awaited = other.run(async ({ api, memory }, wide) => {
      const view = wide ? new BigInt64Array(memory) : new Int32Array(memory)
      const { async, value } = api.waitAsync(view, 1, wide ? BigInt(0) : 0)
      Atomics.store(view, 100, wide ? BigInt(1) : 1)
      return [async, await value]
    }, wide)
    await until(() => Number(view[100]) === 1)
    assert.strictEqual(api.notify(view, 1), 1)
    assert.deepStrictEqual(await awaited, [true, 'ok'])
    assert.strictEqual(api.notify(view, 1), 0)
    view[100] = wide ? BigInt(0) : 0
  }
  const blocked = other.run(({ inWorker }) => inWorker(({ api, words }) => api.wait(words, 1, 0)))
  let woken = 0
  await until(() => (woken += api.notify(words, 1)) > 0)
  assert.strictEqual(woken, 1)
  assert.strictEqual(await blocked, 'ok')
})

test('the installed functions reach other processes, also in a Worker that only received the buffer', async t => {
  if (unavailable) return t.skip(unavailable)
  const { file, words } = await start(t, 0)
  for (const install of ["require(root + '/force')", "require(root + '/pure').install({ force: true })"]) {
    words.fill(0)
    const said = runForJSON(t, ['-e', `
      const root = ${JSON.stringify(path.join(__dirname, '..', '..'))}
      ${install}
      const { Worker } = require('worker_threads')
      const memory = require(root + '/processes').sharedMemory(${JSON.stringify(file)}, ${LENGTH})
      new Worker(\`
        const { workerData } = require('worker_threads')
        const words = new Int32Array(workerData)
        const blocked = Atomics.wait(words, 1, 0)
        Atomics.waitAsync(words, 2, 0).value.then(awaited => {
          let woken = 0
          while ((woken = Atomics.notify(words, 3)) === 0);
          console.log(JSON.stringify([blocked, awaited, woken]))
        })\`, { eval: true, workerData: memory })`])
    let [first, second] = [0, 0]
    await until(() => (first = api.notify(words, 1)) > 0)
    await until(() => (second = api.notify(words, 2)) > 0)
    assert.deepStrictEqual([first, second, await api.waitAsync(words, 3, 0).value], [1, 1, 'ok'])
    assert.deepStrictEqual(await said, ['ok', 'ok', 1])
  }
})

test('who waits at one word more than the table has room for wakes when its value changes', async t => {
  if (unavailable) return t.skip(unavailable)
  const { words, processes: [other] } = await start(t, 1)
  const all = other.run(({ api, words }) => {
    const waits = []
    for (let n = 1; n < words.length; n++) waits.push(api.waitAsync(words, n, 0).value)
    words[0] = 1
    return Promise.all(waits).then(results => new Set(results).size)
  })
  await until(() => words[0] === 1)
  for (let n = 1; n < words.length; n++) {
    words[n] = 1
    api.notify(words, n)
  }
  assert.strictEqual(await all, 1)
})

test('notify counts no more waiters than it is asked for, and each of all processes once', async t => {
  if (unavailable) return t.skip(unavailable)
  const { words, processes } = await start(t, 3)
  await Promise.all(processes.map(other => other.run(waitTimes, 5, 10)))
  const own = Array.from({ length: 10 }, () => api.waitAsync(words, 5, 0).value)
  assert.strictEqual(api.notify(words, 5, 7), 7)
  assert.strictEqual(api.notify(words, 5, 25), 25)
  assert.strictEqual(api.notify(words, 5), 8)
  assert.strictEqual(api.notify(words, 5), 0)
  for (const other of processes) {
    assert.deepStrictEqual(await other.run(resultsOf), { ok: 10, 'timed-out': 0, 'not-equal': 0 })
  }
  assert.deepStrictEqual(new Set(await Promise.all(own)), new Set(['ok']))
})

test('as many waits end by a notification as notifications were counted, whatever times out meanwhile', async t => {
  if (unavailable) return t.skip(unavailable)
  const { words, processes } = await start(t, 2)
  for (let round = 0; round < 20; round++) {
    await Promise.all(processes.map(other => other.run(waitTimes, 5, 50, 3)))
    let counted = 0
    for (let n = 0; n < 60; n++) {
      counted += api.notify(words, 5, 1)
      if (n % 10 === 0) await new Promise(resolve => setTimeout(resolve, 1))
    }
    const results = await Promise.all(processes.map(other => other.run(resultsOf)))
    assert.strictEqual(results.reduce((sum, { ok }) => sum + ok, 0), counted)
    assert.strictEqual(api.notify(words, 5), 0)
  }
})

test('another value, a timeout and a signal end a wait as among threads', async t => {
  if (unavailable) return t.skip(unavailable)
  const { words, processes: [other] } = await start(t, 1)
  words[3] = 1
  const differs = await other.run(({ api, words }) => api.waitAsync(words, 3, 0))
  assert.deepStrictEqual(differs, { async: false, value: 'not-equal' })
  assert.strictEqual(await other.run(({ api, words }) => api.waitAsync(words, 3, 1, 5).value), 'timed-out')
  assert.strictEqual(await other.run(async ({ api, words }) => {
    const controller = new AbortController()
    const { value } = api.waitAsync(words, 3, 1, Infinity, { signal: controller.signal })
    controller.abort()
    return value.then(() => 'settled', error => error.name)
  }), 'AbortError')
  assert.strictEqual(api.notify(words, 3), 0)
})

test('a notification that a process takes to its death goes to a waiter of another one', async t => {
  if (unavailable) return t.skip(unavailable)
  const { words, processes: [victim, heir] } = await start(t, 2)
  await victim.run(waitTimes, 5, 2)
  victim.stop()
  assert.strictEqual(api.notify(words, 5, 2), 2)
  await heir.run(waitTimes, 5, 3)
  assert.strictEqual((await heir.run(resultsSoFar)).ok, 0)
  await victim.kill()
  for (let ok = 0; ok < 2;) ({ ok } = await heir.run(resultsSoFar))
  assert.strictEqual(api.notify(words, 5), 1)
  assert.strictEqual((await heir.run(resultsOf)).ok, 3)
})

test('a pending promise keeps its process alive, without a warning, unless it is unref\'d', async t => {
  if (unavailable) return t.skip(unavailable)
  const { file, words } = await start(t, 0)
  const program = (unref) => `
    const api = require(${JSON.stringify(path.join(__dirname, '..', '..'))})
    const { sharedMemory } = require(${JSON.stringify(path.join(__dirname, '..', '..', 'processes'))})
    const words = new Int32Array(sharedMemory(${JSON.stringify(file)}, ${LENGTH}))
    let end = 'unsettled', warned = false
    process.on('warning', () => { warned = true })
    const { value } = api.waitAsync(words, 7, 0)
    value.then(result => { end = result })
    if (${unref}) api.unref(value)
    words[8] = 1
    process.on('exit', () => console.log(JSON.stringify([end, warned])))`
  assert.deepStrictEqual(await runForJSON(t, ['-e', program(true)]), ['unsettled', false])
  words[8] = 0
  const held = runForJSON(t, ['-e', program(false)])
  await until(() => words[8] === 1)
  await until(() => api.notify(words, 7) === 1)
  assert.deepStrictEqual(await held, ['ok', false])
})
