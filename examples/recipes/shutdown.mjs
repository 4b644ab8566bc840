import { AsyncLock, Latch, locks } from 'atomics-waitasync'

const shutdown = new AbortController()
const { signal } = shutdown
const lock = new AsyncLock()
const held = lock.tryLock()

const waits = [
  lock.executeLocked(() => 'never', { signal }),
  Latch.create({ count: 1 }).waitAsync({ signal }),
  locks.request('the cache', () => locks.request('the cache', { signal }, () => 'never'))
]
shutdown.abort(new Error('shutting down'))
const outcomes = await Promise.all(waits.map(wait => wait.catch(({ message }) => message)))
console.log('shutdown:', outcomes.join(', '))
held.unlock()
