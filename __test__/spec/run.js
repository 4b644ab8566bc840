'use strict'

// `npm run spec`: checks the specification of the locks (__test__/spec/locks.pml) by the model checker spin, in every
// configuration below; and that it is not too weak: what a configuration leaves out must be found.
//
// It needs spin (Debian: `apt-get install spin`) and a C compiler. The last line is `N passed, N failed[, N skipped]`.

const path = require('path')
const { command } = require('../../scripts/lib/arguments')
const { find } = require('../../scripts/lib/cargo')
const { run, succeed } = require('../../scripts/lib/child')
const { Results } = require('../../scripts/lib/results')
const { withScratch } = require('../../scripts/lib/scratch')

const SPECIFICATION = path.join(__dirname, 'locks.pml')

// What a configuration has, and its flags. The numbers are those of operations of each thread, and of deaths.

/** No error is to be found. */
const RIGHT = [
  ['three threads block, no deaths', ['ROUNDS=2', 'DEATHS=0']],
  ['three threads block, one death', ['ROUNDS=2', 'DEATHS=1']],
  ['three threads block, two deaths', ['ROUNDS=1', 'DEATHS=2']],
  ['one of the threads awaits, no deaths', ['PROMISE', 'ROUNDS=2', 'DEATHS=0']],
  ['one of the threads awaits, two deaths', ['PROMISE', 'ROUNDS=1', 'DEATHS=2']],
  ['one of the threads has an event loop that never turns, one death', ['PROMISE', 'BUSY', 'ROUNDS=1', 'DEATHS=1']]
]

/** An error is to be found. */
const WRONG = [
  ['without the second look at the counter', ['WITHOUT_SECOND_LOOK', 'ROUNDS=1', 'DEATHS=0']],
  ['without the end of a release that a death has interrupted', ['WITHOUT_FINISHED_RELEASE', 'ROUNDS=1', 'DEATHS=1']],
  ['where the note of an earlier death stays', ['NOTE_STAYS', 'ROUNDS=2', 'DEATHS=2']],
  ['where a claim that was woken leaves without a word', ['WITHOUT_SUCCESSOR', 'ROUNDS=1', 'DEATHS=0']],
  ['where a lock is handed over and freed', ['HANDED_OVER_AND_FREED', 'ROUNDS=1', 'DEATHS=0']],
  ['where no thread behind a busy event loop is woken', ['PROMISE', 'BUSY', 'ONLY_THE_FIRST', 'ROUNDS=1', 'DEATHS=0']]
]

async function check (flags, holds, folder) {
  const [pan, cwd, timeout] = [path.join(folder, 'pan'), folder, 600000]
  await succeed('spin', ['-a', ...flags.map(flag => `-D${flag}`), SPECIFICATION], { cwd, timeout })
  await succeed('cc', ['-O2', '-DSAFETY', '-DCOLLAPSE', '-w', '-o', pan, 'pan.c'], { cwd, timeout })
  const { error, output } = await run(pan, ['-m1000000'], { cwd, timeout })
  const errors = /errors: (\d+)/.exec(output)
  const states = /(\d+) states, stored/.exec(output)
  const isCut = holds && /max search depth too small|out of memory|Search not completed/.test(output)
  if (error || errors === null || states === null || isCut) throw new Error(`it did not come to its end:\n${output}`)
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
    for (const [what, flags] of RIGHT) await results.of(what, () => check(flags, true, folder))
    for (const [what, flags] of WRONG) await results.of(what, () => check(flags, false, folder))
  })
  results.close()
}

command(main)
