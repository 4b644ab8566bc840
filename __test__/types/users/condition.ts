import { isMainThread, Worker, workerData } from 'worker_threads'
import { AsyncLock, Condition } from 'atomics-waitasync'

type Memory = { lock: AsyncLock, changed: Condition, words: Int32Array }

class Counter {
  private lock: AsyncLock
  private changed: Condition
  private words: Int32Array

  constructor({ lock, changed, words }: Memory) {
    this.lock = new AsyncLock(lock)
    this.changed = new Condition(changed)
    this.words = words
  }

  async increment(): Promise<void> {
    await this.lock.executeLocked(() => {
      this.words[0]++
      this.changed.notify(1)
    })
  }

  waitForSync(count: number): boolean {
    return this.lock.executeLockedSync(token => this.changed.waitFor(token, () => this.words[0] >= count))
  }

  async waitFor(count: number, timeout?: number): Promise<boolean> {
    return this.lock.executeLocked(
      token => this.changed.waitForAsync(token, () => this.words[0] >= count, { timeout })
    )
  }
}

if (isMainThread) {
  const words = new Int32Array(new SharedArrayBuffer(4))
  const memory: Memory = { lock: new AsyncLock(), changed: new Condition(), words }
  new Worker(__filename, { workerData: memory })
  const counter = new Counter(memory)
  counter.increment().then(() => counter.waitFor(1, 100))
} else {
  console.log(new Counter(workerData).waitForSync(1))
}
