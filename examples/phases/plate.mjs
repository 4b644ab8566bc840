/** A square plate with one hot edge. In each step every inner point takes the mean of its four neighbours. */
const SIZE = 64
const STEPS = 200
const HOT = 100

/** Returns two states of the plate: each step reads one and writes the other. */
function views (memory) {
  return [new Float64Array(memory, 8, SIZE * SIZE), new Float64Array(memory, 8 + 8 * SIZE * SIZE, SIZE * SIZE)]
}

/** Allocates the memory: the word of the barrier, a count of leaders, and the two states. */
function allocate () {
  const memory = new SharedArrayBuffer(8 + 2 * 8 * SIZE * SIZE)
  for (const plate of views(memory)) plate.fill(HOT, 0, SIZE)
  return memory
}

/** Steps the rows from `first` up to but not including `end`. */
function step (from, to, first, end) {
  for (let row = Math.max(1, first); row < Math.min(SIZE - 1, end); row++) {
    for (let column = 1; column < SIZE - 1; column++) {
      const at = row * SIZE + column
      to[at] = (from[at - 1] + from[at + 1] + from[at - SIZE] + from[at + SIZE]) / 4
    }
  }
}

export { SIZE, STEPS, allocate, step, views }
