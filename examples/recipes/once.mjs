import { AsyncLock } from 'atomics-waitasync'

const [DONE, VALUE] = [1, 2] // words behind the lock
const words = new Int32Array(new SharedArrayBuffer(12))
const lock = new AsyncLock(words.buffer)
let times = 0

async function value () {
  if (Atomics.load(words, DONE) === 0) {
    await lock.executeLocked(() => {
      if (Atomics.load(words, DONE) === 1) return // another thread was first
      words[VALUE] = compute()
      Atomics.store(words, DONE, 1)
    })
  }
  return words[VALUE]
}

function compute () {
  times++
  return 42
}

console.log('once:', ...await Promise.all([value(), value()]), times)
