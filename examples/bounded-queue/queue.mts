import { AsyncLock, Condition } from 'atomics-waitasync'

/**
 * A queue of integers in shared memory, with a fixed capacity. A producer waits while it is full, a consumer while it is empty.
 * An instance is a view; each thread makes its own on the same memory.
 *
 * Any thread may die at any moment: each change takes effect by the write of one word, so a dead holder of the lock leaves nothing half
 * done; and it notifies before that write, so no waiter misses the change. A producer that has died cannot close the queue: the
 * thread that started it does (see index.mts).
 */
export class BoundedQueue {
  readonly capacity: number
  readonly #words: Int32Array<SharedArrayBuffer>
  readonly #lock: AsyncLock
  readonly #notFull: Condition
  readonly #notEmpty: Condition

  /** Memory for a queue of `capacity` integers. Zero-filled memory is an empty queue. */
  static allocate (capacity: number): SharedArrayBuffer {
    return new SharedArrayBuffer(4 * (FIRST + capacity))
  }

  constructor (memory: SharedArrayBuffer) {
    this.#words = new Int32Array(memory)
    this.capacity = this.#words.length - FIRST
    this.#lock = new AsyncLock(memory)
    this.#notFull = new Condition(memory, { byteOffset: 4 })
    this.#notEmpty = new Condition(memory, { byteOffset: 8 })
  }

  /** Appends a value. Blocks while the queue is full (workers only). Throws if it is closed. */
  put (value: number): void {
    this.#lock.executeLockedSync(token => {
      this.#notFull.waitFor(token, () => !this.#isFull || this.#isClosed)
      this.#append(value)
    })
  }

  /** Appends a value. Waits while the queue is full. Rejects if it is closed. */
  putAsync (value: number): Promise<void> {
    return this.#lock.executeLocked(async token => {
      await this.#notFull.waitForAsync(token, () => !this.#isFull || this.#isClosed)
      this.#append(value)
    })
  }

  /** Removes the first value. Blocks while the queue is empty (workers only). undefined if it is empty and closed. */
  take (): number | undefined {
    return this.#lock.executeLockedSync(token => {
      this.#notEmpty.waitFor(token, () => !this.#isEmpty || this.#isClosed)
      return this.#remove()
    })
  }

  /** Removes the first value. Waits while the queue is empty. undefined if it is empty and closed. */
  takeAsync (): Promise<number | undefined> {
    return this.#lock.executeLocked(async token => {
      await this.#notEmpty.waitForAsync(token, () => !this.#isEmpty || this.#isClosed)
      return this.#remove()
    })
  }

  /** No more values can be put; those that are in the queue can be taken. */
  close (): Promise<void> {
    return this.#lock.executeLocked(() => {
      this.#notFull.notify()
      this.#notEmpty.notify()
      this.#words[CLOSED] = 1
    })
  }

  // The members from here on are used with the lock held.

  get #isFull () {
    return this.#count === this.capacity
  }

  get #isEmpty () {
    return this.#count === 0
  }

  get #isClosed () {
    return this.#words[CLOSED] === 1
  }

  /** HEAD and TAIL go from 0 to twice the capacity, so that a full queue and an empty one differ. */
  get #count () {
    const round = 2 * this.capacity
    return (this.#words[TAIL] - this.#words[HEAD] + round) % round
  }

  #append (value: number) {
    if (this.#isClosed) throw new Error('the queue is closed')
    const tail = this.#words[TAIL]
    this.#words[FIRST + tail % this.capacity] = value
    this.#notEmpty.notify(1)
    this.#words[TAIL] = (tail + 1) % (2 * this.capacity)
  }

  #remove () {
    if (this.#isEmpty) return undefined
    const head = this.#words[HEAD]
    const value = this.#words[FIRST + head % this.capacity]
    this.#notFull.notify(1)
    this.#words[HEAD] = (head + 1) % (2 * this.capacity)
    return value
  }
}

// The words after the lock and the two conditions.
const HEAD = 3
const TAIL = 4
const CLOSED = 5
const FIRST = 6
