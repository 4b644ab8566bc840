'use strict'

// A program may empty the registry of modules, as test runners and development servers do, before the first use of the
// package or after it, with the native library or without.

const assert = require('assert')
const path = require('path')
const { test } = require('../harness')
const { packageCopy } = require('../fixtures/entries/folders')
const { runForJSON } = require('../fixtures/run-node')

const MAJOR = Number(process.versions.node.split('.')[0])
const ROOT = path.join(__dirname, '..', '..')

/** Runs source text that has `load(entry, folder)`, `empty()`, and `use(one, other)`: see two-instances.js. */
function run (t, isWhole, source) {
  return runForJSON(t, ['-e', `
    const { useBoth } = require(${JSON.stringify(require.resolve('../fixtures/two-instances'))})
    const use = (one, other) => useBoth(one, other)
    const load = (entry, folder = ${JSON.stringify(ROOT)}) => require(folder + '/' + entry)
    const empty = () => {
      for (const key of Object.keys(require.cache)) {
        if (${isWhole} || !key.endsWith('.node')) delete require.cache[key]
      }
    }
    const main = async () => { ${source} }
    // The host's waits do not hold the event loop.
    const timer = setInterval(() => {}, 1000)
    main().then(() => { console.log('true') }, error => {
      console.error(error)
      process.exitCode = 1
    }).then(() => { clearInterval(timer) })`])
}

const WHEN = {
  'before the first use': `
    empty()
    await use(api, api)
    empty()
    await use(api, load(entry))`,
  'after the first use': `
    await use(api, api)
    empty()
    const second = load(entry)
    await use(second, api)
    empty()
    await use(api, load(entry))
    await use(load(entry), second)`,
  'during a hold': `
    const token = api.AsyncLock.create().tryLock()
    empty()
    const second = load(entry)
    if (second.snapshot().held.length !== 1 || !token.unlock()) throw new Error('the hold has been forgotten')
    await use(api, second)`
}

for (const isWhole of [false, true]) {
  const which = isWhole ? 'with the native library' : 'but for the native library'
  for (const [when, source] of Object.entries(WHEN)) {
    test(`emptied ${when}, ${which}: both instances go on`, async t => {
      for (const entry of ['index', 'force', 'keep-alive', 'pure', 'web-locks']) {
        const program = `const entry = '${entry}'\nconst api = load(entry)\n${source}`
        assert.strictEqual(await run(t, isWhole, program), true, entry)
      }
    })
  }

  test(`emptied before the first use, ${which}: process locks`, { skip: MAJOR < 16 && 'needs Node 16' }, async t => {
    assert.strictEqual(await run(t, isWhole, `
      const folder = ${JSON.stringify(packageCopy(t, () => false))}
      const first = load('processes').processLocks(folder)
      empty()
      const second = load('processes').processLocks(folder)
      empty()
      const isFree = locks => locks.request('name', { ifAvailable: true }, lock => lock !== null)
      for (const [one, other] of [[first, second], [second, first]]) {
        if (await one.request('name', () => isFree(other))) throw new Error('two holders')
        if (!await isFree(other)) throw new Error('not released')
      }`), true)
  })

  test(`two copies of the package, and the registry is emptied ${which}: one agent`, async t => {
    assert.strictEqual(await run(t, isWhole, `
      const first = load('pure')
      await use(first, first)
      empty()
      const second = load('pure', ${JSON.stringify(packageCopy(t))})
      await use(first, second)
      await use(second, first)`), true)
  })
}
