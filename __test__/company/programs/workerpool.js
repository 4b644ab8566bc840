'use strict'

const workerpool = require('workerpool')

async function main () {
  for (const workerType of ['thread', 'process']) {
    const pool = workerpool.pool({ workerType, maxWorkers: 2 })
    console.log(workerType, await pool.exec((a, b) => a + b, [1, 2]))
    await pool.terminate()
  }
}

main()
