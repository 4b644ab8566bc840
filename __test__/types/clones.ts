// Every library: where an instance lies, its clones, name, id, holder and waiters; the error of a timeout.

import { AsyncLock, Barrier, Condition, Latch, Queue, RwLock, Semaphore, TimeoutError, ViewClone } from 'atomics-waitasync'

const buffer = new SharedArrayBuffer(64)
const lock = new AsyncLock(buffer)
const rw = new RwLock(buffer)
const barrier = new Barrier(buffer, { parties: 2 })
const latch = new Latch(buffer, { count: 2, byteOffset: 4 })
declare const clone: ViewClone
declare const workerData: any

for (const instance of [lock, rw, barrier, latch, new Condition(buffer), new Semaphore(buffer)]) {
  const place: [SharedArrayBuffer, number] = [instance.buffer, instance.byteOffset]
  const waiters: number = instance.waiters
  const posted: ViewClone = instance
  const identity: [string, number] = [instance.name, instance.id]
}
const holder: number | null = lock.holder || rw.holder
const owner: { pid: number | null, threadId: number | null } | null = lock.owner || rw.owner
new AsyncLock(buffer, { name: 'cache' })
new Barrier(buffer, { parties: 2, name: 'phase' })
// @ts-expect-error for people
new Latch(buffer, { count: 2, name: 1 })
// @ts-expect-error given to the constructor
lock.name = 'cache'
declare const late: TimeoutError
const told: ['TimeoutError', 'ERR_TIMEOUT', string] = [late.name, late.code, late.kind]
const where: [number, number | null] = [late.id, late.holder]
const sab: SharedArrayBuffer = lock.sab
// @ts-expect-error found out, not set
lock.holder = 1
// @ts-expect-error found out, not set
latch.waiters = 1
// @ts-expect-error permits have many holders
new Semaphore(buffer).holder

new AsyncLock(clone)
new AsyncLock(lock)
new RwLock(clone, { byteOffset: 8 })
new Semaphore(workerData)
new Semaphore({ buffer, byteOffset: 8, permits: 3 }, { permits: 3 })
new Semaphore(new Semaphore(buffer, { permits: undefined }))
new Condition({ buffer, byteOffset: 8 })
new Barrier(barrier)
new Barrier({ buffer, byteOffset: 0, parties: 3 })
new Barrier(workerData, { parties: 2 })
new Latch(latch, { count: 2 })
new Latch(latch, { byteOffset: undefined })
class Mine extends Latch {
  constructor(given: SharedArrayBuffer) { super(given, { count: 1 }) }
}
new Latch(new Mine(buffer))

// @ts-expect-error a clone of what has no parties
new Barrier(clone)
// @ts-expect-error a clone of what has no count
new Latch(barrier)
// @ts-expect-error a buffer alone needs its parties
new Barrier(buffer, { byteOffset: 0 })
// @ts-expect-error a typed array is no clone
new AsyncLock(lock.i32a)
// @ts-expect-error a typed array is no clone, whatever memory it is on
new Semaphore(new Uint8Array(new SharedArrayBuffer(8)))
// @ts-expect-error a clone says where it is
new RwLock({ buffer })
// @ts-expect-error a clone has no methods
clone.lock()

// In memory of their own.
const own: [AsyncLock, RwLock, Semaphore, Condition] = [new AsyncLock(), new RwLock(), new Semaphore(), new Condition()]
const made: [AsyncLock, RwLock] = [AsyncLock.create(), RwLock.create({ name: 'table' })]
const others: [Semaphore, Condition] = [Semaphore.create({}), Condition.create()]
const limit: Semaphore = Semaphore.create({ permits: 3, name: 'connections' })
const counted: [Barrier, Latch] = [Barrier.create({ parties: 2 }), Latch.create({ count: 2, name: 'ready' })]
// @ts-expect-error a misspelt name must not make a lock that excludes nobody
new AsyncLock(undefined)
// @ts-expect-error nobody says how many parties there are
new Barrier()
// @ts-expect-error nobody says the count
Latch.create({ name: 'ready' })
// @ts-expect-error it begins with its memory
AsyncLock.create({ byteOffset: 0 })

// A subclass.
class Guarded extends AsyncLock {
  mine = true
}
const guarded: Guarded = Guarded.create({ name: 'a' })
const isMine: boolean = Guarded.create().mine
class Ready extends Latch {
  later = 5
}
const later: number = Ready.create({ count: 2 }).later
// @ts-expect-error the count is needed
Ready.create()

// A queue has its own type or that of its messages, which `any` would hide.
type Equal<A, B> = (<X>() => X extends A ? 1 : 2) extends (<X>() => X extends B ? 1 : 2) ? true : false
class Jobs extends Queue<{ path: string }> {
  mine = true
}
class Typed<T> extends Queue<T> {
  mine = true
}
const shape = { capacity: 1, messageSize: 8 }
const [jobs, plain, numbers] = [Jobs.create(shape), Queue.create(shape), Queue.create<number>(shape)]
const [typed, anything, nothing] = [Typed.create(shape), Queue.create<any>(shape), Queue.create<never>(shape)]
const ofContext: Queue<number> = Queue.create(shape)
const areAsMade: [
  Equal<typeof jobs, Jobs>, Equal<typeof plain, Queue>, Equal<typeof numbers, Queue<number>>,
  Equal<typeof typed, Typed<unknown>>, Equal<typeof anything, Queue>, Equal<typeof nothing, Queue<never>>
] = [true, true, true, true, true, true]
// @ts-expect-error the size of a message is needed
Jobs.create({ capacity: 1 })
export { areAsMade, guarded, isMine, later, ofContext }
