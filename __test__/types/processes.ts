// The entry /processes.

import {
  Engine, Grant, HeldProcessLock, HeldProcessLockOfAll, HeldSyncProcessLock, Info, LockLostError, LockUnavailableError,
  ProcessLock, ProcessLocks, TimeoutError, etcd, files, isTimeoutError, pathName, postgresql, processLocks, redis
} from 'atomics-waitasync/processes'

const locks: ProcessLocks = processLocks('/var/lib/app', { batch: 1, batchTime: 5, label: 'app' })
processLocks(files('/var/lib/app', { durable: true }))
processLocks(postgresql({}, {}, { schema: 'app', lease: 10000 }))
processLocks(redis({}, { lease: 10000, prefix: 'app' }))
processLocks(etcd(['https://a', 'https://b'], { tls: { ca: '' }, auth: { username: 'app', password: '' } }))
// @ts-expect-error: a password is missing
etcd('http://a', { auth: { username: 'app' } })
// @ts-expect-error: no engine
processLocks(1)
// @ts-expect-error: no such option
processLocks('/var/lib/app', { batches: 1 })

const one: Promise<number> = locks.request('name', lock => lock.token)
const two: Promise<string> = locks.request('name', { mode: 'shared', timeout: 5, label: 'x' }, async lock => lock.name)
locks.request('name', { repair: async (lock: ProcessLock) => { lock.abandon() } }, ({ ownerDied, isLost }) => ownerDied)
// @ts-expect-error: the lock may be null
locks.request('name', { ifAvailable: true }, lock => lock.name)
locks.request('name', { ifAvailable: true }, lock => lock && lock.token)
// @ts-expect-error: no such mode
locks.request('name', { mode: 'both' }, () => {})
// @ts-expect-error: there is no stealing
locks.request('name', { steal: true }, () => {})
// @ts-expect-error: a token is read only
locks.request('name', lock => { lock.token = 1 })

const held: Promise<HeldProcessLock> = locks.hold('name')
const perhaps: Promise<HeldProcessLock | null> = locks.hold('name', { ifAvailable: true })
// @ts-expect-error: the lock may be null
perhaps.then(lock => lock.unlock())
held.then(lock => lock.unlock())
// @ts-expect-error: a hold has no callback before which a repair would run
locks.hold('name', { repair () {} })

locks.request('name', { maxHold: 5, timeout: 5 }, lock => lock.token)
locks.hold('name', { maxHold: 5 })
locks.request('name', { permits: 5 }, lock => lock.permit).then((permit: number | undefined) => permit)
// @ts-expect-error: several names have no limit
locks.requestAll(['a'], { maxHold: 5 }, () => {})
const all: Promise<number> = locks.requestAll(new Set(['a', 'b']), { repair ({ tokens }) {} }, lock => lock.tokens.length)
const heldAll: Promise<HeldProcessLockOfAll | null> = locks.holdAll(['a', 'b'], { ifAvailable: true })
locks.holdAll(['a']).then(lock => lock.unlock().then(() => lock.names.concat(lock.mode)))
// @ts-expect-error: the locks may be null
locks.requestAll(['a'], { ifAvailable: true }, lock => lock.names)
// @ts-expect-error: no single name
locks.requestAll(['a'], lock => lock.name)
// @ts-expect-error: names are strings
locks.requestAll([1], () => {})
// @ts-expect-error: a string is no list
locks.requestAll('abc', () => {})
// @ts-expect-error: a string is no list
locks.holdAll('abc')

const three: number = locks.requestSync('name', { timeout: 5 }, lock => lock.token)
// @ts-expect-error: a blocked thread hears no signal
locks.requestSync('name', { signal: undefined }, () => {})
locks.requestSync('name', { mode: 'shared' }, () => {})
const four: boolean = locks.requestSync('name', { ifAvailable: true }, lock => lock === null)
// @ts-expect-error: a promise
locks.requestSync('name', async () => {})
// @ts-expect-error: a promise
locks.requestSync('name', { timeout: 5 }, async () => 1)
// @ts-expect-error: a promise
locks.requestSync('name', { ifAvailable: true }, async lock => lock === null)
// @ts-expect-error: a promise
locks.requestSync('name', { repair: async () => {} }, () => {})

export async function errors(): Promise<void> {
  try {
    await one
  } catch (error) {
    const unknown: unknown = error
    if (isTimeoutError(unknown)) {
      const late: TimeoutError = unknown
      const holder: Info | null = unknown.holder
      const who: Array<number | string | undefined> = holder === null ? [] : [holder.pid, holder.label, late.message]
    }
    const { code }: LockLostError | LockUnavailableError = error as LockLostError | LockUnavailableError
    const codes: 'ERR_LOCK_LOST' | 'ERR_LOCK_UNAVAILABLE' = code
  }
}

const six: HeldSyncProcessLock = locks.holdSync(pathName('name'), { timeout: 5, label: 'x' })
const five: void = six.unlock()
// @ts-expect-error: the lock may be null
locks.holdSync('name', { ifAvailable: true }).unlock()
// @ts-expect-error: a blocked thread hears no signal
locks.holdSync('name', { signal: undefined })
pathName({ href: 'file:///a' })
// @ts-expect-error: no bytes
pathName(new Uint8Array(4))

const answer: Promise<{ held: Info[], pending?: Info[] }> = locks.query('name')
answer.then(({ held }) => held.map(info => [info.pid, info.host, info.threadId, info.label, info.since, info.isOurs]))
const closed: Promise<void> = locks.close()

declare const grant: Grant
const engine: Engine = {
  id: 'mine',
  modes: ['exclusive'],
  acquire: async (name, mode, signal, { label, threadId }) => signal.aborted || mode === 'shared' ? grant : grant,
  attempt: async () => undefined,
  close: async () => {}
}
processLocks(engine)

export { all, answer, closed, five, four, heldAll, one, six, three, two }
