// subjects: force
'use strict'

// Bun and Deno: an install reaches the Workers that its thread starts, in whatever way, before their own code runs.

const assert = require('assert')
const { spawn } = require('child_process')
const path = require('path')
const { pathToFileURL } = require('url')
const threads = require('worker_threads')
const { test } = require('../../harness')

// The runtime's own functions.
const HostWorker = threads.Worker
const { Worker: HostWebWorker } = global

const { api } = require('../../subject')

const BUN = process.versions.bun !== undefined
const file = (name) => path.join(__dirname, 'fixtures', name)
const read = (name) => require('fs').readFileSync(file(name), 'utf8')

/**
 * Starts a worker that notifies by its plain Atomics: whether that wakes a wait of this thread; and what the worker
 * says of itself.
 */
async function notifiedBy (start) {
  const words = new Int32Array(new SharedArrayBuffer(8))
  const { value } = Atomics.waitAsync(words, 0, 0, 20000)
  const worker = start({ workerData: { words }, argv: ['an argument'] })
  const said = new Promise((resolve, reject) => {
    worker.on('message', (message) => {
      if (message.early === undefined) resolve(message)
      else assert.strictEqual(message.early, 'at once')
    })
    worker.on('error', reject)
  })
  // Before the worker runs: it must not get lost.
  worker.postMessage('at once')
  const message = await said
  const woken = message.count === 1 && await value
  if (woken !== 'ok') Atomics.notify(words, 0)
  await worker.terminate()
  return { ...message, woken }
}

const reached = async (start) => {
  const said = await notifiedBy(start)
  assert.strictEqual(said.woken, 'ok', JSON.stringify(said))
  assert.deepStrictEqual(said.workerData, ['words'])
  assert.strictEqual(said.engine, 'addon')
  return said
}

test('a file that is a script: its arguments and its data are its own', async () => {
  const said = await reached((options) => new threads.Worker(file('notify.cjs'), options))
  assert.deepStrictEqual(said.argv, [file('notify.cjs'), 'an argument'])
})

test('a file that is a module, which awaits at its top level', async () => {
  const said = await reached((options) => new threads.Worker(file('notify.mjs'), options))
  assert.deepStrictEqual(
    [said.url, ...said.argv],
    [pathToFileURL(file('notify.mjs')).href, file('notify.mjs'), 'an argument']
  )
})

test('a relative path', async () => {
  await reached((options) => new threads.Worker(`./${path.relative(process.cwd(), file('notify.cjs'))}`, options))
})

test('a file URL', async () => {
  const said = await reached((options) => new threads.Worker(pathToFileURL(file('notify.mjs')), options))
  assert.deepStrictEqual(said.argv[0], file('notify.mjs'))
})

test('source text', async () => {
  await reached((options) => new threads.Worker(read('notify.cjs'), { ...options, eval: true }))
})

test('source text with variables of its own', async () => {
  // Not `process` and `global`: Deno itself looks them up by their names in such a worker.
  const source = `{ ${read('notify.cjs')} };const global = 1, createRequire = 2`
  await reached((options) => new threads.Worker(source, { ...options, eval: true }))
})

test('a class that extends Worker', async () => {
  class Mine extends threads.Worker {}
  await reached((options) => {
    const worker = new Mine(file('notify.cjs'), options)
    assert.ok(worker instanceof Mine && worker instanceof threads.Worker && worker instanceof HostWorker)
    return worker
  })
})

test('a program of modules: the package\'s names, and the Worker of a default import', async t => {
  const args = [...(BUN ? [] : ['run', '-A']), file('program.mjs')]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] })
  t.after(() => { child.kill('SIGKILL') })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => { output += text })
  const code = await new Promise(resolve => child.on('close', resolve))
  assert.deepStrictEqual([code, output], [0, 'ok\n'])
})

test('a worker that a worker starts', async () => {
  await reached((options) => new threads.Worker(file('nest.cjs'), options))
})

test('the global Worker', async () => {
  const words = new Int32Array(new SharedArrayBuffer(8))
  const { value } = Atomics.waitAsync(words, 0, 0, 20000)
  const worker = new global.Worker(pathToFileURL(file('web.mjs')).href, { type: 'module' })
  worker.postMessage(words)
  const { data } = await new Promise((resolve, reject) => {
    worker.onmessage = resolve
    worker.onerror = reject
  })
  assert.strictEqual(data, 1)
  assert.strictEqual(await value, 'ok')
  worker.terminate()
})

test('preloads of the user stay', { skip: !BUN && 'an option of Bun' }, async () => {
  for (const preload of [file('preload.cjs'), [file('preload.cjs')]]) {
    const said = await reached((options) => new threads.Worker(file('notify.cjs'), { ...options, preload }))
    assert.strictEqual(said.preloaded, true)
  }
})

test('a Worker class that was imported by its name is warned of, once', async () => {
  const warnings = []
  const listener = (warning) => { if (warning.code === 'ATOMICS_WAITASYNC_WORKER') warnings.push(warning.message) }
  process.on('warning', listener)
  for (let n = 0; n < 2; n++)
    assert.notStrictEqual((await notifiedBy(options => new HostWorker(file('notify.cjs'), options))).woken, 'ok')
  process.off('warning', listener)
  assert.strictEqual(warnings.length, 1)
  assert.match(warnings[0], BUN ? /In Bun / : /In Deno /)
})

test('what the runtime refuses, it refuses itself', () => {
  const messageOf = (Class, args) => {
    try {
      new Class(...args).terminate()
      return 'none'
    } catch ({ message }) {
      return message
    }
  }
  for (const args of [[], [5], [null], [{}], [5, { eval: true }], ['bare'], [new URL('http://127.0.0.1/')]]) {
    const message = messageOf(HostWorker, args)
    assert.notStrictEqual(message, 'none')
    assert.strictEqual(messageOf(threads.Worker, args), message, JSON.stringify(args))
  }
})

test('an error in a worker comes with its message', async () => {
  for (const [script, options] of [
    [file('throw.cjs'), {}],
    ['throw new RangeError("from the worker")', { eval: true }]
  ]) {
    const worker = new threads.Worker(script, options)
    const error = await new Promise(resolve => worker.on('error', resolve))
    assert.match(error.message, /from the worker/)
  }
  const worker = new threads.Worker(file('missing.cjs'))
  const { message } = await new Promise(resolve => worker.on('error', resolve))
  assert.match(message, /missing\.cjs/)
  assert.doesNotMatch(message, /data:/)
})

test('after uninstall, Workers are as before', async () => {
  assert.strictEqual(api.uninstall(), true)
  try {
    assert.strictEqual(threads.Worker, HostWorker)
    assert.strictEqual(global.Worker, HostWebWorker)
    const said = await new Promise((resolve, reject) => {
      const worker = new threads.Worker(file('notify.cjs'), {
        workerData: { words: new Int32Array(new SharedArrayBuffer(8)) }
      })
      worker.on('message', resolve).on('error', reject)
    })
    assert.strictEqual(said.engine, 'host')
  } finally {
    assert.strictEqual(api.install({ force: true }), true)
  }
})

test('install with { workers: false } leaves them alone', () => {
  api.uninstall()
  try {
    assert.strictEqual(api.install({ force: true, workers: false }), true)
    assert.strictEqual(threads.Worker, HostWorker)
  } finally {
    api.uninstall()
    api.install({ force: true })
  }
})
