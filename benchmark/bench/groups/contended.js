'use strict'

// Two workers that take one lock in loops, blocking where the lock can, with about a microsecond of work inside: how often, what
// processor time it costs, and how long the main thread waits that wants the lock every millisecond. Under the lock, a number is
// read, and written one larger only after the work: if two are inside at once, updates get lost, and the sum shows how many.

const { now, quantile, sleep, takeTurns } = require('../sampling')
const { BYTES, available, open } = require('../locks')
const { Member, cores, serve, tie } = require('../team')

/** Nanoseconds of work under the lock. */
const INSIDE = 1000
const WORKERS = 2
/** On two cores. */
const MORE_WORKERS = 3

// Words of the memory that the threads share, beside the lock's. Each on a cache line of its own.
const COUNTER = 0
const STOP = 16
const READY = 32
const WORDS = 48

/** What is done under the lock. */
function work (words, steps) {
  const value = words[COUNTER]
  let sum = value
  for (let n = 0; n < steps; n++) sum = (sum * 5 + n) | 0
  // Never true, but the engine cannot know.
  words[COUNTER] = sum === 0.5 ? sum : value + 1
}

/** How many steps of `work` last as long as is wanted. */
function calibrate () {
  const words = new Int32Array(new SharedArrayBuffer(4 * WORDS))
  let best = Infinity
  for (let n = 0; n < 200; n++) {
    const begin = now()
    for (let k = 0; k < 10; k++) work(words, 1000)
    best = Math.min(best, (now() - begin) / 1e4)
  }
  return Math.round(INSIDE / best)
}

async function run ({ rounds, quick, progress }) {
  // What has not installed anything, so that the peers are as they are.
  const names = available(['host', 'ours', 'again', 'floor', 'multithreading', 'worker-mutex', 'web-locks'])
  const steps = calibrate()
  const places = cores()
  const shared = new SharedArrayBuffer(4 * WORDS)
  const words = new Int32Array(shared)
  const lost = {}
  /** Why a lock could not be used to the end. */
  const failures = {}

  // By name: the memory of the lock, and the workers. The floor is one worker alone.
  const teams = {}
  const form = (name, size, coresOf) => {
    const sab = new SharedArrayBuffer(BYTES)
    const members = Array.from({ length: size }, (_, n) => new Member('contended', 'loop', { name, sab, shared, steps, core: places && coresOf(n) }))
    return { sab, members }
  }
  for (const name of names) teams[name] = form(name, name === 'floor' ? 1 : WORKERS, n => places[n % places.length])

  /** A race, unless the lock has failed before. Of others' locks, that is a result. */
  const tryRace = async (name, milliseconds, other) => {
    if (failures[name] !== undefined) return undefined
    try {
      return await race(name, milliseconds, other)
    } catch (error) {
      if (name === 'ours' || name === 'again') throw error
      failures[name] = error.message
      await Promise.all(teams[name].members.map(member => member.end()))
      return undefined
    }
  }

  /** The workers for a while, and meanwhile `other`, which gives a promise of how often it has had the lock in the end. */
  const race = async (name, milliseconds, other) => {
    const { sab, members } = teams[name]
    words.fill(0)
    const counts = members.map(member => member.ask({ size: members.length }))
    const ready = async () => { while (Atomics.load(words, READY) < members.length) await sleep(1) }
    await Promise.race([ready(), ...counts])
    words[COUNTER] = 0
    const cpu = process.cpuUsage()
    const begin = now()
    // From now on they count.
    Atomics.add(words, READY, 1)
    Atomics.notify(words, READY)
    const served = await other(sab, begin + milliseconds * 1e6)
    const elapsed = now() - begin
    const { user, system } = process.cpuUsage(cpu)
    Atomics.store(words, STOP, 1)
    const each = await Promise.all(counts)
    const done = each.reduce((sum, count) => sum + count, 0)
    lost[name] = (lost[name] || 0) + done + await served() - words[COUNTER]
    return { throughput: done / elapsed * 1e6, cpu: (user + system) / done, share: Math.min(...each) / Math.max(...each) }
  }

  // Asleep, so that a core is free for each worker.
  const asleep = async (_, end) => {
    Atomics.wait(words, READY, words[READY], (end - now()) / 1e6)
    return () => 0
  }
  const alone = await takeTurns(names, rounds(80), async (name) => {
    const figures = await tryRace(name, 8, asleep)
    return figures ? { 'lock-workers': figures.throughput, 'lock-workers-cpu': figures.cpu } : {}
  }, share => progress(share * 0.4), { warmUp: 5, gc: false, tries: 8 })

  const own = names.filter(name => name === 'host' || name === 'ours' || name === 'again')
  const shares = await takeTurns(own, rounds(9), async (name) => {
    const figures = await tryRace(name, quick ? 20 : 300, asleep)
    return figures ? { 'lock-share': figures.share } : {}
  }, share => progress(0.4 + share * 0.1), { gc: false })

  const withMain = await takeTurns(names.filter(name => name !== 'floor'), rounds(5), async (name) => {
    const waits = []
    const figures = await tryRace(name, quick ? 100 : 2000, (sab, end) => demand(name, sab, end, () => work(words, steps), waits))
    if (figures === undefined) return {}
    return { 'lock-main-p99': quantile(waits, 0.99), 'lock-main-max': quantile(waits, 1), 'lock-main-workers': figures.throughput }
  }, share => progress(0.5 + share * 0.4))
  const endAll = names => Promise.all([].concat(...names.map(name => teams[name].members.map(member => member.end()))))
  await endAll(names)

  for (const name of own) teams[name] = form(name, MORE_WORKERS, () => places.slice(0, 2).join())
  const more = await takeTurns(own, rounds(15), async (name) => {
    const figures = await tryRace(name, quick ? 20 : 100, asleep)
    return figures ? { 'lock-workers-3': figures.throughput } : {}
  }, share => progress(0.9 + share * 0.1), { gc: false })
  await endAll(own)

  const updates = {}
  for (const name of names) if (lost[name] !== undefined) updates[name] = [lost[name]]
  return Object.assign(alone, shares, withMain, more, { lost: updates, failures })
}

/** The main thread wants the lock a millisecond after it has had it. Puts its waits, in milliseconds, into `waits`. */
async function demand (name, sab, end, callback, waits) {
  const lock = await open(name, { sab })
  let served = 0
  let asked
  let execution
  let over
  const patience = new Promise((resolve) => { over = resolve })
  const timer = setTimeout(over, (end - now()) / 1e6, 'over')
  while (now() < end) {
    asked = now()
    execution = lock.execute(() => {
      waits.push((now() - asked) / 1e6)
      served++
      callback()
    })
    if (await Promise.race([execution, patience]) === 'over') {
      // It still waits. That counts, too.
      waits.push((now() - asked) / 1e6)
      break
    }
    await sleep(1)
  }
  clearTimeout(timer)
  return () => execution.then(() => served)
}

const threads = {
  async loop ({ name, sab, shared, steps, core }, port) {
    const words = new Int32Array(shared)
    if (core !== undefined) tie(core)
    const lock = await open(name, { sab })
    serve(port, async ({ size }) => {
      Atomics.add(words, READY, 1)
      while (Atomics.load(words, READY) < size) await sleep(1)
      Atomics.wait(words, READY, size)
      let count = 0
      if (lock.block === undefined) {
        while (Atomics.load(words, STOP) === 0) {
          await lock.execute(() => work(words, steps))
          count++
        }
      } else {
        while (Atomics.load(words, STOP) === 0) {
          lock.block()
          work(words, steps)
          lock.release()
          count++
        }
      }
      return count
    })
  }
}

module.exports = { run, threads }
