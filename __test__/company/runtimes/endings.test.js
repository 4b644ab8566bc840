// subjects: export
'use strict'

// Bun and Deno: what a thread or a process leaves behind that ends in the middle of something, and what keeps it from
// ending.

const assert = require('assert')
const { spawn } = require('child_process')
const path = require('path')
const { Worker } = require('worker_threads')
const { test } = require('../../harness')
const { api, entry } = require('../../subject')
const { sleep, until, words } = require('../../fixtures/queue-toolbox')

const { AsyncLock, waiterCount } = api
const DENO = process.versions.deno !== undefined
const ACTOR = path.join(__dirname, 'fixtures', 'actor.cjs')
/** Milliseconds. Far more than an end takes on a busy machine, and less than the waits that it ends. */
const SOON = 15000

/**
 * Starts a worker that plays a `role` with two words: a lock, and the second one; resolves when it is about to.
 */
async function startActor (t, role, memory) {
  const worker = new Worker(ACTOR, { workerData: { role, memory, entry } })
  t.after(() => worker.terminate())
  worker.on('error', () => {})
  await new Promise(resolve => worker.once('message', resolve))
  return worker
}

/** Runs a program of the fixtures as a process. */
function runProcess (t, role) {
  const args = [...(DENO ? ['run', '-A'] : []), path.join(__dirname, 'fixtures', 'process.cjs'), role, entry]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] })
  t.after(() => { child.kill('SIGKILL') })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => { output += text })
  return new Promise(resolve => child.on('close', (code, signal) => resolve({ code, signal, output })))
}

for (const role of ['holds', 'holds and exits', 'holds and throws', 'was granted']) {
  test(`a worker that ${role}: the next in line has the lock, and is told`, async t => {
    const memory = words(4)
    const lock = new AsyncLock(memory.buffer)
    const before = role === 'was granted' ? await lock.lockAsync() : null
    const worker = await startActor(t, role, memory)
    if (before !== null) {
      await until(() => waiterCount(memory, 0) === 1, 'the worker is in line')
      before.unlock()
      await until(() => memory[2] === 1, 'the worker has the lock')
    }
    const next = lock.lockAsync({ timeout: SOON })
    if (!/exits|throws/.test(role)) worker.terminate()
    const token = await next
    assert.strictEqual(token.ownerDied, true)
    token.unlock()
    assert.strictEqual((await lock.lockAsync()).ownerDied, false)
  })
}

test('a worker that awaits leaves the line when it is terminated', async t => {
  const memory = words(4)
  const worker = await startActor(t, 'awaits', memory)
  assert.strictEqual(waiterCount(memory, 1), 1)
  await worker.terminate()
  await until(() => waiterCount(memory, 1) === 0, 'it is no longer counted')
})

test(
  'a worker that blocks leaves the line when it is terminated',
  { skip: DENO && 'Deno ends no thread that is not in its event loop' },
  async t => {
    for (const role of ['waits', 'locks']) {
      const memory = words(4)
      const token = role === 'locks' ? await new AsyncLock(memory.buffer).lockAsync() : null
      const worker = await startActor(t, role, memory)
      const index = role === 'locks' ? 0 : 1
      await until(() => waiterCount(memory, index) === 1, 'it blocks')
      assert.strictEqual(await worker.terminate(), 1)
      assert.strictEqual(waiterCount(memory, index), 0)
      if (token !== null) token.unlock()
    }
  }
)

test(
  'a worker that is terminated while it blocks, and is granted the lock, dies with it',
  { skip: !DENO && 'such a worker has left the line' },
  async t => {
    const memory = words(4)
    const lock = new AsyncLock(memory.buffer)
    const token = await lock.lockAsync()
    const worker = await startActor(t, 'locks', memory)
    await until(() => waiterCount(memory, 0) === 1, 'it blocks')
    await worker.terminate()
    token.unlock()
    await until(() => waiterCount(memory, 0) === 0, 'it has the lock')
    assert.strictEqual((await lock.lockAsync({ timeout: SOON })).ownerDied, true)
  }
)

for (const [role, code] of Object.entries({
  'exits while workers block': 7,
  'exits while it holds': 8,
  'exits in a worker that holds': 0,
  'throws while workers block': 1
})) {
  test(`a process that ${role} ends with its exit code`, async t => {
    assert.deepStrictEqual(
      await runProcess(t, role).then(ended => [ended.code, ended.signal, code === 1 || ended.output]),
      [code, null, code === 1 || 'begun\n']
    )
  })
}

for (const [role, output] of Object.entries({
  'a wait with a timeout holds': 'begun\ntimed-out\nexit\n',
  'a wait that a worker may settle holds': 'begun\nok\nexit\n',
  'a wait that no thread can settle does not hold': 'begun\nexit\n',
  'a wait that the last worker leaves behind does not hold': 'begun\nexit\n',
  'a wait that is unref\'d does not hold': 'begun\nexit\n',
  'a request of a lock holds while a worker has it': 'begun\ntrue\nexit\n'
})) {
  test(`keep-alive: ${role} the process`, async t => {
    const ended = await runProcess(t, role)
    assert.deepStrictEqual([ended.code, ended.signal, ended.output], [0, null, output])
  })
}

test('a blocked thread times out, never early', async t => {
  for (const timeout of [0.5, 5, 40, 200]) {
    const memory = words(4)
    const begin = process.hrtime()
    assert.strictEqual(api.wait(memory, 0, 0, timeout), 'timed-out')
    const [seconds, nanoseconds] = process.hrtime(begin)
    assert.ok(seconds * 1e3 + nanoseconds / 1e6 >= timeout)
  }
  await sleep(0)
})
