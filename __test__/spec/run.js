'use strict'

// `npm run spec`: checks the specification of the locks (__test__/spec/locks.pml) by the model checker spin, in every configuration below; and that
// it is not too weak: what a configuration leaves out must be found.
//
// It needs spin (Debian: `apt-get install spin`) and a C compiler. The last line is `N passed, N failed[, N skipped]`.

const path = require('path')
const { command } = require('../../scripts/lib/arguments')
const { find } = require('../../scripts/lib/cargo')
const { run, succeed } = require('../../scripts/lib/child')
const { Results } = require('../../scripts/lib/results')
const { withScratch } = require('../../scripts/lib/scratch')

const SPECIFICATION = path.join(__dirname, 'locks.pml')

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
  const [pan, cwd, timeout] = [path.join(folder, 'pan'), folder, 600000]
  await succeed('spin', ['-a', ...flags.map(flag => `-D${flag}`), SPECIFICATION], { cwd, timeout })
  await succeed('cc', ['-O2', '-DSAFETY', '-DCOLLAPSE', '-w', '-o', pan, 'pan.c'], { cwd, timeout })
  const { error, output } = await run(pan, ['-m1000000'], { cwd, timeout })
  const errors = /errors: (\d+)/.exec(output)
  const states = /(\d+) states, stored/.exec(output)
  if (error || errors === null || states === null || (holds && /max search depth too small|out of memory|Search not completed/.test(output))) throw new Error(`it did not come to its end:\n${output}`)
  if ((errors[1] === '0') !== holds) throw new Error(holds ? `an error was found:\n${output}` : 'no error was found')
  return holds ? `${states[1]} states, no error` : 'an error, as it has to be'
}

async function main () {
  const results = new Results()
  const missing = ['spin', 'cc'].filter(name => find(name) === null)
  if (missing.length > 0) {
    results.skip('spec', `${missing.join(' and ')} not installed`)
    return results.close()
  }
  await withScratch(async folder => {
    for (const configuration of CONFIGURATIONS) await results.of(configuration.what, () => check(configuration, folder))
  })
  results.close()
}

command(main)
