'use strict'

// The process that is soaked: see run.js. Runs on every Node that the package runs on.
//
//   node --expose-gc __test__/soak/main.js SECONDS SEED [GROUPS]
//
// A run is a sequence of rounds of some seconds. Each has its own memory and threads, and ends with the laws of the
// end. `__test__/soak/short.test.js` is a short one.

const { execFile } = require('child_process')
const fs = require('fs')
const path = require('path')
const { Worker } = require('worker_threads')
const Actor = require('./actor')
const Arena = require('./arena')
const { expected } = require('./child')
const { GROUPS, all: operations, operationsOf } = require('./operations')
const { checkEnd: checkFiles, removeAll: removeFiles } = require('./operations/files')
const { checkMessages, feed: feedMessages } = require('./operations/messages')
const { libraryFile, target } = require('../../lib/agent/target')
const { Atomics, MAJOR, api, now, randomOf, slowness, sleep, until } = require('./subject')

const { nameCount } = require(`../../${libraryFile(target())}`)
const { ACTORS, BIG, COUNT, IDS, PERMITS, TICKETS } = Arena
const NAMES = operations.map(({ name }) => name)
const VALUES = COUNT.value + BIG
/**
 * Node 10 ends the whole process now and then when a worker is terminated while it boots, with this package or without.
 */
const MAY_DIE_BOOTING = MAJOR > 10
/** How long the process may take to end by itself. Milliseconds. */
const LINGER = slowness * 10000
/** The counted things; other names are those of operations. */
const TOTALS = ['operations', 'gave up', 'owner died', 'rounds', 'threads', 'died', 'terminated', 'children']
/** Of a round, however slow the machine is. */
const LEAST_DEATHS = 3
/** Milliseconds. */
const END_OF_ROUND = slowness * 40000
/**
 * V8 keeps the pages of a Worker that has ended for eight seconds, for the next one (Node 24 and later). Milliseconds.
 */
const KEEPS_PAGES = slowness * 10000
/** The memory of the process is compared after this round and after the last one, if a run has so many seconds. */
const SETTLED = 4
const LONG = 60
/**
 * Node before 14.6 does not tell that a memory is gone: what dead holders left would be found in new memory at its
 * address.
 */
const kept = MAJOR < 15 ? [] : undefined

/** Returns the number of threads of this process; undefined where the system does not say. */
function threads () {
  try {
    return fs.readdirSync('/proc/self/task').length
  } catch (_) {
    return undefined
  }
}

class Round {
  constructor (number, seed, only, longest) {
    this.number = number
    this.only = only
    this.random = randomOf(seed)
    this.seed = Math.floor(this.random() * 2 ** 30)
    this.length = Math.min(2000 + this.random() * 6000, longest)
    // Barriers have one party for each of the steady threads, and for main.
    const kinds = [{ blocks: true }, { blocks: false }, { blocks: this.random() < 0.5 }]
    this.steadyKinds = kinds.slice(0, 2 + this.below(2))
    this.mortals = 1 + this.below(3)
    // Milliseconds from one thread that comes or goes to the next, on average.
    this.pause = [20, 60, 200][this.below(3)]
    this.arena = new Arena({ growable: this.random() < 0.3, steady: 1 + this.steadyKinds.length })
    if (kept) kept.push(this.arena.buffers.words)
    this.alive = new Set()
    this.counts = Object.create(null)
    this.lastId = 0
    this.terminated = 0
    this.died = 0
    this.children = 0
    this.arena.set('start', 0, Math.floor(now()))
    this.arena.set('consumer', 0, ACTORS * this.below(this.arena.steady))
    // Behind those of main.
    this.feeder = new Actor(this.arena, { id: 0, n: ACTORS - 1, blocks: false, steady: true, seed: this.seed })
  }

  /** Says the error and the threads' operations, and ends the process. */
  fail (error) {
    const present = this.arena.present(NAMES).join('\n')
    fs.writeSync(2, `\nround ${this.number}: ${error.stack}\nwhat the threads are at:\n${present}\n`)
    process.exit(1)
  }

  below (limit) { return Math.floor(this.random() * limit) }

  add (all) {
    for (const counts of all)
      for (const name of Object.keys(counts)) this.counts[name] = (this.counts[name] || 0) + counts[name]
  }

  start ({ steady, blocks, party }) {
    const id = ++this.lastId
    this.arena.set('lastId', 0, id)
    const number = blocks ? 1 : 2 + this.below(ACTORS - 1)
    // One party each, or one of several would wait for itself.
    const actors = Array.from({ length: number }, (_, n) => ({ n, blocks, party: n === 0 ? party : undefined }))
    const { arena } = this
    const clones = this.random() < 0.5 ? arena.instances : undefined
    const workerData = {
      buffers: arena.buffers,
      clones,
      steady: arena.steady,
      only: this.only,
      settings: { id, steady, actors, seed: this.seed }
    }
    const worker = new Worker(require.resolve('./thread.js'), { workerData, stdout: true })
    const thread = { id, worker, steady, done: false }
    const { threadId } = worker
    this.alive.add(thread)
    worker.on('message', (counts) => {
      thread.done = true
      this.add(counts)
    })
    worker.on('error', (error) => {
      if (error.message !== Actor.ON_PURPOSE) this.fail(error)
    })
    thread.exited = new Promise(resolve => worker.on('exit', (code) => {
      this.alive.delete(thread)
      const expectedly = thread.done || arena.get('isDying', id) === 1
      if (!thread.done) this.died++
      arena.bury(id, threadId)
      if (!expectedly) this.fail(new Error(`thread ${id} has ended with ${code}, for no reason`))
      resolve()
    }))
    return thread
  }

  /** Ends a thread at any moment. */
  terminate (thread) {
    if (thread.done || this.arena.get('isDying', thread.id) === 1) return
    // Most of them have begun.
    if (this.arena.get('isOnline', thread.id) === 0 && (!MAY_DIE_BOOTING || this.random() < 0.9)) return
    this.arena.announceDeath(thread.id)
    this.terminated++
    thread.worker.terminate()
  }

  /** Lets threads that may die come and go. */
  async comeAndGo () {
    while (!this.isOver()) {
      await sleep(-Math.log(1 - this.random()) * this.pause)
      const mortals = [...this.alive].filter(({ steady }) => !steady)
      if (mortals.length > 0 && this.random() < 0.4) this.terminate(mortals[this.below(mortals.length)])
      else if (mortals.length < this.mortals && this.lastId < IDS - 8)
        this.start({ steady: false, blocks: this.random() < 0.4 })
    }
    // The last ones end by themselves, or not.
    for (const thread of this.alive) if (!thread.steady && this.random() < 0.5) this.terminate(thread)
  }

  /** Processes that end in the midst of everything. */
  async endProcesses () {
    while (!this.isOver()) {
      await sleep(this.random() * 1500)
      const seed = this.below(1e6)
      const { way, code } = expected(seed)
      const args = process.execArgv.concat(path.join(__dirname, 'child.js'), String(seed))
      const options = { timeout: slowness * 30000, killSignal: 'SIGKILL' }
      await new Promise(resolve => execFile(process.execPath, args, options, (error, _, stderr) => {
        this.children++
        const { killed, code: actual, signal } = error || { code: 0 }
        const child = `child.js ${seed} (${way})`
        if (killed) this.fail(new Error(`${child} has not ended after 30 s`))
        else if (actual !== code) this.fail(new Error(`${child} has ended with ${signal || actual}:\n${stderr}`))
        resolve()
      }))
    }
  }

  /** Notifies, in the end, all that wait without a timeout. */
  sweep () {
    const { arena } = this
    for (let n = 0; n < VALUES; n++) arena.notifyValue(n, Infinity)
    for (let n = 0; n < COUNT.fifo; n++) arena.tryFifo(n, () => arena.notifyFifo(n, Infinity))
  }

  /** Feeds consumers: all may wait for an item at the same time, for ever. */
  feed () {
    const { arena } = this
    for (const { lock, condition, items } of arena.queues) {
      const token = lock.tryLock()
      if (token === null) continue
      if (condition.waiters > 0 && this.random() < 0.5) {
        Atomics.add(arena.words, items, 1)
        condition.notify(1)
      }
      token.unlock()
    }
    feedMessages(this.feeder)
  }

  /** Ends all waits for something that nobody does any more. */
  sweepAll () {
    const { arena } = this
    this.sweep()
    for (let n = 0; n < COUNT.gate; n++) Atomics.notify(arena.words, arena.place('gate', n))
    for (const { condition } of arena.queues) condition.notify()
    for (const queue of arena.messages) queue.close()
  }

  isOver () { return this.arena.get('stop') !== 0 || this.arena.get('violated') === 1 }

  async run () {
    const { arena } = this
    const watcher = new Worker(require.resolve('./watcher.js'), {
      workerData: { buffers: arena.buffers, steady: arena.steady, names: NAMES }
    })
    watcher.on('error', error => this.fail(error))
    const watcherExited = new Promise(resolve => watcher.on('exit', resolve))
    const violated = setInterval(() => {
      if (arena.get('violated') === 1) this.fail(new Error('a law was broken'))
    }, 20)
    const steady = this.steadyKinds.map(({ blocks }, n) => this.start({ steady: true, blocks, party: n + 1 }))
    const actors = [0, 1, 2].map(n => ({ n, blocks: false, party: n === 0 ? 0 : undefined }))
    const settings = { id: 0, steady: true, seed: this.seed, actors }
    const mine = Actor.runActors(arena, settings, operationsOf(this.only)).then(counts => this.add(counts))
    mine.catch(error => this.fail(error))
    const chaos = [this.comeAndGo(), this.endProcesses()]
    const end = now() + this.length
    for (let swept = now(); now() < end || this.died < LEAST_DEATHS; await sleep(20)) {
      this.feed()
      if (now() - swept < 100) continue
      swept = now()
      this.sweep()
    }
    arena.set('stop', 0, 1)
    const rescue = setInterval(() => this.sweepAll(), 20)
    const isLate = setTimeout(
      () => this.fail(new Error(`the round has not ended after ${END_OF_ROUND / 1000} s`)),
      END_OF_ROUND
    )
    await Promise.all([mine, ...chaos, ...steady.map(({ exited }) => exited)])
    while (this.alive.size > 0) await [...this.alive][0].exited
    clearInterval(rescue)
    clearTimeout(isLate)
    arena.set('stop', 0, 2)
    await watcherExited
    this.checkEnd()
    await this.checkRemains()
    clearInterval(violated)
  }

  /** Checks the laws of the end: nothing waits, nothing is held, and the sums are right. */
  checkEnd () {
    const { arena } = this
    const wrong = arena.strayWrites()
    const expect = (what, value, wanted) => {
      if (value !== wanted) wrong.push(`${what}: ${value} instead of ${wanted}`)
    }
    for (let at = 0; at < arena.words.length; at++) expect(`waiters at word ${at}`, api.waiterCount(arena.words, at), 0)
    for (let n = 0; n < VALUES; n++) {
      const counts = ['begun', 'ok', 'over', 'notified', 'notifying'].map(name => arena.get(name, n))
      const [begun, ok, over, notified, notifying] = counts
      const lost = begun - ok - over
      // What dying threads were doing is known up to what they were in the midst of.
      const isExact = n < COUNT.value ? n < COUNT.value / 2 : n - COUNT.value < BIG / 2
      if (isExact) {
        expect(`value ${n}: waits without an end`, lost, 0)
        expect(`value ${n}: notified`, notified, ok)
      } else if (notifying === 0 && (notified < ok || notified > ok + lost)) {
        wrong.push(`value ${n}: ${notified} notified, ${ok} ok and ${lost} lost with their threads`)
      }
    }
    for (let n = 0; n < COUNT.fifo; n++) {
      const [next, notified] = ['fifoNext', 'fifoNotified'].map(name => arena.get(name, n))
      expect(`fifo ${n}: notified`, notified, next)
      for (let ticket = 0; ticket < Math.min(next, TICKETS); ticket++)
        expect(`fifo ${n}: ticket ${ticket}`, arena.get('fifoState', n * TICKETS + ticket), 2)
    }
    const { held, waiting } = api.snapshot()
    expect('held and awaited', JSON.stringify(held.concat(waiting)), '[]')
    for (const instance of [].concat(...Object.values(arena.instances)))
      expect(`waiters of ${instance.constructor.name} ${instance.byteOffset}`, instance.waiters, 0)
    arena.locks.forEach((lock, n) => expect(`lock ${n}: locked`, lock.locked, false))
    arena.queues.forEach(({ lock }, n) => expect(`lock of queue ${n}: locked`, lock.locked, false))
    arena.rws.forEach((rw, n) => expect(`rw ${n}: locked or read`, rw.locked || rw.readers > 0, false))
    arena.semaphores.forEach((semaphore, n) => expect(`semaphore ${n}: permits`, semaphore.available, PERMITS))
    for (let n = 0; n < COUNT.semaphore; n++) expect(`semaphore ${n}: permits in use`, arena.get('inUse', n), 0)
    for (let n = 0; n < COUNT.barrier; n++) {
      for (let party = 0; party < arena.steady; party++) {
        const generations = arena.get('generations', n * ACTORS * 16 + party)
        expect(`barrier ${n}: generations`, generations, arena.get('leaders', n))
      }
      expect(`barrier ${n}: its word`, arena.words[arena.place('barrier', n)], arena.get('leaders', n) << 16)
    }
    wrong.push(...checkMessages(this.feeder))
    if (wrong.length > 0) throw new Error(wrong.join('\n'))
  }

  /** Checks the remains: all can be taken, no death is reported twice, and no name stays. */
  async checkRemains () {
    const { arena } = this
    for (const lock of [...arena.locks, ...arena.rws, ...arena.queues.map(({ lock }) => lock)]) {
      for (const isFirst of [true, false]) {
        const token = lock.tryLock()
        const name = `${lock.constructor.name} ${lock.byteOffset}`
        if (token === null) throw new Error(`${name} is free, and cannot be taken`)
        if (token.ownerDied && !isFirst) throw new Error(`${name} tells of a death twice`)
        token.unlock()
      }
    }
    // A name whose holder died is there until that has been told.
    for (const name of ['endless', ...Array.from({ length: COUNT.name }, (_, n) => arena.nameOf(n))])
      await api.locks.request(name, () => {})
    await checkFiles(arena, COUNT.file)
    await until(() => nameCount() === 0, 'no name is left')
  }
}

async function main () {
  const [seconds, seed] = process.argv.slice(2, 4).map(Number)
  const only = (process.argv[4] || GROUPS.join()).split(',')
  const totals = {}
  for (const name of TOTALS) totals[name] = 0
  const samples = []
  const memory = []
  const end = now() + seconds * 1000
  for (let number = 1; now() < end; number++) {
    const round = new Round(number, seed * 1009 + number, only, Math.max(500, end - now()))
    await round.run().catch(error => round.fail(error))
    for (const name of Object.keys(round.counts)) totals[name in totals ? name : 'operations'] += round.counts[name]
    totals.rounds++
    totals.threads += round.lastId
    for (const name of ['died', 'terminated', 'children']) totals[name] += round[name]
    const { heap, rss, threads } = samples[samples.push(await sample()) - 1]
    const done = `${totals.operations} operations, ${totals.threads} threads`
    console.log(`round ${number}: ${done}, heap ${heap} MB, memory ${rss} MB, ${threads} threads at rest`)
    if (seconds >= LONG && number === SETTLED) memory.push(await memoryAtRest())
  }
  checkGrowth(samples)
  if (memory.length > 0) checkMemory(memory[0], memory[1] = await memoryAtRest())
  console.log(JSON.stringify(Object.assign(totals, { samples: [samples[0], samples[samples.length - 1]], memory })))
  setTimeout(() => {
    fs.writeSync(2, 'something keeps the process alive after its last round\n')
    process.exit(1)
  }, LINGER).unref()
}

/** Returns the state between two rounds. */
async function sample () {
  for (let n = 0; n < 4; n++) {
    global.gc()
    await sleep(20)
  }
  const { heapUsed, rss } = process.memoryUsage()
  const megabytes = bytes => Math.round(bytes / 1e5) / 10
  return { heap: megabytes(heapUsed), rss: megabytes(rss), threads: threads() }
}

/** Returns the memory of the process, once it shrinks no more. Before, it has pages of Workers that have ended. */
async function memoryAtRest () {
  let least = Infinity
  for (let since = now(); now() - since < KEEPS_PAGES;) {
    const { rss } = await sample()
    if (rss < least - 1) since = now()
    least = Math.min(least, rss)
    await sleep(200)
  }
  return least
}

/** Checks that nothing grows from the first rounds to the last ones: threads, or the heap. */
function checkGrowth (samples) {
  if (samples.length < 6) return
  const least = (part, name) => Math.min(...part.map(sample => sample[name]))
  const [first, last] = [samples.slice(1, 4), samples.slice(-3)]
  const grown = name => Math.round(10 * (least(last, name) - least(first, name))) / 10
  if (samples[0].threads !== undefined && grown('threads') > 0) throw new Error(`${grown('threads')} threads are left`)
  if (grown('heap') > 8) throw new Error(`the heap has grown by ${grown('heap')} MB`)
}

/** Checks the memory of the process: its allocator may keep some between pieces that are in use. */
function checkMemory (first, last) {
  if (last - first > 50)
    throw new Error(`the memory of the process has grown by ${Math.round(last - first)} MB, from ${first} MB`)
}

process.on('exit', removeFiles)

main().catch(error => {
  fs.writeSync(2, `${error.stack}\n`)
  // A hanging thread would keep the process.
  process.exit(1)
})
