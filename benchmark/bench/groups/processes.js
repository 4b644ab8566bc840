'use strict'

// The locks of several processes of one machine: by files, in mapped memory, and beside those of others.

const { fork, spawn, spawnSync } = require('child_process')
const fs = require('fs')
const os = require('os')
const path = require('path')
const { isInstalled } = require('../locks')
const { median, takeTurns } = require('../sampling')

const LOCKER = path.join(__dirname, '..', 'locker.js')
const MAJOR = parseInt(process.versions.node)
const OPTIONS = ['timeout', 'signal', 'shared', 'label', 'repair', 'hold']
const SETTLE = 100 // milliseconds, until a process that has asked is in line
const now = () => Number(process.hrtime.bigint()) / 1e6
const sleep = milliseconds => new Promise(resolve => setTimeout(resolve, milliseconds))

/** A process that takes locks. */
class Locker {
  static async start (settings) {
    const locker = new Locker()
    locker.waiting = new Map()
    locker.child = fork(LOCKER, [JSON.stringify(settings)], { execArgv: ['--expose-gc'] })
    locker.child.on('message', message => {
      if (message.id === undefined) locker.serve(message)
      else locker.waiting.get(message.id)(message.result)
    })
    locker.ended = new Promise(resolve => locker.child.once('exit', resolve))
    locker.id = 0
    await locker.answer('ready')
    return locker
  }

  /** Serves locks by messages: `queues` has who waits, first the one that has the lock. */
  serve ({ wanted, free }) {
    const name = wanted || free
    if (!queues.has(name)) queues.set(name, [])
    const queue = queues.get(name)
    if (free !== undefined) queue.shift()
    else queue.push(this)
    if (free !== undefined || queue.length === 1) Locker.grant(name)
  }

  answer (id) {
    return new Promise(resolve => this.waiting.set(id, resolve))
  }

  do (task, options) {
    const id = ++this.id
    const answer = this.answer(id)
    this.child.send({ id, task, ...options })
    return answer
  }

  /** Returns how often the threads of the process have gone to sleep, where the system tells it. */
  sleeps () {
    const folder = `/proc/${this.child.pid}/task`
    return fs.readdirSync(folder).reduce((sum, thread) => {
      const status = fs.readFileSync(path.join(folder, thread, 'status'), 'utf8')
      return sum + Number(/^voluntary_ctxt_switches:\s*(\d+)/m.exec(status)[1])
    }, 0)
  }

  async end () {
    this.child.kill('SIGKILL')
    await this.ended
    for (const [name, queue] of queues) {
      const [holder] = queue
      queues.set(name, queue.filter(locker => locker !== this))
      if (holder === this) Locker.grant(name)
    }
  }

  static grant (name) {
    const [next] = queues.get(name)
    // It may have just been killed.
    if (next !== undefined && next.child.connected) next.child.send({ granted: name }, () => {})
  }
}

const queues = new Map()

/** Starts a Redis whose socket is in the folder. */
async function startRedis (folder) {
  const socket = path.join(folder, 'redis')
  const server = spawn('redis-server', ['--port', '0', '--unixsocket', socket, '--save', ''], { stdio: 'ignore' })
  while (!fs.existsSync(socket)) await sleep(10)
  return server
}

/** Takes the samples of one variant, in a folder of its own. */
async function sample (variant, { quick, installed }) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'processes-'))
  const isSlow = variant === 'proper-lockfile'
  const lockers = []
  queues.clear()
  const redis = variant === 'redis' ? await startRedis(folder) : undefined
  const start = async () => {
    lockers.push(await Locker.start({ variant, folder, installed }))
    return lockers[lockers.length - 1]
  }
  try {
    return {
      'process-free': await (await start()).do('free', { count: quick ? 10 : isSlow ? 50 : 2000 }),
      ...await processor(start, variant, quick),
      'process-hand-over': await handOver(await start(), await start(), quick ? 2 : 15),
      // By hand, nobody notices a death before the lease ends.
      'process-killed': variant === 'redis' ? undefined : await untilNext(start, quick || isSlow ? 1 : 5),
      'process-wakes-1': await wakes(await start(), await start(), 1, quick),
      'process-wakes-20': await wakes(await start(), await start(), 20, quick),
      ...await shares(await Promise.all([1, 2, 3, 4, 5].map(start)), quick ? 100 : 3000),
      ...await rate(await Promise.all([1, 2, 3, 4].map(start)), quick ? 100 : 1000)
    }
  } finally {
    await Promise.all(lockers.map(locker => locker.end()))
    if (redis !== undefined) redis.kill()
    fs.rmSync(folder, { recursive: true, force: true })
  }
}

/** What a free lock costs: each figure in a process of its own. */
async function processor (start, variant, quick) {
  const count = quick ? 32 : variant === 'proper-lockfile' ? 64 : 3200
  const measure = async (options) => (await start()).do('processor', { count, rounds: quick ? 1 : 8, ...options })
  const plain = await measure()
  const results = {
    'process-cpu': plain,
    'process-cpu-32': ['proper-lockfile', 'redis'].includes(variant) ? undefined : await measure({ atOnce: 32 }),
    'process-cpu-paced': await measure({ count: quick ? 10 : 300, rounds: quick ? 1 : 3, pause: 1 }),
    'process-heap': await (await start()).do('heap', { count: quick ? 10 : 50 })
  }
  if (variant !== 'ours') return results
  const times = []
  for (const option of OPTIONS) times.push(await measure({ option }))
  return { ...results, 'process-cpu-options': Math.max(...times) / plain }
}

/** Microseconds from the release of one process to the grant of the other: the median. */
async function handOver (one, other, rounds) {
  const names = ['hand-over']
  const times = []
  await one.do('take', { names })
  for (let n = 0; n < rounds; n++) {
    const taken = other.do('take', { names })
    await sleep(SETTLE * (1 + Math.random()))
    const released = await one.do('release', { names })
    times.push((await taken - released) * 1000)
    ;[one, other] = [other, one]
  }
  return median(times)
}

/** Milliseconds from `kill -9` of a holder to the next one: the median. */
async function untilNext (start, rounds) {
  const names = ['killed']
  const times = []
  let holder = await start()
  await holder.do('take', { names })
  for (let n = 0; n < rounds; n++) {
    const next = await start()
    const taken = next.do('take', { names })
    await sleep(SETTLE * (1 + Math.random()))
    const killed = now()
    await holder.end()
    times.push(await taken - killed)
    holder = next
  }
  return median(times)
}

/** Wake-ups a second of a process that waits for so many names. */
async function wakes (holder, waiter, number, quick) {
  if (process.platform !== 'linux') return undefined
  const names = Array.from({ length: number }, (_, n) => `awaited-${number}-${n}`)
  await holder.do('take', { names })
  waiter.do('take', { names })
  // After a second, a wait is noted once.
  await sleep(quick ? SETTLE : 1500)
  const [before, began] = [waiter.sleeps(), now()]
  await sleep(quick ? SETTLE : 2000)
  return (waiter.sleeps() - before) / (now() - began) * 1000
}

/** How processes in loops share a lock that each holds for a millisecond. */
async function shares (lockers, milliseconds) {
  const results = await Promise.all(lockers.map(locker => locker.do('loop', { milliseconds })))
  const counts = results.map(({ count }) => count)
  return {
    'process-share': Math.min(...counts) / Math.max(...counts),
    'process-longest': Math.max(...results.map(({ longest }) => longest))
  }
}

/** Thousand locks a second of processes with ten tasks each, which do nothing but take one lock and give it back. */
async function rate (lockers, milliseconds) {
  const counts = await Promise.all(lockers.map(locker => locker.do('tasks', { milliseconds, tasks: 10 })))
  return { 'process-rate': counts.reduce((sum, count) => sum + count, 0) / milliseconds }
}

const hasRedis = () => spawnSync('redis-server', ['--version']).status === 0

/** Whether this Node can share memory among processes. */
function canShare () {
  const file = path.join(os.tmpdir(), `shared-${process.pid}`)
  try {
    require('../../../processes').sharedMemory(file, 4)
    fs.unlinkSync(file)
    return true
  } catch (_) {
    return false
  }
}

async function run ({ rounds, ...kit }) {
  if (MAJOR < 16) return {}
  const peers = { 'wait-for-lock': 'fs-native-extensions', 'proper-lockfile': 'proper-lockfile' }
  const variants = ['ours', 'again', ...Object.keys(peers).filter(name => isInstalled(peers[name])), 'process.send']
  if (process.platform === 'linux') variants.push('memory')
  if (canShare()) variants.push('shared')
  if (hasRedis()) variants.push('redis')
  return takeTurns(variants, rounds(3), variant => sample(variant === 'again' ? 'ours' : variant, kit), {
    warmUp: 0, gc: false
  })
}

module.exports = { Locker, canShare, run }
