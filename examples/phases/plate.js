'use strict'

/** A square plate whose edge is hot on one side: each step, every inner point takes the mean of its four neighbours. */
const SIZE = 64
const STEPS = 200
const HOT = 100

/** Two states of the plate, of which each step reads one and writes the other. */
function views (memory) {
  return [new Float64Array(memory, 8, SIZE * SIZE), new Float64Array(memory, 8 + 8 * SIZE * SIZE, SIZE * SIZE)]
}

/** What lies before them: the word of the barrier, and how many times somebody has led. */
function allocate () {
  const memory = new SharedArrayBuffer(8 + 2 * 8 * SIZE * SIZE)
  for (const plate of views(memory)) plate.fill(HOT, 0, SIZE)
  return memory
}

/** One step of the rows from `first` up to but not including `end`. */
function step (from, to, first, end) {
  for (let row = Math.max(1, first); row < Math.min(SIZE - 1, end); row++) {
    for (let column = 1; column < SIZE - 1; column++) {
      const at = row * SIZE + column
      to[at] = (from[at - 1] + from[at + 1] + from[at - SIZE] + from[at + SIZE]) / 4
    }
  }
}

module.exports = { SIZE, STEPS, allocate, step, views }
