'use strict'

// The behaviour of locks when a holder dies, a waiter gives up, a process only waits, a thread blocks: this package's, Node's own Web
// Locks, the mutex of the article over the host's Atomics, and those of some npm packages. Every cell is measured, in a process of its
// own, on the Node that runs this: 24 or newer has all of them.
//
//   node benchmark/lock-behaviour [--no-install]            the table, in Markdown
//   node benchmark/lock-behaviour/situations.js LOCK SITUATION     one cell; names without arguments
//
// The npm packages (benchmark/package.json) are installed into benchmark/node_modules, with the npm at hand.

const { spawnSync } = require('child_process')
const path = require('path')
const { installPeers } = require('../bench/installed')
const { locks } = require('../bench/locks')
const { NAMES, situations } = require('./situations')

const TIMEOUT = 120000

/** One cell. */
function measure (lock, situation) {
  const { status, signal, stdout, stderr } = spawnSync(process.execPath, [path.join(__dirname, 'situations.js'), lock, situation], {
    encoding: 'utf8', timeout: TIMEOUT
  })
  const text = stdout.trim().split('\n').pop()
  if (text !== '' && status === 0) return text
  return `**${signal === 'SIGTERM' ? 'not over after two minutes' : `crashed (${signal || status})`}** ${stderr.trim().split('\n').pop()}`
}

async function main (args) {
  if (!args.includes('--no-install')) await installPeers()
  const columns = Object.entries(situations)
  console.log(`| Node ${process.versions.node} | ${columns.map(([, { title }]) => title).join(' | ')} |`)
  console.log(`|---|${'---|'.repeat(columns.length)}`)
  for (const name of NAMES) {
    const lock = locks[name]
    const reason = lock.missing()
    if (reason) console.error(`without ${name}: ${reason}`)
    else console.log(`| ${lock.title()} | ${columns.map(([situation]) => measure(name, situation)).join(' | ')} |`)
  }
}

main(process.argv.slice(2))
