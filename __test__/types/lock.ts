// Every library: AsyncLock and its tokens.

import { AbortSignalLike, AsyncLock, AwaitOptions, UnlockToken } from 'atomics-waitasync'

const sab = new SharedArrayBuffer(64)
const lock = new AsyncLock(sab)
new AsyncLock(sab, {})
new AsyncLock(sab, { byteOffset: 8 })
// @ts-expect-error shared memory
new AsyncLock(new Int32Array(1))
// @ts-expect-error an object with options
new AsyncLock(sab, 8)
// @ts-expect-error no such option
new AsyncLock(sab, { offset: 8 })

const bytes: 4 = AsyncLock.byteLength
Atomics.load(lock.i32a, AsyncLock.INDEX) === AsyncLock.LOCKED || AsyncLock.UNLOCKED
const same: SharedArrayBuffer = lock.sab
const held: boolean = lock.locked
// @ts-expect-error a view: it cannot be moved
lock.sab = sab
// @ts-expect-error the state is not set from outside
lock.locked = false

const token: UnlockToken = lock.lock()
lock.lock({ timeout: 10 })
const maybe: UnlockToken | null = lock.lockIfAvailable(0) || lock.lockIfAvailable()
// @ts-expect-error it may be null
lock.tryLock().unlock()
const released: boolean = token.unlock()
const abandoned: boolean = token.abandon()
const facts: boolean = token.locked && token.ownerDied
// @ts-expect-error found out, not set
token.ownerDied = true
// @ts-expect-error only a lock makes tokens
new UnlockToken()
// @ts-expect-error a form that blocks takes no signal
lock.lock({ signal })
lock.lockIfAvailable({ timeout: 10 })
// @ts-expect-error milliseconds, or an object with them
lock.lockIfAvailable('10')
const nothing: void = lock.unlock()

// No AbortSignal in this library, but something like one.
declare const signal: AbortSignalLike
const listener: { aborted: boolean, addEventListener(type: string, listener: (event: object) => void): void } = {
  aborted: false,
  addEventListener () {}
}
const options: AwaitOptions = { timeout: 10, signal: listener }

async function use (): Promise<void> {
  const token: UnlockToken = await lock.lockAsync()
  await lock.lockAsync({ timeout: 10, signal })
  // @ts-expect-error it has no addEventListener
  await lock.lockAsync({ signal: { aborted: false } })
  // @ts-expect-error milliseconds
  await lock.lockAsync({ timeout: '1s' })

  const length: number = await lock.executeLocked(token => token.locked ? 1 : 0)
  const name: string = await lock.executeLocked(async () => 'name', { timeout: undefined, signal })
  // @ts-expect-error the callback's result, not a promise of it
  const nested: Promise<string> = await lock.executeLocked(async () => 'name')
  // @ts-expect-error a callback
  await lock.executeLocked(10)
}
