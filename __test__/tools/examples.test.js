// timeout: 300
'use strict'

// Every example runs on the Nodes that can run its kind of module, and prints what it should.

const assert = require('assert')
const { spawn } = require('child_process')
const fs = require('fs')
const { isBuiltin } = require('module')
const os = require('os')
const path = require('path')
const { test } = require('../harness')
const link = require('../fixtures/link')

const EXAMPLES = path.join(__dirname, '..', '..', 'examples')
const WABT = path.join(__dirname, '..', '..', 'node_modules', 'wabt')

/** Whether this Node has a module of its own; one without isBuiltin is too old to have those that are asked for. */
const hasModule = (name) => isBuiltin !== undefined && isBuiltin(name)

/** The first major version of Node with top-level `await`, and those that run TypeScript. */
const FIRST = { '.mjs': 14, '.mts': 22 }
const MAJOR = Number(process.versions.node.split('.')[0])

/**
 * The output of each: lines, or a function that checks them. `args`: its arguments; `since`: the first major version with all it uses;
 * `elsewhere`: why it does not run here.
 */
const expected = {
  'article-mutex': {
    lines: ['counted to 61000 of 61000; main\'s event loop went on meanwhile']
  },
  'timeout-and-abort': {
    since: 16,
    lines: [
      'a worker holds the lock',
      'free right now? false',
      'TimeoutError: Timed out after 50 ms waiting for an AsyncLock, held by thread 1',
      'AbortError',
      'main holds the lock'
    ]
  },
  'surviving-a-crash': {
    lines: [
      'after a transfer of 30: 70 + 30 = 100',
      'a worker crashed: out of luck',
      'after a crash in the middle of a transfer of 50: 20 + 30 = 50',
      'main has the lock, and knows: ownerDied is true',
      'repaired: 70 + 30 = 100',
      'and on it goes: 20 + 80 = 100, ownerDied is false'
    ]
  },
  contention: {
    check (text) {
      assert.ok(/\nmost of the time 3 threads waited for the (AsyncLock "queue"|RwLock "cache")\n$/.test(text), text)
    }
  },
  deadlock: {
    lines: [
      'ERR_DEADLOCK: a cycle of 3 threads',
      '  one holds an AsyncLock and waits for the AsyncLock of the next',
      '  one holds an AsyncLock and waits for the AsyncLock of the next',
      '  one holds an AsyncLock and waits for the AsyncLock of the next',
      'balances in the end: 120, 90, 90'
    ]
  },
  'named-cache': {
    lines: ['4 workers needed 5 versions; each was computed once: 5 times in all', 'held now: 0, awaited: 0']
  },
  'worker-pool': {
    check (text) {
      // An answer may be here before the news of the crash.
      assert.deepStrictEqual(text.trim().split('\n').sort(), [
        'a worker has crashed: there are no such primes',
        'a worker has crashed: there are no such primes',
        'and below 10: 4',
        'primes below 100000: 9592',
        'the job has ended two workers'
      ])
    }
  },
  recipes: {
    since: 16,
    lines: [
      'layout: 1.5 8',
      'several locks: 0 → 1 1 → 2 2 → 0',
      'several locks: TimeoutError',
      'once: 42 42 1',
      'event: false true true',
      'event: false',
      'cancel: 1 AbortError',
      'cancel: 1',
      'connection: 0 1',
      'connection: 2',
      'changing limit: -1 null',
      'changing limit: 6',
      'admission: done done done busy',
      'shutdown: shutting down, shutting down, shutting down',
      'hanging holder: true',
      'leader: main leads, after a crash'
    ]
  },
  journal: {
    lines: ['301 records, 101 of main; repaired: 1']
  },
  database: {
    elsewhere: !hasModule('node:sqlite') && 'this Node has no node:sqlite',
    lines: ['a: 850, b: 1150']
  },
  'wasm-threads': {
    since: 16,
    lines: ['the sum: 4500001500000n']
  },
  'rate-limit': {
    lines: ['24 requests of 3 threads took 4 intervals']
  },
  opentelemetry: { elsewhere: 'needs the SDK of OpenTelemetry: scripts/programs.js runs it' },
  processes: {
    lines: ['a process died with the lock', 'counted to 300']
  },
  limit: {
    check: text => assert.ok(/^3 threads have read \d+ files of \d+ bytes, at most 3 at a time\n$/.test(text), text)
  },
  phases: {
    lines: ['200 steps of 64 × 64 points on 3 threads: as on one thread; the mean is 11.537']
  },
  'shared-cache': {
    check: text => assert.ok(/^100 versions, read \d+ times by 3 workers, each time all of one version\n$/.test(text), text)
  },
  'word-count': {
    args (t) {
      const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'examples-'))
      t.after(() => {
        for (const name of fs.readdirSync(folder)) fs.unlinkSync(path.join(folder, name))
        fs.rmdirSync(folder)
      })
      for (let n = 0; n < 5; n++) fs.writeFileSync(path.join(folder, `${n}.txt`), 'the quick brown fox and the lazy dog\n'.repeat(2000))
      return [folder]
    },
    check (text) {
      assert.ok(/80 000 words|80,000 words|80000 words|80\D000 words/.test(text), text)
    }
  }
}

/** The file that runs an example: of the folder, index.mjs or index.mts. */
const mainOf = (name) => fs.readdirSync(path.join(EXAMPLES, name)).find(file => /^index\.m[jt]s$/.test(file))

/** Where an example runs: one that is a package of its own does so where this one is installed beside it. */
function folderOf (t, name) {
  const folder = path.join(EXAMPLES, name)
  if (!fs.existsSync(path.join(folder, 'package.json'))) return folder
  const project = fs.mkdtempSync(path.join(os.tmpdir(), 'examples-'))
  t.after(() => fs.rmSync(project, { recursive: true }))
  fs.cpSync(folder, path.join(project, name), { recursive: true, filter: file => path.basename(file) !== 'node_modules' })
  fs.mkdirSync(path.join(project, 'node_modules'))
  link(t, path.join(EXAMPLES, '..'), path.join(project, 'node_modules', 'atomics-waitasync'))
  return path.join(project, name)
}

function run (folder, name, args) {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, process.execArgv.concat(path.join(folder, mainOf(name)), args), { stdio: ['ignore', 'pipe', 'pipe'] })
    let stdout = ''
    let stderr = ''
    child.stdout.setEncoding('utf8').on('data', text => { stdout += text })
    child.stderr.setEncoding('utf8').on('data', text => { stderr += text })
    child.on('error', reject)
    // Warnings of Node itself on old versions are no part of the result.
    child.on('close', (code, signal) => resolve({ code, signal, stdout, stderr: stderr.replace(/^.*ExperimentalWarning.*\n(\(Use.*\n)?/gm, '') }))
  })
}

for (const name of fs.readdirSync(EXAMPLES).filter(name => !name.includes('.'))) {
  const { args, lines, check, since = 0, elsewhere } = expected[name] || assert.fail(`nothing is said here of what ${name} prints`)
  const first = Math.max(since, FIRST[path.extname(mainOf(name))])
  test(`examples/${name}`, { timeout: 120000, skip: elsewhere || (MAJOR < first && `needs Node ${first}`) }, async t => {
    const { code, signal, stdout, stderr } = await run(folderOf(t, name), name, args ? args(t) : [])
    assert.strictEqual(stderr, '')
    assert.deepStrictEqual([code, signal], [0, null])
    if (check) check(stdout)
    else assert.deepStrictEqual(stdout.trim().split('\n'), lines)
  })
}

// ——— What the guides say of them ———

/** A copy of an example, beside a node_modules with this package in it; the text of its main file, or of a new one, changed. */
function changed (t, name, change) {
  const project = fs.mkdtempSync(path.join(os.tmpdir(), 'examples-'))
  t.after(() => fs.rmSync(project, { recursive: true }))
  const folder = path.join(project, name)
  fs.mkdirSync(folder)
  for (const file of fs.readdirSync(path.join(EXAMPLES, name))) fs.copyFileSync(path.join(EXAMPLES, name, file), path.join(folder, file))
  fs.mkdirSync(path.join(project, 'node_modules'))
  link(t, path.join(EXAMPLES, '..'), path.join(project, 'node_modules', 'atomics-waitasync'))
  const main = path.join(folder, mainOf(name))
  const text = fs.readFileSync(main, 'utf8')
  assert.notStrictEqual(change(text), text)
  fs.writeFileSync(main, change(text))
  return folder
}

const NO_WASM = MAJOR < 16 && 'needs Node 16'
// Where Node ends although a module awaits something at its top level.
const UNSETTLED = 13

test('examples/wasm-threads: sum.wasm is made of sum.wat', { skip: NO_WASM || (!fs.existsSync(WABT) && 'wabt is not installed') }, async () => {
  const at = name => path.join(EXAMPLES, 'wasm-threads', name)
  const { buffer } = (await require(WABT)()).parseWat('sum.wat', fs.readFileSync(at('sum.wat'), 'utf8'), { threads: true }).toBinary({})
  assert.deepStrictEqual(Buffer.from(buffer), fs.readFileSync(at('sum.wasm')))
})

for (const entry of ['/force', '/keep-alive']) {
  test(`examples/wasm-threads with atomics-waitasync${entry}`, { skip: NO_WASM }, async t => {
    const folder = changed(t, 'wasm-threads', text => text.replace('atomics-waitasync/pure', `atomics-waitasync${entry}`))
    const { code, stdout } = await run(folder, 'wasm-threads', [])
    assert.deepStrictEqual([code, stdout], [0, 'the sum: 4500001500000n\n'])
  })

  test(`examples/wasm-threads with the global functions after atomics-waitasync${entry} ends early, as the guide says`, { skip: NO_WASM }, async t => {
    const global = text => text.replace(/import (.*) from 'atomics-waitasync\/pure'/, `import 'atomics-waitasync${entry}'\nconst $1 = Atomics`)
    const { code, stdout } = await run(changed(t, 'wasm-threads', global), 'wasm-threads', [])
    assert.deepStrictEqual([code, stdout], [UNSETTLED, ''])
  })
}

test('examples/wasm-threads with the plain entry ends early, as the guide says', { skip: NO_WASM }, async t => {
  const folder = changed(t, 'wasm-threads', text => text.replace('atomics-waitasync/pure', 'atomics-waitasync'))
  const { code, stdout } = await run(folder, 'wasm-threads', [])
  assert.deepStrictEqual([code, stdout], [UNSETTLED, ''])
})

const JOURNAL_FAILS = `
import fs from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Worker, isMainThread, workerData } from 'node:worker_threads'
// How often each has still to fail. A record is then written in part.
const fails = { truncate: 0, appendFile: 0 }
const append = fs.appendFileSync
function fail (name, file, data) {
  fails[name]--
  if (name === 'appendFile') append(file, data.slice(0, 5))
  return Object.assign(new Error(name), { code: 'ENOSPC' })
}
for (const name of ['truncate', 'appendFile']) {
  const { [name]: async, [name + 'Sync']: sync } = fs
  fs[name] = (file, data, callback) => {
    if (fails[name] === 0) return async(file, data, callback)
    callback(fail(name, file, data))
  }
  fs[name + 'Sync'] = (file, data) => {
    if (fails[name] === 0) return sync(file, data)
    throw fail(name, file, data)
  }
}
const { Journal } = await import('./journal.mjs')
const file = fileURLToPath(new URL('./records', import.meta.url))

function records (journal) {
  const lines = fs.readFileSync(file, 'utf8').slice(0, journal.complete[0]).split('\\n').filter(Boolean)
  return lines.map(line => JSON.parse(line)).join(' ')
}

if (isMainThread) {
  fs.writeFileSync(file, '')
  const memory = Journal.allocate()
  const journal = new Journal(memory, file)
  const attempt = (record) => journal.appendAsync(record).catch(({ message }) => console.log(message, 'failed'))
  const finished = attempt(1).then(() => {
    fails.appendFile = 1
    fails.truncate = 2
    return attempt(2)
  }).then(() => attempt(3)).then(() => attempt(4)).then(() => attempt(5))
  finished.then(() => {
    console.log('main:', records(journal), journal.repairs[0])
    new Worker(new URL(import.meta.url), { workerData: memory }).on('exit', () => {
      console.log('all:', records(journal), fs.readFileSync(file, 'utf8').length === journal.complete[0])
      fs.unlinkSync(file)
    })
  })
} else {
  const journal = new Journal(workerData, file)
  const attempt = (record) => {
    try {
      journal.append(record)
    } catch ({ message }) {
      fs.writeSync(1, message + ' failed\\n')
    }
  }
  fails.appendFile = 1
  fails.truncate = 2
  for (const record of [6, 7, 8, 9]) attempt(record)
}
`
const FAILURES = 'appendFile failed\ntruncate failed\ntruncate failed\n'

test('examples/journal keeps its file whole although writes and repairs fail, of promises and of blocking threads', { skip: MAJOR < 14 && 'needs Node 14' }, async t => {
  const { code, stdout } = await run(changed(t, 'journal', () => JOURNAL_FAILS), 'journal', [])
  assert.deepStrictEqual([code, stdout], [0, `${FAILURES}main: 1 5 1\n${FAILURES}all: 1 5 9 true\n`])
})
