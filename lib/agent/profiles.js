'use strict'

/** `ATOMICS_WAITASYNC_PROFILE`: the file in which native code keeps how long was waited. */

const CODE = 'ATOMICS_WAITASYNC_PROFILE'

/** Whether waits are recorded. The first thread begins with the file; if that fails, it warns. */
module.exports = function startProfile (binding) {
  const warning = binding.startProfile()
  if (typeof warning === 'string') process.emitWarning(warning, { code: CODE })
  return binding.profiles()
}
