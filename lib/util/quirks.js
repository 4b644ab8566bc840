'use strict'

/**
 * Bugs and gaps of Node versions: a line each, with the last version that has it.
 *
 * To drop a Node, delete the lines that no other version needs, and the code that reads them. Features that code can
 * look for (`WeakRef`, `BigInt`, `diagnostics_channel`, …) are looked for where they are used.
 */

const [MAJOR, MINOR] = process.versions.node.split('.').map(Number)

/** Whether this Node is the last one with a quirk, or older. Without `minor`: the last of that major version. */
const upTo = (major, minor = Infinity) => MAJOR < major || (MAJOR === major && MINOR <= minor)

module.exports = {
  MAJOR,

  /** The global object of this module's realm. Node 10 has no `globalThis`, contexts of `vm` have no `global`. */
  globalObject: typeof globalThis === 'object' ? globalThis
    // eslint-disable-next-line no-new-func -- it gives the global object wherever code from strings may run
    : typeof global === 'object' ? global : Function('return this')(),

  /** It can wrap mapped memory, and the system can map some. */
  MAPS_MEMORY: process.platform === 'linux' &&
    (MAJOR > 26 || (MAJOR === 26 && MINOR >= 1) || (MAJOR === 24 && MINOR >= 16) || (MAJOR === 22 && MINOR >= 23)),

  /** `Atomics.load` and `notify` take no BigInt64Array. */
  NARROW_ATOMICS: upTo(11),
  /** Atomics take a typed array's offset modulo 2^32: they would access another word. */
  WRAPS_OFFSETS: upTo(11),
  /** A stack overflow at an async function's beginning rejects its promise. */
  REJECTS_OVERFLOWS: upTo(11),
  /**
   * A stack overflow may leave an exception. It happens while a rejected promise is tracked; the
   * next native call throws it.
   */
  LEAVES_EXCEPTIONS: upTo(11),
  /** The end of a worker has no signal of its own. */
  SHARES_END_SIGNAL: upTo(12, 10),
  /** A thread releases shared memory that was sent in a clean-up hook. */
  RELEASES_EARLY: upTo(13),
  /** `AsyncLocalStorage.prototype.run` calls its callback in a later tick (13 only). */
  RUNS_LATER: MAJOR === 13,
  /** There is no 'uncaughtExceptionMonitor' (but in 12.17). */
  HIDES_EXCEPTIONS: upTo(13, 6),
  /** Workers have no option `trackUnmanagedFds`. */
  NO_TRACKED_FDS: upTo(14),
  /** `util.inspect` without custom inspection aborts at a revoked proxy (since 12). */
  INSPECT_ABORTS: upTo(15),
  /** Requiring a module of Node's first makes a promise. */
  REQUIRE_MAKES_PROMISES: upTo(19),
  /** Stacks show frames of Node's modules without the prefix `node:`. */
  FRAMES_LACK_PREFIX: upTo(15),
  /** There is no `Atomics.waitAsync`, so one that is there is a polyfill. */
  NO_WAIT_ASYNC: upTo(15),
  /** A collected native getter may touch an environment that has ended (nodejs/node#38492). */
  GETTERS_CRASH: upTo(16),
  /** The module loader takes `Atomics.wait` at the first hook (since 18). */
  LATE_HOOKS: MAJOR >= 18 && upTo(21),
  /** A worker with a FinalizationRegistry may never end, nor the process. */
  REGISTRIES_HANG: upTo(20, 11) || (MAJOR === 21 && upTo(21, 5))
}
