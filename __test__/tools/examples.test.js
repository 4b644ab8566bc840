// timeout: 300
'use strict'

// Every example runs on the Nodes that can run its kind of module, and prints what it should.

const assert = require('assert')
const fs = require('fs')
const { isBuiltin } = require('module')
const path = require('path')
const { pathToFileURL } = require('url')
const { test } = require('../harness')
const { scratchFolder } = require('../fixtures/entries/folders')
const { runForJSON, runNode } = require('../fixtures/run-node')
const { unavailable } = require('../fixtures/shared-memory')
const { copyExample } = require('../../scripts/lib/example')

const EXAMPLES = path.join(__dirname, '..', '..', 'examples')

/** Whether this Node has a module of its own; one without isBuiltin is too old to have those that are asked for. */
const hasModule = (name) => isBuiltin !== undefined && isBuiltin(name)

/** The first major version of Node with top-level `await`, and those that run TypeScript. */
const FIRST = { '.mjs': 14, '.mts': 22 }
const MAJOR = Number(process.versions.node.split('.')[0])

const ONE_OF_THREE = '  one holds an AsyncLock and waits for the AsyncLock of the next'

/**
 * The output of each: its lines, in any order where they are an array, or a pattern. `args`: its arguments; `since`:
 * the first major version with all it uses; `elsewhere`: why it does not run here; `last`: the last of its threads that
 * it cannot do without, if it is not the second; `goesOn`: it does without any.
 */
const expected = {
  'article-mutex': { prints: "counted to 61000 of 61000; main's event loop went on meanwhile\n" },
  'timeout-and-abort': {
    since: 16,
    last: 1,
    prints: `a worker holds the lock
free right now? false
TimeoutError: Timed out after 50 ms waiting for an AsyncLock, held by thread 1
AbortError
main holds the lock
`
  },
  'surviving-a-crash': {
    goesOn: true,
    prints: `after a transfer of 30: 70 + 30 = 100
a worker crashed: out of luck
after a crash in the middle of a transfer of 50: 20 + 30 = 50
main has the lock, and knows: ownerDied is true
repaired: 70 + 30 = 100
and on it goes: 20 + 80 = 100, ownerDied is false
`
  },
  contention: { prints: /\nmost of the time 3 threads waited for the (AsyncLock "queue"|RwLock "cache")\n$/ },
  deadlock: {
    prints: `ERR_DEADLOCK: a cycle of 3 threads
${ONE_OF_THREE}
${ONE_OF_THREE}
${ONE_OF_THREE}
balances in the end: 120, 90, 90
`
  },
  'named-cache': {
    prints: /^4 workers needed 5 versions; each was computed once: 5 times in all\nheld now: 0, awaited: 0\n$/
  },
  'cluster-cache': {
    goesOn: true,
    elsewhere: unavailable,
    prints: new RegExp('^\\d+ requests were served by processes of which \\d+ were killed\n\\d+ entries, 0 damaged; ' +
      '3 of 3 permits are there\na cached value takes [\\d.]+ µs(, of Redis [\\d.]+ µs)?\n$')
  },
  'worker-pool': {
    prints: `primes below 100000: 9592
the job has failed three times: there are no such primes
the job has ended two workers
and below 10: 4
`
  },
  recipes: {
    since: 16,
    prints: `layout: 1.5 8
several locks: 0 → 1 1 → 2 2 → 0
several locks: TimeoutError
by key: Bob, the club, Ann, Ann again · 0
once: 42 42 1
event: false true true
event: false
cancel: 1 AbortError
cancel: 1
connection: refused
connection: 0 1
connection: 2
changing limit: -1 null
changing limit: 6
admission: done done done busy
shutdown: shutting down, shutting down, shutting down
hanging holder: true
leader: main leads, after a crash
`
  },
  journal: { prints: '301 records, 101 of main; repaired: 1\n' },
  database: { elsewhere: !hasModule('node:sqlite') && 'this Node has no node:sqlite', prints: 'a: 850, b: 1150\n' },
  'wasm-threads': { since: 16, prints: 'the sum: 4500001500000n\n' },
  'rate-limit': { prints: '24 requests of 3 threads took 4 intervals\n' },
  opentelemetry: { elsewhere: 'needs the SDK of OpenTelemetry: scripts/programs.js runs it' },
  processes: { last: 1, prints: 'a process died with the lock\ncounted to 300\n' },
  limit: { prints: /^3 threads have read \d+ files of \d+ bytes, at most 3 at a time\n$/ },
  phases: { prints: '200 steps of 64 × 64 points on 3 threads: as on one thread; the mean is 11.537\n' },
  'shared-cache': { prints: /^100 versions, read \d+ times by 3 workers, each time all of one version\n$/ },
  'word-count': {
    args (t) {
      const folder = scratchFolder(t)
      for (const n of [0, 1, 2, 3, 4])
        fs.writeFileSync(path.join(folder, `${n}.txt`), 'the quick brown fox and the lazy dog\n'.repeat(2000))
      return [folder]
    },
    prints: /80\D?000 words/
  }
}

/** Loaded into each thread of an example: one of them cannot start, or ends at once. */
const BROKEN = {
  'cannot start': () => "threadId === 1) throw new Error('cannot start')",
  'ends at once': last => `threadId === ${last}) process.exit(7)`
}

for (const name of fs.readdirSync(EXAMPLES).filter(name => !name.includes('.'))) {
  const main = fs.readdirSync(path.join(EXAMPLES, name)).find(file => /^index\.m[jt]s$/.test(file))
  const row = expected[name] || assert.fail(`${name} is not expected`)
  const { args = () => [], prints, since = 0, elsewhere, last = 2, goesOn = false } = row
  const first = Math.max(since, FIRST[path.extname(main)])
  const skip = elsewhere || (MAJOR < first && `needs Node ${first}`)
  const run = (t, options) => {
    const home = path.join(EXAMPLES, name)
    // One that is a package of its own runs where this one is installed beside it.
    const isPackage = fs.existsSync(path.join(home, 'package.json'))
    const scratch = scratchFolder(t)
    const folder = isPackage ? copyExample(scratch, scratch, home) : home
    return runNode(t, [path.join(folder, main), ...args(t)], options)
  }
  test(`examples/${name}`, { timeout: 120000, skip }, async t => {
    const { code, signal, stdout, stderr } = await run(t)
    const complaints = stderr.replace(/^.*ExperimentalWarning.*\n(\(Use.*\n)?/gm, '')
    assert.deepStrictEqual([code, signal, complaints], [0, null, ''])
    if (prints instanceof RegExp) assert.ok(prints.test(stdout), stdout)
    else assert.strictEqual(stdout, prints)
  })
  // Node 14 aborts if a thread is terminated that blocks in its top-level await.
  const skipBroken = skip || (MAJOR < 16 && 'needs Node 16')
  for (const [how, source] of goesOn ? [] : Object.entries(BROKEN)) {
    test(`examples/${name} ends with an error if a thread ${how}`, { timeout: 120000, skip: skipBroken }, async t => {
      const scratch = scratchFolder(t)
      const file = path.join(scratch, 'broken.js')
      fs.writeFileSync(file, `if (require('worker_threads').${source(last)}`)
      // It does not come to remove its files.
      const env = { NODE_OPTIONS: `-r ${JSON.stringify(file)}`, TMPDIR: scratch, TEMP: scratch }
      const { code, signal, stdout, stderr } = await run(t, { env })
      assert.deepStrictEqual([code, signal], [1, null], stdout + stderr)
      assert.ok(/cannot start|has ended/.test(stderr), stderr)
    })
  }
}

/** Runs a program with the `Pool` of an example; gives its JSON. In a file, since Workers would inherit `-e`. */
function withPool (t, source) {
  const program = path.join(scratchFolder(t), 'program.mjs')
  fs.writeFileSync(program, `
    import { Pool } from ${JSON.stringify(pathToFileURL(path.join(EXAMPLES, 'worker-pool', 'pool.mjs')))}
    const outcome = (promise) => promise.then(value => value, error => error.code || error.message)
    const tell = (value) => console.log(JSON.stringify(value))
    ${source}`)
  return runForJSON(t, [program])
}
const skip = MAJOR < FIRST['.mjs'] && 'this Node has no top-level await'

test('the pool stops if its workers cannot start, and rejects what is open', { skip }, async t => {
  const [crashes, outcomes, after, open] = await withPool(t, `
    let crashes = 0
    const { log } = console
    console.log = (...words) => { if (words.includes('cannot start')) crashes++ }
    const pool = new Pool(2, new URL('data:text/javascript,throw new Error("cannot start")'))
    const jobs = Array.from({ length: 40 }, () => outcome(pool.run(0, 10)))
    const outcomes = [...new Set(await Promise.all(jobs))]
    const after = await outcome(pool.run(0, 10))
    process.on('exit', () => log(JSON.stringify([crashes, outcomes, after, pool.open.size])))`)
  const failure = 'a worker has ended before it took a job'
  assert.ok(crashes === 1 || crashes === 2, crashes)
  assert.deepStrictEqual([outcomes, after, open], [[failure], failure, 0])
})

test('the pool keeps no job that it cannot take, and stop() ends one that hangs', { skip }, async t => {
  assert.deepStrictEqual(await withPool(t, `
    const pool = new Pool(1)
    const said = [await outcome(pool.run(0, 10)), await outcome(pool.run('x'.repeat(300), 0))]
    const hanging = outcome(pool.run(0, 1e12))
    while (pool.jobs.inUse === 0) await new Promise(setImmediate)
    pool.stop(new Error('stopped'))
    said.push(await hanging, await outcome(pool.run(0, 10)))
    const closed = new Pool(1)
    closed.close()
    said.push(await outcome(closed.run(0, 10)))
    tell(said.concat(pool.open.size, closed.open.size))`), [
    4, 'putAsync: value has 330 bytes as a message, but messageSize is 256', 'stopped', 'stopped', 'ERR_QUEUE_CLOSED',
    0, 0
  ])
})
