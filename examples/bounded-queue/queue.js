'use strict'

const { AsyncLock, Condition } = require('../..')

/**
 * A queue of integers in shared memory, with a fixed capacity. A producer waits while it is full, a consumer while it is empty.
 *
 * An instance is a view; each thread makes its own on the same memory.
 */
class BoundedQueue {
  /** Memory for a queue of `capacity` integers. Zero-filled memory is an empty queue. */
  static allocate (capacity) {
    return new SharedArrayBuffer(4 * (FIRST + capacity))
  }

  constructor (memory) {
    this.words = new Int32Array(memory)
    this.capacity = this.words.length - FIRST
    this.lock = new AsyncLock(memory)
    this.notFull = new Condition(memory, { byteOffset: 4 })
    this.notEmpty = new Condition(memory, { byteOffset: 8 })
  }

  get isFull () {
    return this.words[COUNT] === this.capacity
  }

  get isEmpty () {
    return this.words[COUNT] === 0
  }

  /** Blocks while the queue is full. */
  put (value) {
    const token = this.lock.lock()
    try {
      this.notFull.waitFor(token, () => !this.isFull)
      this.append(value)
    } finally {
      token.unlock()
    }
  }

  /** Waits while the queue is empty, without blocking. */
  takeAsync () {
    return this.lock.executeLocked(async (token) => {
      await this.notEmpty.waitForAsync(token, () => !this.isEmpty)
      return this.remove()
    })
  }

  // The methods from here on are called with the lock held.

  append (value) {
    const { words, capacity } = this
    words[FIRST + (words[HEAD] + words[COUNT]) % capacity] = value
    words[COUNT]++
    this.notEmpty.notify(1)
  }

  remove () {
    const { words, capacity } = this
    const value = words[FIRST + words[HEAD]]
    words[HEAD] = (words[HEAD] + 1) % capacity
    words[COUNT]--
    this.notFull.notify(1)
    return value
  }
}

// The words after the lock and the two conditions.
const HEAD = 3
const COUNT = 4
const FIRST = 5

module.exports = BoundedQueue
