'use strict'

/** Whether the environment asks for something that begins at load. */
module.exports = function isAsked () {
  try {
    const { ATOMICS_WAITASYNC_DUMP, ATOMICS_WAITASYNC_PROFILE, ATOMICS_WAITASYNC_STALL } = process.env
    return Boolean(ATOMICS_WAITASYNC_DUMP || ATOMICS_WAITASYNC_PROFILE || ATOMICS_WAITASYNC_STALL)
  } catch (_) {
    // Deno did not permit it.
    return false
  }
}
