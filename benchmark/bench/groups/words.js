'use strict'

// A word that two processes of one machine hand over, both blocked. The floor: bare futexes, by a Rust program.

const fs = require('fs')
const os = require('os')
const path = require('path')
const { cargo, environment, find } = require('../../../scripts/lib/cargo')
const { succeed } = require('../../../scripts/lib/child')
const { takeTurns } = require('../sampling')
const { Locker, canShare } = require('./processes')

const ROOT = path.join(__dirname, '..', '..', '..')
const BENCH = 'bench --package waitasync-core --bench futex --locked --target-dir'.split(' ')
/** Of building it. Milliseconds. */
const TIMEOUT = 20 * 60 * 1000

async function futex (trips) {
  const args = [...BENCH, path.join('target', 'instructions'), '--', String(trips)]
  const output = await succeed(cargo(), args, { cwd: ROOT, env: environment(), timeout: TIMEOUT })
  return Number(/^[\d.]+$/m.exec(output)[0])
}

async function run ({ rounds, quick, installed }) {
  if (!canShare()) return {}
  const trips = quick ? 100 : 5000
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'words-'))
  const lockers = await Promise.all([1, 2].map(() => Locker.start({ variant: 'shared', folder, installed })))
  const variants = find('cargo') === null ? ['ours', 'again'] : ['ours', 'again', 'floor']
  try {
    return await takeTurns(variants, rounds(11), async variant => {
      if (variant === 'floor') return { 'word-hand-over': await futex(trips) }
      const [took] = await Promise.all(lockers.map((locker, me) => locker.do('word', { me, trips })))
      return { 'word-hand-over': took }
    }, { warmUp: 1, gc: false })
  } finally {
    await Promise.all(lockers.map(locker => locker.end()))
    fs.rmSync(folder, { recursive: true, force: true })
  }
}

module.exports = { run }
