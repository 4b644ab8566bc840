// Every library: a Condition takes the tokens of what excludes all others, and no others.

import { AsyncLock, Condition, RwLock, Semaphore } from 'atomics-waitasync'
import { ExclusiveToken, PermitsToken, SharedToken, UnlockToken } from 'atomics-waitasync'

const buffer = new SharedArrayBuffer(64)
const lock = new AsyncLock(buffer)
const rw = new RwLock(buffer, { byteOffset: 4 })
const semaphore = new Semaphore(buffer, { byteOffset: 8 })
const condition = new Condition(buffer, { byteOffset: 12 })

export async function accepted(unknown: UnlockToken): Promise<void> {
  const token = lock.lock()
  const writer: ExclusiveToken = await rw.lockAsync()
  condition.wait(token)
  condition.wait(writer, { timeout: 5 })
  condition.wait(unknown)
  condition.waitFor(writer, () => true)
  await condition.waitAsync(writer)
  await condition.waitForAsync(token, async () => true, { timeout: 5 })
  await lock.executeLocked(token => condition.waitAsync(token))
  await rw.executeLocked(token => condition.waitAsync(token))
  rw.executeLockedSync(token => condition.wait(token))

  // Each is a token.
  const tokens: UnlockToken[] = [token, writer, writer.downgrade(), rw.lockShared(), semaphore.hold()]
  for (const each of tokens) each.unlock()
  const names: boolean = semaphore.hold().ownerDied || rw.lockShared().locked
}

export async function refused(): Promise<void> {
  const reader: SharedToken = rw.lockShared()
  const permits: PermitsToken = await semaphore.holdAsync(2, { timeout: 5 })
  // @ts-expect-error a reader
  condition.wait(reader)
  // @ts-expect-error a reader
  condition.waitFor(reader, () => true)
  // @ts-expect-error a reader
  await condition.waitAsync(reader)
  // @ts-expect-error a reader
  await condition.waitForAsync(await rw.lockSharedAsync(), () => true)
  // @ts-expect-error it was a writer
  condition.wait(rw.lock().downgrade())
  // @ts-expect-error a reader
  await rw.executeShared(token => condition.waitAsync(token))
  // @ts-expect-error permits
  condition.wait(permits)
  // @ts-expect-error permits
  await semaphore.use(1, token => condition.waitAsync(token))
  // @ts-expect-error neither can become the other
  const writer: ExclusiveToken = reader
  // @ts-expect-error it may be null
  semaphore.tryHold().unlock()
  // @ts-expect-error a form that blocks takes no signal
  semaphore.hold(1, { signal: new AbortController().signal })
  // @ts-expect-error the number comes first
  semaphore.hold({ timeout: 5 })
}
