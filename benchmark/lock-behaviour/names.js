'use strict'

// What names do in Node's own Web Locks (`worker_threads.locks`, 24 and newer), and in this package's, beside the
// specification: each line is observed, in one process for each.
//
//   node benchmark/lock-behaviour/names.js         the table, in Markdown

const { AsyncLocalStorage } = require('async_hooks')
const { execFileSync } = require('child_process')
const { setTimeout: sleep } = require('timers/promises')
const threads = require('worker_threads')

const OTHERS = 20 // milliseconds, in which nothing more happens
const LONG = 1000 // milliseconds, in which a Worker begins, and ends if it has nothing to do
const all = { node: () => threads.locks, ours: () => require('../../pure').locks }

/** Holds a name; gives the function that ends that. */
const hold = (locks, name, options = {}) => new Promise(resolve => {
  locks.request(name, options, () => new Promise(release => resolve(release)))
})

const isFree = (locks, name) => locks.request(name, { ifAvailable: true }, lock => lock !== null)
const yes = value => value ? 'yes' : 'no'

const situations = {
  async 'the callback of a free name has run when `request` returns' (locks) {
    let hasRun = false
    const over = locks.request('free', () => { hasRun = true })
    const answer = yes(hasRun)
    await over
    return answer
  },
  async 'a callback that throws at once: its name is free again' (locks) {
    await locks.request('thrown', () => { throw new Error('expected') }).catch(() => {})
    await sleep(OTHERS)
    return yes(await isFree(locks, 'thrown'))
  },
  async 'a callback returns a thenable: its name is held until that has settled' (locks) {
    let settle
    const over = locks.request('thenable', () => ({ then (resolve) { settle = resolve } }))
    await sleep(OTHERS)
    const answer = yes(!await isFree(locks, 'thenable'))
    settle()
    await over
    return answer
  },
  async 'an exclusive request behind a reader is aborted: the reader behind it gets in' (locks) {
    const release = await hold(locks, 'line', { mode: 'shared' })
    const abort = new AbortController()
    const aborted = locks.request('line', { signal: abort.signal }, () => {}).catch(() => {})
    let isIn = false
    const reader = locks.request('line', { mode: 'shared' }, () => { isIn = true })
    abort.abort()
    await aborted
    await sleep(OTHERS)
    const answer = yes(isIn)
    release()
    await reader
    return answer
  },
  async 'a callback that had to wait runs in the asynchronous context of' (locks) {
    const context = new AsyncLocalStorage()
    const release = await context.run('the holder before it', () => hold(locks, 'context'))
    const waiter = context.run('its own request', () => locks.request('context', () => context.getStore()))
    await sleep(OTHERS)
    release()
    return waiter
  },
  async '`query` shows the locks of other threads' (locks, name) {
    const worker = new threads.Worker(__filename, { workerData: { holds: name } })
    await new Promise(resolve => worker.once('message', resolve))
    const { held } = await locks.query()
    await worker.terminate()
    return yes(held.some(each => each.name === 'abroad'))
  },
  async 'a Worker that does nothing but await a name gets it' (locks, name) {
    const release = await hold(locks, 'awaited')
    const worker = new threads.Worker(__filename, { workerData: { awaits: name } })
    const gets = new Promise(resolve => worker.once('message', () => resolve(true)).once('exit', () => resolve(false)))
    await Promise.race([gets, sleep(LONG)])
    release()
    return yes(await gets)
  }
}

async function observe (name) {
  for (const situation of Object.values(situations)) console.log(await situation(all[name](), name))
  process.exit()
}

function main () {
  const of = name => execFileSync(process.execPath, [__filename, name], { encoding: 'utf8' }).trim().split('\n')
  const [node, ours] = [of('node'), of('ours')]
  console.log(`| Node ${process.versions.node} | Node's own | this package |\n|---|---|---|`)
  Object.keys(situations).forEach((title, n) => console.log(`| ${title} | ${node[n]} | ${ours[n]} |`))
}

async function holdAbroad (name) {
  await hold(all[name](), 'abroad')
  threads.parentPort.postMessage('held')
}

const { holds, awaits } = threads.workerData || {}
if (holds) holdAbroad(holds)
else if (awaits) all[awaits]().request('awaited', () => threads.parentPort.postMessage('has it'))
else if (process.argv.length > 2) observe(process.argv[2])
else main()
