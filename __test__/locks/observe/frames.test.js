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
    // Node 15 has a function without a name in between, by which its others are not known.
    if (MAJOR === 15) continue
    assert.ok(!/AsyncLocalStorage|AsyncResource|async_hooks|async_local_storage/.test(stack), stack)
  }
  // Of a stack so many frames are taken that one has a callback and its caller. The program's own promise stays.
  const nested = /^ *at \S*within4 .*\n *at \S*fourth .*\n *at new Promise \(<anonymous>\)/
  if (MAJOR !== 15) assert.ok(stacks.some(stack => nested.test(stack)), stacks.join('\n\n'))
})

test('where all locks are taken in one helper, a cycle shows who called it', needsContexts, async t => {
  const { code, stderr } = await run(t, { after: 200 }, async ({ newLock, until }) => {
    const [a, b] = [newLock('a'), newLock('b')]
    const withLock = (lock, body) => lock.executeLocked(body)
    const turn = () => new Promise(setImmediate)
    async function transfer () {
      await withLock(a, async () => {
        await turn()
        await (function debit () { return withLock(b, () => {}) })()
      })
    }
    async function refund () {
      await withLock(b, async () => {
        await turn()
        await (function credit () { return withLock(a, () => {}) })()
      })
    }
    let isReported = false
    process.on('warning', () => { isReported = true })
    transfer()
    refund()
    await until(() => isReported, 'a report')
    process.exit()
  })
  const links = stderr.split('\n').filter(line => /^ {2}the main thread has awaited/.test(line))
  const places = links.map(line => line.match(/\bat \w+/g).sort()).sort()
  assert.deepStrictEqual([code, places], [0, [['at credit', 'at transfer'], ['at debit', 'at refund']]], stderr)
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
