'use strict'

/** Whether the environment asks for something that begins when the package is loaded, before its first use. */
module.exports = function isAsked () {
  try {
    return Boolean(process.env.ATOMICS_WAITASYNC_DUMP || process.env.ATOMICS_WAITASYNC_PROFILE)
  } catch (_) {
    // Deno did not permit it.
    return false
  }
}
