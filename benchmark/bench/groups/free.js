'use strict'

// A free lock of the published package beside the article's class, each in processes of its own, by turns: compiled
// code depends on what else a process has run. A sample is the 5th percentile of short loops: what runs on the machine
// besides makes most longer.

const path = require('path')
const { BYTES, available, open } = require('../locks')
const { flags, inProcesses } = require('../processes')
const { fresh, now, quantile } = require('../sampling')
const { Member } = require('../team')

/** How many processes each variant has. */
const PROCESSES = 8
const [WARM_UP, LOOPS, SHARE] = [60, 300, 0.05]

/** The timed loops: each lasts a fraction of a millisecond. */
const loops = {
  lock: { isBlocking: true, count: 4000, loop: (lock, count) => {
    for (let n = 0; n < count; n++) {
      lock.lock()
      lock.unlock()
    }
  } },
  token: { isBlocking: true, count: 4000, loop: (lock, count) => {
    for (let n = 0; n < count; n++) lock.lock().unlock()
  } },
  try: { count: 4000, loop: (lock, count) => {
    for (let n = 0; n < count; n++) {
      if (!lock.tryLock()) throw new Error('it is held')
      lock.unlock()
    }
  } },
  await: { count: 1000, loop: async (lock, count) => {
    for (let n = 0; n < count; n++) {
      await lock.lockAsync()
      lock.unlock()
    }
  } },
  execute: { count: 1000, loop: async (lock, count, callback) => {
    for (let n = 0; n < count; n++) await lock.executeLocked(callback)
  } }
}

const partsOf = figure => figure.split('-').slice(1)

async function time ({ figure, variant, quick, installed }) {
  const [name, entry = 'pure'] = partsOf(figure)
  const isOurs = variant === 'ours' || variant === 'again'
  const load = entry => require(path.join(installed, 'load.js'))('atomics-waitasync/' + entry)
  const { lock } = await open(variant, { sab: new SharedArrayBuffer(BYTES), entry, load })
  const { count } = loops[name]
  // The article's class has no tokens.
  const loop = fresh(loops[name === 'token' && !isOurs ? 'lock' : name].loop)
  const callback = () => {}
  const times = []
  for (let round = quick ? 0 : -WARM_UP; round < (quick ? 1 : LOOPS); round++) {
    const begin = now()
    await loop(lock, count, callback)
    if (round >= 0) times.push((now() - begin) / count)
  }
  return { [figure]: quantile(times, SHARE) }
}

function sample (figure, variant, { quick, installed }) {
  const settings = { figure, variant, quick, installed }
  return loops[partsOf(figure)[0]].isBlocking ? new Member('free', 'timed', settings).ask() : time(settings)
}

module.exports = {
  run (kit) {
    const variants = {}
    for (const id of kit.chosen) {
      const peers = partsOf(id)[0] === 'execute' ? ['article'] : []
      variants[id] = available(['host', 'ours', 'again', ...peers])
    }
    return inProcesses(kit, PROCESSES, variants, flags())
  },
  sample,
  threads: { timed: settings => () => time(settings) }
}
