// subjects: export
'use strict'

// Bun and Deno: the locks of several processes, by files and in memory.

const assert = require('assert')
const { spawn } = require('child_process')
const fs = require('fs')
const path = require('path')
const { Worker } = require('worker_threads')
const { test } = require('../../harness')
const { scratchFolder } = require('../../fixtures/entries/folders')
const { memoryFolder, noTable } = require('../../fixtures/shared-memory')
const { files, memory, processLocks } = require('../../../processes')

const DENO = process.versions.deno !== undefined
const ENTRY = require.resolve('../../../processes')
const PROGRAM = path.join(__dirname, 'fixtures', 'lock-process.cjs')

/** By the engine: how a folder for it is made, and why there is none. */
const ENGINES = {
  files: { make: files, folderOf: scratchFolder },
  memory: { make: memory, folderOf: memoryFolder, skip: noTable }
}

/** Runs a process with a role; resolves once it has said something, or has ended. */
function start (t, role, folder, engine) {
  const args = [...(DENO ? ['run', '-A'] : []), PROGRAM, role, folder, ENTRY, engine]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  t.after(() => { child.kill('SIGKILL') })
  const ended = new Promise(resolve => child.on('exit', (code, signal) => resolve({ code, signal })))
  const said = new Promise(resolve => child.stdout.once('data', resolve))
  return { child, ended, said }
}

for (const [engine, { make, folderOf, skip }] of Object.entries(ENGINES)) {
  test(`${engine}: processes that increment a number: nothing is lost, and each ends by itself`, { skip }, async t => {
    const folder = folderOf(t)
    fs.writeFileSync(path.join(folder, 'number'), '0')
    const members = Array.from({ length: 3 }, () => start(t, 'counts', folder, engine))
    for (const { ended } of members) assert.deepStrictEqual(await ended, { code: 0, signal: null })
    assert.strictEqual(fs.readFileSync(path.join(folder, 'number'), 'utf8'), '150')
  })

  test(`${engine}: a killed holder, the next one sees it; attempts, timeouts, aborts`, { skip }, async t => {
    const folder = folderOf(t)
    const holder = start(t, 'holds', folder, engine)
    await holder.said
    const locks = processLocks(make(path.join(folder, 'locks')))
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

  test(`${engine}: a worker blocks for a lock`, { skip }, async t => {
    const folder = folderOf(t)
    const locks = processLocks(make(path.join(folder, 'locks')))
    const held = await locks.hold('a')
    const worker = new Worker(PROGRAM, { workerData: ['blocks', folder, ENTRY, engine] })
    const told = new Promise(resolve => worker.once('message', resolve))
    await new Promise(resolve => worker.once('online', resolve))
    await held.unlock()
    assert.strictEqual(await told, false)
  })
}

test('states of files are flushed', async t => {
  const durable = processLocks(files(path.join(scratchFolder(t), 'durable'), { durable: true }))
  assert.ok(await durable.request('a', ({ token }) => token > 0))
})
