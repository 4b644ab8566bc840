'use strict'

// Counts the instructions of a program's operations with valgrind's callgrind, in a way that gives the same numbers on every
// machine, however busy it is. This file also judges them.

const fs = require('fs')
const path = require('path')
const { run, succeeded } = require('./child')
const { withScratch } = require('./scratch')

/** The count of one call of another library, whose real number of instructions depends on its version and on the processor. */
const CALL = 60

/**
 * How far a count may be from the recorded one. They are exact, so this is not for noise: whatever is changed, the compiler
 * inlines and orders other things a little differently as well. Of the usual few hundred instructions it is an atomic operation
 * and what is done about its outcome; of the shortest path it is one instruction.
 */
const TOLERANCE = 0.03

/**
 * Runs `program`, which prints a line `times name` for each operation, having done that within a call of its function `counted`.
 * @returns {Promise<Object<string, number>>} the instructions of each operation
 */
function countInstructions (valgrind, program) {
  return withScratch(async folder => {
    const out = path.join(folder, 'out')
    const counted = `${path.basename(program).replace(/-[0-9a-f]+$/, '')}::counted`
    const { stdout, output } = succeeded(await run(valgrind, [
      // Without the user's own options of valgrind.
      '--command-line-only=yes', '--tool=callgrind', `--callgrind-out-file=${out}`, '--compress-strings=no', '--compress-pos=no',
      `--zero-before=${counted}`, `--dump-after=${counted}`, program
    ]), ['valgrind'])
    const operations = Array.from(stdout.matchAll(/^(\d+) (.*)$/gm), ([, times, name]) => ({ times: Number(times), name }))
    const dumps = fs.readdirSync(folder).length - 1 // The last is of what comes after all operations.
    if (dumps !== operations.length) throw new Error(`${operations.length} operations, but ${counted} was left ${dumps} times:\n${output}`)
    const perOperation = ({ times, name }, place) => {
      const dump = fs.readFileSync(`${out}.${place + 1}`, 'utf8')
      return [name, Number((instructionsIn(dump, fs.realpathSync(program)) / times).toFixed(1))]
    }
    return Object.fromEntries(operations.map(perOperation))
  })
}

/** Reads a dump of callgrind's: the instructions of `program` itself, and its calls of other libraries. */
function instructionsIn (dump, program) {
  let object = null
  let called = null
  let isCall = false
  let count = 0
  for (const line of dump.split('\n')) {
    const [, key, value] = /^(\w+)=(.*)/.exec(line) || []
    if (key === 'ob') object = value
    else if (key === 'cob') called = value
    else if (key === 'calls') {
      if (object === program && called !== null && called !== program) count += CALL * parseInt(value, 10)
      called = null
      isCall = true
    } else if (/^\d/.test(line)) {
      // After `calls` comes what the called one and those below it took, which is said where they are, too.
      if (object === program && !isCall) count += Number(line.split(' ')[1])
      isCall = false
    }
  }
  return count
}

/** For each operation that is recorded or was counted: both numbers, their ratio, and what is wrong with it, or null. */
function compare (recorded, counted) {
  const names = new Set([...Object.keys(recorded), ...Object.keys(counted)])
  return Array.from(names, name => {
    const row = { name, recorded: recorded[name], counted: counted[name], ratio: counted[name] / recorded[name], problem: null }
    if (row.counted === undefined) row.problem = 'is not counted any more'
    else if (row.recorded === undefined) row.problem = 'is not recorded'
    else if (row.ratio > 1 + TOLERANCE) row.problem = 'takes more'
    else if (row.ratio < 1 - TOLERANCE) row.problem = 'takes less: the record is out of date'
    return row
  })
}

module.exports = { countInstructions, instructionsIn, compare, CALL }
