'use strict'

// What the host's own Atomics.waitAsync lacks, measured on the Node that runs this, with this package's queue beside it:
//
//   node benchmark/gaps.js [NAME …]
//
// Every figure is taken in a process of its own, three times; the best of the three is printed, for load from elsewhere
// only makes them worse. Takes a minute. Node 12.22 or newer; without a waitAsync, the host's column is empty.

const { spawnSync } = require('child_process')
const fs = require('fs')
const { Worker } = require('worker_threads')

const FORCE = require.resolve('../force')
const ROUNDS = 3

const now = () => Number(process.hrtime.bigint()) / 1e6
const sleep = milliseconds => new Promise(resolve => setTimeout(resolve, milliseconds))

/** What is measured: each prints one number, the smaller the better. */
const measures = {
  alone: {
    what: 'a process whose only work is a wait of 300 ms ends too early by',
    unit: 'ms',
    async run (ia, print) {
      const begin = now()
      process.on('exit', () => print(Math.max(0, 300 - (now() - begin))))
      Atomics.waitAsync(ia, 0, 0, 300)
    }
  },

  late: {
    what: '100 000 waits due after 500 to 600 ms: the last is late by',
    unit: 'ms',
    async run (ia, print) {
      let latest = 0
      const waits = Array.from({ length: 100000 }, (_, n) => {
        const timeout = 500 + n % 1000 / 10
        const begin = now()
        return Atomics.waitAsync(ia, n % ia.length, 0, timeout).value.then(() => {
          latest = Math.max(latest, now() - begin - timeout)
        })
      })
      await stayAlive(Promise.all(waits))
      print(latest)
    }
  },

  early: {
    what: 'time-outs of 1 to 9 ms, 50 at once: early by up to',
    unit: 'ms',
    async run (ia, print) {
      let earliest = 0
      for (let round = 0; round < 40; round++) {
        await stayAlive(Promise.all(Array.from({ length: 50 }, (_, n) => {
          const timeout = 1 + n % 20 * 0.4
          const begin = now()
          return Atomics.waitAsync(ia, 0, 0, timeout).value.then(() => {
            earliest = Math.max(earliest, timeout - (now() - begin))
          })
        })))
      }
      print(earliest)
    }
  },

  left: {
    what: 'a wait notified before its time-out leaves behind',
    unit: 'bytes',
    async run (ia, print) {
      const round = async count => {
        const waits = []
        for (let n = 0; n < count; n++) waits.push(Atomics.waitAsync(ia, 0, 0, 600000).value)
        Atomics.notify(ia, 0)
        await stayAlive(Promise.all(waits))
      }
      const settled = async () => {
        for (let n = 0; n < 3; n++) {
          global.gc()
          await sleep(20)
        }
        return process.memoryUsage().rss
      }
      const size = 50000
      // The first rounds make room that later ones use again; V8's heap takes a while to have found its size.
      for (let n = 0; n < 14; n++) await round(size)
      const before = await settled()
      for (let n = 0; n < 10; n++) await round(size)
      print(Math.max(0, (await settled() - before) / (10 * size)))
      process.exit()
    }
  },

  absorb: {
    what: 'waits past their deadline whose thread is busy: notify counts, of 1',
    unit: '',
    async run (ia, print) {
      // Notifies as soon as main is known to be past the deadline, which it does not look at.
      const worker = new Worker(`
        const { workerData: ia } = require('worker_threads')
        while (Atomics.load(ia, 1) === 0);
        Atomics.store(ia, 2, 1 + Atomics.notify(ia, 0))
      `, { eval: true, workerData: ia })
      await new Promise(resolve => worker.once('online', resolve))
      Atomics.waitAsync(ia, 0, 0, 20)
      const begin = now()
      while (now() - begin < 200);
      Atomics.store(ia, 1, 1)
      while (Atomics.load(ia, 2) === 0);
      print(Atomics.load(ia, 2) - 1)
      process.exit()
    }
  }
}

/** For the host, whose pending waits do not. */
async function stayAlive (promise) {
  const handle = setInterval(() => {}, 1000)
  const value = await promise
  clearInterval(handle)
  return value
}

function measure (queue, name) {
  const results = []
  for (let round = 0; round < ROUNDS; round++) {
    const { status, stdout, stderr } = spawnSync(process.execPath, ['--expose-gc', __filename, '--one', queue, name], { encoding: 'utf8' })
    if (status !== 0 || stdout === '') throw new Error(`${queue}, ${name}: ended with ${status}\n${stderr}`)
    results.push(Number(stdout))
  }
  return Math.min(...results)
}

function show (number, unit) {
  const text = number.toFixed(number < 10 && unit !== '' && unit !== 'bytes' ? 1 : 0)
  return (text.replace(/\B(?=(\d{3})+$)/g, ' ') + ' ' + unit).trim()
}

function main (names) {
  const hasOwn = typeof Atomics.waitAsync === 'function'
  const unknown = names.find(name => measures[name] === undefined)
  if (unknown !== undefined) throw new Error(`what is ${unknown}? There are ${Object.keys(measures).join(', ')}`)
  console.log(`| Node ${process.versions.node} (${process.platform} ${process.arch}) | its own queue | atomics-waitasync/force |\n|---|--:|--:|`)
  for (const [name, { what, unit }] of Object.entries(measures)) {
    if (names.length > 0 && !names.includes(name)) continue
    const host = hasOwn ? show(measure('host', name), unit) : 'missing'
    console.log(`| ${what} | ${host} | ${show(measure('force', name), unit)} |`)
  }
}

const [first, queue, name] = process.argv.slice(2)
if (first === '--one') {
  if (queue === 'force') require(FORCE)
  const ia = new Int32Array(new SharedArrayBuffer(4 * 1024))
  // Synchronous, for one of them prints when the process ends.
  measures[name].run(ia, number => fs.writeSync(1, String(number)))
} else {
  main(process.argv.slice(2))
}
