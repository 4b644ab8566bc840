'use strict'

// Tasks of one thread that want one lock: 10 000 at once, each with a callback that gives a promise. Beside
// async-mutex, which knows of one thread only; the floor is a chain of promises.

const { now, takeTurns } = require('../sampling')
const { BYTES, available, open } = require('../locks')

const TASKS = 10000

/** Returns the same form as a lock of locks.js has. */
function chain () {
  let last = Promise.resolve()
  return { execute: callback => { last = last.then(callback); return last } }
}

/** Returns the nanoseconds of a task: from the first call until the last one is over. */
async function crowd ({ execute }, tasks) {
  let done = 0
  const callback = async () => { done++ }
  const promises = new Array(tasks).fill(null)
  const begin = now()
  for (let n = 0; n < tasks; n++) promises[n] = execute(callback)
  await Promise.all(promises)
  if (done !== tasks) throw new Error(`${done} of ${tasks} tasks were done`)
  return (now() - begin) / tasks
}

async function run ({ rounds, quick }) {
  const tasks = quick ? 100 : TASKS
  const sample = async (figure, ours) => {
    const names = available(['async-mutex', 'ours', 'again']).concat('floor')
    const opened = {}
    for (const name of names) {
      opened[name] =
        name === 'floor'
          ? chain()
          : await open(name === 'async-mutex' ? name : ours, { sab: new SharedArrayBuffer(BYTES) })
    }
    return takeTurns(names, rounds(30), async name => ({ [figure]: await crowd(opened[name], tasks) }), { warmUp: 3 })
  }
  return Object.assign(await sample('tasks-lock', 'ours'), await sample('tasks-names', 'named'))
}

module.exports = { run }
