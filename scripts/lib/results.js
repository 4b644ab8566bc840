'use strict'

/**
 * The results of a script's checks; `close` prints the last line, `N passed, N failed[, N skipped]`, which steps.js
 * reads.
 */
class Results {
  constructor () {
    this.passed = 0
    this.failed = 0
    this.skipped = 0
  }

  /**
   * Runs `check`, which throws if it fails, and may give a remark; skips it if there is a `reason` against it. True if
   * it passed.
   */
  async of (name, check, reason) {
    if (reason) return this.skip(name, reason)
    const begin = Date.now()
    const seconds = () => `(${((Date.now() - begin) / 1000).toFixed(1)} s)`
    try {
      const said = await check()
      this.passed++
      console.log(`ok - ${name}${typeof said === 'string' ? `: ${said}` : ''} ${seconds()}`)
      return true
    } catch (error) {
      this.failed++
      console.log(`not ok - ${name} ${seconds()}\n${(error.stack || String(error)).replace(/^/gm, '    ')}`)
      return false
    }
  }

  skip (name, reason) {
    this.skipped++
    console.log(`skip - ${name} # ${reason}`)
    return false
  }

  close () {
    console.log(`${this.passed} passed, ${this.failed} failed${this.skipped > 0 ? `, ${this.skipped} skipped` : ''}`)
    if (this.failed > 0 || this.passed + this.skipped === 0) process.exitCode = 1
  }
}

module.exports = { Results }
