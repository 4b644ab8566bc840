'use strict'

// The processor time that twenty threads cost which are blocked and not woken: milliseconds for each second. A process for each sample.

const { now, sleep } = require('../sampling')
const { open } = require('../queues')
const { Member, serve } = require('../team')

const THREADS = 20

async function sample (_, variant, { quick }) {
  const gate = new Int32Array(new SharedArrayBuffer(4))
  const array = new Int32Array(new SharedArrayBuffer(4))
  const members = Array.from({ length: quick ? 2 : THREADS }, () => new Member('idle', 'sleeper', {}))
  // They never answer.
  for (const member of members) member.ask({ variant, array, gate }).catch(() => {})
  while (Atomics.load(gate, 0) < members.length) await sleep(10)
  // What starting them has left to do.
  await sleep(quick ? 100 : 1000)
  const cpu = process.cpuUsage()
  const begin = now()
  await sleep(quick ? 200 : 3000)
  const { user, system } = process.cpuUsage(cpu)
  const cost = (user + system) / 1e3 / ((now() - begin) / 1e9)
  await Promise.all(members.map(member => member.end()))
  return cost
}

const threads = {
  async sleeper (_, port) {
    serve(port, ({ variant, array, gate }) => {
      Atomics.add(gate, 0, 1)
      open(variant).wait(array, 0, 0)
    })
  }
}

module.exports = { rounds: 3, figures: ['idle'], variants: () => ['host', 'ours', 'again'], sample, threads }
