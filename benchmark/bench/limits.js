'use strict'

// The figures that miss their goal: the reason, as far as it was measured, and what was tried. The page shows the entries whose figures it
// shows as not reached; each such figure has to be here.

/** @type {{ figures: string[], what: string, why: string }[]} */
module.exports = [
  {
    figures: ['notify-none'],
    what: '`notify` with no waiters',
    why: 'The host\'s own `notify` follows ours, for threads without the package and for WebAssembly, so this costs at least as much. Our ' +
      'share is 2 to 6 ns: one comparison of arrays, two reads of a counter. Before, it was 10 to 25 ns: a look-up in a `WeakMap` (4 ns), ' +
      'and `Infinity` as the host\'s count, a number on the heap (13 ns on Node 20).'
  },
  {
    figures: ['notify-each'],
    what: 'notify each of 100 000 locations',
    why: 'The host\'s `notify` and an empty native call take 45 ns, the critical section 27; the rest is JavaScript and cache misses. One ' +
      'look-up of a promise\'s list instead of three saved 8 ns. Tried: counters without atomic operations, which made no difference.'
  },
  {
    figures: ['register-1e5', 'notify-all-1e5', 'register-timed'],
    what: 'register 100 000, notify them all, register them with a time-out',
    why: 'A collection of the young generation falls into one of them: some 10 ms for what registering has allocated, the promises and ' +
      'their resolving functions. The sizes of earlier allocations decide where it falls; `--trace-gc` shows it. After a collection, ' +
      '`notify` takes 80 to 90 ns on each Node. A table in chunks made registering cheaper, because an array that grows is copied.'
  },
  {
    figures: ['lock-unlock-force', 'lock-unlock-instance-force'],
    what: '`lock` and `unlock`, polyfill in force',
    why: 'Two atomic operations alone are 15.5 ns (0.38 ×). Added to them one by one: the entry in the robust list 3 ns, two reads of the ' +
      'counter of waiters 1 ns, the token 2 ns, more where memory is cold; calls that V8 does not inline and checks of shapes are the rest. ' +
      'It was 40 to 44 ns. Improvements: code short enough to be inlined (8 ns), tokens known by a number instead of a table of tokens ' +
      '(6 ns), words with methods instead of objects of closures (3 ns), state in an object instead of variables that may be ' +
      'uninitialized (2 ns).'
  },
  {
    figures: ['lock-unlock-pure', 'lock-unlock-instance-pure'],
    what: '`lock` and `unlock`, not in force',
    why: 'As above, and the host\'s `notify` (24 ns) for waiters in the host\'s queue. The fence in it also serves the word, which saves one ' +
      'atomic operation; it was 64 to 70 ns.'
  },
  {
    figures: ['require-force'],
    what: '`require(\'atomics-waitasync/force\')`, cold',
    why: 'An empty package, `worker_threads` and the native library take nearly as long as the goal, in the same process (the row below). ' +
      'The rest, on Node 24: finding, reading and compiling two files 2.1 ms, resolving the name by `exports` 0.7, starting the agent and ' +
      'the install 0.8, evaluating 0.3; on Node 20 also its module loader\'s thread, 0.9. Tried: loading `worker_threads` later (nothing ' +
      'documented tells when a program gets hold of `Worker`, and programs with workers load it anyway), full minification (0.25 ms, but ' +
      'stack traces lose the names), fewer files (0.2 ms, but some code twice), compiling at once the functions that run at load (0.4 ms ' +
      'once, within noise later), opening the library by its path (no difference). With `NODE_COMPILE_CACHE` it takes 5.5 ms.'
  },
  {
    figures: ['by-worker'],
    what: 'start of a Worker with `-r …/force`',
    why: 'Measured in the Worker on Node 24: the native library and its start 0.6 ms, finding and compiling the linker 0.4 (a file of any size ' +
      'takes a quarter), evaluating the files 0.8, deserialising what the parent has compiled 0.3, `url` and `vm` 0.4, the file that starts ' +
      'the Worker\'s own code 0.5; before, 8 ms. On Node 20 also what its module loader must take before an install, 1.2.'
  },
  {
    figures: ['require-index'],
    what: '`require(\'atomics-waitasync\')`, cold',
    why: 'An empty package takes 2.9 ms of it on Node 20 (the floor): resolving its name, and reading its `exports`.'
  },
  {
    figures: ['lock-main-p99'],
    what: 'main\'s wait beside two workers in lock loops, 99th percentile',
    why: 'If main does not find the lock free, both cores are busy. Main runs when the system gives it a core, or when the lock has been ' +
      'handed over to it and the workers wait: after half a millisecond. A fifth of a millisecond would save 0.3 to 0.4 ms, at the price of ' +
      'more hand-overs to sleeping threads. Tried: spinning for the hand-over before the event loop sleeps, which made no difference.'
  },
  {
    figures: ['lock-workers-cpu'],
    what: 'processor time of the lock loops',
    why: 'A thread may spend a sixteenth of its time spinning for locks; a smaller share costs throughput. The loop\'s own work is 0.4 of it.'
  },
  {
    figures: ['memory', 'memory-timed'],
    what: 'memory of a pending wait',
    why: 'On Node 26 V8 keeps 57 MB of its young generation resident that Node 24 gives back after a collection: 114 bytes for each of half a ' +
      'million waits (`v8.getHeapSpaceStatistics()`). In use are 176 bytes a wait, 184 on Node 24: mostly the promise, its resolving ' +
      'functions and their context.'
  },
  {
    figures: ['round-trip-one-core'],
    what: 'round trip of two blocking threads that share a core',
    why: 'System calls and context switches are the same as the host\'s, because a sleep sets no timer. The Node-API calls and the store ' +
      'take the remaining 0.4 µs.'
  }
]
