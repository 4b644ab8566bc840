'use strict'

// What twenty threads cost that are blocked and not woken: processor time, milliseconds for each second, and how often
// the system has a thread of the process run, the service's too. A process for each sample.

const { inProcesses } = require('../processes')
const { now, sleep, timesSlept } = require('../sampling')
const { open } = require('../queues')
const { Member } = require('../team')

const THREADS = 20
async function sample (_, variant, { quick }) {
  const gate = new Int32Array(new SharedArrayBuffer(4))
  const array = new Int32Array(new SharedArrayBuffer(4))
  const members = Array.from({ length: quick ? 2 : THREADS }, () => new Member('idle', 'sleeper', {}))
  // They never answer.
  for (const member of members) member.ask({ variant, array, gate }).catch(() => {})
  while (Atomics.load(gate, 0) < members.length) await sleep(10)
  // Until then the slices of their sleep double, after what starting them has left to do.
  await sleep(quick ? 100 : 9000)
  const cpu = process.cpuUsage()
  const slept = timesSlept()
  const begin = now()
  await sleep(quick ? 200 : 5000)
  const seconds = (now() - begin) / 1e9
  const { user, system } = process.cpuUsage(cpu)
  const woken = timesSlept() - slept
  await Promise.all(members.map(member => member.end()))
  return Object.assign({ idle: (user + system) / 1e3 / seconds }, woken >= 0 ? { 'idle-wakes': woken / seconds } : {})
}

const threads = {
  sleeper: () => ({ variant, array, gate }) => {
    Atomics.add(gate, 0, 1)
    open(variant).wait(array, 0, 0)
  }
}

// One sample has both figures.
const run = kit => inProcesses(Object.assign({}, kit, { chosen: ['idle'] }), 3, { idle: ['host', 'ours', 'again'] })

module.exports = { run, sample, threads }
