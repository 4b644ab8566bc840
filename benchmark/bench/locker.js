'use strict'

// A process that takes locks of several processes, for groups/processes.js; argv[2]: `{ variant, folder, installed }`,
// where `installed` has the published package. It does what its parent tells it: `take` a name, and `free` it.

const fs = require('fs')
const path = require('path')

const { variant, folder, installed } = JSON.parse(process.argv[2])
const load = entry => require(path.join(installed, 'load.js'))('atomics-waitasync/' + entry)
const HOLD = 1 // millisecond
const POLL = 5 // milliseconds: of proper-lockfile, which has to be told to try again
const STALE = 5000 // milliseconds, of proper-lockfile

/** Takes locks of an engine of this package. */
const takerOf = engine => {
  const locks = load('processes').processLocks(engine)
  return async name => {
    const lock = await locks.hold(name)
    return () => lock.unlock()
  }
}

/** Each gives a function that takes a lock, and gives one that gives it back. */
const takers = {
  ours: () => takerOf(folder),
  memory: () => takerOf(load('processes').memory(folder)),
  /** An AsyncLock for each name, in memory of all. */
  shared () {
    const { AsyncLock } = load('pure')
    const words = load('processes').sharedMemory(path.join(folder, 'words'), 4096)
    const locks = new Map()
    return async name => {
      if (!locks.has(name)) locks.set(name, new AsyncLock(words, { byteOffset: offsetOf(name) }))
      const token = await locks.get(name).lockAsync()
      return async () => token.unlock()
    }
  },
  /** Asks the parent, which has a queue for each name. */
  'process.send' () {
    const waits = new Map()
    process.on('message', ({ granted }) => {
      if (granted !== undefined) waits.get(granted).shift()()
    })
    return async name => {
      if (!waits.has(name)) waits.set(name, [])
      await new Promise(resolve => {
        waits.get(name).push(resolve)
        process.send({ wanted: name })
      })
      return async () => process.send({ free: name })
    }
  },
  /** What a program by hand does: `SET NX`, and again until it succeeds. */
  redis () {
    const socket = require('net').connect(path.join(folder, 'redis'))
    const answers = []
    socket.on('data', data => {
      for (const answer of String(data).match(/[^\n]+\n/g)) answers.shift()(answer)
    })
    const ask = command => new Promise(resolve => {
      answers.push(resolve)
      socket.write(command + '\r\n')
    })
    return async name => {
      while (!(await ask(`SET ${name} ${process.pid} NX PX 30000`)).startsWith('+')) await sleep(1)
      return () => ask(`DEL ${name}`)
    }
  },
  'wait-for-lock' () {
    const { unlock, waitForLock } = require('fs-native-extensions')
    const files = new Map()
    return async name => {
      if (!files.has(name)) files.set(name, fs.openSync(path.join(folder, `${name}.wait`), 'a+'))
      await waitForLock(files.get(name))
      return async () => unlock(files.get(name))
    }
  },
  'proper-lockfile' () {
    const retries = { forever: true, minTimeout: POLL, maxTimeout: POLL, factor: 1 }
    const { lock } = require('proper-lockfile')
    return name => lock(path.join(folder, name), { realpath: false, stale: STALE, retries })
  }
}

/** The place of a name's word. Those of this benchmark differ. */
const offsetOf = name => 4 * ([...name].reduce((sum, letter) => (31 * sum + letter.charCodeAt(0)) % 1021, 7))

/** Takes a free lock of each kind and gives it back, if there is nothing shorter. */
const takeAndFree = () => async name => (await take(name))()

/** Each gives a function that takes a free lock and gives it back. Some take the options of a request. */
const passes = {
  memory () {
    const locks = load('processes').processLocks(load('processes').memory(folder))
    const nothing = () => {}
    return name => locks.request(name, nothing)
  },
  shared: takeAndFree,
  'process.send': takeAndFree,
  redis: takeAndFree,
  ours () {
    const locks = load('processes').processLocks(folder)
    const { signal } = new AbortController()
    const options = {
      timeout: { timeout: 1e6 }, signal: { signal }, shared: { mode: 'shared' }, label: { label: 'a label' },
      repair: { repair () {} }
    }
    const nothing = () => {}
    return (name, option) => option === 'hold' ? hold(locks, name) : locks.request(name, options[option], nothing)
  },
  'wait-for-lock' () {
    const { unlock, waitForLock } = require('fs-native-extensions')
    return async name => {
      const file = fs.openSync(path.join(folder, `${name}.wait`), 'a+')
      await waitForLock(file)
      unlock(file)
      fs.closeSync(file)
    }
  },
  'proper-lockfile': takeAndFree
}

async function hold (locks, name) {
  await (await locks.hold(name)).unlock()
}

/** Microseconds of processor time of a pass, the least of some rounds: so many `atOnce`, or each after a `pause`. */
async function processorTime (pass, { count, rounds, atOnce = 1, pause, option }) {
  let least = Infinity
  for (let round = 0; round < rounds; round++) {
    const before = process.cpuUsage()
    for (let n = 0; n < count; n += atOnce) {
      if (pause !== undefined) await sleep(pause)
      if (atOnce === 1) await pass('free', option)
      else await Promise.all(Array.from({ length: atOnce }, () => pass('free', option)))
    }
    const { user, system } = process.cpuUsage(before)
    least = Math.min(least, (user + system) / count)
  }
  return least
}

const take = takers[variant]()
const now = () => Number(process.hrtime.bigint()) / 1e6
const sleep = milliseconds => new Promise(resolve => setTimeout(resolve, milliseconds))
const held = new Map()

const tasks = {
  /** Microseconds to take a free lock and to give it back: the median. */
  async free ({ count }) {
    const times = []
    for (let n = 0; n < count; n++) {
      const began = now()
      await (await take('free'))()
      times.push((now() - began) * 1000)
    }
    return times.sort((a, b) => a - b)[count >> 1]
  },
  async processor ({ pause, ...options }) {
    const pass = passes[variant]()
    const whole = await processorTime(pass, { pause, ...options })
    // Without the timers.
    return pause === undefined ? whole : whole - await processorTime(async () => {}, { pause, ...options })
  },
  /** Bytes of the heap that a pass takes, before they are collected. */
  async heap ({ count }) {
    const pass = passes[variant]()
    let least = Infinity
    for (let round = 0; round < 10; round++) {
      global.gc()
      const before = process.memoryUsage().heapUsed
      for (let n = 0; n < count; n++) await pass('free')
      const bytes = (process.memoryUsage().heapUsed - before) / count
      // Less than nothing: a collection came within.
      if (round > 2 && bytes > 0) least = Math.min(least, bytes)
    }
    return least
  },
  async loop ({ milliseconds }) {
    const end = now() + milliseconds
    let [count, longest] = [0, 0]
    while (now() < end) {
      const asked = now()
      const free = await take('loop')
      longest = Math.max(longest, now() - asked)
      count++
      await sleep(HOLD)
      await free()
    }
    return { count, longest }
  },
  async tasks ({ milliseconds, tasks }) {
    const end = now() + milliseconds
    let count = 0
    await Promise.all(Array.from({ length: tasks }, async () => {
      while (now() < end) {
        await (await take('tasks'))()
        count++
      }
    }))
    return count
  },
  /** Microseconds until a word is in the other process, which is blocked and hands it back: see `futex.rs`. */
  word ({ me, trips }) {
    const { notify, wait } = load('pure')
    const word = new Int32Array(load('processes').sharedMemory(path.join(folder, 'word'), 4))
    let began
    for (let n = -100; n < trips; n++) {
      if (n === 0) began = now()
      while (Atomics.load(word, 0) !== me) wait(word, 0, 1 - me)
      Atomics.store(word, 0, 1 - me)
      notify(word, 0, 1)
    }
    return (now() - began) * 1000 / (2 * trips)
  },
  async take ({ names }) {
    await Promise.all(names.map(async name => held.set(name, await take(name))))
    return now()
  },
  async release ({ names }) {
    const at = now()
    await Promise.all(names.map(name => held.get(name)()))
    return at
  }
}

process.on('message', async ({ id, task, ...options }) => {
  if (task !== undefined) process.send({ id, result: await tasks[task](options) })
})
process.on('disconnect', () => process.exit())
process.send({ id: 'ready' })
