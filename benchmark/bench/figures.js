'use strict'

// The figures, in the order in which they are shown. All are better the smaller they are, unless `more` says otherwise.
//
// `goals`: what is wanted of ours. `{ to: 'host', most: 0.6 }` is a ratio to what is measured beside it, `{ most: 20 }` the figure
// itself; `{ of: 'index', over: 'host', most: 1 }` the difference of two variants; `least` likewise. `sum`, `minimum`: of the samples,
// instead of their median. `alone`: a title for the table of locks.

const LOCKS = ['article', 'article-ours', 'async-mutex', 'multithreading', 'worker-mutex', 'web-locks']

const host = most => ({ to: 'host', most })

/** @type {{ id: string, group: string, title: string, unit: string, more?: boolean, goals: object[], peers?: string[] }[]} */
const figures = [
  { id: 'register-1e3', group: 'register', title: 'register a wait without time-out, 1 000 pending at one location', unit: 'ns', goals: [host(0.6)] },
  { id: 'register-1e5', group: 'register', title: '… 100 000 pending', unit: 'ns', goals: [host(0.5)] },
  { id: 'register-1e6', group: 'register', title: '… 1 000 000 pending', unit: 'ns', goals: [host(0.5)] },
  { id: 'register-agents', group: 'agents', title: 'register a wait, 1 000 agents by turns, against 1 agent', unit: '×', goals: [{ most: 1.5 }] },
  { id: 'notify-all-1e3', group: 'register', title: 'notify all, until every promise has reacted, 1 000 (each)', unit: 'ns', goals: [host(0.8)] },
  { id: 'notify-all-1e5', group: 'register', title: '… 100 000', unit: 'ns', goals: [host(0.4)] },
  { id: 'notify-all-1e6', group: 'register', title: '… 1 000 000', unit: 'ns', goals: [host(0.35)] },
  { id: 'register-timed', group: 'time-outs', title: 'register a wait with a time-out, 100 000', unit: 'ns', goals: [host(0.4)] },
  { id: 'late', group: 'time-outs', title: '100 000 waits due within 100 ms: the last is late by', unit: 'ms', goals: [{ most: 20 }] },
  { id: 'late-median', group: 'time-outs', title: '400 waits, due one after the other: late by, median', unit: 'ms', goals: [{ most: 0.2 }] },
  { id: 'early', group: 'gaps', title: 'time-outs of 1 to 9 ms, 50 at once: early by up to', unit: 'ms', goals: [{ most: 0 }] },
  { id: 'alone', group: 'gaps', title: 'a process whose only work is a wait of 300 ms: ends too early by', unit: 'ms', goals: [{ most: 1 }] },
  { id: 'absorbed', group: 'gaps', title: 'a wait past its deadline whose thread is busy: found by `notify`, of 1', unit: '', goals: [{ most: 0 }] },
  { id: 'memory', group: 'memory', title: 'memory (RSS) of a pending wait', unit: 'bytes', goals: [host(0.8)] },
  { id: 'memory-timed', group: 'memory', title: '… with a time-out', unit: 'bytes', goals: [host(0.5)] },
  // 0 is wanted. What the heap's own size leaves open, spread over half a million waits, is about so much.
  { id: 'memory-left', group: 'memory', title: 'memory left by a wait that was notified before its time-out', unit: 'bytes', goals: [{ most: 10 }] },
  { id: 'turn', group: 'turn', title: 'wait → notify → await, in one thread', unit: 'ns', goals: [host(0.6)] },
  { id: 'round-trip-two-cores', group: 'round-trip', title: 'round trip of two blocking threads, on two cores', unit: 'µs', goals: [host(0.1)] },
  { id: 'round-trip-one-core', group: 'round-trip', title: '… sharing one core', unit: 'µs', goals: [host(1.05)] },
  { id: 'round-trip-main', group: 'round-trip', title: 'round trip of awaiting main thread and blocking worker, on two cores', unit: 'µs', goals: [host(0.7)] },
  { id: 'round-trip-awaiting', group: 'round-trip', title: '… and awaiting worker', unit: 'µs', goals: [host(0.9)] },
  { id: 'notify-none', group: 'calls', title: '`notify` with no waiters', unit: 'ns', goals: [host(1)] },
  { id: 'notify-none-beside', group: 'calls', title: '… while 100 000 other words have one each', unit: 'ns', goals: [host(1.1)] },
  { id: 'wait-not-equal', group: 'calls', title: '`wait` that answers `\'not-equal\'`', unit: 'ns', goals: [host(1.5)] },
  { id: 'wait-async-not-equal', group: 'calls', title: '`waitAsync` that answers `\'not-equal\'`', unit: 'ns', goals: [host(0.6)] },
  { id: 'notify-each', group: 'calls', title: 'notify each of 100 000 locations', unit: 'ns', goals: [host(0.8)] },
  { id: 'notify-each-page', group: 'calls', title: '… of 10 000 locations, each in a page of its own', unit: 'ns', goals: [host(1)] },
  { id: 'scaling', group: 'scaling', title: '8 threads, each at its own location, against 1 thread', unit: '×', more: true, goals: [{ least: 1.4 }] },
  { id: 'scaling-waits', group: 'scaling', title: '… waits per second of the 8', unit: '/s', more: true, goals: [] },
  { id: 'lock-unlock-force', group: 'lock', entry: 'force', title: '`AsyncLock`: lock and unlock its token, uncontended, polyfill in force', unit: 'ns', goals: [host(0.6)] },
  { id: 'lock-unlock-instance-force', group: 'lock', entry: 'force', title: '… `lock()` and `unlock()` of the lock itself', unit: 'ns', goals: [host(0.6)] },
  { id: 'lock-unlock-pure', group: 'lock', entry: 'pure', title: '… and its token, not in force', unit: 'ns', alone: 'lock and unlock, blocking, uncontended', goals: [host(1)], peers: LOCKS },
  { id: 'lock-unlock-instance-pure', group: 'lock', entry: 'pure', title: '… and the lock itself, not in force', unit: 'ns', goals: [host(1)] },
  { id: 'try-lock-force', group: 'lock', entry: 'force', title: '`tryLock` and `unlock` on the main thread, in force', unit: 'ns', goals: [] },
  { id: 'try-lock-pure', group: 'lock', entry: 'pure', title: '… not in force', unit: 'ns', goals: [host(1)] },
  { id: 'lock-async-force', group: 'lock', entry: 'force', title: '`await lockAsync()` and `unlock`, uncontended, in force', unit: 'ns', goals: [host(1.1)] },
  { id: 'lock-async-pure', group: 'lock', entry: 'pure', title: '… not in force', unit: 'ns', goals: [host(1.1)] },
  { id: 'execute-force', group: 'lock', entry: 'force', title: '`executeLocked` on the main thread, uncontended, in force', unit: 'ns', goals: [host(1.1)] },
  { id: 'execute-pure', group: 'lock', entry: 'pure', title: '… not in force', unit: 'ns', alone: 'run a callback under the lock on the main thread, uncontended', goals: [host(1.1), { to: 'web-locks', most: 0.08 }], peers: LOCKS },
  { id: 'tasks-lock', group: 'tasks', title: '10 000 tasks of one thread at once, each in `executeLocked` with an async callback', unit: 'ns', goals: [{ to: 'async-mutex', most: 0.5 }], peers: ['async-mutex'] },
  { id: 'tasks-names', group: 'tasks', title: '… in `request` of one name', unit: 'ns', goals: [{ to: 'async-mutex', most: 1 }], peers: ['async-mutex'] },
  { id: 'lock-workers', group: 'contended', title: '2 workers in lock loops, about 1 µs inside', unit: 'k/s', more: true, goals: [{ to: 'host', least: 1.2 }], peers: LOCKS },
  { id: 'lock-workers-cpu', group: 'contended', title: '… processor time of each', unit: 'µs', alone: '2 workers in lock loops: processor time of each', goals: [host(0.7)], peers: LOCKS },
  { id: 'lock-share', group: 'loops', title: '… the slower one\'s share of the faster one\'s', unit: '×', more: true, goals: [{ least: 0.8 }] },
  { id: 'lock-main-p99', group: 'contended', title: 'the same while main calls `executeLocked` every ms: main\'s wait, p99', unit: 'ms', goals: [{ most: 1 }], peers: LOCKS },
  { id: 'lock-main-max', group: 'contended', title: '… maximum', unit: 'ms', alone: 'main\'s wait, maximum', goals: [{ most: 10 }], peers: LOCKS },
  { id: 'lock-main-workers', group: 'contended', title: '… and the workers', unit: 'k/s', more: true, alone: 'the workers meanwhile', goals: [], peers: LOCKS },
  { id: 'lost', group: 'contended', title: 'updates lost in all of this, because two were inside at once', unit: '', sum: true, goals: [{ most: 0 }], peers: LOCKS },
  { id: 'lock-workers-3', group: 'loops', title: '3 workers in lock loops on 2 cores, about 1 µs inside', unit: 'k/s', more: true, goals: [{ to: 'host', least: 1.3 }] },
  ...[0, 20].flatMap(inside => [
    { id: `fair-${inside}-p50`, group: 'fairness', title: `2 workers in lock loops, ${inside} µs inside, while main calls \`executeLocked\` every ms: main's wait, median`, unit: 'ms', goals: [], peers: LOCKS },
    { id: `fair-${inside}-p99`, group: 'fairness', title: '… 99th percentile', unit: 'ms', goals: [], peers: LOCKS },
    { id: `fair-${inside}-max`, group: 'fairness', title: '… maximum', unit: 'ms', goals: [], peers: LOCKS },
    { id: `fair-${inside}-turns`, group: 'fairness', title: '… main\'s turns', unit: '/s', more: true, goals: [], peers: LOCKS },
    { id: `fair-${inside}-workers`, group: 'fairness', title: '… the workers\' turns', unit: 'k/s', more: true, goals: [], peers: LOCKS },
    { id: `fair-${inside}-cores`, group: 'fairness', title: '… cores used', unit: 'cores', goals: [], peers: LOCKS }
  ]),
  { id: 'rw-shared', group: 'family', title: '`RwLock`: `tryLockShared` and `unlock`', unit: 'ns', goals: [] },
  { id: 'rw-exclusive', group: 'family', title: '… `tryLock` and `unlock`', unit: 'ns', goals: [] },
  { id: 'rw-execute', group: 'family', title: '… `executeShared`', unit: 'ns', goals: [] },
  { id: 'permits', group: 'family', title: '`Semaphore`: `tryAcquire` and `release`', unit: 'ns', goals: [] },
  { id: 'permits-use', group: 'family', title: '… `use`', unit: 'ns', goals: [] },
  { id: 'condition-notify', group: 'family', title: '`Condition`: `notify`, no waiters', unit: 'ns', goals: [] },
  { id: 'barrier-last', group: 'family', title: '`Barrier`: `waitAsync` of the last to arrive', unit: 'ns', goals: [] },
  { id: 'latch-count', group: 'family', title: '`Latch`: `countDown`', unit: 'ns', goals: [] },
  { id: 'latch-open', group: 'family', title: '… `waitAsync`, open', unit: 'ns', goals: [] },
  { id: 'condition-and-back', group: 'family', title: 'two blocking threads, there and back: `AsyncLock` and `Condition`', unit: 'µs', goals: [] },
  { id: 'semaphore-signal', group: 'family', title: '… two `Semaphore`s', unit: 'µs', goals: [] },
  { id: 'barrier-meeting', group: 'family', title: '… one meeting at a `Barrier`', unit: 'µs', goals: [] },
  { id: 'message-8', group: 'messages', title: '`Queue`, worker to worker, 8 bytes: `put` and `take` (Node\'s own: `postMessage`, 1 024 on the way)', unit: 'k/s', more: true, goals: [{ to: 'host', least: 1.5 }], peers: ['multithreading'] },
  { id: 'message-200', group: 'messages', title: '… 200 bytes', unit: 'k/s', more: true, alone: 'messages of 200 bytes, worker to worker', goals: [{ to: 'host', least: 2 }, { to: 'multithreading', least: 5 }], peers: ['multithreading'] },
  { id: 'message-await', group: 'messages', title: '… `put` and `takeAsync`', unit: 'k/s', more: true, goals: [{ to: 'host', least: 1.5 }] },
  { id: 'message-await-both', group: 'messages', title: '… `putAsync` and `takeAsync`', unit: 'k/s', more: true, goals: [] },
  { id: 'message-use', group: 'messages', title: '… `put` and `useSync`', unit: 'k/s', more: true, goals: [{ to: 'host', least: 1.2 }] },
  { id: 'message-producers', group: 'messages', title: '… `put` by four workers, and `take`', unit: 'k/s', more: true, goals: [{ to: 'host', least: 1.2 }] },
  { id: 'message-json', group: 'messages', title: '… small objects as JSON: `put` and `take`', unit: 'k/s', more: true, goals: [{ to: 'host', least: 1 }] },
  { id: 'message-clone', group: 'messages', title: '… by `v8.serialize`', unit: 'k/s', more: true, goals: [] },
  { id: 'message-trip', group: 'messages', title: '… 8 bytes there and back, two blocking workers (Node\'s own: two message ports)', unit: 'µs', goals: [{ to: 'host', most: 0.2 }] },
  { id: 'named-request', group: 'named', title: 'named locks: `request` of a free name', unit: 'ns', goals: [host(0.1)] },
  { id: 'named-pending', group: 'named', title: '… 10 000 pending for one name, each until it is over', unit: 'ns', goals: [host(0.1)] },
  { id: 'named-names', group: 'named', title: '… 300 names, each held and awaited', unit: 'ns', goals: [host(0.1)] },
  { id: 'named-many-names', group: 'named', title: '… 10 000 names (Node\'s own would take minutes)', unit: 'ns', goals: [] },
  { id: 'named-workers-2', group: 'named', title: '… 2 workers in loops', unit: 'µs', goals: [host(0.1)] },
  { id: 'named-workers-8', group: 'named', title: '… 8 workers in loops', unit: 'µs', goals: [host(0.1)] },
  { id: 'named-lost', group: 'named', title: 'updates lost in these loops, because two were inside at once', unit: '', sum: true, goals: [{ most: 0 }] },
  { id: 'strict-rw-16', group: 'strict', title: '16 workers in loops on one `RwLock`, exclusively: processor time of each (floor: with a time-out)', unit: 'µs', goals: [{ to: 'floor', most: 1.5 }] },
  { id: 'strict-rw-64', group: 'strict', title: '… 64 workers', unit: 'µs', goals: [{ to: 'floor', most: 1.5 }] },
  { id: 'strict-named-16', group: 'strict', title: '… 16 workers, `requestSync` of one name', unit: 'µs', goals: [{ to: 'floor', most: 1.5 }] },
  { id: 'strict-named-64', group: 'strict', title: '… 64 workers', unit: 'µs', goals: [{ to: 'floor', most: 1.5 }] },
  { id: 'named-memory', group: 'memory', title: 'memory (RSS) of a pending request', unit: 'bytes', goals: [host(1)] },
  { id: 'idle', group: 'idle', title: '20 blocked threads, idle: processor time', unit: 'ms/s', goals: [{ most: 5 }] },
  { id: 'idle-wakes', group: 'idle', title: '… and how often one of the process\'s threads wakes', unit: '/s', goals: [{ most: 5 }] },
  { id: 'pending-name', group: 'pending', title: 'a claim that waits for long: how often the process wakes, for a name', unit: '/s', goals: [{ most: 1 }] },
  { id: 'pending-word', group: 'pending', title: '… for an `AsyncLock`', unit: '/s', goals: [{ most: 3 }] },
  { id: 'pending-many', group: 'pending', title: '… processor time of 50 000 of them', unit: 'ms/s', goals: [{ most: 20 }] },
  { id: 'block-beside', group: 'beside', title: 'a lock for which two threads block by turns, beside one that holds 100 000 locks (floor: none): processor time', unit: 'µs', goals: [{ to: 'floor', most: 1.3 }] },
  { id: 'require-force', group: 'start', title: '`require(\'atomics-waitasync/force\')`, cold', unit: 'ms', goals: [{ most: 6 }] },
  { id: 'require-parts', group: 'start', title: '… an empty package, Node\'s `worker_threads` and the native library', unit: 'ms', goals: [] },
  { id: 'require-index', group: 'start', title: '`require(\'atomics-waitasync\')`, cold', unit: 'ms', goals: [{ most: 4 }] },
  { id: 'first-lock', group: 'start', title: '`require(\'atomics-waitasync\')` and the first lock, cold (floor: the parts as above)', unit: 'ms', goals: [{ most: 9 }] },
  { id: 'first-lock-force', group: 'start', title: '… `/force` and the first lock', unit: 'ms', goals: [] },
  { id: 'by-process', group: 'bystanders', title: 'start of a process, and its end', unit: 'ms', minimum: true, goals: [] },
  { id: 'by-worker', group: 'bystanders', title: 'start of a Worker, to its first message', unit: 'ms', minimum: true, goals: [{ of: 'ours', over: 'host', most: 4 }, { of: 'index', over: 'host', most: 1 }] },
  { id: 'by-memory', group: 'bystanders', title: 'memory (RSS) of an idle Worker', unit: 'MB', minimum: true, goals: [] },
  { id: 'by-message', group: 'bystanders', title: '`postMessage` to a Worker and back', unit: 'µs', minimum: true, goals: [] },
  { id: 'by-notify', group: 'bystanders', title: '`Atomics.notify` without waiters', unit: 'ns', minimum: true, goals: [] },
  { id: 'by-context', group: 'bystanders', title: 'a context of `vm`', unit: 'ms', minimum: true, goals: [] },
  { id: 'size', group: 'size', title: 'size of the binary', unit: 'kB', goals: [{ most: 600 }] }
]

/** What each variant is called. */
const VARIANTS = {
  host: 'Node\'s own',
  ours: 'this package',
  floor: 'floor',
  article: 'article\'s, which does not await the callback',
  'article-ours': 'article\'s, over this package\'s `Atomics`',
  'async-mutex': 'async-mutex',
  multithreading: 'multithreading',
  'worker-mutex': 'worker-mutex',
  'web-locks': 'Web Locks'
}

/** The groups of the figures that are asked for by a word: a group, or a part of a figure's name. All without one. */
function select (only) {
  if (only === undefined) return figures
  const words = only.split(',')
  const chosen = figures.filter(({ id, group }) => words.some(word => word === group || word === id || id.split('-').includes(word)))
  if (chosen.length === 0) throw new Error(`nothing is called ${only}: there are ${[...new Set(figures.map(({ group }) => group))].join(', ')}`)
  return chosen
}

module.exports = { VARIANTS, figures, select }
