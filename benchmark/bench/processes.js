'use strict'

// Samples that are taken in processes of their own.

const { spawnSync } = require('child_process')
const { takeTurns } = require('./sampling')

const CHILD = require.resolve('./child')
/** Milliseconds. */
const TIMEOUT = 120000

/** Runs this Node; returns its output. */
function runNode (args, options) {
  const settings = { encoding: 'utf8', timeout: TIMEOUT, ...options }
  const { status, signal, stdout, stderr } = spawnSync(process.execPath, args, settings)
  if (status !== 0) throw new Error(`${args.join(' ')} ended with ${signal || status}\n${stderr}`)
  return stdout
}

/**
 * Returns the flags of this process, but none for V8: with one, Node compiles its own modules anew, which would be
 * measured as a start.
 */
const flags = () => process.execArgv.filter(flag => flag !== '--expose-gc')

/**
 * Takes samples of a group's figures, each in a process: see child.js.
 * @param {Object<string, string[]>} variants by figure; only those that are wanted are taken
 */
async function inProcesses (kit, usual, variants, args = process.execArgv) {
  const results = {}
  for (const figure of Object.keys(variants).filter(figure => kit.chosen.includes(figure))) {
    Object.assign(results, await takeTurns(variants[figure], kit.rounds(usual), async (variant) => {
      const stdout = runNode([...args, CHILD, JSON.stringify({ ...kit, figure, variant })])
      return JSON.parse(stdout.trim().split('\n').pop())
    }, { warmUp: 0, gc: false }))
  }
  return results
}

module.exports = { flags, inProcesses, runNode }
