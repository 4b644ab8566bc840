'use strict'

// AbortController, for a Node that has none, or whose signals have no reason. Runs on every Node.

class AbortSignal {
  constructor () {
    this.aborted = false
    this.reason = undefined
    this.listeners = new Set()
  }

  addEventListener (type, listener) {
    this.listeners.add(listener)
  }

  removeEventListener (type, listener) {
    this.listeners.delete(listener)
  }
}

class AbortController {
  constructor () {
    this.signal = new AbortSignal()
  }

  abort (reason) {
    const { signal } = this
    if (signal.aborted) return
    if (reason === undefined) reason = Object.assign(new Error('This operation was aborted'), { name: 'AbortError' })
    signal.aborted = true
    signal.reason = reason
    for (const listener of signal.listeners) listener.call(signal, { type: 'abort' })
  }
}

function hasReason (Host) {
  const controller = new Host()
  controller.abort('reason')
  return controller.signal.reason === 'reason'
}

const Host = new Function('return this')().AbortController // eslint-disable-line no-new-func

module.exports = Host !== undefined && hasReason(Host) ? Host : AbortController
