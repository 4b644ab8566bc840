/**
 * Everything that the package exports. All four entry points export the same names and differ in what they do to
 * `Atomics` when they are loaded; `atomics-waitasync/pure` does nothing to it, so its types add nothing to it either.
 *
 * Written for TypeScript 4.1 and later and the libraries es2017 to esnext. What a library lacks (`BigInt64Array`,
 * `Symbol.dispose`) is left out here as well, and never added to the program that imports these types.
 *
 * All times are in milliseconds and may be fractional.
 */

/** The global `BigInt64Array`, or `never` in a program whose library has none (before es2020). */
type BigInt64ArrayIfAny = typeof globalThis extends { BigInt64Array: { prototype: infer T } } ? T : never

/** `Symbol.dispose`, or `never` in a program whose library has none (before esnext.disposable). */
type DisposeIfAny = Extract<SymbolConstructor[Extract<'dispose', keyof SymbolConstructor>], symbol>

/** What `using` asks for, where the library knows it. */
type DisposableIfAny = { [key in DisposeIfAny]: () => void }

// What is not marked `export` is not exported.
export {}

/** How a wait ended, or `'not-equal'`: the element held another value, so there was no wait. */
export type WaitResult = 'ok' | 'not-equal' | 'timed-out'

/** What {@link waitAsync} answers: over at once, or a promise. The promise is never rejected. */
export type WaitAsyncResult =
  | { async: false, value: 'not-equal' | 'timed-out' }
  | { async: true, value: Promise<'ok' | 'timed-out'> }

/**
 * `Atomics.wait`: blocks this thread until another one notifies it.
 *
 * On the main thread it does what the host does there: Node allows it.
 *
 * @param typedArray on a `SharedArrayBuffer`
 * @param index of the element to wait for
 * @param value waits only if the element holds this value
 * @param timeout in milliseconds, by default `Infinity`; never early
 * @throws {TypeError} `typedArray` is no `Int32Array` or `BigInt64Array`, or not on a `SharedArrayBuffer`; this thread
 *   must not block
 * @throws {RangeError} `index` is not one of the array's
 * @see https://tc39.es/ecma262/#sec-atomics.wait
 */
export function wait(typedArray: Int32Array, index: number, value: number, timeout?: number): WaitResult
export function wait(typedArray: BigInt64ArrayIfAny, index: number, value: bigint, timeout?: number): WaitResult

/**
 * `Atomics.notify`: wakes those who wait for an element, blocked threads and promises in the order they came.
 *
 * Waiters in the package's own queue first; what is left of `count` goes to the host's `notify`, so that threads which
 * have not loaded the package, and WebAssembly, are woken too.
 *
 * @param typedArray if it is not on a `SharedArrayBuffer`, nobody can wait for it and the answer is 0
 * @param index of the element
 * @param count how many to wake at most, by default `Infinity`
 * @returns how many were woken
 * @throws {TypeError} `typedArray` is no `Int32Array` or `BigInt64Array`
 * @throws {RangeError} `index` is not one of the array's
 * @see https://tc39.es/ecma262/#sec-atomics.notify
 */
export function notify(typedArray: Int32Array | BigInt64ArrayIfAny, index: number, count?: number): number

/**
 * `Atomics.waitAsync`: waits without blocking. The promise is fulfilled with `'ok'` after a notification, with
 * `'timed-out'` after `timeout` milliseconds, never earlier.
 *
 * Unless this function is the host's own (see {@link engine}), the pending promise keeps this thread's event loop alive
 * as long as something can still settle it; {@link unref} lets go.
 *
 * @param typedArray on a `SharedArrayBuffer`
 * @param index of the element to wait for
 * @param value waits only if the element holds this value
 * @param timeout in milliseconds, by default `Infinity`
 * @throws {TypeError} `typedArray` is no `Int32Array` or `BigInt64Array`, or not on a `SharedArrayBuffer`
 * @throws {RangeError} `index` is not one of the array's
 * @see https://tc39.es/ecma262/#sec-atomics.waitasync
 */
export function waitAsync(typedArray: Int32Array, index: number, value: number, timeout?: number): WaitAsyncResult
export function waitAsync(typedArray: BigInt64ArrayIfAny, index: number, value: bigint, timeout?: number): WaitAsyncResult

/** What {@link install} is told. */
export interface InstallOptions {
  /**
   * What receives `wait`, `notify` and `waitAsync`: a global object, also that of another realm; an `Atomics` object; or
   * any other object. By default the global object.
   */
  target?: object | undefined
  /** Install even where `Atomics.waitAsync` exists. By default false. */
  force?: boolean | undefined
  /** Workers that this thread starts from now on have it installed too. By default true. */
  workers?: boolean | undefined
}

/**
 * Puts `wait`, `notify` and `waitAsync` (and `wake`, where there is one) in place, as one unit.
 *
 * @returns true if it changed the target
 * @throws {TypeError} an option is not of its type; then nothing has been changed
 */
export function install(options?: InstallOptions): boolean

/**
 * Takes an install back, as one unit.
 *
 * @param target the one that was given to {@link install}; by default the global object
 * @returns true if it changed the target
 */
export function uninstall(target?: object): boolean

/**
 * Which queue `waitAsync` uses in this thread now: the host's, or this package's (`'addon'`).
 *
 * It changes with {@link install} and {@link uninstall}. `import { engine }` in an ES module keeps the value it had when
 * the package was loaded.
 */
export let engine: 'host' | 'addon'

/**
 * Lets a pending wait keep this thread's event loop alive again, after {@link unref}.
 *
 * @param promise of {@link waitAsync}, or of any method of the classes below that waits
 * @returns false if it is not a pending wait of this thread
 */
export function ref(promise: Promise<unknown>): boolean

/**
 * Lets this thread end although a wait is pending. That holds for all steps of one that has several, such as
 * {@link Condition.waitAsync}.
 *
 * @param promise of {@link waitAsync}, or of any method of the classes below that waits
 * @returns false if it is not a pending wait of this thread
 */
export function unref(promise: Promise<unknown>): boolean

/**
 * How many wait for an element in the package's own queue: blocked threads and pending promises of all threads. A promise past
 * its deadline counts until its thread has timed it out, or another thread's `notify` has come to it. The host's queue cannot be asked.
 *
 * @throws {TypeError} `typedArray` is no `Int32Array` or `BigInt64Array`
 * @throws {RangeError} `index` is not one of the array's
 */
export function waiterCount(typedArray: Int32Array | BigInt64ArrayIfAny, index: number): number

/** What can end a wait from outside: an `AbortSignal`, or as much of one as an older Node has. */
export interface AbortSignalLike {
  readonly aborted: boolean
  /** Why; the wait is rejected with it. Without it, with an `Error` named `AbortError`. */
  readonly reason?: any
  addEventListener(type: 'abort', listener: (event: any) => void): void
  removeEventListener?(type: 'abort', listener: (event: any) => void): void
}

/** For everything that blocks. An option that is not listed is a `TypeError`. */
export interface BlockOptions {
  /** Milliseconds: a number, not `NaN`. Negative is 0. By default `Infinity`. */
  timeout?: number | undefined
}

/** For everything that awaits. An option that is not listed is a `TypeError`. */
export interface AwaitOptions extends BlockOptions {
  /** Ends the wait when it is aborted. */
  signal?: AbortSignalLike | undefined
}

/** Where in its buffer something lies. An option that is not listed is a `TypeError`. */
export interface ViewOptions {
  /** In bytes, a multiple of 4. By default 0. */
  byteOffset?: number | undefined
}

/**
 * A mutex between any mix of threads: 4 bytes of shared memory that hold {@link AsyncLock.LOCKED} or
 * {@link AsyncLock.UNLOCKED}. Zero-filled memory is an unlocked lock; an instance is a view; make one in each thread.
 *
 * Workers may block for it, every thread can await it. Giving up loses no wake-up, a thread that ends while it holds the
 * lock hands it to the next in line, and no waiter is passed over for long.
 *
 * Not re-entrant.
 */
export class AsyncLock {
  /** How many bytes of the buffer it takes. */
  static readonly byteLength: 4
  /** Of the state in {@link AsyncLock.i32a}. */
  static readonly INDEX: 0
  static readonly UNLOCKED: 0
  static readonly LOCKED: 1

  /**
   * @param sab may be of another realm, and growable
   * @throws {TypeError} `sab` is no `SharedArrayBuffer`, or `byteOffset` no integer
   * @throws {RangeError} `byteOffset` is no multiple of 4, or leaves less than 4 bytes
   */
  constructor(sab: SharedArrayBuffer, options?: ViewOptions)

  /** The buffer it lies in. */
  readonly sab: SharedArrayBuffer
  /** Its state: one element, at {@link AsyncLock.INDEX}. */
  readonly i32a: Int32Array
  /** Whether anybody holds it now. */
  readonly locked: boolean

  /**
   * Blocks until this thread holds the lock. Workers only.
   *
   * @throws {TypeError} on the main thread: use {@link lockAsync} or {@link executeLocked} there; an option is not of its
   *   type
   * @throws {Error} `name` is `'TimeoutError'`, `code` is `'ERR_TIMEOUT'`: the time is over
   * @throws {Error} `code` is `'ERR_DEADLOCK'`: this thread holds the lock already, or awaits it, and would wait for itself
   */
  lock(options?: BlockOptions): UnlockToken

  /**
   * Blocks until this thread holds the lock, for `timeout` milliseconds at most. On the main thread only 0 is allowed,
   * which does not block.
   *
   * @param timeout in milliseconds: a number, not `NaN`, or an object with it; by default 0
   * @returns null if the time was over first
   * @throws {TypeError} on the main thread, with a time-out other than 0; `timeout` is neither
   * @throws {Error} `code` is `'ERR_DEADLOCK'`: this thread holds the lock already and would wait for itself
   */
  lockIfAvailable(timeout?: number | BlockOptions): UnlockToken | null

  /** Takes the lock if it is free, otherwise null. Never blocks, and is allowed in every thread. */
  tryLock(): UnlockToken | null

  /**
   * Waits for the lock without blocking.
   *
   * Rejected with the signal's reason (without one, an `Error` named `AbortError`), or when the time is over with an
   * `Error` named `TimeoutError`, `code` `'ERR_TIMEOUT'`. Giving up never loses the lock: if it was granted at the same
   * moment, the next in line gets it.
   *
   * Rejected with a `TypeError` if an option is not of its type.
   */
  lockAsync(options?: AwaitOptions): Promise<UnlockToken>

  /**
   * Runs `callback` once the lock is held (at once if it is free), awaits what it returns, and releases the lock, also
   * if it fails.
   *
   * Settled as what the callback returns. Rejected, without having called it, as {@link lockAsync}.
   */
  executeLocked<T>(callback: (token: UnlockToken) => T | PromiseLike<T>, options?: AwaitOptions): Promise<T>

  /**
   * Releases the lock, whichever token it was taken with.
   *
   * @throws {Error} `code` is `'ERR_NOT_LOCKED'`: the lock is not held, or is known to be held by another thread
   */
  unlock(): void
}

/** The right to release a lock once, given to whoever locked it. */
export class UnlockToken {
  private constructor()

  /** Whether the lock is still held with this token. */
  readonly locked: boolean
  /**
   * Whether the thread that held the lock before ended without releasing it: what the lock protects may be half-changed.
   */
  readonly ownerDied: boolean

  /**
   * Releases the lock. If a {@link Condition.waitAsync} with this token is pending, that is broken off: it rejects with the code
   * `'ERR_NOT_LOCKED'`, and the lock is not taken again.
   *
   * @returns true the first time; false if the lock is not held
   */
  unlock(): boolean
}

/** `using token = …` releases the lock at the end of the block, where the host has `Symbol.dispose`. */
export interface UnlockToken extends DisposableIfAny {}

/**
 * Waiting, with a lock held, until somebody who holds it has changed something. 4 bytes of shared memory, which are never
 * written.
 *
 * Every wait gives the lock up and lines up as one step with respect to {@link Condition.notify}. However it ends, the lock
 * is held again and the same token is live. A thread that dies after it was notified, before it has the lock again, leaves
 * its notification to another.
 */
export class Condition {
  /** How many bytes of the buffer it takes. */
  static readonly byteLength: 4

  /**
   * @throws {TypeError} `buffer` is no `SharedArrayBuffer`, or `byteOffset` no integer
   * @throws {RangeError} `byteOffset` is no multiple of 4, or leaves less than 4 bytes
   */
  constructor(buffer: SharedArrayBuffer, options?: ViewOptions)

  readonly buffer: SharedArrayBuffer
  readonly byteOffset: number

  /**
   * Blocks until notified. Workers only.
   *
   * @param token of an {@link AsyncLock}, or the exclusive one of an {@link RwLock}
   * @returns false if the time was over first
   * @throws {TypeError} on the main thread; `token` is none, or a shared one
   * @throws {Error} `code` is `'ERR_NOT_LOCKED'`: the token is not live; `'ERR_DEADLOCK'`: this thread awaits the lock
   */
  wait(token: UnlockToken, options?: BlockOptions): boolean

  /**
   * Blocks until `predicate()` is true: asks it first, and again, with the lock held, after each notification. Workers only.
   *
   * @returns what the predicate says when the time is over, otherwise true
   * @throws as {@link Condition.wait}; what the predicate throws; and a `TypeError` if it gives a promise, which could not be awaited
   */
  waitFor(token: UnlockToken, predicate: () => unknown, options?: BlockOptions): boolean

  /**
   * {@link Condition.wait} without blocking, in any thread. Rejected when aborted, once the lock is held again; and with the code
   * `'ERR_NOT_LOCKED'` if the token is given back meanwhile, as happens when the callback that it is for ends.
   */
  waitAsync(token: UnlockToken, options?: AwaitOptions): Promise<boolean>

  /** {@link Condition.waitFor} without blocking, in any thread; the predicate may be asynchronous. */
  waitForAsync(token: UnlockToken, predicate: () => unknown, options?: AwaitOptions): Promise<boolean>

  /**
   * Wakes up to `count` waiters, those first that came first. Needs no lock.
   *
   * @param count an integer from 0 on; by default `Infinity`
   * @returns how many were woken
   * @throws {TypeError} `count` is neither
   */
  notify(count?: number): number
}

/**
 * A number of permits: 4 bytes of shared memory, an `Int32` that holds how many are left. Zero-filled memory has none.
 *
 * First come, first served: a large request is not overtaken. What was acquired belongs to nobody, so that one thread may
 * release what another acquired; what {@link Semaphore.use} holds comes back when its thread dies.
 */
export class Semaphore {
  /** How many bytes of the buffer it takes. */
  static readonly byteLength: 4

  /**
   * @throws {TypeError} `buffer` is no `SharedArrayBuffer`, or `byteOffset` no integer
   * @throws {RangeError} `byteOffset` is no multiple of 4, or leaves less than 4 bytes
   */
  constructor(buffer: SharedArrayBuffer, options?: ViewOptions)

  readonly buffer: SharedArrayBuffer
  readonly byteOffset: number
  /** How many permits are left now. */
  readonly available: number

  /**
   * Blocks until it has `n` permits. Workers only.
   *
   * @param n 1 to 2**31 - 1, by default 1
   * @throws {TypeError} on the main thread; `n` is no integer
   * @throws {RangeError} `n` is out of range
   * @throws {Error} `name` is `'TimeoutError'`: the time is over
   */
  acquire(n?: number, options?: BlockOptions): void

  /** {@link Semaphore.acquire} without blocking, in any thread. */
  acquireAsync(n?: number, options?: AwaitOptions): Promise<void>

  /** Takes `n` permits if they are there and nobody waits for any. Never blocks. */
  tryAcquire(n?: number): boolean

  /**
   * Adds permits.
   *
   * @throws {RangeError} there would be more than 2**31 - 1
   */
  release(n?: number): void

  /** Runs `callback` with `n` permits held, and gives them back, also if it fails or its thread dies. */
  use<T>(n: number, callback: (token: UnlockToken) => T | PromiseLike<T>, options?: AwaitOptions): Promise<T>
}

/**
 * Many readers or one writer: 4 bytes of shared memory. Zero-filled memory is an unlocked lock.
 *
 * First come, first served: a waiting writer stops new readers, readers that wait behind it enter together. When a writer
 * dies, those who come after it have `ownerDied`, until somebody has written.
 *
 * Not re-entrant.
 */
export class RwLock {
  /** How many bytes of the buffer it takes. */
  static readonly byteLength: 4

  /**
   * @throws {TypeError} `buffer` is no `SharedArrayBuffer`, or `byteOffset` no integer
   * @throws {RangeError} `byteOffset` is no multiple of 4, or leaves less than 4 bytes
   */
  constructor(buffer: SharedArrayBuffer, options?: ViewOptions)

  readonly buffer: SharedArrayBuffer
  readonly byteOffset: number
  /** Whether somebody writes now. */
  readonly locked: boolean
  /** How many read now. */
  readonly readers: number

  /** Blocks until this thread may write. Workers only; throws as {@link AsyncLock.lock}. */
  lock(options?: BlockOptions): ExclusiveToken
  /** Blocks until this thread may read. Workers only; throws as {@link AsyncLock.lock}. */
  lockShared(options?: BlockOptions): UnlockToken
  /** The right to write, if nobody has or waits for any; otherwise null. Never blocks. */
  tryLock(): ExclusiveToken | null
  /** The right to read, if nobody writes or waits; otherwise null. Never blocks. */
  tryLockShared(): UnlockToken | null
  /** Waits without blocking until this thread may write; rejected as {@link AsyncLock.lockAsync}. */
  lockAsync(options?: AwaitOptions): Promise<ExclusiveToken>
  /** Waits without blocking until this thread may read; rejected as {@link AsyncLock.lockAsync}. */
  lockSharedAsync(options?: AwaitOptions): Promise<UnlockToken>
  /** Runs `callback` once this thread may write; gives the lock back, also if it fails. */
  executeLocked<T>(callback: (token: ExclusiveToken) => T | PromiseLike<T>, options?: AwaitOptions): Promise<T>
  /** Runs `callback` once this thread may read; gives the lock back, also if it fails. */
  executeShared<T>(callback: (token: UnlockToken) => T | PromiseLike<T>, options?: AwaitOptions): Promise<T>
}

/** The right to write under an {@link RwLock}. */
export interface ExclusiveToken extends UnlockToken {
  /**
   * Lets readers in and goes on as one of them, without anybody writing in between. This token is no longer locked.
   *
   * @throws {Error} `code` is `'ERR_NOT_LOCKED'`: the token is not live
   */
  downgrade(): UnlockToken
}

/**
 * A number of parties that wait for each other, again and again: 4 bytes of shared memory.
 *
 * Who gives up is no longer counted. Who dies while waiting stays counted: give the others a time-out.
 */
export class Barrier {
  /** How many bytes of the buffer it takes. */
  static readonly byteLength: 4

  /**
   * @param options.parties 1 to 65535; the same in every thread
   * @throws {TypeError} `buffer` is no `SharedArrayBuffer`, or `parties` or `byteOffset` no integer
   * @throws {RangeError} `parties` or `byteOffset` is out of range
   */
  constructor(buffer: SharedArrayBuffer, options: ViewOptions & { parties: number })

  readonly buffer: SharedArrayBuffer
  readonly byteOffset: number
  readonly parties: number

  /**
   * Blocks until all parties have arrived. Workers only. The last one does not block, and is the leader.
   *
   * @throws {TypeError} on the main thread
   * @throws {Error} `name` is `'TimeoutError'`: the time is over; this party is not counted
   */
  wait(options?: BlockOptions): { leader: boolean }

  /** {@link Barrier.wait} without blocking, in any thread. */
  waitAsync(options?: AwaitOptions): Promise<{ leader: boolean }>
}

/** Waiting until something has happened a number of times, once: 4 bytes of shared memory. */
export class Latch {
  /** How many bytes of the buffer it takes. */
  static readonly byteLength: 4

  /**
   * @param options.count 0 to 2**31 - 1; the same in every thread
   * @throws {TypeError} `buffer` is no `SharedArrayBuffer`, or `count` or `byteOffset` no integer
   * @throws {RangeError} `count` or `byteOffset` is out of range
   */
  constructor(buffer: SharedArrayBuffer, options: ViewOptions & { count: number })

  readonly buffer: SharedArrayBuffer
  readonly byteOffset: number
  readonly count: number
  /** How often it still has to happen. */
  readonly remaining: number

  /**
   * It has happened `n` times more.
   *
   * @param n 1 to 2**31 - 1, by default 1
   * @throws {TypeError} `n` is no integer
   * @throws {RangeError} `n` is out of range
   */
  countDown(n?: number): void

  /**
   * Blocks until it has happened often enough. Workers only.
   *
   * @throws {TypeError} on the main thread
   * @throws {Error} `name` is `'TimeoutError'`: the time is over
   */
  wait(options?: BlockOptions): void

  /** {@link Latch.wait} without blocking, in any thread. */
  waitAsync(options?: AwaitOptions): Promise<void>
}
