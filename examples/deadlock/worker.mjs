import { parentPort, workerData } from 'worker_threads'
import { AsyncLock, Barrier } from 'atomics-waitasync'

const { memory, from, accounts } = workerData

const to = (from + 1) % accounts
const balances = new Int32Array(memory, 4 * accounts, accounts)
const [source, target] = [from, to].map(account => new AsyncLock(memory, { byteOffset: 4 * account }))
const barrier = new Barrier(memory, { parties: accounts, byteOffset: 8 * accounts })

/** Moves an amount. `whenHeld` is called when the first lock is held. */
function move (amount, whenHeld) {
  const first = source.lock()
  try {
    whenHeld()
    const second = target.lock()
    try {
      balances[from] -= amount
      balances[to] += amount
    } finally {
      second.unlock()
    }
  } finally {
    first.unlock()
  }
}

// All threads hold their first lock before any goes on. It throws if another worker could not start.
let whenHeld = () => { barrier.wait({ timeout: 10000 }) }
for (let done = false; !done;) {
  try {
    move(10 * (from + 1), whenHeld)
    done = true
  } catch (error) {
    if (error.code !== 'ERR_DEADLOCK') throw error
    const { code, cycle } = error
    parentPort.postMessage({ code, cycle })
    whenHeld = () => {}
    // Leaves the lock to the thread that waits for it.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20)
  }
}
