/**
 * `atomics-waitasync/processes`: locks by name for all threads of all processes of a machine, or of several machines.
 *
 * Node 16 or newer. It touches no global. All times are in milliseconds.
 */

import { NoPromise, Owner, Synchronous } from '../pure'

/** The result of a callback, or a promise of it. */
type Awaitable<T> = T | PromiseLike<T>

/** Several names. A string would be the list of its characters, and is a `TypeError`. */
type Names = Iterable<string> & object

/** `Symbol.asyncDispose`, or `never` if the library has none (before esnext.disposable). */
type AsyncDisposeIfAny = Extract<SymbolConstructor[Extract<'asyncDispose', keyof SymbolConstructor>], symbol>

/** The interface that `await using` requires, if the library has it. */
type AsyncDisposableIfAny = { [key in AsyncDisposeIfAny]: () => Promise<void> }

/** The global `AbortSignal`, as far as it is used; any such object serves. */
export interface SignalLike {
  readonly aborted: boolean
  readonly reason?: any
  addEventListener (type: 'abort', listener: () => void, options?: any): void
  removeEventListener? (type: 'abort', listener: () => void, options?: any): void
}

/** The global `AbortSignal` if the library has it. */
type Signal = typeof globalThis extends { AbortSignal: { prototype: infer T } } ? T : SignalLike

// Only declarations that are marked `export` are exported.
export {}

export type Mode = 'exclusive' | 'shared'

/** What the locks of one name and of several have. */
interface Held {
  readonly mode: Mode
  /** Whether the last exclusive holder died or lost the lock: the protected state may be half changed. */
  readonly ownerDied: boolean
  /**
   * Aborts when the loss of the lock is noticed; its reason is the error of the promise. With `files`, the removal of
   * the lock's file is noticed only at the end.
   */
  readonly signal: Signal
  /** As `signal.aborted`, but looks at the clock, too, so it is right about a lease also after a suspension. */
  readonly isLost: boolean
  /** Lets the next exclusive holder see `ownerDied`, once the callback ends. False if it has ended, or is shared. */
  abandon (): boolean
}

/** The argument of a callback. */
export interface ProcessLock extends Held {
  readonly name: string
  /**
   * Grows with each exclusive grant of the engine for the name; requests of one batch share it. Protected data that
   * keeps the token of its last writer refuses a holder that has lost the lock without noticing it.
   */
  readonly token: number
  /** The number of the permit, from 0; undefined without `permits`. `token` and `ownerDied` are that permit's. */
  readonly permit?: number
}

/** The locks of several names: `ownerDied` and `isLost` if one of them says so. */
export interface ProcessLockOfAll extends Held {
  /** Sorted by UTF-16 code units, without doubles. */
  readonly names: readonly string[]
  /** The tokens of the names, in the same order. */
  readonly tokens: readonly number[]
}

/** The locks of several names, which are held until they are unlocked. */
export interface HeldProcessLockOfAll extends ProcessLockOfAll, AsyncDisposableIfAny {
  /** Gives all back. Rejects with `ERR_LOCK_LOST` if one was not held until then. */
  unlock (): Promise<void>
}

/** A lock that is held until it is unlocked. */
export interface HeldProcessLock extends ProcessLock, AsyncDisposableIfAny {
  /** Gives the lock back. Rejects with `ERR_LOCK_LOST` if it was not held until then. */
  unlock (): Promise<void>
}

/** `Symbol.dispose`, or `never` if the library has none. */
type DisposeIfAny = Extract<SymbolConstructor[Extract<'dispose', keyof SymbolConstructor>], symbol>

/** The interface that `using` requires, if the library has it. */
type DisposableIfAny = { [key in DisposeIfAny]: () => void }

/** A lock of `holdSync`. */
export interface HeldSyncProcessLock extends ProcessLock, DisposableIfAny {
  /** Gives the lock back. Throws `ERR_LOCK_LOST` if it was not held until then. */
  unlock (): void
}

/** `signal` and `timeout` limit the wait. They have no effect on a callback that has begun. */
export interface HoldOptions {
  mode?: Mode
  signal?: SignalLike
  /** In milliseconds; 0 makes one attempt, however long the engine takes for it. The error is a `TimeoutError`. */
  timeout?: number
  /** Makes one attempt. If the lock is not available, the callback gets null, or the method gives null. */
  ifAvailable?: boolean
  /** For people: what the lock is taken for. `query()` and the errors of other processes show it. */
  label?: string
}

/** Limits of the holds of one name. */
interface Limit {
  /**
   * In milliseconds, from the grant: then the lock is lost, and the next holder has `ownerDied`. The callback runs on
   * beside the next holder's: compare tokens. Exclusive locks only; not with an engine of your own.
   */
  maxHold?: number
  /**
   * At most so many holders of the name at once: 1 to 256. All requests for it have the same number while it is held
   * or awaited, or fail with a `RangeError`. Engines: `files`, `memory`. Exclusive locks only, and without `repair` and `maxHold`.
   */
  permits?: number
}

export interface RequestOptions<Lock = ProcessLock> extends HoldOptions {
  /**
   * Called first if the lock has `ownerDied`, and awaited. Then the callback's lock has `ownerDied: false`. If it
   * fails, so does the request, and the next holder has `ownerDied`. With it, so does an error of the callback. Exclusive
   * locks only.
   */
  repair? (lock: Lock): unknown
}

export interface HoldSyncOptions {
  mode?: Mode
  timeout?: number
  ifAvailable?: boolean
  label?: string
}

export interface RequestSyncOptions extends HoldSyncOptions {
  repair? (lock: ProcessLock): NoPromise
}

/** A holder or a waiter, as far as the engine knows it. */
export interface Info {
  readonly name: string
  readonly mode: Mode
  readonly pid?: number
  readonly host?: string
  readonly threadId?: number
  readonly label?: string
  /** Since when, in milliseconds since 1970. */
  readonly since?: number
  /** Whether it is of this process. */
  readonly isOurs?: boolean
  /** Only of the `holder` of a `TimeoutError`: nobody holds the lock, and this other process is first in the queue. */
  readonly isWaiting?: boolean
}

/** The `timeout` of a request is over. */
export interface TimeoutError extends Error {
  name: 'TimeoutError'
  code: 'ERR_TIMEOUT'
  /** Who holds the lock, or is first in the queue; null if the engine does not know it. */
  holder: Info | null
  /** Who holds the lock, as in errors of other locks. `pid` is null if it is not known. */
  owner: Owner | null
}

/** The lock was lost before the end of its callback, or before its `unlock()`. */
export interface LockLostError extends Error {
  name: 'LockLostError'
  code: 'ERR_LOCK_LOST'
  cause?: any
}

/** The engine could not be asked; `cause` says why. */
export interface LockUnavailableError extends Error {
  name: 'LockUnavailableError'
  code: 'ERR_LOCK_UNAVAILABLE'
  cause?: any
}

/** Whether an error is that of a timeout of this package, by its `code`. Takes any value, and never throws. */
export function isTimeoutError (error: unknown): error is TimeoutError

export interface ProcessLocks {
  /**
   * Calls `callback(lock)` with the lock of a name. Fulfils with its result once the engine has said, after its end,
   * that the lock was still held.
   *
   * Rejects with the callback's error, the signal's reason, or an `Error` with a `code`: `ERR_TIMEOUT`,
   * `ERR_LOCK_LOST`, `ERR_LOCK_UNAVAILABLE` (its `cause` says why the engine could not be asked).
   */
  request<T> (name: string, callback: (lock: ProcessLock) => Awaitable<T>): Promise<T>
  request<T> (
    name: string, options: RequestOptions & Limit & { ifAvailable: true },
    callback: (lock: ProcessLock | null) => Awaitable<T>
  ): Promise<T>
  request<T> (
    name: string, options: RequestOptions & Limit & { ifAvailable?: false } | undefined,
    callback: (lock: ProcessLock) => Awaitable<T>
  ): Promise<T>
  /** Holds the lock of a name until its `unlock()`. */
  hold (name: string, options: HoldOptions & Limit & { ifAvailable: true }): Promise<HeldProcessLock | null>
  hold (name: string, options?: HoldOptions & Limit & { ifAvailable?: false }): Promise<HeldProcessLock>
  /**
   * Calls `callback(lock)` with the locks of all names, or of none. They are taken one after the other: one may be held
   * while the next is awaited.
   */
  requestAll<T> (names: Names, callback: (lock: ProcessLockOfAll) => Awaitable<T>): Promise<T>
  requestAll<T> (
    names: Names, options: RequestOptions<ProcessLockOfAll> & { ifAvailable: true },
    callback: (lock: ProcessLockOfAll | null) => Awaitable<T>
  ): Promise<T>
  requestAll<T> (
    names: Names, options: RequestOptions<ProcessLockOfAll> & { ifAvailable?: false } | undefined,
    callback: (lock: ProcessLockOfAll) => Awaitable<T>
  ): Promise<T>
  /** Holds the locks of all names until `unlock()`. */
  holdAll (names: Names, options: HoldOptions & { ifAvailable: true }): Promise<HeldProcessLockOfAll | null>
  holdAll (names: Names, options?: HoldOptions & { ifAvailable?: false }): Promise<HeldProcessLockOfAll>
  /**
   * As `request`, but blocks this thread: with the engines `files` and `memory`. On the main thread only with
   * `ifAvailable` or `timeout: 0`.
   */
  requestSync<T> (name: string, callback: (lock: ProcessLock) => Synchronous<T>): T
  requestSync<T> (
    name: string, options: RequestSyncOptions & { ifAvailable: true },
    callback: (lock: ProcessLock | null) => Synchronous<T>
  ): T
  requestSync<T> (
    name: string, options: RequestSyncOptions & { ifAvailable?: false } | undefined,
    callback: (lock: ProcessLock) => Synchronous<T>
  ): T
  /** As `hold`, but blocks this thread: where `requestSync` may. */
  holdSync (name: string, options: HoldSyncOptions & { ifAvailable: true }): HeldSyncProcessLock | null
  holdSync (name: string, options?: HoldSyncOptions & { ifAvailable?: false }): HeldSyncProcessLock
  /** Lists who holds locks, and who waits, if the engine knows that: of one name, or of all. */
  query (name?: string): Promise<{ held: Info[], pending?: Info[] }>
  /** Rejects the requests that wait, waits for the callbacks that run, and closes the engine. */
  close (): Promise<void>
}

/** Who asks an engine. */
export interface Asker {
  readonly label?: string
  readonly threadId: number
}

/** What keeps the locks of several processes. One of your own has these members. */
export interface Engine {
  /** The same name under two ids is two locks. */
  readonly id: string
  readonly modes: readonly Mode[]
  /** Waits for a lock. After an abort it rejects and leaves nothing behind, or gives the lock all the same. */
  acquire (name: string, mode: Mode, signal: Signal, asker: Asker): Promise<Grant>
  /** Makes one attempt. Undefined: another holder has the lock. */
  attempt (name: string, mode: Mode, signal: Signal, asker: Asker): Promise<Grant | undefined>
  query? (name?: string): Promise<{ held: Info[], pending?: Info[] }>
  close (): Promise<void>
}

/** A lock of an engine. `held` and `release` give false, or reject, if it is no longer ours. */
export interface Grant {
  readonly token: number
  readonly ownerDied: boolean
  /** Aborts when the loss is noticed. */
  readonly lost: Signal
  /** The milliseconds until the lock may be lost; `Infinity` without a lease. */
  remaining (): number
  held (): Promise<boolean>
  /** Called once, also after a loss. If `died`, the next holder has `ownerDied`. */
  release (died: boolean): Promise<boolean>
}

/**
 * Makes locks over an engine, or over the files of a folder.
 *
 * @param options `batch`: how many requests of a thread run under one lock of the engine, 32 by default; `batchTime`:
 *   for how many milliseconds further ones of them begin, 50 by default; `label`: of all requests
 */
export function processLocks (
  engine: Engine | string, options?: { batch?: number, batchTime?: number, label?: string }
): ProcessLocks

/**
 * Returns the name of a lock that stands for a file: its path, absolute and without links, so each spelling of the path
 * gives the same name. The file need not exist, but its folder has to.
 *
 * @param file a path, or a `file:` URL
 */
export function pathName (file: string | { readonly href: string }): string

/**
 * Locks of the processes of one machine, by locks of files in a folder, which is made if it does not exist.
 *
 * @param options `durable`: tokens and marks of deaths are flushed to the disk, and survive a power loss; `anyDrive`:
 *   network and FUSE drives are not refused
 */
export function files (folder: string, options?: { durable?: boolean, anyDrive?: boolean }): Engine

/**
 * Locks of the processes of one machine, in memory that they share: on Linux, by a file in a folder, which is made if
 * it does not exist. A free lock makes no system call. Not for a folder that has locks of `files`.
 */
export function memory (folder: string, options?: { durable?: false }): Engine

/**
 * Memory that several processes share: on Linux, on Node 22.23, 24.16, 26.1 or newer of these. The same file gives the
 * same memory in every process and thread. It is full of zeros when it is made, and never growable.
 *
 * @param file in a folder that exists, on tmpfs, ext4, xfs or btrfs
 * @param byteLength an integer, 1 or greater
 * @throws {TypeError | RangeError} for other arguments; code `ERR_SHARED_MEMORY_LENGTH`: the file's memory has another
 *   length
 * @throws {Error} code `ERR_SHARED_MEMORY_UNAVAILABLE`: the system or this Node has no such memory;
 *   `ERR_SHARED_MEMORY_INVALID`: the file is none of this package's; or the system's code
 */
export function sharedMemory (file: string, byteLength: number): SharedArrayBuffer

/**
 * Locks of the processes of several machines, by the advisory locks of sessions of PostgreSQL 14 or newer.
 *
 * @param pg the module `pg`
 * @param config that of a `pg.Client`; it must lead to the server itself, not to a pool
 * @param options `schema`: that of the table of tokens, by default `'public'`; `lease`: after so many milliseconds of
 *   silence the server ends the session, by default never
 */
export function postgresql (pg: any, config: any, options?: { schema?: string, lease?: number }): Engine

/**
 * Exclusive locks of the processes of several machines, by a lease on one Redis server.
 *
 * @param client of `ioredis` or `redis` (node-redis); it is duplicated
 * @param options `lease`: in milliseconds, by default 10 000; `prefix`: of its keys, by default `'locks'`
 */
export function redis (client: any, options?: { lease?: number, prefix?: string }): Engine

/**
 * Exclusive locks of the processes of several machines, by a lease of an etcd cluster.
 *
 * @param endpoints URLs, tried in turn
 * @param options `lease`: in milliseconds, by default 10 000; `prefix`: of its keys, by default `'locks'`; `tls`:
 *   options of `tls.connect`, for `https`; `auth`: of a role that may read and write these keys
 */
export function etcd (
  endpoints: string | readonly string[], options?: {
    lease?: number, prefix?: string, tls?: object, auth?: { username: string, password: string }
  }
): Engine
