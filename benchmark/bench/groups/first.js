'use strict'

// The processor time of a first lock by the published package, less that of the same without it: in a new process, and
// in a further Worker of a process in which two took one before.

const fs = require('fs')
const os = require('os')
const path = require('path')
const { isInstalled } = require('../locks')
const { flags, runNode } = require('../processes')
const { median, takeTurns } = require('../sampling')

const PROGRAM = path.join(__dirname, '..', 'first.js')
const PEERS = path.join(__dirname, '..', '..')
const VARIANTS = {
  'first-cpu': ['ours', 'again', 'async-mutex'],
  'first-worker': ['ours', 'again'],
  'first-worker-force': ['ours', 'again'],
  'process-first': ['ours', 'again', 'proper-lockfile', 'wait-for-lock']
}
const isThere = variant =>
  ['ours', 'again'].includes(variant) || isInstalled(variant === 'wait-for-lock' ? 'fs-native-extensions' : variant)

async function run ({ chosen, installed, quick, rounds }) {
  const results = {}
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'first-'))
  /** Microseconds of what the program did. */
  const cost = (figure, variant) =>
    JSON.parse(runNode([...flags(), PROGRAM, figure, variant, folder, String(quick)], {
      cwd: ['ours', 'floor'].includes(variant) ? installed : PEERS
    }))
  try {
    for (const figure of Object.keys(VARIANTS).filter(figure => chosen.includes(figure))) {
      if (figure === 'process-first' && parseInt(process.versions.node) < 16) continue
      const inWorkers = figure.startsWith('first-worker')
      const variants = VARIANTS[figure].filter(isThere)
      const { [figure]: samples } = await takeTurns([...variants, 'floor'], rounds(inWorkers ? 3 : 15), variant => ({
        [figure]: cost(figure, variant === 'again' ? 'ours' : variant) / 1000
      }), { warmUp: 0, gc: false })
      const own = median(samples.floor)
      for (const variant of variants) samples[variant] = samples[variant].map(time => time - own)
      // A Worker's whole life is what its first lock is compared with; an empty process is not.
      if (!inWorkers) delete samples.floor
      results[figure] = samples
    }
  } finally {
    fs.rmSync(folder, { recursive: true, force: true })
  }
  return results
}

module.exports = { run }
