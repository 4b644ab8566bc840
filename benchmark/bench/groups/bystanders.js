'use strict'

// What an entry costs a program that does not use it: each sample is a process that starts with `-r` and the entry, as it is published,
// or without any (`host`), or with an empty package (`floor`). `ours` is /force.

const { spawnSync } = require('child_process')
const path = require('path')
const { now, takeTurns } = require('../sampling')

const PROGRAM = path.join(__dirname, '..', 'bystander.js')
const TIMEOUT = 60000

const ENTRIES = {
  host: undefined,
  floor: 'empty',
  index: 'atomics-waitasync',
  'keep-alive': 'atomics-waitasync/keep-alive',
  ours: 'atomics-waitasync/force',
  again: 'atomics-waitasync/force'
}

/** Runs the program in a process of its own, where the entries are installed. Returns what it prints, and how long it took. */
function start (entry, folder, ...args) {
  const preload = entry === undefined ? [] : ['-r', entry]
  const begin = now()
  const { status, stdout, stderr } = spawnSync(process.execPath, [...flags(), ...preload, PROGRAM, ...args], { cwd: folder, encoding: 'utf8', timeout: TIMEOUT })
  const took = (now() - begin) / 1e6
  if (status !== 0) throw new Error(`a program with ${entry} ended with ${status}\n${stderr}`)
  return { took, stdout }
}

/** Those of this process, but none for V8: with one, Node compiles its own modules anew. */
const flags = () => process.execArgv.filter(flag => flag !== '--expose-gc')

async function run ({ installed, quick, rounds }) {
  return takeTurns(Object.keys(ENTRIES), rounds(9), async (variant) => {
    const { took } = start(ENTRIES[variant], installed)
    const { stdout } = start(ENTRIES[variant], installed, quick ? 'quick' : 'all')
    return Object.assign({ 'by-process': took }, JSON.parse(stdout))
  }, { gc: false })
}

module.exports = { run }
