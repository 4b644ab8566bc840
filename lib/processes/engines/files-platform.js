'use strict'

/** Warns where the locks of files have never been tested. */

const { target } = require('../../agent/target')

/** The targets on which the checks of this engine have run. */
const TESTED = ['linux-x64-gnu', 'linux-x64-musl', 'linux-arm64-gnu', 'linux-arm-gnueabihf', 'win32-x64-msvc']

let hasWarned = false

/** Warns once in a thread, on a platform without checks. */
exports.assertTested = function assertTested () {
  if (hasWarned) return
  hasWarned = true
  // With either C library. To tell them apart takes 2 ms.
  if (process.platform + process.arch === 'linuxx64') return
  const name = target()
  if (TESTED.includes(name)) return
  const message = 'atomics-waitasync/processes: the locks of files have not been tested on ' + name + ' yet, only on ' +
    TESTED.join(', ')
  process.emitWarning(message, { code: 'ATOMICS_WAITASYNC_PROCESSES' })
}
