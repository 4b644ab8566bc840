'use strict'

const { flags } = require('./inherited-flags')
const { passNext } = require('./worker-message')

const NO_SUCH_FLAG = '--atomics-waitasync-no-such-flag'

let answer

/** Those of this thread's flags that a Worker takes; undefined if that cannot be told. */
module.exports = function accepted (HostWorker) {
  if (answer === undefined) answer = { flags: flags.length === 0 ? [] : askWorker(HostWorker) }
  return answer.flags
}

/**
 * Asks by a worker that cannot be started, because there is a flag that does not exist: the error lists all flags that
 * it refuses, in their order.
 */
function askWorker (HostWorker) {
  passNext(true)
  try {
    new HostWorker(__filename, { // eslint-disable-line no-new
      execArgv: flags.concat(NO_SUCH_FLAG),
      // Comes after the flags have been looked at and before anything is started.
      get stdin () { throw new Error('the flag was taken') }
    })
  } catch (error) {
    return withoutRefused(String(error.message))
  } finally {
    passNext(false)
  }
}

function withoutRefused (message) {
  let rest = message.slice(message.indexOf(': ') + 2)
  const taken = flags.filter((flag) => {
    if (!rest.startsWith(flag + ', ')) return true
    rest = rest.slice(flag.length + 2)
    return false
  })
  // If something else is left, then that was another error.
  return rest === NO_SUCH_FLAG ? taken : undefined
}
