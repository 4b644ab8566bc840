// Every library: the classes beside AsyncLock.

import { Barrier, Condition, ExclusiveToken, Latch, RwLock, Semaphore, SharedToken, UnlockToken, AsyncLock } from 'atomics-waitasync'

const buffer = new SharedArrayBuffer(64)

export async function accepted(): Promise<void> {
  const lock = new AsyncLock(buffer)
  const condition = new Condition(buffer, { byteOffset: 4 })
  const token = await lock.lockAsync()
  const woken: boolean = await condition.waitAsync(token, { timeout: 10 })
  const holds: boolean = condition.waitFor(token, () => woken, { timeout: 10 })
  const many: number = condition.notify(1)

  const semaphore = new Semaphore(buffer, { byteOffset: 8 })
  semaphore.release()
  semaphore.acquire(2, { timeout: many })
  await semaphore.acquireAsync()
  const got: boolean = semaphore.tryAcquire()
  const text: string = await semaphore.use(1, () => String(holds && got))

  const rw = new RwLock(buffer, { byteOffset: 12 })
  const exclusive: ExclusiveToken = rw.lock()
  const shared: SharedToken = exclusive.downgrade()
  shared.unlock()
  const perhaps: UnlockToken | null = rw.tryLockShared()
  if (perhaps !== null) perhaps.unlock()
  const length: number = await rw.executeShared(() => text.length)
  const reader: UnlockToken = await rw.executeLocked(token => token.downgrade())
  reader.unlock()

  const barrier = new Barrier(buffer, { parties: length, byteOffset: 16 })
  const { leader } = await barrier.waitAsync({ timeout: 10 })
  const latch = new Latch(buffer, { count: leader ? 1 : 2, byteOffset: 20 })
  latch.countDown()
  latch.wait({ timeout: latch.remaining })
}

// @ts-expect-error parties are needed
new Barrier(buffer)
// @ts-expect-error a count is needed
new Latch(buffer, {})
// @ts-expect-error no SharedArrayBuffer
new Semaphore(8)
// @ts-expect-error a blocked thread hears no signal
new Latch(buffer, { count: 1 }).wait({ signal: 1 })
// @ts-expect-error a reader's token cannot be downgraded
new RwLock(buffer).lockShared().downgrade()
