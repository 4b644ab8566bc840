import { isMainThread, Worker, workerData } from 'worker_threads'
import { AsyncLock, TimeoutError, UnlockToken } from 'atomics-waitasync'

interface Shared {
  lock: AsyncLock
  words: Int32Array
}

class Account {
  private readonly lock: AsyncLock
  private readonly words: Int32Array

  constructor(shared: Shared) {
    this.lock = new AsyncLock(shared.lock, { repair: token => this.repair(token) })
    this.words = shared.words
  }

  private repair(token: UnlockToken) {
    if (token.ownerDied) this.words[0] = 0
  }

  deposit(amount: number): number {
    return this.lock.executeLockedSync(() => this.words[0] += amount)
  }

  async balance(signal?: AbortSignal): Promise<number> {
    return this.lock.executeLocked(() => this.words[0], { timeout: 1000, signal })
  }

  async depositSlowly(amount: number) {
    const token = await this.lock.lockAsync()
    try {
      this.words[0] += amount
    } finally {
      token.unlock()
    }
  }
}

async function main() {
  const lock = AsyncLock.create({ name: 'account' })
  const shared: Shared = { lock, words: new Int32Array(new SharedArrayBuffer(4)) }
  const worker = new Worker(__filename, { workerData: shared })
  worker.on('exit', () => console.log(lock.locked, lock.holder, lock.waiters))
  try {
    console.log(await new Account(shared).balance())
  } catch (error) {
    const { name, holder } = error as TimeoutError
    if (name === 'TimeoutError') console.log('held by', holder)
  }
  const maybe = lock.tryLock()
  if (maybe) maybe.unlock()
}

if (isMainThread) void main()
else new Account(workerData).deposit(5)
