'use strict'

// Registering waits at one location, and waking them all: until the last promise's reaction has run.

const { fresh, now, takeTurns } = require('../sampling')
const { open, variants } = require('../queues')

/** How many are pending, and how many times a sample repeats that. */
const SIZES = [
  { name: '1e3', size: 1e3, repeat: 50, rounds: 15 },
  { name: '1e5', size: 1e5, repeat: 1, rounds: 9 },
  { name: '1e6', size: 1e6, repeat: 1, rounds: 5 }
]

function register (waitAsync, array, promises, size) {
  for (let n = 0; n < size; n++) promises[n] = waitAsync(array, 0, 0).value
}

async function run ({ rounds, quick }) {
  const results = {}
  const sizes = quick ? SIZES.slice(0, 1) : SIZES
  for (const { name, size, repeat, rounds: usual } of sizes) {
    const queues = {}
    for (const variant of variants('floor')) queues[variant] = { ...open(variant), register: fresh(register) }
    const array = new Int32Array(new SharedArrayBuffer(4))
    const promises = new Array(size).fill(null)

    const measure = async (variant) => {
      const { register, waitAsync, notify } = queues[variant]
      let registering = 0
      let reacting = 0
      for (let n = 0; n < repeat; n++) {
        const begin = now()
        register(waitAsync, array, promises, size)
        registering += now() - begin
        reacting += await notifyAll(notify, array, promises)
      }
      promises.fill(null)
      return { [`register-${name}`]: registering / repeat / size, [`notify-all-${name}`]: reacting / repeat / size }
    }
    Object.assign(results, await takeTurns(Object.keys(queues), rounds(usual), measure))
  }
  return results
}

/** Returns the nanoseconds from the call of `notify` to the last reaction. */
function notifyAll (notify, array, promises) {
  return new Promise((resolve, reject) => {
    let left = promises.length
    let begin
    const react = () => { if (--left === 0) resolve(now() - begin) }
    for (let n = 0; n < promises.length; n++) promises[n].then(react)
    // The reactions that have been registered so far are not to be mixed with the microtasks of this.
    setImmediate(() => {
      begin = now()
      const woken = notify(array, 0)
      if (woken !== promises.length) reject(new Error(`${woken} of ${promises.length} were woken`))
    })
  })
}

module.exports = { run }
