'use strict'

/**
 * Throws a stack overflow unless so much stack is left. Called before steps that a stack overflow must not interrupt.
 *
 * The engine compares the size of a call's arguments with the stack that is left. Counting frames would not do: an
 * optimized frame takes a fraction of another.
 */

const { globalObject: { Array } } = require('./quirks')
const workerThreads = require('./worker-threads')

const { apply } = Reflect
const { execArgv } = process
/** An argument takes as many bytes as an address. */
const ARGUMENTS_PER_KILOBYTE = process.arch === 'arm' || process.arch === 'ia32' ? 256 : 128

function assertKilobytes (kilobytes) {
  apply(() => {}, undefined, new Array(kilobytes * ARGUMENTS_PER_KILOBYTE))
}

/** Throws without the stack for loading code and starting the agent. These take half as much on any Node. */
const assertStackToLoad = () => assertKilobytes(128)

/**
 * Returns how many kilobytes of stack the engine gives this thread: of a worker those that Node leaves of its limit,
 * otherwise those of V8's flag, or by default. Another thread's flag may say less; nothing says more.
 */
function stackKilobytes () {
  const limits = workerThreads.isMainThread ? undefined : workerThreads.threads.resourceLimits
  if (limits !== undefined) return 1024 * (limits.stackSizeMb || 4) - 192
  for (let n = 0; n < execArgv.length; n++) {
    const flag = /^--stack[-_]size=(\d+)$/.exec(execArgv[n])
    if (flag !== null) return Number(flag[1])
  }
  return 984
}

module.exports = { assertKilobytes, assertStackToLoad, stackKilobytes }
