// subjects: none
// timeout: 300
'use strict'

// Every example runs on the Nodes that can run its kind of module, and prints what it should.

const assert = require('assert')
const { spawn } = require('child_process')
const fs = require('fs')
const os = require('os')
const path = require('path')
const { test } = require('../harness')
const link = require('../fixtures/link')

const EXAMPLES = path.join(__dirname, '..', '..', 'examples')

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
    lines: ['60 of 60 jobs are done; 6 workers died on the way']
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
