// Every library: the classes beside AsyncLock.

import { AsyncLock, Barrier, Condition, Latch, RwLock, Semaphore } from 'atomics-waitasync'
import { ExclusiveToken, SharedToken, UnlockToken } from 'atomics-waitasync'

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

  const limit = new Semaphore(buffer, { byteOffset: 24, permits: 3 })
  const most: number | undefined = limit.permits
  limit.hold(3, { timeout: most }).unlock()

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
// @ts-expect-error a limit is a number
new Semaphore(buffer, { permits: '3' })
// @ts-expect-error nothing raises a limit
new Semaphore(buffer, { permits: 3 }).permits = 4
// @ts-expect-error a blocked thread hears no signal
new Latch(buffer, { count: 1 }).wait({ signal: 1 })
// @ts-expect-error a reader's token cannot be downgraded
new RwLock(buffer).lockShared().downgrade()

// ——— Queue ———

import { Delivery, Queue, QueueFormat } from 'atomics-waitasync'

interface Job { path: string }
const bytes: number = Queue.byteLength(10, 100) + Queue.sizeOf({ path: '' }, 'json')
const jobs = Queue.create<Job>({ capacity: 10, messageSize: 100, name: 'jobs', format: 'json' })
const others: Queue<Job> = new Queue(jobs)
const placed: Queue = new Queue(new SharedArrayBuffer(bytes), { capacity: 10, messageSize: 100, byteOffset: 8 })
jobs.put({ path: 'a' }, { timeout: 10 })
const isIn: boolean = jobs.tryPut({ path: 'a' })
const putting: Promise<void> = jobs.putAsync({ path: 'a' })
const job: Job | undefined = jobs.take() || jobs.tryTake()
const taking: Promise<Job | undefined> = jobs.takeAsync({ timeout: 10 })
const batch: Job[] = jobs.takeMany(8, { timeout: 10 }).concat(jobs.tryTakeMany(8))
const batching: Promise<Job[]> = jobs.takeManyAsync(8, { timeout: 10 })
const cleared: number = jobs.clear()
const clearing: Promise<number> = jobs.clearAsync()
const next: Promise<IteratorResult<Job, undefined>> = jobs.messages({ signal: undefined }).next()
const left: Promise<IteratorResult<Job, string>> = jobs.messages().return('x')
const used: Promise<boolean> = jobs.use(async ({ path }, { attempt, putBack }) => { if (attempt > 3) putBack() })
const usedSync: boolean = jobs.useSync((value: Job, delivery: Delivery) => { value.path + delivery.attempt })
const again: Promise<boolean> = jobs.use(({ path }, { deaths, putBack }) => {
  if (path.length > deaths) putBack({ last: true })
}, { retry: 'last', timeout: 10 })
const againSync: boolean = jobs.useSync((_, delivery) => delivery.putBack({ last: false }), { retry: 'first', timeout: 10 })
const idle: Promise<void> = jobs.onIdle({ timeout: 10, signal: undefined })
jobs.idle({ timeout: 10 })
for (const { path } of jobs) path.length
const sizes: number[] = [jobs.capacity, jobs.messageSize, jobs.length, jobs.inUse]
const states: boolean[] = [jobs.closed, jobs.ended]
jobs.close()
jobs.close({ discard: true })
// @ts-expect-error no number of messages
jobs.tryTakeMany()
// @ts-expect-error no such place
jobs.use(() => {}, { retry: 'next' })
// @ts-expect-error no such option
jobs.use((_, { putBack }) => putBack({ first: true }))
// @ts-expect-error a blocked thread hears no signal
jobs.idle({ signal: undefined })
// @ts-expect-error no such format
const format: QueueFormat = 'xml'
// @ts-expect-error another message
jobs.put({ name: 'a' })
// @ts-expect-error it needs its numbers
Queue.create({ capacity: 10 })
// @ts-expect-error it needs its numbers
new Queue(new SharedArrayBuffer(8))
