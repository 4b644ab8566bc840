import { Semaphore } from 'atomics-waitasync'

// Post both to the workers: they count, too.
const room = Semaphore.create({ permits: 3 }) // one is served, two wait
const limit = Semaphore.create({ permits: 1 })

/** Runs the callback in its turn, or rejects at once if the queue is full. */
async function admitted (callback) {
  const place = room.tryHold()
  if (place === null) throw Object.assign(new Error('busy'), { statusCode: 503 })
  try {
    return await limit.use(1, callback, { timeout: 10000 })
  } finally {
    place.unlock()
  }
}

const work = () => new Promise(resolve => setTimeout(resolve, 5))
const outcomes = [1, 2, 3, 4].map(() => admitted(work).then(() => 'done', error => error.message))
console.log('admission:', ...await Promise.all(outcomes))
