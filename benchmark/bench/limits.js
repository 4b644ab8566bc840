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
    figures: ['notify-none-beside'],
    what: '`notify` with no waiters while 100 000 words have one each',
    why: 'As with no waiters at all, where the word has a counter of its own: it was 2.0 to 2.3 × when words shared 4 096 counters, and every ' +
      'such `notify` took a native call. About one word in ten shares its counter with one of so many words that are more than 4 MiB away.'
  },
  {
    figures: ['notify-each-page'],
    what: 'notify each of 10 000 locations that lie 4 096 bytes apart',
    why: 'A call takes 84 to 110 ns, of which the host\'s own `notify`, which follows, takes 25 to 35. The rest is cache misses: the table of ' +
      'lists, then the waiter\'s record. Tried: counters of which the neighbours of a page are spread, which touched one more page each ' +
      '(1.4 ×).'
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
    figures: ['lock-async-force', 'lock-async-pure'],
    what: '`await lockAsync()`',
    why: 'An async function that gives a token takes 10 to 18 ns more than the article\'s, which gives nothing; the entry in the robust list ' +
      'takes 6. Not in force, the host\'s `notify` and the second look for waiters come on top. It was 1.2 × in force and 1.5 × not in ' +
      'force on Node 24 when each call made a resolver and closures.'
  },
  {
    figures: ['try-lock-pure'],
    what: '`tryLock` and `unlock`, not in force',
    why: 'As `lock` and `unlock`: the robust list\'s entry, the token and its serial number are some 15 ns beside the article\'s two atomic ' +
      'operations and the same `notify` of the host.'
  },
  {
    figures: ['lock-workers-3', 'lock-share', 'lock-workers'],
    what: 'lock loops: three workers on two cores, and the share of the slower of two',
    why: 'Both vary from run to run by more than they miss; the noise column shows it. Turns of the workers are equally long (half less than ' +
      '20 µs, nine in ten less than 130 µs), but 10 to 80 times a second a worker gets none for 2 to 12 ms: the machine takes its ' +
      'processor from a thread that holds the lock. With the article\'s lock that happens 10 to 130 times, and the shares are 0.3 to ' +
      '0.6. Of three workers each gets as much as another (0.93 to 0.96; the article\'s lock: 0.4 to 0.6), which takes hand-overs to ' +
      'threads that sleep; a longer time in which a waiter may be overtaken would save some of these.'
  },
  {
    figures: ['idle-wakes', 'idle'],
    what: 'wake-ups of 20 blocked threads',
    why: 'A blocked thread looks two more times in its first second, and then every 5 s, for what the watch of its event loop does not notice: ' +
      'time limits of `vm`, debuggers. The rest are V8\'s own threads.'
  },
  {
    figures: ['named-request', 'named-names', 'named-workers-2', 'named-workers-8'],
    what: 'named locks',
    why: 'Of a request of a free name (800 ns on Node 24), its promise and the async function that runs the callback take 160 ns, which is ' +
      '0.05 × Node\'s own. Of the other 600, the tables of names and requests take 42 %, the look at the stack 25 %, the two calls into ' +
      'native code 19 %. A tenth of Node\'s own would leave 170 ns for all of these: no native call for a free name, hence names that ' +
      'stay in memory when nobody uses them. Two workers in loops take 6 to 10 µs a request, of which some 4 are ' +
      'inside; 35 to 50 when they looked for a held name for 20 µs only. With more workers than cores, a hand-over wakes an event ' +
      'loop, which takes 30 µs or more.'
  },
  {
    figures: ['named-memory'],
    what: 'memory of a pending named request',
    why: 'With 100 000 pending, a request takes 1.9 kB on Node 24, Node\'s own 1.4. JavaScript\'s part is the same (1.1 kB: the promise, the ' +
      'request, its grant and claim, and their functions). The native one is 0.8 kB against 0.35: the waiter, the claim in its line, the ' +
      'request by its number and the pending wait each have an entry in a table, and hash tables are up to twice as large as what they hold.'
  },
  {
    figures: ['size'],
    what: 'size of the binary',
    why: 'Of 768 kB, 173 are what the standard library needs to print a back trace of a panic, which a stable compiler cannot leave out; this ' +
      'package\'s own code is 205 kB, of which named locks, snapshots and the search for deadlocks are about 130.'
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
    why: 'The system sets a timer for each sleep and cancels it again, which takes 0.8 µs: a blocked thread returns after 30 ms at first, so that ' +
      'the engine can end it. Otherwise system calls and context switches are the same as the host\'s. The Node-API calls and the store take 0.4 µs.'
  }
]
