'use strict'

// `npm run spec`: checks the specification of the locks (spec/locks.pml) by the model checker spin, in every configuration below; and that
// it is not too weak: what a configuration leaves out must be found.
//
// It needs spin (Debian: `apt-get install spin`) and a C compiler. The last line is `N passed, N failed[, N skipped]`.

const fs = require('fs')
const os = require('os')
const path = require('path')
const { command } = require('./lib/arguments')
const { find } = require('./lib/cargo')
const { run } = require('./lib/child')

const SPECIFICATION = path.join(__dirname, '..', 'spec', 'locks.pml')

/** `holds`: whether no error is to be found. The numbers are those of operations of each thread, and of deaths. */
const CONFIGURATIONS = [
  { what: 'three threads block, no deaths', flags: ['ROUNDS=2', 'DEATHS=0'], holds: true },
  { what: 'three threads block, one death', flags: ['ROUNDS=2', 'DEATHS=1'], holds: true },
  { what: 'three threads block, two deaths', flags: ['ROUNDS=1', 'DEATHS=2'], holds: true },
  { what: 'one of the threads awaits, no deaths', flags: ['PROMISE', 'ROUNDS=2', 'DEATHS=0'], holds: true },
  { what: 'one of the threads awaits, two deaths', flags: ['PROMISE', 'ROUNDS=1', 'DEATHS=2'], holds: true },
  { what: 'one of the threads has an event loop that never turns, one death', flags: ['PROMISE', 'BUSY', 'ROUNDS=1', 'DEATHS=1'], holds: true },
  { what: 'without the second look at the counter', flags: ['WITHOUT_SECOND_LOOK', 'ROUNDS=1', 'DEATHS=0'], holds: false },
  { what: 'without the end of a release that a death has broken off', flags: ['WITHOUT_FINISHED_RELEASE', 'ROUNDS=1', 'DEATHS=1'], holds: false },
  { what: 'where the note of an earlier death stays', flags: ['NOTE_STAYS', 'ROUNDS=2', 'DEATHS=2'], holds: false },
  { what: 'where a claim that was woken leaves without a word', flags: ['WITHOUT_SUCCESSOR', 'ROUNDS=1', 'DEATHS=0'], holds: false },
  { what: 'where a lock is handed over and freed', flags: ['HANDED_OVER_AND_FREED', 'ROUNDS=1', 'DEATHS=0'], holds: false },
  { what: 'where no thread behind a busy event loop is woken', flags: ['PROMISE', 'BUSY', 'ONLY_THE_FIRST', 'ROUNDS=1', 'DEATHS=0'], holds: false }
]

async function check ({ flags, holds }, folder) {
  const steps = [
    ['spin', ['-a', ...flags.map(flag => `-D${flag}`), SPECIFICATION]],
    ['cc', ['-O2', '-DSAFETY', '-DCOLLAPSE', '-w', '-o', 'pan', 'pan.c']],
    [path.join(folder, 'pan'), ['-m1000000']]
  ]
  let output = ''
  for (const [command, args] of steps) {
    const ended = await run(command, args, { cwd: folder, timeout: 600000 })
    output = ended.output
    if (ended.error || (ended.code !== 0 && command !== steps[2][0])) return { problem: `${command} failed:\n${output}` }
  }
  const errors = /errors: (\d+)/.exec(output)
  const states = /(\d+) states, stored/.exec(output)
  if (errors === null || states === null || /max search depth too small|out of memory|Search not completed/.test(holds ? output : '')) return { problem: `it did not come to its end:\n${output}` }
  if ((errors[1] === '0') !== holds) return { problem: holds ? `an error was found:\n${output}` : 'no error was found' }
  return { states: states[1], problem: undefined }
}

async function main () {
  const missing = ['spin', 'cc'].filter(name => find(name) === null)
  if (missing.length > 0) {
    console.log(`skip - spec # ${missing.join(' and ')} not installed\n0 passed, 0 failed, 1 skipped`)
    return
  }
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'spec-'))
  let failed = 0
  try {
    for (const configuration of CONFIGURATIONS) {
      const start = Date.now()
      const { states, problem } = await check(configuration, folder)
      if (problem !== undefined) failed++
      const result = problem !== undefined ? `FAILED: ${problem}` : configuration.holds ? `${states} states, no error` : 'an error, as it has to be'
      console.log(`${configuration.what}: ${result} (${Math.round((Date.now() - start) / 1000)} s)`)
    }
  } finally {
    fs.rmSync(folder, { recursive: true, force: true })
  }
  console.log(`${CONFIGURATIONS.length - failed} passed, ${failed} failed`)
  if (failed > 0) process.exitCode = 1
}

command(main)
