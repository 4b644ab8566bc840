'use strict'

/** The flags that this thread's workers inherit, as they were when the package was loaded, and which of them a Worker accepts. */

/** Any code may change `process.execArgv` and the environment later. */
const flags = process.execArgv.slice()
const { NODE_OPTIONS } = process.env

const NO_SUCH_FLAG = '--atomics-waitasync-no-such-flag'

let answer

/** Those of the flags that a Worker accepts; undefined if that cannot be determined. */
function accepted (HostWorker) {
  if (answer === undefined) answer = { flags: flags.length === 0 ? [] : askWorker(HostWorker) }
  return answer.flags
}

/** Constructs a Worker with a flag that does not exist: the error lists all flags that it refuses, in their order. */
function askWorker (HostWorker) {
  try {
    new HostWorker(__filename, { // eslint-disable-line no-new
      execArgv: flags.concat(NO_SUCH_FLAG),
      // Read after the flags have been checked and before anything is started.
      get stdin () { throw new Error('the flag was accepted') }
    })
  } catch (error) {
    return withoutRefused(String(error.message))
  }
}

function withoutRefused (message) {
  let rest = message.slice(message.indexOf(': ') + 2)
  const left = flags.filter((flag) => {
    if (!rest.startsWith(flag + ', ')) return true
    rest = rest.slice(flag.length + 2)
    return false
  })
  // If more is left of the message, it was another error.
  return rest === NO_SUCH_FLAG ? left : undefined
}

module.exports = { NODE_OPTIONS, accepted, flags }
