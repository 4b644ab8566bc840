'use strict'

const { RwLock } = require('../..')

/**
 * Exchange rates, from each of some currencies to each other, in shared memory: read by many, changed as a whole by one.
 *
 * What a reader sees is never half of one state and half of another: it holds a share of the lock as long as it looks.
 */
class Rates {
  static allocate (currencies) {
    return new SharedArrayBuffer(BEGIN + 8 * currencies)
  }

  constructor (memory) {
    this.lock = new RwLock(memory)
    this.header = new Int32Array(memory, 0, 2) // the lock · version
    this.values = new Float64Array(memory, BEGIN) // of each currency
  }

  /** Blocks while they are being changed. */
  convert (amount, from, to) {
    const token = this.lock.lockShared()
    try {
      return { result: amount * this.values[from] / this.values[to], version: this.header[1] }
    } finally {
      token.unlock()
    }
  }

  /** Sets all of them, and looks at them again before anybody else can change them: others read meanwhile. */
  async update (version) {
    const writing = await this.lock.lockAsync()
    for (let n = 0; n < this.values.length; n++) this.values[n] = valueOf(n, version)
    this.header[1] = version
    const reading = writing.downgrade()
    const sum = this.values.reduce((sum, value) => sum + value, 0)
    reading.unlock()
    return sum
  }
}

const BEGIN = 8

/** What a currency is worth: made up, so that a reader can tell whether what it has seen belongs together. */
const valueOf = (currency, version) => (currency + 1) * (version + 1)

module.exports = { Rates, valueOf }
