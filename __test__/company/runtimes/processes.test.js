// subjects: export
'use strict'

// Bun and Deno: the locks of several processes, by files.

const assert = require('assert')
const { spawn } = require('child_process')
const fs = require('fs')
const path = require('path')
const { Worker } = require('worker_threads')
const { test } = require('../../harness')
const { scratchFolder } = require('../../fixtures/entries/folders')
const { files, processLocks } = require('../../../processes')

const DENO = process.versions.deno !== undefined
const ENTRY = require.resolve('../../../processes')
const PROGRAM = path.join(__dirname, 'fixtures', 'lock-process.cjs')

/** Runs a process with a role; resolves once it has said something, or has ended. */
function start (t, role, folder) {
  const args = [...(DENO ? ['run', '-A'] : []), PROGRAM, role, folder, ENTRY]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  t.after(() => { child.kill('SIGKILL') })
  const ended = new Promise(resolve => child.on('exit', (code, signal) => resolve({ code, signal })))
  const said = new Promise(resolve => child.stdout.once('data', resolve))
  return { child, ended, said }
}

test('processes that increment a number: nothing is lost, and each ends by itself', async t => {
  const folder = scratchFolder(t)
  fs.writeFileSync(path.join(folder, 'number'), '0')
  const members = Array.from({ length: 3 }, () => start(t, 'counts', folder))
  for (const { ended } of members) assert.deepStrictEqual(await ended, { code: 0, signal: null })
  assert.strictEqual(fs.readFileSync(path.join(folder, 'number'), 'utf8'), '150')
})

test('a holder that is killed: the next one sees the death; attempts, timeouts and aborts before', async t => {
  const folder = scratchFolder(t)
  const holder = start(t, 'holds', folder)
  await holder.said
  const locks = processLocks(path.join(folder, 'locks'))
  assert.strictEqual(await locks.request('a', { ifAvailable: true }, lock => lock), null)
  const late = await locks.request('a', { timeout: 20 }, () => {}).catch(error => error)
  assert.strictEqual(late.code, 'ERR_TIMEOUT')
  assert.ok(late.message.includes(`held by process ${holder.child.pid}`), late.message)
  const controller = new AbortController()
  const aborted = locks.request('a', { signal: controller.signal }, () => {})
  controller.abort()
  assert.strictEqual((await aborted.catch(error => error)).name, 'AbortError')
  const next = locks.request('a', ({ ownerDied }) => ownerDied)
  holder.child.kill('SIGKILL')
  assert.strictEqual(await next, true)
  assert.strictEqual(await locks.request('a', { mode: 'shared' }, ({ ownerDied }) => ownerDied), false)
})

test('a worker blocks for a lock; states are flushed', async t => {
  const folder = scratchFolder(t)
  const locks = processLocks(path.join(folder, 'locks'))
  const held = await locks.hold('a')
  const worker = new Worker(PROGRAM, { workerData: ['blocks', folder, ENTRY] })
  const told = new Promise(resolve => worker.once('message', resolve))
  await new Promise(resolve => worker.once('online', resolve))
  await held.unlock()
  assert.strictEqual(await told, false)
  const durable = processLocks(files(path.join(folder, 'durable'), { durable: true }))
  assert.ok(await durable.request('a', ({ token }) => token > 0))
})
