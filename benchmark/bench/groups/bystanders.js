'use strict'

// The costs of an entry for a program that does not use it: each sample is a process that starts with `-r` and the
// entry, as it is published, or without any (`host`), or with an empty package (`floor`). `ours` is /force.

const path = require('path')
const { flags, runNode } = require('../processes')
const { now, takeTurns } = require('../sampling')

const PROGRAM = path.join(__dirname, '..', 'bystander.js')

const ENTRIES = {
  host: undefined,
  floor: 'empty',
  index: 'atomics-waitasync',
  'keep-alive': 'atomics-waitasync/keep-alive',
  ours: 'atomics-waitasync/force',
  again: 'atomics-waitasync/force'
}

/**
 * Runs the program in a process, where the entries are installed. Returns its output, and its time.
 */
function start (entry, cwd, ...args) {
  const preload = entry === undefined ? [] : ['-r', entry]
  const begin = now()
  const stdout = runNode([...flags(), ...preload, PROGRAM, ...args], { cwd })
  return { took: (now() - begin) / 1e6, stdout }
}

async function run ({ installed, quick, rounds }) {
  return takeTurns(Object.keys(ENTRIES), rounds(9), async (variant) => {
    const { took } = start(ENTRIES[variant], installed)
    const { stdout } = start(ENTRIES[variant], installed, quick ? 'quick' : 'all')
    return Object.assign({ 'by-process': took }, JSON.parse(stdout))
  }, { gc: false })
}

module.exports = { run }
