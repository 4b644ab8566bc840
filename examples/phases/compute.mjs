import { Barrier } from 'atomics-waitasync'
import { SIZE, STEPS, step, views } from './plate.mjs'

/**
 * Computes the rows of one party, step by step. No party begins a step before all have ended the last one.
 *
 * @param {boolean} blocks whether this thread may block
 */
export default async function compute (memory, parties, party, blocks) {
  const barrier = new Barrier(memory, { parties })
  const leaders = new Int32Array(memory, 4, 1)
  let [from, to] = views(memory)
  const first = Math.floor(SIZE * party / parties)
  const end = Math.floor(SIZE * (party + 1) / parties)
  // If a party dies, the others time out instead of waiting for ever.
  const options = { timeout: 10000 }
  for (let n = 0; n < STEPS; n++) {
    step(from, to, first, end)
    const { leader } = blocks ? barrier.wait(options) : await barrier.waitAsync(options)
    if (leader) leaders[0]++
    ;[from, to] = [to, from]
  }
  return from
}
