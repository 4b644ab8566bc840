/**
 * Measures how late a timer of this thread was at most: so long its event loop stood still. That includes the time in
 * which other threads had all cores.
 */
class LoopDelay {
  constructor () {
    this.longest = 0
    this.due()
  }

  due () {
    const set = process.hrtime()
    this.timer = setTimeout(() => {
      this.note(set)
      this.due()
    }, 1)
    this.set = set
  }

  note (set) {
    const [seconds, nanoseconds] = process.hrtime(set)
    this.longest = Math.max(this.longest, seconds * 1e3 + nanoseconds / 1e6 - 1)
  }

  /** Ends the measurement; a timer that is late at this moment counts too. */
  stop () {
    if (this.timer !== null) {
      clearTimeout(this.timer)
      this.timer = null
      this.note(this.set)
    }
    return this.longest
  }
}

export default LoopDelay
