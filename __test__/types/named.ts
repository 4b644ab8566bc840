// Every library: locks by name, snapshot, and the error of a deadlock.

import { Lock, LockInfo, LockManager, LockManagerSnapshot, LockMode, LockOptions, locks } from 'atomics-waitasync'
import { Condition, HoldOptions, NamedToken, UnlockToken } from 'atomics-waitasync'
import { CycleLink, DeadlockError, EndedThread, Entry, isTimeoutError, snapshot } from 'atomics-waitasync'
import { MultiHoldOptions, MultiLock, MultiLockOptions, MultiToken, TimeoutError } from 'atomics-waitasync'
import { locks as same } from 'atomics-waitasync/web-locks'

const manager: LockManager = same
declare const anything: any
declare const flag: boolean
const options: LockOptions = { mode: 'shared', signal: undefined, timeout: 10 }

export async function accepted(): Promise<void> {
  const length: number = await locks.request('name', lock => lock.name.length)
  const mode: LockMode = await locks.request('name', { mode: 'shared', timeout: 5 }, async lock => lock.mode)
  const died: boolean = await locks.request('name', {}, (lock: Lock) => lock.ownerDied)
  const perhaps: string | null = await locks.request('name', { ifAvailable: true }, lock => lock && lock.name)
  const either: boolean = await locks.request('name', { ifAvailable: flag }, lock => lock === null)
  await locks.request('name', { steal: true }, () => {})
  await locks.request('name', { ifAvailable: false }, lock => lock.name)
  await locks.request('name', undefined, lock => lock.name)
  // As the DOM's types have it.
  await locks.request('name', (lock: Lock | null) => lock)
  const { held, pending }: LockManagerSnapshot = await locks.query()
  const ids: string[] = held.concat(pending).map(({ clientId, mode, name }: LockInfo) => clientId + mode + name)

  const abandoned: boolean = await locks.request('name', lock => lock.abandon())
  const robbed: boolean[] = await locks.request('name', { steal: true }, lock => [lock.tookOver, lock.stolen])
  await locks.request('name', lock => locks.request('other', { signal: lock.signal }, () => {}))

  await locks.request('name', { repair: async lock => lock.abandon() }, lock => lock.mode)
  await locks.request('name', { ifAvailable: true, repair: lock => lock.mode }, lock => lock === null)
  locks.requestSync('name', { mode: 'shared', repair: lock => lock.name }, lock => lock.mode)

  const sync: number = locks.requestSync('name', lock => lock.name.length)
  locks.requestSync('name', { mode: 'exclusive', timeout: 5 }, lock => lock.ownerDied)
  locks.requestSync('name', { ifAvailable: true }, lock => lock === null)

  const token: NamedToken = await locks.holdAsync('name', { mode: 'shared', timeout: 5 })
  const plain: UnlockToken = locks.hold('name', { timeout: 5, mode: 'exclusive' })
  const maybe: NamedToken | null = locks.tryHold('name', { mode: 'shared' })
  const known: Array<string | boolean> = [token.name, token.mode, token.locked, token.ownerDied, token.tookOver]
  const gone: boolean[] = [token.stolen, token.unlock(), token.abandon(), plain.unlock(), maybe !== null]
  await locks.holdAsync('name', { signal: token.signal })
  await locks.holdAsync('name', { steal: true, mode: 'exclusive' }).then(({ tookOver }) => tookOver)
  await locks.holdAsync('name', { steal: false, timeout: 5 })
  const how: HoldOptions = { steal: flag }
  locks.hold('name', null)

  const all: readonly string[] = await locks.requestAll(['b', 'a'], lock => lock.names)
  const texts: string = await locks.requestAll(new Set(['a']), { timeout: 5 }, async (lock: MultiLock) => lock.mode)
  const none: boolean = await locks.requestAll(all, { ifAvailable: true }, lock => lock === null)
  const some: string | number = await locks.requestAll(['a'], async lock => lock.ownerDied ? '' : lock.names.length)
  await locks.requestAll(['a'], { repair: lock => lock.names, signal: anything }, lock => lock.abandon())
  const perhapsMulti: MultiLockOptions = { ifAvailable: flag }
  await locks.requestAll(['a'], perhapsMulti, lock => lock && lock.stolen)
  const blocked: number = locks.requestAllSync(['a'], { mode: 'shared', timeout: 5 }, lock => lock.names.length)
  locks.requestAllSync(['a'], { ifAvailable: true, repair: ({ names }) => names.length }, lock => lock === null)
  const several: MultiToken = await locks.holdAllAsync(['a', 'b'], { mode: 'shared', timeout: 5 })
  const those: UnlockToken = locks.holdAll(['a', 'b'], { timeout: 5 })
  const maybeAll: MultiToken | null = await locks.holdAllAsync(['a'], { ifAvailable: true })
  const noneHeld: boolean = locks.holdAll(['a'], { ifAvailable: true }) === null
  const left: boolean[] = [several.unlock(), several.locked, several.stolen, several.ownerDied, those.abandon()]
  await locks.holdAsync(several.names.join(), { signal: several.signal })
  const choice: MultiHoldOptions = { ifAvailable: flag }

  const entries: Entry[] = [...snapshot().held, ...snapshot().waiting]
  const cycles: CycleLink[][] = snapshot().cycles
  const ways: Array<'terminate' | 'exit' | 'exception' | 'end' | undefined> = []
  const names: Array<string | undefined> = []
  const sums: number[] = []
  for (const { ended = [] } of entries) {
    ended.forEach(({ threadId, threadName, how, milliseconds }: EndedThread) => {
      ways.push(how)
      names.push(threadName)
      sums.push(threadId + milliseconds)
    })
  }
  const links: Array<[number, Entry, Entry, boolean, boolean]> = []
  for (const ring of cycles) {
    for (const link of ring) links.push([link.threadId, link.holds, link.waitsFor, link.blocked, link.certain])
  }
  for (const { kind, mode, name, amount, id, threadId, blocked, milliseconds } of entries) {
    const numbers: number[] = [id, threadId, milliseconds, amount === undefined ? 0 : amount]
    const texts: Array<string | undefined> = [kind, mode, name]
    if (kind === 'named' && blocked && mode !== 'permits') texts.push(name)
  }

  try {
    locks.requestSync('name', () => {})
  } catch (error) {
    const { code, cycle } = error as DeadlockError
    const deadlocked: 'ERR_DEADLOCK' = code
    if (cycle !== undefined) cycle.map(({ threadId, holds, waitsFor }) => threadId + holds.id - waitsFor.id)
    const unknown: unknown = error
    const timedOut: TimeoutError | undefined = isTimeoutError(unknown) ? unknown : undefined
    const holder: number | null | undefined = timedOut && timedOut.holder
  }
}

export async function refused(): Promise<void> {
  // @ts-expect-error a callback
  await locks.request('name')
  // @ts-expect-error options come before the callback
  await locks.request('name', () => {}, { mode: 'shared' })
  // @ts-expect-error a name
  await locks.request(5, () => {})
  // @ts-expect-error it may be null
  await locks.request('name', { ifAvailable: true }, lock => lock.name)
  // @ts-expect-error it may be null
  await locks.request('name', { ifAvailable: flag }, lock => lock.name)
  // @ts-expect-error no such mode
  await locks.request('name', { mode: 'read' }, () => {})
  // @ts-expect-error options that cannot be combined
  await locks.request('name', { steal: true, ifAvailable: true }, () => {})
  // @ts-expect-error nor these
  await locks.request('name', { ifAvailable: true, timeout: 5 }, () => {})
  // @ts-expect-error a thief is exclusive
  await locks.request('name', { steal: true, mode: 'shared' }, () => {})
  // @ts-expect-error no such option
  await locks.request('name', { timeOut: 5 }, () => {})
  // @ts-expect-error a promise
  locks.requestSync('name', async () => {})
  // @ts-expect-error a form that blocks takes no signal
  locks.requestSync('name', { signal: anything }, () => {})
  // @ts-expect-error nor does it steal
  locks.requestSync('name', { steal: true }, () => {})
  // @ts-expect-error a promise
  locks.requestSync('name', { repair: async () => {} }, () => {})
  // @ts-expect-error found out, not set
  await locks.request('name', lock => { lock.stolen = false })
  // @ts-expect-error a name
  locks.hold()
  // @ts-expect-error it may be null
  locks.tryHold('name').unlock()
  // @ts-expect-error it never waits
  locks.tryHold('name', { timeout: 5 })
  // @ts-expect-error a form that blocks takes no signal
  locks.hold('name', { signal: anything })
  // @ts-expect-error nor does it steal
  locks.hold('name', { steal: true })
  // @ts-expect-error tryHold does that
  await locks.holdAsync('name', { ifAvailable: true })
  // @ts-expect-error a callback's option
  await locks.holdAsync('name', { repair: () => {} })
  // @ts-expect-error a thief does not wait
  await locks.holdAsync('name', { steal: true, timeout: 5 })
  // @ts-expect-error a thief is exclusive
  await locks.holdAsync('name', { steal: true, mode: 'shared' })
  // @ts-expect-error found out, not set
  locks.hold('name').stolen = false
  // @ts-expect-error the token of a name
  new Condition(anything).wait(locks.hold('name'))
  // @ts-expect-error a string is no list
  await locks.requestAll('a', () => {})
  // @ts-expect-error names
  await locks.requestAll([5], () => {})
  // @ts-expect-error several names cannot be stolen
  await locks.requestAll(['a'], { steal: true }, () => {})
  // @ts-expect-error it may be null
  await locks.requestAll(['a'], { ifAvailable: true }, lock => lock.names)
  // @ts-expect-error options that cannot be combined
  await locks.requestAll(['a'], { ifAvailable: true, timeout: 5 }, () => {})
  // @ts-expect-error there are several
  await locks.requestAll(['a'], lock => lock.name)
  // @ts-expect-error fixed
  await locks.requestAll(['a'], lock => lock.names.push('b'))
  // @ts-expect-error a promise
  locks.requestAllSync(['a'], async () => {})
  // @ts-expect-error a promise
  locks.requestAllSync(['a'], { timeout: 5 }, async () => {})
  // @ts-expect-error a promise
  locks.requestAllSync(['a'], { repair: async () => {} }, () => {})
  // @ts-expect-error a form that blocks takes no signal
  locks.requestAllSync(['a'], { signal: anything }, () => {})
  // @ts-expect-error it may be null
  locks.holdAll(['a'], { ifAvailable: true }).unlock()
  // @ts-expect-error a form that blocks takes no signal
  locks.holdAll(['a'], { signal: anything })
  // @ts-expect-error a callback's option
  await locks.holdAllAsync(['a'], { repair: () => {} })
  // @ts-expect-error the token of several names
  new Condition(anything).wait(locks.holdAll(['a']))
  // @ts-expect-error only the package makes them
  new LockManager()
  // @ts-expect-error only a request makes them
  new Lock()
  // @ts-expect-error found out, not set
  snapshot().held[0].kind = 'other'
  // @ts-expect-error no such kind
  const wrong: Entry['kind'] = 'Mutex'
}
