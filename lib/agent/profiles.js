'use strict'

/** `ATOMICS_WAITASYNC_PROFILE`: the file in which native code records durations of waits. */

const CODE = 'ATOMICS_WAITASYNC_PROFILE'

/** Returns whether waits are recorded. The first thread creates the file; if that fails, it warns. */
module.exports = function startProfile (binding) {
  const warning = binding.startProfile()
  if (typeof warning === 'string') process.emitWarning(warning, { code: CODE })
  return binding.profiles()
}
