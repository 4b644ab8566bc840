'use strict'

// The behaviour of locks in trouble: a holder dies, a waiter gives up, a process only waits, a thread blocks. Of this
// package's, Node's own Web Locks, the mutex of the article over the host's Atomics, and those of some npm packages.
// Every cell is measured, in a process of its own, on the Node that runs this: 24 or newer has all of them.
//
//   node benchmark/lock-behaviour                  the table, in Markdown
//   node benchmark/lock-behaviour LOCK SITUATION   one cell; a wrong name is answered with all names
//
// The npm packages (benchmark/package.json) are installed into benchmark/node_modules, with the npm at hand.

const fs = require('fs')
const { command } = require('../../scripts/lib/arguments')
const { howItEnded, run } = require('../../scripts/lib/child')
const { installPeers } = require('../bench/installed')
const { BYTES, locks, open } = require('../bench/locks')
const { Member } = require('../bench/team')
const situations = require('./situations')

const TIMEOUT = 120000
/** The locks that are put into them; `host` is the article's. */
const NAMES = ['ours', 'web-locks', 'host', 'multithreading', 'worker-mutex', 'async-mutex']

/** Measures one cell, in a process of its own. */
async function measure (lock, situation) {
  const ended = await run(process.execPath, [__dirname, lock, situation], { timeout: TIMEOUT })
  const lastOf = text => text.trim().split('\n').pop()
  if (ended.stdout.trim() !== '' && ended.code === 0) return lastOf(ended.stdout)
  return `**${howItEnded(ended) || `ended with exit code ${ended.code}`}** ${lastOf(ended.output)}`
}

/** Observes one cell, in this process. */
async function observe (name, situation) {
  if (!NAMES.includes(name) || !(situation in situations))
    throw new Error(`there are ${NAMES.join(', ')}, and ${Object.keys(situations).join(', ')}`)
  const lock = locks[name]
  if (lock.missing()) throw new Error(lock.missing())
  const sab = new SharedArrayBuffer(BYTES)
  const print = text => fs.writeSync(1, `${text}\n`)
  const start = () => {
    const member = new Member('../../lock-behaviour/thread', 'user', { name, sab })
    if (lock.watch) lock.watch(member.worker, sab)
    return member
  }
  const { blocks, run: happen } = situations[situation]
  const view = await open(name, { sab })
  print(blocks && !view.block ? 'has no such form' : await happen({ lock: view, start, print }))
  process.exit()
}

async function main () {
  if (process.argv.length > 2) return observe(...process.argv.slice(2))
  await installPeers()
  const columns = Object.entries(situations)
  console.log(`| Node ${process.versions.node} | ${columns.map(([, { title }]) => title).join(' | ')} |`)
  console.log(`|---|${'---|'.repeat(columns.length)}`)
  for (const name of NAMES) {
    const reason = locks[name].missing()
    if (reason) {
      console.error(`without ${name}: ${reason}`)
      continue
    }
    const cells = [locks[name].title()]
    for (const [situation] of columns) cells.push(await measure(name, situation))
    console.log(`| ${cells.join(' | ')} |`)
  }
}

command(main)
