'use strict'

// What has not been reached: what stands in the way, as far as it was measured, and what was tried. The page shows those of them whose
// figures are not reached in what it shows; each such figure has to be here.

/** @type {{ figures: string[], what: string, why: string }[]} */
module.exports = [
  {
    figures: ['notify-none'],
    what: '`notify` with no waiters',
    why: 'The host\'s own `notify` has to follow ours, for threads without the package and for WebAssembly, so it cannot be had for less. What ' +
      'is added is 2 to 6 ns: an array compared, two reads of a counter. Before, it was 10 to 25 ns: a look-up in a `WeakMap` (4 ns), and ' +
      '`Infinity` as the host\'s count, a number on the heap (13 ns on Node 20).'
  },
  {
    figures: ['notify-each'],
    what: 'notify each of 100 000 locations',
    why: 'The host\'s `notify` and an empty native call are 45 ns, the critical section 27, the rest is JavaScript and cache misses. Looking a ' +
      'promise\'s list up once instead of three times took 8 ns away. Tried: counters without atomic operations, which made no difference.'
  },
  {
    figures: ['register-1e5', 'notify-all-1e5', 'register-timed'],
    what: 'register 100 000, notify them all, register them with a time-out',
    why: 'A collection of the young generation falls into one of them, some 10 ms for what registering has allocated, which is V8\'s: the ' +
      'promises and their resolving functions. Where it falls depends on the sizes of what was allocated before; `--trace-gc` shows it. With ' +
      'the garbage collected before `notify`, that takes 80 to 90 ns on each Node. Registering was made cheaper by a table in chunks, for an ' +
      'array that grows is copied.'
  },
  {
    figures: ['lock-unlock-force', 'lock-unlock-instance-force'],
    what: '`lock` and `unlock`, polyfill in force',
    why: 'Two atomic operations are 15.5 ns (0.38 ×) by themselves. Of the rest, measured by adding one after the other to them: the entry in ' +
      'the table by which a lock outlives its holder 3 ns, reading the counter of waiters twice 1 ns, the token 2 ns, and more where memory is ' +
      'cold; calls that the engine does not inline, and the checks of shapes, the others. It was 40 to 44 ns. What paid: code short enough to ' +
      'be inlined (8 ns), tokens known by a number instead of a table of them (6 ns), words with methods, since of an object of closures each ' +
      'is checked (3 ns), state in an object instead of variables that may not have been initialised (2 ns).'
  },
  {
    figures: ['lock-unlock-pure', 'lock-unlock-instance-pure'],
    what: '`lock` and `unlock`, not in force',
    why: 'As above, and the host\'s `notify` (24 ns) for plain waiters on the word. The fence that this passes serves for the word, too, so ' +
      'that one atomic operation is saved; it was 64 to 70 ns.'
  },
  {
    figures: ['require-force'],
    what: '`require(\'atomics-waitasync/force\')`, cold',
    why: 'An empty package, `worker_threads` and the native library take nearly as long as is wanted, in the same process (the row below it). ' +
      'The rest, on Node 24: finding, reading and compiling two files 2.1 ms, the package\'s name by its `exports` 0.7, starting the agent and ' +
      'the install 0.8, evaluating 0.3; on Node 20 its module loader\'s thread has to be seen to first, 0.9. What paid: what runs at load is ' +
      'compiled when it is first read (0.4 ms). Tried: `worker_threads` later (nothing documented says when somebody gets hold of `Worker`, and ' +
      'programs that have workers load it anyway), full minification (0.25 ms, and the names in stack traces are lost), fewer files (0.2 ms, ' +
      'and code twice), opening the library by its path (nothing). Who sets `NODE_COMPILE_CACHE` loads it in 5.5 ms.'
  },
  {
    figures: ['require-index'],
    what: '`require(\'atomics-waitasync\')`, cold',
    why: 'An empty package takes 2.9 ms of it on Node 20 (the floor): finding it by its name, and looking into its `exports`.'
  },
  {
    figures: ['lock-main-p99'],
    what: 'main\'s wait beside two workers in lock loops, 99th percentile',
    why: 'Where it does not find the lock free, both cores are busy, and it runs when the system gives it one, or when the lock has been handed ' +
      'to it and the workers wait: after half a millisecond. A fifth instead of a half brings 0.3 to 0.4 ms, at more hand-overs to threads that ' +
      'sleep. Tried: looking for the hand-over before the event loop sleeps, which made no difference.'
  },
  {
    figures: ['lock-workers-cpu'],
    what: 'processor time of the lock loops',
    why: 'A sixteenth of a thread\'s time may go into spinning for locks; less costs throughput. The loop\'s own work is 0.4 of it.'
  },
  {
    figures: ['memory', 'memory-timed'],
    what: 'memory of a pending wait',
    why: 'On Node 26 V8 keeps 57 MB of its young generation resident that Node 24 gives back after a collection: 114 bytes for each of half a ' +
      'million waits (`v8.getHeapSpaceStatistics()`). In use are 176 bytes a wait, 184 on Node 24; the promise, its resolving functions and ' +
      'their context are most of that.'
  },
  {
    figures: ['round-trip-one-core'],
    what: 'round trip of two blocking threads that share a core',
    why: 'System calls and context switches are the same as the host\'s since no timer is set for a sleep; what is left is the Node-API calls ' +
      'and the store, 0.4 µs.'
  }
]
