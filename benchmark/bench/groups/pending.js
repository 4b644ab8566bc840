'use strict'

// The cost of waits alone: twenty threads that are blocked and not woken, and claims that wait for long, for a name or
// for a lock in memory. The processor time, and how often the system has a thread of the process run, the service's,
// too. A process for each sample.

const { inProcesses } = require('../processes')
const { now, sleep, timesSlept } = require('../sampling')
const { open } = require('../queues')
const { Member, ready } = require('../team')
const { HOST, variants } = require('./named')

const THREADS = 20
const MANY = 50000

/** The pending waits, so that none is collected. */
const waiting = []

/** Starts threads that block. */
async function block (variant, count) {
  const words = new Int32Array(new SharedArrayBuffer(8))
  const members = Array.from({ length: count }, () => new Member('pending', 'sleeper', { variant, words }))
  // They never answer.
  for (const member of members) member.ask().catch(() => {})
  await ready(words, count)
  waiting.push(members)
}

/** Makes claims, for locks in memory. */
function claim (count) {
  const { AsyncLock } = require('../../../pure')
  const buffer = new SharedArrayBuffer(4 * count)
  for (let n = 0; n < count; n++) {
    const lock = new AsyncLock(buffer, { byteOffset: 4 * n })
    lock.tryLock()
    waiting.push(lock.lockAsync().catch(() => {}))
  }
}

const figures = {
  idle: (variant, quick) => block(variant, quick ? 2 : THREADS),
  'pending-name' (variant) {
    const names = variant === 'host' ? HOST : require('../../../pure').locks
    // It is held for ever.
    for (let n = 0; n < 2; n++) names.request('pending', () => new Promise(() => {})).catch(() => {})
  },
  'pending-word': () => claim(1),
  'pending-many': (_, quick) => claim(quick ? 100 : MANY)
}

async function sample (figure, variant, { quick }) {
  await figures[figure](variant, quick)
  // Until then the slices of their sleep double, after the rest of their start.
  await sleep(quick ? 100 : 9000)
  const [cpu, slept, begin] = [process.cpuUsage(), timesSlept(), now()]
  await sleep(quick ? 200 : 5000)
  const seconds = (now() - begin) / 1e9
  const { user, system } = process.cpuUsage(cpu)
  const wakes = (timesSlept() - slept) / seconds
  const time = (user + system) / 1e3 / seconds
  if (figure === 'pending-many') return { [figure]: time }
  // Where the system does not say it, there is no such figure.
  const woken = wakes >= 0 && { [figure === 'idle' ? 'idle-wakes' : figure]: wakes }
  return { ...figure === 'idle' && { idle: time }, ...woken }
}

const threads = {
  sleeper: ({ variant, words }) => () => {
    Atomics.add(words, 1, 1)
    open(variant).wait(words, 0, 0)
  }
}

async function run (kit) {
  // One sample has both figures of the threads.
  const chosen = kit.chosen.some(figure => figure.startsWith('idle')) ? ['idle'] : []
  const words = { 'pending-word': ['ours', 'again'], 'pending-many': ['ours', 'again'] }
  return {
    ...await inProcesses({ ...kit, chosen }, 3, { idle: ['host', 'ours', 'again'] }),
    ...await inProcesses(kit, 1, { 'pending-name': variants(), ...words })
  }
}

module.exports = { run, sample, threads }
