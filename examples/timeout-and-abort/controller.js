'use strict'

/** AbortController; before Node 15, which has none, as much of it as a lock needs. */
class Controller {
  constructor () {
    const listeners = new Set()
    this.signal = {
      aborted: false,
      addEventListener: (type, listener) => { listeners.add(listener) },
      removeEventListener: (type, listener) => { listeners.delete(listener) }
    }
    this.abort = () => {
      this.signal.aborted = true
      for (const listener of listeners) listener()
    }
  }
}

module.exports = typeof AbortController === 'function' ? AbortController : Controller
