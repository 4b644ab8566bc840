// Workers do jobs from a queue, and answer by another one. Some die in the middle of a job: it is delivered again. A
// job that has ended two workers, or has failed three times, is answered with an error.
//
//   node examples/worker-pool/index.mjs

import { Pool } from './pool.mjs'

const pool = new Pool(2)
process.once('SIGTERM', () => pool.stop(new Error('the process was told to end')))

// More jobs than the queue has room for: some wait.
const counts = await Promise.all(Array.from({ length: 50 }, (_, n) => pool.run(n * 2000, (n + 1) * 2000)))
console.log('primes below 100000:', counts.reduce((a, b) => a + b))

await pool.run(-1, 0).catch(error => console.log(error.message))
await pool.run(1, 0).catch(error => console.log(error.message))
console.log('and below 10:', await pool.run(0, 10))
await pool.close()
