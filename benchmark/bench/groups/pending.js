'use strict'

// What claims cost that wait for long, for a name or for a lock in memory: how often the system has a thread of the
// process run, and the processor time. A process for each sample.

const { inProcesses } = require('../processes')
const { now, sleep, timesSlept } = require('../sampling')
const { HOST } = require('./named')

const MANY = 50000

/** Makes the claims of a figure. Returns the memory of their locks. */
function claim (figure, variant, quick) {
  const { AsyncLock, locks } = require('../../../pure')
  const count = figure !== 'pending-many' ? 1 : quick ? 100 : MANY
  const words = new Int32Array(new SharedArrayBuffer(4 * count))
  if (figure === 'pending-name') {
    const names = variant === 'host' ? HOST : locks
    // It is held for ever.
    for (let n = 0; n < 2; n++) names.request('pending', () => new Promise(() => {})).catch(() => {})
    return words
  }
  for (let n = 0; n < count; n++) {
    const lock = new AsyncLock(words.buffer, { byteOffset: 4 * n })
    lock.tryLock()
    lock.lockAsync().catch(() => {})
  }
  return words
}

async function sample (figure, variant, { quick }) {
  const kept = claim(figure, variant, quick)
  // Until then what waits is looked at more often.
  await sleep(quick ? 100 : 9000)
  const [cpu, slept, begin] = [process.cpuUsage(), timesSlept(), now()]
  await sleep(quick ? 200 : 5000)
  const seconds = (now() - begin) / 1e9
  const { user, system } = process.cpuUsage(cpu)
  const woken = timesSlept() - slept
  const value = figure === 'pending-many' ? (user + system) / 1e3 / seconds : woken / seconds
  return kept.length > 0 && value >= 0 ? { [figure]: value } : {}
}

const run = kit => inProcesses(kit, 1, {
  'pending-name': (HOST === undefined ? [] : ['host']).concat('ours', 'again'),
  'pending-word': ['ours', 'again'],
  'pending-many': ['ours', 'again']
})

module.exports = { run, sample }
