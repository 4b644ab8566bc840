'use strict'

// The stacks of snapshots and reports: which frames they have, and how these are written.

const assert = require('assert')
const path = require('path')
const { test } = require('../../harness')
const { needsContexts } = require('../../fixtures/contexts')
const { packageCopy } = require('../../fixtures/entries/folders')
const { MAJOR } = require('../../fixtures/queue-toolbox')
const { NEVER, run, toldBy } = require('../../fixtures/programs')
const { runForJSON } = require('../../fixtures/run-node')

const root = path.join(__dirname, '..', '..', '..')

test('a stack has no frames of the package, nor of what it has called, wherever they are', async t => {
  const folders = [root, packageCopy(t)]
  const stacks = await runForJSON(t, ['-e', `
    const { join } = require('path')
    const [one, other] = ${JSON.stringify(folders)}.map(folder => require(join(folder, 'pure')))
    const locks = Array.from({ length: 5 }, (_, n) => new (n % 2 ? other : one).AsyncLock())
    const take = {
      first: () => locks[0].executeLocked(function within1 () { return take.second() }),
      second: () => locks[1].executeLocked(function within2 () { return take.third() }),
      third: () => locks[3].executeLocked(function within3 () { return new Promise(take.fourth) }),
      fourth: () => locks[2].executeLocked(function within4 () {
        locks[4].tryLock()
        return new Promise(() => {})
      })
    }
    take.first()
    console.log(JSON.stringify(one.snapshot().held.map(({ taken }) => taken)))
    process.exit()`], { env: { ATOMICS_WAITASYNC_STALL: '100000' } })
  assert.strictEqual(stacks.length, 5)
  for (const stack of stacks) {
    for (const folder of folders) assert.ok(!stack.includes(path.join(folder, 'lib')), stack)
    assert.ok(!/AsyncLocalStorage|AsyncResource|async_hooks|async_local_storage|node:|internal/.test(stack), stack)
  }
  // Of a stack so many frames are taken that one has a callback and its caller. The program's own promise stays.
  const nested = /^ *at \S*within4 .*\n *at \S*fourth .*\n *at new Promise \(<anonymous>\)/
  if (MAJOR !== 15) assert.ok(stacks.some(stack => nested.test(stack)), stacks.join('\n\n'))
})

test('frames of a program are its own, whatever its folders and files are called', async t => {
  const stacks = await runForJSON(t, ['-e', `
    const vm = require('vm')
    const { AsyncLock, snapshot } = require(${JSON.stringify(path.join(root, 'pure'))})
    const names = ['/srv/my internal/app.js', '/srv/a node:b/app.js', '/srv/timers.js']
    const take = filename => vm.runInThisContext('(lock) => lock.tryLock()', { filename })(new AsyncLock())
    const tokens = names.map(take)
    console.log(JSON.stringify([names, snapshot().held.map(({ taken }) => taken)]))
    process.exit()`], { env: { ATOMICS_WAITASYNC_STALL: '100000' } })
  const [names, taken] = stacks
  assert.deepStrictEqual(names.filter(name => !taken.some(stack => stack.split('\n')[0].includes(name))), [])
})

/** What the lines of a report, or of a dump, must not have as places. */
const NO_PLACE = /\b(?:at|called at) (?:async |node:|\S+ \((?:node:|internal\/))|\(<anonymous>\)/

/** The functions that a line of a report names, each with its part of the sentence. */
const placesIn = line =>
  line.match(/(?:(?:taken|called) )?at [\w.]+(?= [([])/g).map(place => place.replace(/ \w+\./, ' '))

/** Runs two tasks that wait for one another; gives the links of the report, sorted. */
async function linksOf (t, fn) {
  const { code, stderr } = await run(t, { after: 200, data: String(fn) }, async ({ data, newLock, until }) => {
    const [a, b] = [newLock('a'), newLock('b')]
    const turn = () => new Promise(setImmediate)
    let isReported = false
    process.on('warning', () => { isReported = true })
    const begin = eval(`(${data})`) // eslint-disable-line no-eval
    begin(a, b, turn)
    await until(() => isReported, 'a report')
    process.exit()
  })
  const links = stderr.split('\n').filter(line => /^ {2}the main thread has awaited/.test(line)).sort()
  assert.deepStrictEqual([code, links.length], [0, 2], stderr)
  assert.ok(!links.some(line => NO_PLACE.test(line)), stderr)
  return links.map(placesIn)
}

test('of one function that is called twice, a cycle shows its lines and who called it', needsContexts, async t => {
  const links = await linksOf(t, (a, b, turn) => {
    async function transfer (from, to) {
      await from.executeLocked(async function moved () {
        await turn()
        await to.executeLocked(() => {})
      })
    }
    const morning = async () => { await transfer(a, b) }
    const evening = async () => { await transfer(b, a) }
    // Their callers are the same, and Node's.
    setImmediate(morning)
    setImmediate(evening)
  })
  const taken = caller => ['at moved', 'taken at transfer', `called at ${caller}`]
  assert.deepStrictEqual(links, [taken('morning'), taken('evening')])
})

test('where all locks are taken in one helper, a cycle shows that and who called it', needsContexts, async t => {
  const links = await linksOf(t, function program (a, b, turn) {
    const withLock = (lock, body) => lock.executeLocked(body)
    withLock(a, async function transfer () {
      await turn()
      await (function debit () { return withLock(b, () => {}) })()
    })
    ;(function refund () {
      withLock(b, async () => {
        await turn()
        await (function credit () { return withLock(a, () => {}) })()
      })
    })()
  })
  const all = links.map(places => places.filter(place => !place.endsWith(' withLock')))
  const callers = [['called at credit', 'called at program'], ['called at debit', 'called at refund']]
  assert.deepStrictEqual([all, links.map(({ length }) => length)], [callers, [4, 4]])
})

test('a deadlock of blocked threads in one function shows who called it', async t => {
  const [message] = await toldBy(t, async ({ newLock, startWorker, tell }) => {
    const locks = [newLock('a'), newLock('b')].map(({ buffer }) => buffer)
    const both = new SharedArrayBuffer(4)
    const errors = [0, 1].map(turn => new Promise(resolve => {
      startWorker({ locks, both, turn }, ({ api, Atomics, data: { locks, both, turn }, post }) => {
        const [a, b] = locks.map((buffer, n) => new api.AsyncLock(buffer, { name: 'ab'[n] }))
        const words = new Int32Array(both)
        function transfer (from, to) {
          from.executeLockedSync(() => {
            Atomics.add(words, 0, 1)
            while (Atomics.load(words, 0) < 2);
            to.executeLockedSync(() => {})
          })
        }
        const morning = () => transfer(a, b)
        const evening = () => transfer(b, a)
        try {
          ;(turn ? evening : morning)()
        } catch ({ message }) {
          post(message)
        }
      }).next().then(resolve)
    }))
    tell(await Promise.race(errors))
  })
  // Of each thread the hold and the wait.
  const places = ['evening', 'evening', 'morning', 'morning'].map(name => `called at ${name}`)
  // Old Node names the frame of the wait itself.
  const told = placesIn(message).filter(place => !place.startsWith('at '))
  assert.deepStrictEqual(told.sort(), [...places, 'taken at transfer', 'taken at transfer'], message)
})

test('no dump has frames of Node or of functions that await', async t => {
  const [table, taken] = await toldBy(t, async ({ api, newLock, require, sleep, tell }) => {
    const [lock, other] = [newLock('a'), newLock('b')]
    const { EventEmitter } = require('events')
    const events = new EventEmitter().on('event', function listener () { [lock].map(each => each.tryLock()) })
    setTimeout(async function outer () {
      await sleep(1)
      await (async function inner () {
        await sleep(1)
        events.emit('event')
        lock.lockAsync()
      })()
    }, 1)
    while (lock.waiters === 0) await sleep(1)
    // Without a caller.
    Promise.resolve(undefined).then(other.lockAsync.bind(other))
    await sleep(1)
    tell(api.formatSnapshot(api.snapshot()))
    tell(api.snapshot().held.map(({ taken }) => taken).join('\n'))
    process.exit()
  })
  const frames = table.split('\n').filter(line => line.startsWith('      ')).map(line => line.trim())
  assert.ok(frames.length >= 4, table)
  assert.ok(!frames.some(frame => NO_PLACE.test(frame)), table)
  assert.ok(frames.some(frame => /^at (?:EventEmitter\.)?listener /.test(frame)), table)
  assert.ok(frames.includes('at no line of the program'), table)
  assert.ok(!/node:|internal\/|events\.js/.test(taken) && /listener /.test(taken), taken)
})

test('a function\'s name reaches no terminal as it is', async t => {
  const evil = 'a\u001b[31m\u009b\u202e\u007fb'
  const [taken, text] = await toldBy(t, { after: NEVER, data: evil }, ({ api, data, newLock, tell }) => {
    const lock = newLock()
    const named = { [data]: () => lock.tryLock() }
    named[data]()
    tell(api.snapshot().held[0].taken)
    tell(api.formatSnapshot(api.snapshot()))
  })
  for (const shown of [taken, text]) {
    // eslint-disable-next-line no-control-regex -- what is looked for
    assert.ok(!/[\0-\t\v-\x1f\x7f-\x9f\u202e]/.test(shown), JSON.stringify(shown))
    assert.ok(shown.includes('a\\u001b[31m\\u009b\\u202e\\u007fb '), shown)
  }
})
