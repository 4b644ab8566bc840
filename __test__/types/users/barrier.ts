import { isMainThread, Worker, workerData } from 'worker_threads'
import { Barrier } from 'atomics-waitasync'

function run(barrier: Barrier, rounds: number) {
  for (let round = 0; round < rounds; round++) {
    const { leader } = barrier.wait({ timeout: 1000 })
    if (leader) console.log('round', round, 'of', barrier.parties)
  }
}

async function follow(barrier: Barrier, rounds: number): Promise<number> {
  let led = 0
  for (let round = 0; round < rounds; round++) {
    if ((await barrier.waitAsync()).leader) led++
  }
  return led
}

if (isMainThread) {
  const barrier = Barrier.create({ parties: 3 })
  const workers = [1, 2].map(() => new Worker(__filename, { workerData: barrier }))
  follow(barrier, 5).then(led => console.log(led, workers.length))
} else {
  run(new Barrier(workerData), 5)
}
