'use strict'

// The costs for others of a thread that only holds many locks: two of them, each of which holds something, block by
// turns for one lock.

const { collect, takeTurns } = require('../sampling')
const { Member, begin, together } = require('../team')

const NAMES = ['ours', 'again', 'floor']
const HELD = 100000
const ROUNDS = 1000

async function run ({ rounds, quick }) {
  const words = new Int32Array(new SharedArrayBuffer(32))
  const members = [4, 5].map(mine => new Member('beside', 'blocker', { words, mine }))
  return takeTurns(NAMES, rounds(5), async (name) => {
    const tokens = hold(name === 'floor' ? 0 : quick ? 100 : HELD)
    // The garbage of making them is no cost of holding them, and would be collected beside the others.
    collect()
    words[0] = 0
    const count = quick ? 10 : ROUNDS
    const { cpu } = await together(members, words, { count })
    for (const token of tokens) token.unlock()
    return { 'block-beside': cpu / (members.length * count) }
  }, { warmUp: 1, gc: false })
}

function hold (count) {
  const { AsyncLock } = require('../../../pure')
  const buffer = new SharedArrayBuffer(4 * count)
  return Array.from({ length: count }, (_, n) => new AsyncLock(buffer, { byteOffset: 4 * n }).tryLock())
}

const threads = {
  /** words: the lock, those of team.js, one that nobody changes, and a lock of each thread. */
  blocker ({ words, mine }) {
    const { AsyncLock } = require('../../../pure')
    const [lock, own] = [0, mine].map(index => new AsyncLock(words.buffer, { byteOffset: 4 * index }))
    own.lock()
    return ({ count }) => {
      begin(words)
      // Long enough for the other one to join the line.
      for (let n = 0; n < count; n++) lock.executeLockedSync(() => Atomics.wait(words, 3, 0, 0.1))
      return count
    }
  }
}

module.exports = { run, threads }
