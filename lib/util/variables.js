'use strict'

/**
 * The environment variables that begin something at load; they are the codes of warnings about it, too. Native code
 * reads the values.
 */

const DUMP = 'ATOMICS_WAITASYNC_DUMP'
const PROFILE = 'ATOMICS_WAITASYNC_PROFILE'
const STALL = 'ATOMICS_WAITASYNC_STALL'
const ALL = [DUMP, PROFILE, STALL]

/** Whether the environment asks for something that begins at load. */
function isEnabled () {
  try {
    const { env } = process
    for (let n = 0; n < ALL.length; n++) if (env[ALL[n]]) return true
  } catch (_) {
    // Deno did not permit it.
  }
  return false
}

module.exports = { ALL, DUMP, PROFILE, STALL, isEnabled }
