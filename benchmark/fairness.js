'use strict'

// How long the main thread waits for a lock that two workers take in tight loops, and how much that slows the workers down: this
// package's AsyncLock beside the mutex of the article (__test__/fixtures/lock-article.js), over the host's Atomics where they have
// a waitAsync, and over this package's.
//
//   node benchmark/fairness.js [--seconds 2] [--rounds 5]
//
// Main calls executeLocked a millisecond after it has released the lock, and measures from the call to the callback. Inside, each thread
// counts on a counter that only the lock protects: if two are inside at once, counts are lost. In one run that is all, so the lock is free
// as often as it is held; in the other a thread stays inside for some microseconds, so a newcomer hardly ever finds the lock free. All
// mutexes are measured in one process, in turn, and the median of the rounds is printed. AsyncLock is measured twice: the difference is
// the error of the other ratios.
// Node 12.22 or newer.

const os = require('os')
const { Worker, isMainThread, workerData } = require('worker_threads')
const createArticleLock = require('../__test__/fixtures/lock-article')

const OURS = 'AsyncLock'
const HOST = 'the article\'s, over the host\'s Atomics'
const CLASSES = {
  [OURS]: () => require('../pure').AsyncLock,
  [HOST]: () => createArticleLock(Atomics),
  'the article\'s, over atomics-waitasync': () => createArticleLock(Object.assign({}, atomicsFunctions(), require('../pure'))),
  'AsyncLock again': () => require('../pure').AsyncLock
}

const WORKERS = 2
/** How many microseconds everybody is inside, at least. */
const INSIDE = [0, 20]
/** Words of the memory beside the lock. */
const READY = 0
const STOP = 1
const COUNTER = 2
const OWN = 3

function atomicsFunctions () {
  const functions = {}
  for (const name of Object.getOwnPropertyNames(Atomics)) functions[name] = Atomics[name]
  return functions
}

const now = () => Number(process.hrtime.bigint()) / 1e6
const sleep = milliseconds => new Promise(resolve => setTimeout(resolve, milliseconds))

/** What everybody does inside; `thread`: 0 for main. */
function count (words, thread, inside) {
  const before = words[COUNTER]
  if (inside > 0) for (const end = now() + inside / 1000; now() < end;);
  words[COUNTER] = before + 1
  words[OWN + thread]++
}

/** A worker: takes the lock as often as it can. */
function work ({ name, inside, sab, shared, thread }) {
  const lock = new (CLASSES[name]())(sab)
  const words = new Int32Array(shared)
  Atomics.add(words, READY, 1)
  while (Atomics.load(words, STOP) === 0) {
    const token = lock.lock()
    count(words, thread, inside)
    if (token) token.unlock()
    else lock.unlock()
  }
}

/** One round of one mutex. */
async function measure (name, inside, seconds) {
  const sab = new SharedArrayBuffer(4)
  const shared = new SharedArrayBuffer(4 * (OWN + 1 + WORKERS))
  const words = new Int32Array(shared)
  const lock = new (CLASSES[name]())(sab)
  const workers = Array.from({ length: WORKERS }, (_, n) => new Worker(__filename, { workerData: { name, inside, sab, shared, thread: n + 1 } }))
  const ended = Promise.all(workers.map(worker => new Promise((resolve, reject) => worker.on('exit', resolve).on('error', reject))))
  while (Atomics.load(words, READY) < WORKERS) await sleep(1)

  const counted = () => words.slice(OWN + 1).reduce((sum, each) => sum + each)
  const waits = []
  const before = counted()
  const cpu = process.cpuUsage()
  const begin = now()
  const over = sleep(seconds * 1000).then(() => true)
  let served
  while (now() - begin < seconds * 1000) {
    const asked = now()
    served = lock.executeLocked(() => {
      waits.push(now() - asked)
      count(words, 0, inside)
    })
    // If main still waits when the time is over: that has been a wait, too.
    if (await Promise.race([served, over])) break
    await sleep(1)
  }
  const elapsed = (now() - begin) / 1000
  const { user, system } = process.cpuUsage(cpu)
  const throughput = (counted() - before) / elapsed
  const times = waits.length
  Atomics.store(words, STOP, 1)
  // The workers have ended then, so main has its turn at last.
  await Promise.all([ended, served])

  waits.sort((a, b) => a - b)
  const at = fraction => waits[Math.min(waits.length - 1, Math.floor(waits.length * fraction))]
  const lost = words.slice(OWN).reduce((sum, each) => sum + each) - words[COUNTER]
  return { served: times / elapsed, p50: at(0.5), p99: at(0.99), max: at(1), throughput, cores: (user + system) / 1e6 / elapsed, lost }
}

const median = numbers => numbers.slice().sort((a, b) => a - b)[numbers.length >> 1]
const sum = numbers => numbers.reduce((total, each) => total + each)

/** What is printed of the rounds. */
const COLUMNS = {
  served: { head: 'main\'s turns /s', digits: 0, of: median },
  p50: { head: 'main waits, ms: p50', digits: 3, of: median },
  p99: { head: 'p99', digits: 2, of: median },
  max: { head: 'max', digits: 1, of: median },
  throughput: { head: 'workers\' turns /s', digits: 0, of: median },
  cores: { head: 'cores used', digits: 2, of: median },
  lost: { head: 'counts lost', digits: 0, of: sum }
}

function show (value, digits) {
  const [whole, rest] = value.toFixed(digits).split('.')
  return whole.replace(/\B(?=(\d{3})+$)/g, ' ') + (rest ? '.' + rest : '')
}

async function main (args) {
  const options = { seconds: 2, rounds: 5 }
  while (args.length > 0) {
    const name = args.shift().replace(/^--/, '')
    const value = Number(args.shift())
    if (!(name in options) || !(value > 0)) throw new Error('usage: fairness.js [--seconds 2] [--rounds 5]')
    options[name] = value
  }
  console.log(`Node ${process.versions.node}, V8 ${process.versions.v8}, atomics-waitasync ${require('../package.json').version}, ` +
    `${process.platform} ${process.arch}, ${os.cpus().length} cores; ${options.rounds} rounds of ${options.seconds} s`)
  const names = Object.keys(CLASSES).filter(name => name !== HOST || typeof Atomics.waitAsync === 'function')
  // A pending wait in the host's queue does not keep the process alive.
  const alive = setInterval(() => {}, 1000)
  for (const inside of INSIDE) {
    const results = new Map(names.map(name => [name, []]))
    for (let round = 0; round < options.rounds; round++) {
      for (const name of names) results.get(name).push(await measure(name, inside, options.seconds))
    }
    print(inside, results)
  }
  clearInterval(alive)
}

function print (inside, results) {
  console.log(`\n${inside} µs inside, load ${os.loadavg()[0].toFixed(1)}:\n`)
  console.log(`| mutex | ${Object.values(COLUMNS).map(({ head }) => head).join(' | ')} |\n|---|${'--:|'.repeat(Object.keys(COLUMNS).length)}`)
  const figures = new Map()
  for (const [name, rounds] of results) {
    const each = {}
    for (const key of Object.keys(COLUMNS)) each[key] = COLUMNS[key].of(rounds.map(result => result[key]))
    figures.set(name, each)
    console.log(`| ${name} | ${Object.entries(COLUMNS).map(([key, { digits }]) => show(each[key], digits)).join(' | ')} |`)
    if (each.lost !== 0) process.exitCode = 1
  }
  console.log()
  const ours = figures.get(OURS)
  for (const [name, each] of figures) {
    if (name === OURS) continue
    const ratio = key => (ours[key] / each[key]).toPrecision(2)
    console.log(`AsyncLock to ${name}: main's wait p50 ${ratio('p50')} ×, p99 ${ratio('p99')} ×, max ${ratio('max')} ×; the workers' throughput ${ratio('throughput')} ×`)
  }
}

if (isMainThread) {
  main(process.argv.slice(2)).catch(error => {
    console.error(error)
    process.exitCode = 1
  })
} else {
  work(workerData)
}
