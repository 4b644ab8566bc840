'use strict'

/**
 * Tells native code how this thread ends: reports of waits name it.
 *
 * Node emits no 'exit' in a thread that is terminated. So that is how it ends unless a listener has been called before.
 */

const { HIDES_EXCEPTIONS } = require('../util/quirks')
const { setImmediate } = require('../util/timers')

/** `MANNERS` in core/src/observe/ended.rs has the same numbers. */
const MANNERS = { UNKNOWN: 0, TERMINATE: 1, END: 2, EXIT: 3, EXCEPTION: 4 }

/** Notes how this thread ends, once that is known. Not of the main thread, with which the process ends. */
module.exports = function reportEnd (binding) {
  // What happened in this turn of the event loop.
  let last = MANNERS.EXIT
  const notes = (manner) => () => {
    last = manner
    try {
      setImmediate(() => { last = MANNERS.EXIT }).unref()
    } catch (_) {
      // A test has put a fake one in place.
    }
  }
  const exit = (code) => {
    binding.endsBy(last === MANNERS.EXIT && code !== 0 && HIDES_EXCEPTIONS ? MANNERS.UNKNOWN : last)
  }
  try {
    process.on('beforeExit', notes(MANNERS.END))
    if (!HIDES_EXCEPTIONS) process.on('uncaughtExceptionMonitor', notes(MANNERS.EXCEPTION))
    process.on('exit', exit)
    process.on('removeListener', (name, listener) => { if (listener === exit) binding.endsBy(MANNERS.UNKNOWN) })
    binding.endsBy(MANNERS.TERMINATE)
  } catch (_) {
    // A program has frozen `process`.
  }
}
