'use strict'

// Resident memory of a pending request for a named lock. A process for each sample.

const { resident } = require('../sampling')
const { inProcesses } = require('../processes')
const { open, variants } = require('./named')

module.exports = {
  run: kit => inProcesses(kit, 3, { 'named-memory': variants() }),

  async sample (figure, variant, { quick }) {
    const locks = open(variant)
    const size = quick ? 500 : 5000
    const callback = () => {}
    const promises = new Array(3 * size).fill(null)
    promises[0] = locks.request('x', () => new Promise(() => {}))
    let count = 1
    // What the first ones take is not theirs alone.
    const ask = (until) => { while (count < until) promises[count++] = locks.request('x', callback) }
    ask(size)
    const before = await resident()
    ask(3 * size)
    return { [figure]: (await resident() - before) / (2 * size) }
  }
}
