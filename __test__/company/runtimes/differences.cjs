'use strict'

// The differences of Bun and Deno: titles of tests of Node, with the reason; run.cjs skips these.

const ENDS_LATE = 'Deno ends no thread that is not in its event loop, and says at once that it has ended'
const NO_CLOCK = 'each thread has a clock of its own'
const NO_HOOKS = 'it has no hooks on promises'
const KEPT = 'Bun\'s collector takes any word of a stack for a reference'
const NO_SNAPSHOT = 'Bun takes no heap snapshot of a thread that blocks'
const NO_WATCH = 'Bun has no libuv: a terminated thread is noticed within 30 ms'

module.exports = {
  bun: {
    'locks/async-lock.test.js': {
      'a release may settle more promises than a batch holds; hooks use locks': NO_HOOKS
    },
    'soak/short.test.js': {
      'no law of values is broken while threads give up, abort and die, and processes end': NO_CLOCK
    },
    'ends/termination.test.js': {
      'a thread whose event loop turns between its waits is terminated as promptly': NO_WATCH,
      'a thread that is terminated takes no notification 5 ms later, blocked for 0 ms before': NO_WATCH,
      'a thread that is terminated takes no notification 5 ms later, blocked for 5 ms before': NO_WATCH,
      'a thread that is terminated takes no notification 5 ms later, blocked for 100 ms before': NO_WATCH,
      'terminate() ends a blocked thread within half a second after a heap snapshot of it': NO_SNAPSHOT
    },
    'atomics/wait-async.test.js': {
      'a pending wait keeps the memory that it waits on, a settled one does not': KEPT
    }
  },
  deno: {
    'ends/owner-death.test.js': ENDS_LATE,
    'locks/async-lock.test.js': {
      'a release may settle more promises than a batch holds; hooks use locks': NO_HOOKS
    },
    'locks/dead-holders.test.js': ENDS_LATE,
    'locks/giving-up.test.js': {
      'RwLock, shared: when the first gives up (its thread\'s death), those behind it go on': ENDS_LATE,
      'Semaphore: when the first gives up (its thread\'s death), those behind it go on': ENDS_LATE,
      'Semaphore with permits: when the first gives up (its thread\'s death), those behind it go on': ENDS_LATE
    },
    'locks/barrier.test.js': {
      'a thread that dies while it waits stays counted in its generation': ENDS_LATE
    },
    'locks/condition.test.js': {
      'a thread that dies while it waits is no longer there to be notified': ENDS_LATE,
      'wait: the notification of a thread that dies before it has the lock again goes to the next': ENDS_LATE,
      'waitAsync: the notification of a thread that dies before it has the lock again goes to the next': ENDS_LATE,
      'waitForAsync: the notification of a thread that dies before it has the lock again goes to the next': ENDS_LATE,
      'waitFor: the notification of a thread that dies before it has the lock again goes to the next': ENDS_LATE,
      'the notification of a busy thread that dies goes to the next waiter': ENDS_LATE,
      'the end of a thread that has used a condition wakes no waiter': ENDS_LATE,
      'no item is left behind by consumers that die at any moment': ENDS_LATE
    },
    'locks/latch.test.js': {
      'the counts of a dead thread stay, and its waits are gone': ENDS_LATE
    },
    'locks/rw-lock.test.js': {
      'a writer that was told and dies in its turn leaves the mark to the next': ENDS_LATE,
      'a thread that has downgraded dies as a reader': ENDS_LATE
    },
    'named/holds.test.js': {
      'a thread that is terminated while it waits, or before it heard of its grant, keeps no name': ENDS_LATE
    },
    'soak/short.test.js': `${NO_CLOCK}; and ${ENDS_LATE}`,
    'ends/termination.test.js': ENDS_LATE
  }
}
