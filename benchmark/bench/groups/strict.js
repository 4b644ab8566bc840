'use strict'

// Many workers in loops on one lock with a strict line: a `RwLock` taken exclusively, and a name. The processor time of
// each operation, without and with a timeout, which spares the search for deadlocks.

const { sleep, takeTurns } = require('../sampling')
const { Member, begin, goesOn, together } = require('../team')

const NAMES = ['ours', 'again', 'floor']
/** Which no operation takes. Milliseconds. */
const TIMEOUT = 1e9

async function run ({ rounds, quick }) {
  const results = {}
  for (const count of [16, 64]) {
    const words = new Int32Array(new SharedArrayBuffer(16))
    const members = Array.from({ length: count }, () => new Member('strict', 'loop', { words }))
    for (const kind of ['rw', 'named']) {
      Object.assign(results, await takeTurns(NAMES, rounds(5), async (name) => {
        const request = { kind, timeout: name === 'floor' ? TIMEOUT : undefined }
        return { [`strict-${kind}-${count}`]: await race(members, words, request, quick ? 50 : 1000) }
      }, { warmUp: 1, gc: false }))
    }
    await Promise.all(members.map(member => member.end()))
  }
  return results
}

/** Microseconds of processor time of each operation. */
async function race (members, words, request, milliseconds) {
  words[0] = 0
  const { answers, cpu } = await together(members, words, request, () => sleep(milliseconds))
  return cpu / answers.reduce((sum, count) => sum + count, 0)
}

const threads = {
  /** words: the lock, and those of team.js. */
  loop ({ words }) {
    const { RwLock, locks } = require('../../../pure')
    const lock = new RwLock(words.buffer)
    const nothing = () => {}
    const operations = {
      rw: options => lock.lock(options).unlock(),
      named: options => locks.requestSync('strict', options, nothing)
    }
    return ({ kind, timeout }) => {
      const operation = operations[kind]
      const options = timeout === undefined ? {} : { timeout }
      let done = 0
      begin(words)
      for (; goesOn(words); done++) operation(options)
      return done
    }
  }
}

module.exports = { run, threads }
