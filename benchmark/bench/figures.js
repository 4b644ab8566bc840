'use strict'

// The figures, in the order in which they are shown. All are better the smaller they are, unless `more` says otherwise.
//
// Each row: `id`, `title`, `unit`, `goals` of ours, and options. A goal `{ to: 'host', most: 0.6 }` is a ratio to the
// host's figure, `{ most: 20 }` the figure itself; `{ of: 'index', over: 'host', most: 1 }` the difference of two
// variants; `least`, the same. `sum`, `minimum`: of the samples, instead of their median. `peers`: the locks that are
// measured, too.

const LOCKS = ['article', 'article-ours', 'async-mutex', 'multithreading', 'worker-mutex', 'web-locks']

const MORE = { more: true }
const SUM = { sum: true }
const AGENTS = { group: 'agents' }
/** In loops as the locks that are compared, but without these. */
const LOOPS = { more: true, group: 'loops', peers: undefined }
const FIRST = { peers: ['async-mutex'] }
const BESIDE = { more: true, peers: ['multithreading'] }

const most = (most, to) => (to === undefined ? { most } : { to, most })
const least = (least, to) => (to === undefined ? { least } : { to, least })
const host = number => most(number, 'host')
const over = (of, most) => ({ of, over: 'host', most })

/** Rows, mostly of one group, which groups/<group>.js measures. Each entry point has locks of its own. */
function of ({ group, ...shared }, rows) {
  return rows.map(([id, title, unit, goals = [], options]) => {
    const entry = group === 'lock' ? id.split('-').pop() : undefined
    return { id, group, entry, title, unit, goals, ...shared, ...options }
  })
}

/** @type {{ id: string, group: string, title: string, unit: string, goals: object[], peers?: string[] }[]} */
const figures = [
  ...of({ group: 'register' }, [
    ['register-1e3', 'register a wait without timeout, 1 000 pending at one location', 'ns', [host(0.6)]],
    ['register-1e5', '… 100 000 pending', 'ns', [host(0.5)]],
    ['register-1e6', '… 1 000 000 pending', 'ns', [host(0.5)]],
    ['register-agents', 'register a wait, 1 000 agents by turns, against 1 agent', '×', [most(1.5)], AGENTS],
    ['notify-all-1e3', 'notify all, until every promise has reacted, 1 000 (each)', 'ns', [host(0.8)]],
    ['notify-all-1e5', '… 100 000', 'ns', [host(0.4)]],
    ['notify-all-1e6', '… 1 000 000', 'ns', [host(0.35)]]
  ]),
  ...of({ group: 'timeouts' }, [
    ['register-timed', 'register a wait with a timeout, 100 000', 'ns', [host(0.4)]],
    ['late', '100 000 waits due within 100 ms: the last is late by', 'ms', [most(20)]],
    ['late-median', '400 waits, due one after the other: late by, median', 'ms', [most(0.2)]]
  ]),
  ...of({ group: 'gaps' }, [
    ['early', 'timeouts of 1 to 9 ms, 50 at once: early by up to', 'ms', [most(0)]],
    ['alone', 'a process whose only work is a wait of 300 ms: ends too early by', 'ms', [most(1)]],
    ['absorbed', 'a wait past its deadline whose thread is busy: found by `notify`, of 1', '', [most(0)]]
  ]),
  ...of({ group: 'memory' }, [
    ['memory', 'memory (RSS) of a pending wait', 'bytes', [host(0.8)]],
    ['memory-timed', '… with a timeout', 'bytes', [host(0.5)]],
    // 0 is wanted. The size of the heap, spread over half a million waits, leaves about so much open.
    ['memory-left', 'memory left by a wait that was notified before its timeout', 'bytes', [most(10)]]
  ]),
  ...of({ group: 'turn' }, [
    ['turn', 'wait → notify → await, in one thread', 'ns', [host(0.6)]]
  ]),
  ...of({ group: 'round-trip' }, [
    ['round-trip-two-cores', 'round trip of two blocking threads, on two cores', 'µs', [host(0.1)]],
    ['round-trip-one-core', '… sharing one core', 'µs', [host(1.05)]],
    ['round-trip-main', 'round trip of awaiting main thread and blocking worker, on two cores', 'µs', [host(0.7)]],
    ['round-trip-awaiting', '… and awaiting worker', 'µs', [host(0.9)]]
  ]),
  ...of({ group: 'calls' }, [
    ['notify-none', '`notify` with no waiters', 'ns', [host(1)]],
    ['notify-none-beside', '… while 100 000 other words have one each', 'ns', [host(1.1)]],
    ['wait-not-equal', "`wait` that answers `'not-equal'`", 'ns', [host(1.5)]],
    ['wait-async-not-equal', "`waitAsync` that answers `'not-equal'`", 'ns', [host(0.6)]],
    ['notify-each', 'notify each of 100 000 locations', 'ns', [host(0.8)]],
    ['notify-each-page', '… of 10 000 locations, each in a page of its own', 'ns', [host(1)]]
  ]),
  ...of({ group: 'scaling' }, [
    ['scaling', '8 threads, each at its own location, against 1 thread', '×', [least(1.4)], MORE],
    ['scaling-waits', '… waits per second of the 8', '/s', [], MORE]
  ]),
  ...of({ group: 'lock' }, [
    ['lock-unlock-force', '`AsyncLock`: lock and unlock its token, uncontended, polyfill in force', 'ns', [host(0.6)]],
    ['lock-unlock-instance-force', '… `lock()` and `unlock()` of the lock itself', 'ns', [host(0.6)]],
    ['lock-unlock-pure', '… and its token, not in force', 'ns', [host(1)], { peers: LOCKS }],
    ['lock-unlock-instance-pure', '… and the lock itself, not in force', 'ns', [host(1)]],
    ['try-lock-force', '`tryLock` and `unlock` on the main thread, in force', 'ns'],
    ['try-lock-pure', '… not in force', 'ns', [host(1)]],
    ['lock-async-force', '`await lockAsync()` and `unlock`, uncontended, in force', 'ns', [host(1.1)]],
    ['lock-async-pure', '… not in force', 'ns', [host(1.1)]],
    ['execute-force', '`executeLocked` on the main thread, uncontended, in force', 'ns', [host(1.1)]],
    ['execute-pure', '… not in force', 'ns', [host(1.1), most(0.08, 'web-locks')], { peers: LOCKS }]
  ]),
  ...of({ group: 'free' }, [
    ['free-lock', 'a free lock, alone in its process: `lock()` and `unlock()`', 'ns', [host(1.05)]],
    ['free-token', '… `lock()` and `unlock()` of its token', 'ns', [host(1.4)]],
    ['free-try', '… `tryLock()` and `unlock()` on the main thread', 'ns', [host(1.2)]],
    ['free-await', '… `await lockAsync()` and `unlock()`', 'ns', [host(1.2)]],
    ['free-execute', '… `executeLocked`', 'ns', [host(0.95)], { peers: LOCKS }],
    ['free-lock-force', '… `lock()` and `unlock()`, polyfill in force', 'ns', [host(0.9)]]
  ]),
  ...of({ group: 'tasks', peers: ['async-mutex'] }, [
    ['tasks-lock', '10 000 tasks of one thread at once, each in `executeLocked`', 'ns', [most(0.5, 'async-mutex')]],
    ['tasks-names', '… in `request` of one name', 'ns', [most(1, 'async-mutex')]]
  ]),
  ...of({ group: 'contended', peers: LOCKS }, [
    ['lock-workers', '2 workers in lock loops, about 1 µs inside', 'k/s', [least(1.2, 'host')], MORE],
    ['lock-workers-cpu', '… processor time of each', 'µs', [host(0.7)]],
    ['lock-share', "… the slower one's share of the faster one's", '×', [least(0.8)], LOOPS],
    ['lock-main-p99', '… main calls `executeLocked` every ms: its wait, p99', 'ms', [most(1)]],
    ['lock-main-max', '… maximum', 'ms', [most(10)]],
    ['lock-main-workers', '… and the workers', 'k/s', [], MORE],
    ['lost', 'updates lost in all of this, because two were inside at once', '', [most(0)], SUM],
    ['lock-workers-3', '3 workers in lock loops on 2 cores, about 1 µs inside', 'k/s', [least(1.3, 'host')], LOOPS]
  ]),
  ...[0, 20].flatMap(inside => of({ group: 'fairness', peers: LOCKS }, [
    [`fair-${inside}-p50`, `2 workers in loops, ${inside} µs inside, main every ms: main's wait, median`, 'ms'],
    [`fair-${inside}-p99`, '… 99th percentile', 'ms'],
    [`fair-${inside}-max`, '… maximum', 'ms'],
    [`fair-${inside}-turns`, "… main's turns", '/s', [], MORE],
    [`fair-${inside}-workers`, "… the workers' turns", 'k/s', [], MORE],
    [`fair-${inside}-cores`, '… cores used', 'cores']
  ])),
  ...of({ group: 'family' }, [
    ['rw-shared', '`RwLock`: `tryLockShared` and `unlock`', 'ns'],
    ['rw-exclusive', '… `tryLock` and `unlock`', 'ns'],
    ['rw-execute', '… `executeShared`', 'ns'],
    ['permits', '`Semaphore`: `tryAcquire` and `release`', 'ns'],
    ['permits-use', '… `use`', 'ns'],
    ['condition-notify', '`Condition`: `notify`, no waiters', 'ns'],
    ['barrier-last', '`Barrier`: `waitAsync` of the last to arrive', 'ns'],
    ['latch-count', '`Latch`: `countDown`', 'ns'],
    ['latch-open', '… `waitAsync`, open', 'ns'],
    ['condition-and-back', 'two blocking threads, there and back: `AsyncLock` and `Condition`', 'µs'],
    ['semaphore-signal', '… two `Semaphore`s', 'µs'],
    ['barrier-meeting', '… one meeting at a `Barrier`', 'µs']
  ]),
  ...of({ group: 'messages' }, [
    ['message-8', '`Queue`, worker to worker, 8 bytes: `put`, `take`', 'k/s', [least(1.5, 'host')], BESIDE],
    ['message-200', '… 200 bytes', 'k/s', [least(2, 'host'), least(5, 'multithreading')], BESIDE],
    ['message-await', '… `put` and `takeAsync`', 'k/s', [least(1.5, 'host')], MORE],
    ['message-await-both', '… `putAsync` and `takeAsync`', 'k/s', [], MORE],
    ['message-use', '… `put` and `useSync`', 'k/s', [least(1.2, 'host')], MORE],
    ['message-producers', '… `put` by four workers, and `take`', 'k/s', [least(1.2, 'host')], MORE],
    ['message-many', '… `put`, and `takeMany` of up to 64', 'k/s', [least(2, 'single')], MORE],
    ['message-warm', '… `put` and `take`, after 600 000 messages', 'k/s', [least(1.5, 'host')], MORE],
    ['message-json-1-cold', '… objects of 130 bytes as JSON, new workers', 'k/s', [least(1, 'host')], MORE],
    ['message-json-1-warm', '… after 600 000 messages', 'k/s', [least(1.2, 'host')], MORE],
    ['message-json-4-cold', '… `put` by four workers, all new', 'k/s', [least(1, 'host')], MORE],
    ['message-json-4-warm', '… after 600 000 messages', 'k/s', [least(1.2, 'host')], MORE],
    ['message-clone-1-cold', '… objects by `v8.serialize`, new workers', 'k/s', [least(0.6, 'host')], MORE],
    ['message-clone-1-warm', '… after 600 000 messages', 'k/s', [least(0.6, 'host')], MORE],
    ['message-trip', '… 8 bytes there and back, two blocking workers (Node: two ports)', 'µs', [host(0.2)]]
  ]),
  ...of({ group: 'named' }, [
    ['named-request', 'named locks: `request` of a free name', 'ns', [host(0.1)]],
    ['named-pending', '… 10 000 pending for one name, each until it is over', 'ns', [host(0.1)]],
    ['named-names', '… 300 names, each held and awaited', 'ns', [host(0.1)]],
    ['named-many-names', "… 10 000 names (Node's own would take minutes)", 'ns'],
    ['named-workers-2', '… 2 workers in loops', 'µs', [host(0.1)]],
    ['named-workers-8', '… 8 workers in loops', 'µs', [host(0.1)]],
    ['named-lost', 'updates lost in these loops, because two were inside at once', '', [most(0)], SUM]
  ]),
  ...of({ group: 'pending' }, [
    ['named-memory', 'memory (RSS) of a pending request', 'bytes', [host(1)], { group: 'memory' }],
    ['idle', '20 blocked threads, idle: processor time', 'ms/s', [most(5)]],
    ['idle-wakes', "… and how often one of the process's threads wakes", '/s', [most(5)]],
    ['pending-name', 'a claim that waits for long: how often the process wakes, for a name', '/s', [most(1)]],
    ['pending-word', '… for an `AsyncLock`', '/s', [most(3)]],
    ['pending-many', '… processor time of 50 000 of them', 'ms/s', [most(20)]]
  ]),
  ...of({ group: 'start' }, [
    ['require-force', "`require('atomics-waitasync/force')`, cold", 'ms', [most(6)]],
    ['require-parts', "… an empty package, Node's `worker_threads` and the native library", 'ms'],
    ['require-index', "`require('atomics-waitasync')`, cold", 'ms', [most(4)]],
    ['first-lock', "`require('atomics-waitasync')` and the first lock, cold (floor: the parts)", 'ms', [most(9)]],
    ['first-lock-force', '… `/force` and the first lock', 'ms']
  ]),
  ...of({ group: 'first' }, [
    ['first-cpu', 'processor time of a first lock in a new process', 'ms', [most(2.5, 'async-mutex')], FIRST],
    ['first-worker', '… in a further Worker (floor: its whole life)', 'ms', [most(0.36, 'floor')]],
    ['first-worker-force', '… of `-r /force` there, and no lock', 'ms', [most(0.36, 'floor')]],
    ['process-first', 'processor time of a first lock in a new process', 'ms', [most(1.3, 'proper-lockfile')]]
  ]),
  ...of({ group: 'bystanders', minimum: true }, [
    ['by-process', 'start of a process, and its end', 'ms'],
    ['by-worker', 'start of a Worker, to its first message', 'ms', [over('ours', 4), over('index', 1)]],
    ['by-memory', 'memory (RSS) of an idle Worker', 'MB'],
    ['by-message', '`postMessage` to a Worker and back', 'µs'],
    ['by-notify', '`Atomics.notify` without waiters', 'ns'],
    ['by-context', 'a context of `vm`', 'ms']
  ]),
  ...of({ group: 'processes' }, [
    ['process-free', 'a free lock: take it and give it back', 'µs', [most(25), most(0.01, 'proper-lockfile')]],
    ['process-cpu', '… processor time', 'µs', [most(20), most(0.3, 'wait-for-lock'), most(0.03, 'proper-lockfile')]],
    ['process-cpu-32', '… 32 at once, each', 'µs', [most(10)]],
    ['process-cpu-paced', '… one a millisecond', 'µs', [most(0.8, 'wait-for-lock')]],
    ['process-cpu-options', '… with the most expensive option, or by `hold`, against the plain one', '×', [most(1.5)]],
    ['process-heap', '… memory of the heap', 'bytes', [most(2048)]],
    ['process-hand-over', 'from a release to the grant in another process', 'µs', [most(1.5, 'wait-for-lock')]],
    ['process-killed', 'from `kill -9` of the holder to the next', 'ms'],
    ['process-wakes-1', 'wake-ups of a process that waits for one name', '/s', [most(1)]],
    ['process-wakes-20', '… for 20 names', '/s', [most(1)]],
    ['process-share', 'five processes in loops, 1 ms inside: least share of the greatest', '×', [least(0.7)], MORE],
    ['process-longest', '… the longest wait', 'ms'],
    ['process-rate', 'four processes with ten tasks each, nothing inside', 'k/s']
  ]),
  ...of({ group: 'words' }, [
    ['word-hand-over', 'shared memory: a word handed over between two blocked processes', 'µs', [most(2, 'floor')]]
  ]),
  ...of({ group: 'size' }, [
    ['size', 'size of the binary', 'kB', [most(600)]]
  ])
]

/** Titles in the table of locks, where they stand alone. */
const ALONE = {
  'lock-unlock-pure': 'lock and unlock, blocking, uncontended',
  'execute-pure': 'run a callback under the lock on the main thread, uncontended',
  'free-execute': 'run a callback under a free lock, alone in its process',
  'lock-workers-cpu': '2 workers in lock loops: processor time of each',
  'lock-main-p99': 'the same while main calls `executeLocked` every ms: main\'s wait, p99',
  'lock-main-max': 'main\'s wait, maximum',
  'lock-main-workers': 'the workers meanwhile',
  'message-200': 'messages of 200 bytes, worker to worker'
}

const VARIANTS = {
  host: 'Node\'s own',
  ours: 'this package',
  floor: 'floor',
  article: 'article\'s, which does not await the callback',
  'article-ours': 'article\'s, over this package\'s `Atomics`',
  'async-mutex': 'async-mutex',
  multithreading: 'multithreading',
  'worker-mutex': 'worker-mutex',
  'web-locks': 'Web Locks',
  memory: '`memory(folder)`',
  shared: '`AsyncLock` in shared memory',
  redis: 'Redis, by hand',
  'process.send': 'a server by `process.send`',
  'wait-for-lock': 'fs-native-extensions',
  'proper-lockfile': 'proper-lockfile',
  single: '`take`'
}

/** Selects groups of figures by a word: a group, or a part of a figure's name. All without one. */
function select (only) {
  if (only === undefined) return figures
  const words = only.split(',')
  const chosen = figures.filter(({ id, group }) =>
    words.some((word) => word === group || word === id || id.split('-').includes(word))
  )
  if (chosen.length === 0)
    throw new Error(
      `nothing is called ${only}: there are ${[...new Set(figures.map(({ group }) => group))].join(', ')}`
    )
  return chosen
}

module.exports = { ALONE, VARIANTS, figures, select }
