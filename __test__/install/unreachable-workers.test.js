'use strict'

// Workers after an install behind other code, or without the package: they are reached if Node's class can be found; if
// not they run as without the install, and a warning says so.

const path = require('path')
const { packageCopy } = require('../fixtures/entries/folders')
const programsBy = require('../fixtures/printed-value')

const root = path.join(__dirname, '..', '..')
const force = JSON.stringify(path.join(root, 'force'))

/** A worker's words on its Atomics, and the codes of the parent's warnings. */
const ASK = `
  const codes = []
  process.on('warning', ({ code }) => { if (code && /^ATOMICS/.test(code)) codes.push(code) })
  const source = \`
    const known = Atomics.wait[Symbol.for('atomics-waitasync')]
    require('worker_threads').parentPort.postMessage(known ? known.engine : 'host')\`
  const ask = (Worker) => new Promise((resolve, reject) => {
    new Worker(source, { eval: true }).on('message', resolve).on('error', reject)
  })
  const say = (value) => console.log(JSON.stringify(value))`

const wrappers = {
  'a function with its prototype, as spies make':
    'function Spy (...args) { return new Before(...args) }; Spy.prototype = Before.prototype; threads.Worker = Spy',
  'a subclass': 'threads.Worker = class extends Before {}',
  'a proxy': 'threads.Worker = new Proxy(Before, {})'
}

const program = programsBy()

for (const [name, code] of Object.entries(wrappers)) {
  program(`Worker is ${name}: workers are reached`)(
    `
    const threads = require('worker_threads')
    const Before = threads.Worker
    ${code}
    require(${force})
    ${ASK}
    Promise.all([ask(threads.Worker), ask(Before)]).then(engines => say([engines, codes]))`
  ).gives([['addon', 'addon'], []])
}

program(
  'Worker is a function behind which no class is found: a warning says so, and workers start without the install'
)(
  `
  ${ASK}
  const threads = require('worker_threads')
  const Before = threads.Worker
  threads.Worker = (...args) => new Before(...args)
  require(${force})
  ask(Before).then(engine => say([engine, codes]))`
).gives(['host', ['ATOMICS_WAITASYNC_WORKER']])

for (const gone of ['all of it', 'all but the file that workers run first']) {
  program(`the package's folder has gone, ${gone}: workers start without the install, with a warning`)(t => `
    const fs = require('fs')
    const path = require('path')
    const { Worker } = require('worker_threads')
    const folder = ${JSON.stringify(packageCopy(t))}
    require(folder + '/force')
    ${ASK}
    const start = path.join(folder, 'lib', 'install', 'workers', 'by-message', 'start.js')
    // Windows does not remove a library that is loaded.
    const stays = (file) => (${gone !== 'all of it'} && file === start) ||
      (process.platform === 'win32' && file.endsWith('.node'))
    const removeTree = (folder) => {
      for (const name of fs.readdirSync(folder)) {
        const file = path.join(folder, name)
        if (fs.statSync(file).isDirectory()) removeTree(file)
        else if (!stays(file)) fs.unlinkSync(file)
      }
    }
    ask(Worker).then(async (before) => {
      removeTree(folder)
      const heard = new Promise(resolve => process.once('warning', ({ code }) => resolve(code)))
      const after = await ask(Worker)
      say([before, after, ${gone === 'all of it'} ? await heard : 'in the worker'])
    })`).gives(['addon', 'host', gone === 'all of it' ? 'ATOMICS_WAITASYNC_WORKER' : 'in the worker'])
}

for (const entry of ['force', 'keep-alive', 'web-locks']) {
  program(`/${entry} loads where worker_threads and its Worker are frozen, and warns`)(
    `
    ${ASK}
    const threads = require('worker_threads')
    Object.freeze(threads.Worker)
    Object.freeze(threads)
    const { AsyncLock } = require(${JSON.stringify(path.join(root, entry))})
    const token = new AsyncLock(new SharedArrayBuffer(4)).tryLock()
    ask(threads.Worker).then(engine => {
      const ofWorkers = codes.filter(code => code !== 'ATOMICS_WAITASYNC_LOCKS')
      say([engine, Array.from(new Set(ofWorkers)), token.unlock()])
    })`
  ).gives(['host', ['ATOMICS_WAITASYNC_WORKER'], true])
}
