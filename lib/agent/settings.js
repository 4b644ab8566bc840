'use strict'

/** The environment variables that a thread obeys, from its first use on. */

const { describe } = require('../util/values')
const { DUMP, STALL } = require('../util/variables')

/** Reads `ATOMICS_WAITASYNC_STALL`. An invalid value counts as 0, and one thread of the process warns of it. */
function stallAfter (binding) {
  const milliseconds = binding.stallAfter()
  if (typeof milliseconds === 'number') return milliseconds
  const problem = ' must be a whole number of milliseconds from 0 to 2147483647, not '
  process.emitWarning(STALL + problem + describe(process.env[STALL]), { code: STALL })
  return 0
}

/**
 * Arms the signal that the variable names, and returns it. If it cannot be had, one thread of the process warns.
 */
function armDumps (binding) {
  try {
    const signal = binding.armDumps(process.versions.bun === undefined && process.versions.deno === undefined)
    return typeof signal === 'string' ? signal : undefined
  } catch (error) {
    process.emitWarning(error.message, { code: DUMP })
    return undefined
  }
}

module.exports = { armDumps, stallAfter }
