// Every library: the forms that block and run a callback, which must be synchronous.

import { AsyncLock, Queue, RwLock, Semaphore, Synchronous, UnlockToken, locks } from 'atomics-waitasync'

const buffer = new SharedArrayBuffer(64)
const lock = new AsyncLock(buffer)
const rw = new RwLock(buffer, { byteOffset: 4 })
const semaphore = new Semaphore(buffer, { byteOffset: 8 })
declare const anything: any
declare const perhaps: number | Promise<number>

const length: number = lock.executeLockedSync(token => token.locked ? 1 : 0)
const name: string = lock.executeLockedSync(() => 'name', { timeout: 5 })
const literal: 'a' | 'b' = lock.executeLockedSync(() => length > 0 ? 'a' : 'b')
const list: number[] = lock.executeLockedSync(() => [1, 2])
const nothing: void = lock.executeLockedSync(() => {})
const pair: { x: number } | undefined = rw.executeSharedSync(() => length > 0 ? { x: 1 } : undefined)
const readers: number = rw.executeLockedSync(token => token.downgrade().unlock() ? 1 : 2)
const available: number = semaphore.useSync(2, (token: UnlockToken) => token.unlock() ? semaphore.available : 0)
const unchecked: string = lock.executeLockedSync(() => anything)
lock.executeLockedSync(() => { throw new Error('always') })

// A function that passes a callback on.
function locked<T>(callback: () => Synchronous<T>): T {
  return lock.executeLockedSync(callback)
}
const passed: number = locked(() => 5)
// @ts-expect-error a promise
locked(async () => 5)

// @ts-expect-error a promise
lock.executeLockedSync(async () => 5)
// @ts-expect-error a promise
rw.executeLockedSync(() => Promise.resolve(5))
// @ts-expect-error a promise
rw.executeSharedSync(async () => {})
// @ts-expect-error a promise
semaphore.useSync(1, async token => token.unlock())
// @ts-expect-error perhaps a promise
lock.executeLockedSync(() => perhaps)
// @ts-expect-error not the callback's result
const wrong: string = lock.executeLockedSync(() => 5)
// @ts-expect-error a callback
lock.executeLockedSync(5)
// @ts-expect-error the number of permits comes first
semaphore.useSync(() => 5)
// @ts-expect-error a form that blocks takes no signal
lock.executeLockedSync(() => 5, { signal: anything })
// @ts-expect-error a reader's token cannot be downgraded
rw.executeSharedSync(token => { token.downgrade() })

// A function that passes a callback on, awaited.
function awaited<T>(callback: () => T | Promise<T>): Promise<T> {
  return lock.executeLocked(callback)
}
const awaitedNumber: Promise<number> = awaited(async () => 5)

// A queue.
declare const jobs: Queue<string>
jobs.useSync(job => { job.trim() })
jobs.useSync((job, { attempt }) => attempt > 1 ? job.length : undefined, { timeout: 5 })
// @ts-expect-error a promise
jobs.useSync(async job => { job.trim() })

// A repair.
const words = new Int32Array(buffer)
const repaired: number = lock.executeLockedSync(() => 5, { timeout: 5, repair: token => words.fill(+token.ownerDied) })
lock.executeLockedSync(() => {}, { repair: () => words.fill(0) })
lock.executeLockedSync(() => {}, { repair: () => 5 })
lock.executeLockedSync(() => {}, { repair: () => anything })
lock.executeLockedSync(() => {}, { repair: undefined })
declare const big: bigint
lock.executeLockedSync(() => {}, { repair: () => big })
rw.executeLockedSync(token => token.downgrade(), { repair: token => { words[0] = token.downgrade().locked ? 1 : 0 } })
rw.executeSharedSync(() => {}, { repair: token => { words[0] = token.downgrade().locked ? 1 : 0 } })
new AsyncLock(buffer, { detectReentry: true, repair: async token => token.locked })
new RwLock(buffer, { repair: token => token.downgrade() })
AsyncLock.create({ name: 'a', repair: () => {} })
RwLock.create({ repair: async token => token.downgrade() })

export async function awaits(): Promise<void> {
  const repaired: number = await lock.executeLocked(() => 5, { signal: undefined, repair: async token => token.locked })
  await rw.executeLocked(token => token.downgrade(), { repair: token => token.downgrade() })
  await rw.executeShared(token => token.unlock(), { repair: async token => token.downgrade() })
  // A callback that returns a promise or a value.
  const same: number = await lock.executeLocked(() => length > 0 ? Promise.resolve(1) : 2)
  const mixed: number | string = await lock.executeLocked(() => length > 0 ? Promise.resolve(1) : 'none')
  const either: number | undefined = await rw.executeShared(() => length > 0 ? Promise.resolve(1) : undefined)
  const promises: number | string = await rw.executeLocked(() => length > 0 ? Promise.resolve(1) : Promise.resolve('a'))
  const permitted: number | null = await semaphore.use(1, () => length > 0 ? Promise.resolve(1) : null)
  const named: number | string = await locks.request('a', () => length > 0 ? Promise.resolve(1) : 'none')
  const shared: number | string =
    await locks.request('a', { mode: 'shared' }, ({ name }) => length > 0 ? Promise.resolve(1) : name)
  // @ts-expect-error the callback may return a string
  const number: number = await lock.executeLocked(() => length > 0 ? Promise.resolve(1) : 'none')
  // @ts-expect-error a token protects nothing that a callback could repair
  await lock.lockAsync({ repair: () => {} })
  // @ts-expect-error nor do permits
  await semaphore.use(1, () => {}, { repair: () => {} })
  // @ts-expect-error a function
  await lock.executeLocked(() => 5, { repair: null })
}

// @ts-expect-error a promise
lock.executeLockedSync(() => 5, { repair: async () => {} })
// @ts-expect-error a promise
rw.executeSharedSync(() => 5, { repair: () => Promise.resolve() })
// @ts-expect-error no Semaphore has one
new Semaphore(buffer, { repair: () => {} })
