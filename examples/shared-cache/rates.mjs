import { RwLock } from 'atomics-waitasync'

/**
 * Exchange rates between some currencies, in shared memory. Many threads read them; one changes all of them at once.
 *
 * A reader never sees half of one version and half of another, because it holds a share of the lock while it reads.
 */
class Rates {
  static allocate (currencies) {
    return new SharedArrayBuffer(BEGIN + 8 * currencies)
  }

  constructor (memory) {
    this.lock = new RwLock(memory)
    this.header = new Int32Array(memory, 0, 2) // the lock · version
    this.values = new Float64Array(memory, BEGIN) // one of each currency
  }

  /** Blocks while the rates change. */
  convert (amount, from, to) {
    const token = this.lock.lockShared()
    try {
      return { result: amount * this.values[from] / this.values[to], version: this.header[1] }
    } finally {
      token.unlock()
    }
  }

  /** Sets all rates, then reads them before another thread can change them. Others may read meanwhile. */
  async update (version) {
    const writing = await this.lock.lockAsync()
    let reading
    try {
      for (let n = 0; n < this.values.length; n++) this.values[n] = valueOf(n, version)
      this.header[1] = version
      reading = writing.downgrade()
      return this.values.reduce((sum, value) => sum + value, 0)
    } finally {
      (reading || writing).unlock()
    }
  }
}

const BEGIN = 8

/** Returns the made-up value of a currency: a reader can tell whether two values are of the same version. */
const valueOf = (currency, version) => (currency + 1) * (version + 1)

export { Rates, valueOf }
