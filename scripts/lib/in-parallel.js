'use strict'

/** Runs functions that give promises, so many of them at a time. */
exports.inParallel = async function inParallel (tasks, limit) {
  const queue = [...tasks]
  const lane = async () => {
    while (queue.length > 0) await queue.shift()()
  }
  await Promise.all(Array.from({ length: limit }, lane))
}
