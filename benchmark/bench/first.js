'use strict'

// A program that takes a first lock, or none (`floor`), and prints the microseconds of processor time: of the process,
// or of a further Worker's life. Finds packages from the current folder. Runs on every Node that the package runs on.

const fs = require('fs')
const path = require('path')

const [figure, variant, folder, quick] = process.argv.slice(2)
const find = name => require.resolve(name, { paths: [process.cwd()] })
const ourLock = () => new (require(find('atomics-waitasync')).AsyncLock)(new SharedArrayBuffer(4)).tryLock().unlock()

const takes = {
  floor () {},
  ours: figure === 'process-first'
    ? () => require(find('atomics-waitasync/processes')).processLocks(folder).request('first', () => {})
    : ourLock,
  'async-mutex': () => new (require(find('async-mutex')).Mutex)().runExclusive(() => {}),
  async 'proper-lockfile' () {
    const file = path.join(folder, variant)
    fs.writeFileSync(file, '')
    const release = await require(find('proper-lockfile')).lock(file)
    await release()
  },
  async 'wait-for-lock' () {
    const { unlock, waitForLock } = require(find('fs-native-extensions'))
    const descriptor = fs.openSync(path.join(folder, variant), 'w')
    await waitForLock(descriptor)
    unlock(descriptor)
    fs.closeSync(descriptor)
  }
}

function spent (before) {
  const { user, system } = process.cpuUsage(before)
  return user + system
}

async function byWorkers ({ Worker, workerData }) {
  if (workerData) return workerData.takes && ourLock()
  const isForced = figure === 'first-worker-force'
  const isOurs = variant !== 'floor'
  const execArgv = isForced && isOurs ? ['-r', find('atomics-waitasync/force')] : []
  const times = []
  for (let n = quick === 'true' ? 11 : -2; n < 12; n++) {
    const before = process.cpuUsage()
    const worker = new Worker(__filename, {
      argv: process.argv.slice(2), execArgv, workerData: { takes: isOurs && !isForced }
    })
    await new Promise(resolve => worker.once('exit', resolve))
    if (n >= 0) times.push(spent(before))
  }
  console.log(times.sort((a, b) => a - b)[times.length >> 2])
}

// What a program has loaded besides is part of its cost.
if (figure.startsWith('first-worker')) {
  byWorkers(require('worker_threads'))
} else {
  process.once('exit', () => fs.writeSync(1, `${spent()}\n`))
  takes[variant]()
}
