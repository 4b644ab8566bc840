import { AsyncLock } from 'atomics-waitasync'

/**
 * Lets `most` requests begin in any stretch of `interval` milliseconds, counted over all threads that share the memory.
 *
 * The memory holds the moments at which the last `most` requests began or will begin; the next one may begin an
 * interval after the oldest of them. A thread that dies has used its turn up; if it dies while it holds the lock, at
 * most one later request begins an interval late.
 */
export class RateLimit {
  readonly #lock: AsyncLock
  readonly #next: Int32Array<SharedArrayBuffer>
  readonly #moments: Float64Array<SharedArrayBuffer>
  readonly #interval: number

  static allocate (most: number): SharedArrayBuffer {
    return new SharedArrayBuffer(8 + 8 * most)
  }

  constructor (memory: SharedArrayBuffer, { interval }: { interval: number }) {
    this.#lock = new AsyncLock(memory) // bytes 0 to 3
    this.#next = new Int32Array(memory, 4, 1) // the index of the oldest moment
    this.#moments = new Float64Array(memory, 8)
    this.#interval = interval
  }

  /** Waits until a request may begin. */
  async beginAsync (): Promise<void> {
    const moment = await this.#lock.executeLocked(() => this.#reserve())
    for (let left = moment - now(); left > 0; left = moment - now()) {
      await new Promise(resolve => setTimeout(resolve, left))
    }
  }

  /** The same, blocking (workers only). */
  begin (): void {
    const moment = this.#lock.executeLockedSync(() => this.#reserve())
    for (let left = moment - now(); left > 0; left = moment - now()) Atomics.wait(NEVER, 0, 0, left)
  }

  #reserve (): number {
    const index = this.#next[0]
    const oldest = this.#moments[index]
    const moment = oldest === 0 ? now() : Math.max(now(), oldest + this.#interval)
    this.#moments[index] = moment
    this.#next[0] = (index + 1) % this.#moments.length
    return moment
  }
}

const NEVER = new Int32Array(new SharedArrayBuffer(4))

/** Returns the milliseconds of a clock that all threads of the process share. */
const now = () => Number(process.hrtime.bigint()) / 1e6
