'use strict'

// AbortController, for a Node without one, or without reasons of signals. Runs on every Node.

class AbortController {
  constructor () {
    this.listeners = new Set()
    this.signal = {
      aborted: false,
      reason: undefined,
      addEventListener: (type, listener) => { this.listeners.add(listener) },
      removeEventListener: (type, listener) => { this.listeners.delete(listener) }
    }
  }

  abort (reason = Object.assign(new Error('This operation was aborted'), { name: 'AbortError' })) {
    if (this.signal.aborted) return
    Object.assign(this.signal, { aborted: true, reason })
    for (const listener of this.listeners) listener.call(this.signal, { type: 'abort' })
  }
}

const Host = new Function('return this')().AbortController // eslint-disable-line no-new-func

module.exports = Host !== undefined && 'reason' in new Host().signal ? Host : AbortController
