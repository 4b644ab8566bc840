/**
 * The exports of the package. All entry points export the same names. They differ in the effect on globals when they
 * are loaded; `atomics-waitasync/pure` has none, so its types add nothing to `Atomics` either.
 *
 * Written for TypeScript 4.1 and later and the libraries es2017 to esnext. If a library lacks `BigInt64Array` or
 * `Symbol.dispose`, these types leave it out as well, and never add it to the program that imports them.
 *
 * All times are in milliseconds and may be fractional.
 */

/** The global `BigInt64Array`, or `never` if the library has none (before es2020). */
type BigInt64ArrayIfAny = typeof globalThis extends { BigInt64Array: { prototype: infer T } } ? T : never

/** `Symbol.dispose`, or `never` if the library has none (before esnext.disposable). */
type DisposeIfAny = Extract<SymbolConstructor[Extract<'dispose', keyof SymbolConstructor>], symbol>

/** `Symbol.asyncIterator`, or `never` in a program whose library has none (before es2018). */
type AsyncIteratorIfAny = Extract<SymbolConstructor[Extract<'asyncIterator', keyof SymbolConstructor>], symbol>

/**
 * A `SharedArrayBuffer`; also the type that a library with `WebAssembly` gives to a memory's buffer, which says nothing
 * of sharing.
 */
type SharedBuffer = SharedArrayBuffer |
  (typeof globalThis extends { WebAssembly: { Memory: { prototype: { readonly buffer: infer T } } } }
    ? T & { readonly BYTES_PER_ELEMENT?: undefined } // no typed array, which early libraries take for an ArrayBuffer
    : never)

/** The interface that `using` requires, if the library has it. */
type DisposableIfAny = { [key in DisposeIfAny]: () => void }

/** Marks tokens that no {@link Condition} takes. For the type checker only: no object has this property. */
declare const notForConditions: unique symbol
interface NotForConditions { readonly [notForConditions]: true }

/** The token of an exclusive hold, as far as its type says. */
type PerhapsExclusive = UnlockToken & { readonly [notForConditions]?: undefined }

// Only declarations that are marked `export` are exported.
export {}

/** The end of a wait; or `'not-equal'`: the element held another value, so there was no wait. */
export type WaitResult = 'ok' | 'not-equal' | 'timed-out'

/** The result of {@link waitAsync}: over at once, or a promise. Without a signal the promise is never rejected. */
export type WaitAsyncResult =
  | { async: false, value: 'not-equal' | 'timed-out' }
  | { async: true, value: Promise<'ok' | 'timed-out'> }

/**
 * `Atomics.wait`: blocks this thread until another thread notifies it.
 *
 * On the main thread it behaves like the host's function: Node allows it.
 *
 * @param typedArray an array on a `SharedArrayBuffer`
 * @param index the index of the element to wait for
 * @param value the value that the element must have, otherwise there is no wait
 * @param timeout in milliseconds, by default `Infinity`; never early
 * @throws {TypeError} `typedArray` is not an `Int32Array` or `BigInt64Array`, or not on a `SharedArrayBuffer`; this
 *   thread must not block
 * @throws {RangeError} `index` is out of range
 * @see https://tc39.es/ecma262/#sec-atomics.wait
 *
 * @example
 * ```js
 * const words = new Int32Array(workerData) // on a SharedArrayBuffer
 * wait(words, 0, 0, 1000) // 'ok', 'not-equal' or 'timed-out'
 * ```
 */
export function wait(typedArray: Int32Array, index: number, value: number, timeout?: number): WaitResult
export function wait(typedArray: BigInt64ArrayIfAny, index: number, value: bigint, timeout?: number): WaitResult

/**
 * `Atomics.notify`: wakes the waiters of an element, blocked threads and promises in the order in which they came.
 *
 * It wakes waiters in the package's own queue first. The rest of `count` goes to the host's `notify`, so that threads
 * without the package, and WebAssembly, are woken too.
 *
 * @param typedArray an array; if it is not on a `SharedArrayBuffer`, it has no waiters and the result is 0
 * @param index the index of the element
 * @param count the most waiters to wake, by default `Infinity`
 * @returns the number of woken waiters
 * @throws {TypeError} `typedArray` is not an `Int32Array` or `BigInt64Array`
 * @throws {RangeError} `index` is out of range
 * @see https://tc39.es/ecma262/#sec-atomics.notify
 *
 * @example
 * ```js
 * Atomics.store(words, 0, 1)
 * notify(words, 0) // the number of woken waiters
 * ```
 */
export function notify(typedArray: Int32Array | BigInt64ArrayIfAny, index: number, count?: number): number

/**
 * `Atomics.waitAsync`: waits without blocking. The promise is fulfilled with `'ok'` after a notification, with
 * `'timed-out'` after `timeout` milliseconds, never earlier.
 *
 * Unless this function waits in the host's queue (see {@link engine}), the pending promise keeps this thread's event
 * loop alive as long as something can still settle it; {@link unref} lets go.
 *
 * @param typedArray an array on a `SharedArrayBuffer`
 * @param index the index of the element to wait for
 * @param value the value that the element must have, otherwise there is no wait
 * @param timeout in milliseconds, by default `Infinity`
 * @param options.signal cancels the wait: an abort takes the waiter out of the queue at once, so that it receives no
 *   later notification, and rejects the promise with the signal's reason. Not in the standard, so `Atomics.waitAsync`
 *   ignores it
 * @throws {TypeError} `typedArray` is not an `Int32Array` or `BigInt64Array`, or not on a `SharedArrayBuffer`; an
 *   option is wrong; or there is a signal, and the wait would be in the host's queue ({@link engine}; WebAssembly
 *   memories), where nothing can cancel it
 * @throws {RangeError} `index` is out of range
 * @see https://tc39.es/ecma262/#sec-atomics.waitasync
 *
 * @example
 * ```js
 * const { async, value } = waitAsync(words, 0, 0, 1000)
 * const outcome = async ? await value : value // 'ok', 'not-equal' or 'timed-out'
 * ```
 */
export function waitAsync(
  typedArray: Int32Array, index: number, value: number, timeout?: number, options?: WaitAsyncOptions
): WaitAsyncResult
export function waitAsync(
  typedArray: BigInt64ArrayIfAny, index: number, value: bigint, timeout?: number, options?: WaitAsyncOptions
): WaitAsyncResult

/** The options of {@link waitAsync}. An option that is not listed is a `TypeError`. */
export interface WaitAsyncOptions {
  /** Cancels the wait when it is aborted. */
  signal?: AbortSignalLike | undefined
}

/** The options of {@link install}. */
export interface InstallOptions {
  /**
   * The object that receives `wait`, `notify` and `waitAsync`: a global object, also of another realm; an `Atomics`
   * object; or any other object. By default the global object.
   */
  target?: object | undefined
  /** Install even where `Atomics.waitAsync` exists. By default false. */
  force?: boolean | undefined
  /** Also install in the Workers that this thread starts from now on. By default true. */
  workers?: boolean | undefined
  /** Also install in this thread's later `vm` contexts. By default true. */
  contexts?: boolean | undefined
}

/**
 * Installs `wait`, `notify` and `waitAsync` as one unit; and `wake`, if the target has one.
 *
 * @returns true if it changed the target
 * @throws {TypeError} an option has a wrong type or is unknown, or the target does not let its properties be defined;
 *   then nothing has been changed
 *
 * @example
 * ```js
 * install({ force: true }) // Atomics has the package's own queue from now on
 * const own = {}
 * install({ target: own, force: true }) // the same functions, without touching a global
 * ```
 */
export function install(options?: InstallOptions): boolean

/**
 * Undoes the latest install on a target, as one unit.
 *
 * @param target the target of {@link install}; by default the global object
 * @returns true if it changed the target
 *
 * @example
 * ```js
 * uninstall() // Atomics is as it was before the latest install
 * ```
 */
export function uninstall(target?: object): boolean

/**
 * The queue that `waitAsync` uses in this thread now: the host's, or this package's (`'addon'`).
 *
 * It changes with {@link install} and {@link uninstall}. `import { engine }` in an ES module keeps the value it had
 * when the package was loaded.
 *
 * @example
 * ```js
 * const { engine } = require('atomics-waitasync')
 * if (engine === 'host') console.log('waitAsync is that of Node')
 * ```
 */
export let engine: 'host' | 'addon'

/**
 * Lets a pending wait keep the event loop alive again, after {@link unref}.
 *
 * @param promise a promise of {@link waitAsync}, or of a waiting method of the classes below
 * @returns false if it is not a pending wait of this thread
 *
 * @example
 * ```js
 * ref(value) // undoes unref(value)
 * ```
 */
export function ref(promise: Promise<unknown>): boolean

/**
 * Lets this thread end although a wait is pending. If the wait has several steps, such as {@link Condition.waitAsync},
 * that holds for all of them.
 *
 * @param promise a promise of {@link waitAsync}, or of a waiting method of the classes below
 * @returns false if it is not a pending wait of this thread
 *
 * @example
 * ```js
 * const { value } = waitAsync(words, 0, 0)
 * unref(value) // the process may end before it is notified
 * ```
 */
export function unref(promise: Promise<unknown>): boolean

/**
 * The number of waiters of an element in the package's own queue: blocked threads and pending promises of all threads.
 * A promise past its deadline counts until its thread has timed it out or another thread's `notify` has reached it.
 * Waiters in the host's queue are not counted.
 *
 * @throws {TypeError} `typedArray` is not an `Int32Array` or `BigInt64Array`
 * @throws {RangeError} `index` is out of range
 *
 * @example
 * ```js
 * const { value } = waitAsync(words, 0, 0)
 * waiterCount(words, 0) // 1
 * ```
 */
export function waiterCount(typedArray: Int32Array | BigInt64ArrayIfAny, index: number): number

/** A signal that ends a wait from outside: an `AbortSignal`, or on an older Node an object with these members. */
export interface AbortSignalLike {
  readonly aborted: boolean
  /** The wait is rejected with this reason; if there is none, with an `Error` named `AbortError`. */
  readonly reason?: any
  addEventListener(type: 'abort', listener: (event: any) => void): void
  removeEventListener?(type: 'abort', listener: (event: any) => void): void
}

/** The options of every method that blocks. An option that is not listed is a `TypeError`. */
export interface BlockOptions {
  /** Milliseconds: a number, not `NaN`. A negative number counts as 0. By default `Infinity`. */
  timeout?: number | undefined
}

/** The options of every method that awaits. An option that is not listed is a `TypeError`. */
export interface AwaitOptions extends BlockOptions {
  /** Ends the wait when it is aborted. */
  signal?: AbortSignalLike | undefined
}

/** The `repair` of a method that runs a callback with a lock. */
export interface RepairOption<Token, Result = unknown> {
  /**
   * Repairs the state that a dead or failed holder left half changed. If the lock says `ownerDied`, this is called
   * before the callback, always with an exclusive hold, and awaited where the method awaits. After it the callback's
   * token has `ownerDied: false`. If it fails, or gives its lock back, the callback is not called, the method fails,
   * and the next holder has `ownerDied`. An exclusive callback that then ends with an error leaves `ownerDied` to the
   * next holder, unless it has unlocked or downgraded its token.
   */
  repair?: ((token: Token) => Result) | undefined
}

/** The option of constructors whose locks detect that a task waits for itself. */
export interface ReentryOption {
  /**
   * For tests and development. If true, a promise form without `timeout` and `signal` that would wait rejects with
   * `ERR_DEADLOCK` if a callback around its call, of this thread, has the same lock. Both calls must be by instances
   * with this option. Work that a callback begins and does not await is refused, too. A clone does not carry it.
   */
  detectReentry?: boolean | undefined
}

/** The options of a {@link Semaphore}. Without `permits`, `detectReentry` is a `TypeError`. */
interface SemaphoreOptions extends ReentryOption {
  permits?: number | undefined
}

/** The result of a synchronous repair: no promise. */
export type NoPromise =
  void | null | undefined | boolean | number | bigint | string | symbol | (object & { then?: undefined })

/** What a promise settles with; any other type unchanged. Without the `Awaited` of later libraries. */
type Settled<T> = T extends PromiseLike<infer Value> ? Settled<Value> : T

/** The position in a buffer. An option that is not listed is a `TypeError`. */
export interface ViewOptions {
  /** Bytes, a multiple of 4. By default 0, or that of the clone, which is then the only value allowed. */
  byteOffset?: number | undefined
  /**
   * A name for people, from 1 to 256 characters: any UTF-16 code units, as in the names of `locks`. Snapshots, errors,
   * warnings and `diagnostics_channel` show it. It belongs to the four bytes: all threads see it, a later name replaces
   * it, and it ends with the memory.
   */
  name?: string | undefined
}

/** The options of an instance in memory of its own. */
export type NewOptions = Pick<ViewOptions, 'name'>

/**
 * The clone that `postMessage`, `workerData` or `structuredClone` makes of an instance: a plain object without methods,
 * until it is passed to the constructor of its class. The constructor also takes an instance.
 */
export interface ViewClone {
  /** The name of the class; missing in clones of versions that had none. */
  readonly kind?: string
  readonly buffer: SharedArrayBuffer
  readonly byteOffset: number
  /** A typed array, which has a length, is no clone. */
  readonly byteLength?: undefined
}

/**
 * The result of a synchronous callback. It must not be a promise: no code could await it while the lock is held.
 *
 * A function that passes a callback on writes `<T>(callback: () => Synchronous<T>)`.
 */
export type Synchronous<T> =
  T extends PromiseLike<unknown> ? 'The callback must not return a promise: use the method without Sync' : T

/** The properties of every instance: a view of shared memory. */
export interface View {
  /** The buffer that holds the state. */
  readonly buffer: SharedArrayBuffer
  readonly byteOffset: number
  /** The name that was given last to this memory, in any thread; `''` if there is none. */
  readonly name: string
  /**
   * The number of this memory in snapshots, errors and `diagnostics_channel`: a positive integer, the same in all
   * threads.
   */
  readonly id: number
  /** The number of waiters now: blocked threads and pending promises, of all threads. */
  readonly waiters: number
}

/** An instance of a class that clones keep apart from the others. */
interface ViewOf<Kind extends string> extends View {
  /** The name of the class, which a clone carries: no other class takes it. */
  readonly kind: Kind
}

/**
 * A mutex between any mix of threads: 4 bytes of shared memory that hold {@link AsyncLock.LOCKED} or
 * {@link AsyncLock.UNLOCKED}. Zero-filled memory is an unlocked lock. An instance is a view; make one in each thread.
 *
 * Workers may block for it, every thread can await it. Giving up loses no wake-up. If a thread ends while it holds the
 * lock, the next waiter gets it. No waiter is overtaken for long.
 *
 * Not re-entrant.
 *
 * @example
 * ```js
 * const lock = new AsyncLock()
 * await lock.executeLocked(() => changeWhatItProtects())
 * ```
 */
export class AsyncLock {
  /** The size of the state in bytes. */
  static readonly byteLength: 4
  /** The index of the state in {@link AsyncLock.i32a}. */
  static readonly INDEX: 0
  static readonly UNLOCKED: 0
  static readonly LOCKED: 1

  /** Makes an instance in memory of its own; to be posted to other threads, which give its clone to the constructor. */
  static create<Instance extends AsyncLock = AsyncLock>(
    this: new (...args: any[]) => Instance, options?: NewOptions & RepairOption<UnlockToken> & ReentryOption
  ): Instance

  /** In memory of its own, as {@link AsyncLock.create} makes it. */
  constructor()
  /**
   * @param sab a `SharedArrayBuffer`, which may be of another realm, and growable; or a clone
   * @throws {TypeError} the first argument is neither, `byteOffset` is not an integer or not the clone's, or an option
   *   is unknown
   * @throws {RangeError} `byteOffset` is not a multiple of 4, or leaves less than 4 bytes
   *
   * @example
   * ```js
   * const lock = AsyncLock.create({ name: 'cache' })
   * new Worker(file, { workerData: lock }) // in the worker: new AsyncLock(workerData)
   * ```
   */
  constructor(sab: SharedBuffer | ViewClone, options?: ViewOptions & RepairOption<UnlockToken> & ReentryOption)

  /** The same as {@link AsyncLock.buffer}. */
  readonly sab: SharedArrayBuffer
  /** The state: one element, at {@link AsyncLock.INDEX}. */
  readonly i32a: Int32Array
  /** Whether the lock is held now. */
  readonly locked: boolean
  /**
   * The `threadId` of the holder now; null if the lock is free, or was locked through the bare word, or by another
   * process.
   */
  readonly holder: number | null
  /** Who holds it now; null if the lock is free, or was locked through the bare word. */
  readonly owner: Owner | null

  /**
   * Blocks until this thread holds the lock. Workers only.
   *
   * @throws {TypeError} on the main thread: use {@link lockAsync} or {@link executeLocked} there; or an option has a
   *   wrong type
   * @throws {TimeoutError} the time is over
   * @throws {DeadlockError} this thread would wait for itself, because it holds the lock already, or because it awaits
   *   the lock and there is no timeout; or there would be a cycle of threads that block without a timeout
   */
  lock(options?: BlockOptions): UnlockToken

  /**
   * Blocks until this thread holds the lock, for at most `timeout` milliseconds. On the main thread only 0 is allowed,
   * which does not block.
   *
   * @param timeout milliseconds: a number, not `NaN`, or `{ timeout }`; by default 0
   * @returns null if the time was over first
   * @throws {TypeError} on the main thread, with a timeout other than 0; `timeout` has a wrong type
   * @throws {Error} `code` is `'ERR_DEADLOCK'`: this thread already holds the lock and would wait for itself
   */
  lockIfAvailable(timeout?: number | BlockOptions): UnlockToken | null

  /** Takes the lock if it is free; otherwise returns null. Never blocks, and is allowed in every thread. */
  tryLock(): UnlockToken | null

  /**
   * Waits for the lock without blocking.
   *
   * Rejects with the signal's reason (if it has none, with an `Error` named `AbortError`); when the time is over with
   * an `Error` named `TimeoutError`, `code` `'ERR_TIMEOUT'`; and with a `TypeError` if an option has a wrong type.
   * Giving up never loses the lock: if it was granted at the same moment, the next waiter gets it.
   */
  lockAsync(options?: AwaitOptions): Promise<UnlockToken>

  /**
   * Runs `callback` with the lock held, and unlocks, also after an error. The callback is called at once if the lock is
   * free, and its result is awaited. A callback that may have failed halfway calls {@link UnlockToken.abandon} first:
   * then the next holder has `ownerDied`.
   *
   * The promise settles like the callback's result. It rejects like that of {@link lockAsync} without calling the
   * callback.
   *
   * @param options by default with the `repair` of this instance
   */
  executeLocked<T>(
    callback: (token: UnlockToken) => T | PromiseLike<T>, options?: AwaitOptions & RepairOption<UnlockToken>
  ): Promise<T>
  /** For a callback that returns a promise or a value of another type. */
  executeLocked<T>(
    callback: (token: UnlockToken) => T, options?: AwaitOptions & RepairOption<UnlockToken>
  ): Promise<Settled<T>>

  /**
   * {@link AsyncLock.executeLocked}, blocking. Workers only.
   *
   * @returns the callback's result
   * @throws like {@link AsyncLock.lock}; the error of the callback; and, after the release, a `TypeError` if it returns
   *   a promise
   */
  executeLockedSync<T>(
    callback: (token: UnlockToken) => Synchronous<T>, options?: BlockOptions & RepairOption<UnlockToken, NoPromise>
  ): T

  /**
   * Releases the lock, whichever token it was taken with.
   *
   * @throws {Error} `code` is `'ERR_NOT_LOCKED'`: the lock is free, or another thread is known to hold it
   */
  unlock(): void
}
export interface AsyncLock extends ViewOf<'AsyncLock'> {}

/**
 * The right to release a lock once.
 *
 * @example
 * ```js
 * const token = await lock.lockAsync()
 * try {
 *   if (token.ownerDied) repair()
 * } finally {
 *   token.unlock()
 * }
 * ```
 */
export class UnlockToken {
  private constructor()

  /** Whether the lock is still held with this token. */
  readonly locked: boolean
  /**
   * Whether the previous holder ended without releasing the lock, or abandoned it: the protected memory may be half
   * changed.
   */
  readonly ownerDied: boolean

  /**
   * Releases the lock. A pending {@link Condition.waitAsync} with this token ends: it rejects with the code
   * `'ERR_NOT_LOCKED'`, and does not take the lock again.
   *
   * @returns true the first time; false if the lock is not held
   */
  unlock(): boolean

  /**
   * Releases the lock of a holder that failed halfway. The token of the next exclusive holder has `ownerDied`, since
   * the protected state may be half changed. The notification of a {@link Condition} that it owes goes to another
   * waiter.
   *
   * @returns true the first time; false if the lock is not held
   * @throws {TypeError} the token is that of a share or of permits
   */
  abandon(): boolean
}

/** `using token = …` unlocks at the end of the block, if there is `Symbol.dispose`. */
export interface UnlockToken extends DisposableIfAny {}

/** The right to read under an {@link RwLock}. It excludes no other reader, so a {@link Condition} does not take it. */
export interface SharedToken extends UnlockToken, NotForConditions {}

/** Permits of a {@link Semaphore}. They exclude nobody, so a {@link Condition} does not take the token. */
export interface PermitsToken extends UnlockToken, NotForConditions {}

/** The `timeout` of a call is over. */
export interface TimeoutError extends Error {
  name: 'TimeoutError'
  code: 'ERR_TIMEOUT'
  /** The class that was awaited, as in {@link Entry}. */
  kind: Entry['kind']
  id: number
  /**
   * The `threadId` of the holder when the time was over; null if none is known, or if it is another process's.
   */
  holder: number | null
  /** The holder then, with its process. */
  owner: Owner | null
}

/** Who holds a lock: a thread of this process, or, of memory that processes share, another process. */
export interface Owner {
  /** Null if the process is in another PID namespace. */
  pid: number | null
  /** Null if it is another process's. */
  threadId: number | null
}

/**
 * Whether an error is that of a timeout of this package: by its `code`, also if another copy or realm made it. Takes
 * any value, and never throws.
 *
 * @example
 * ```js
 * try {
 *   await lock.executeLocked(work, { timeout: 100 })
 * } catch (error) {
 *   if (!isTimeoutError(error)) throw error
 *   console.log('busy')
 * }
 * ```
 */
export function isTimeoutError(error: unknown): error is TimeoutError

/** A thread would wait for ever. */
export interface DeadlockError extends Error {
  code: 'ERR_DEADLOCK'
  /** The class that would have been awaited, as in {@link Entry}. */
  kind: Entry['kind']
  id: number
  /**
   * Threads that block without a timeout, each for the one after it, the last for the first. Missing if a thread waits
   * for itself.
   */
  cycle?: DeadlockLink[]
}

export interface DeadlockLink {
  threadId: number
  /** The hold that the thread before it waits for. */
  holds: Entry
  waitsFor: Entry
}

/**
 * Waiting, with a lock, until another holder has changed something. 4 bytes of shared memory, which are never written.
 *
 * A wait releases the lock and joins the queue in one step with respect to {@link Condition.notify}. However it ends,
 * the lock is held again and the same token is live.
 *
 * A notified waiter owes the notification to the others until the hold that it gets back has ended in order: by
 * `unlock()`, by a callback that succeeds, by `downgrade()` or by the next wait. If its thread dies before, if the
 * callback of `executeLocked` fails, or after {@link UnlockToken.abandon}, it goes to another waiter.
 *
 * @example
 * ```js
 * const token = lock.lock()
 * changed.waitFor(token, () => queue.length > 0)
 * token.unlock()
 * // in another thread, with the lock held: queue.push(item); changed.notify(1)
 * ```
 */
export class Condition {
  /** The size of the state in bytes. */
  static readonly byteLength: 4

  /** Makes an instance in memory of its own; to be posted to other threads, which give its clone to the constructor. */
  static create<Instance extends Condition = Condition>(
    this: new (...args: any[]) => Instance, options?: NewOptions
  ): Instance

  /** In memory of its own, as {@link Condition.create} makes it. */
  constructor()
  /**
   * @throws like the constructor of {@link AsyncLock}
   *
   * @example
   * ```js
   * const changed = new Condition(buffer, { byteOffset: 4 }) // beside its lock, at 0
   * ```
   */
  constructor(buffer: SharedBuffer | ViewClone, options?: ViewOptions)


  /**
   * Blocks until notified. Workers only.
   *
   * @param token a token of an {@link AsyncLock}, or a writer's token of an {@link RwLock}
   * @returns false if the time was over first
   * @throws {TypeError} on the main thread; `token` is not a token, or is a reader's or one for permits
   * @throws {Error} `code` is `'ERR_NOT_LOCKED'`: the token is not live; `'ERR_DEADLOCK'`: this thread awaits the lock
   */
  wait(token: PerhapsExclusive, options?: BlockOptions): boolean

  /**
   * Blocks until `predicate()` is true. Calls it first, and again after each notification, with the lock held. Workers
   * only.
   *
   * @returns true; when the time is over, the predicate's answer
   * @throws like {@link Condition.wait}; the error of the predicate; and a `TypeError` if the predicate returns a
   *   promise
   */
  waitFor(token: PerhapsExclusive, predicate: () => unknown, options?: BlockOptions): boolean

  /**
   * {@link Condition.wait} without blocking, in any thread. After an abort it rejects when the lock is held again. It
   * rejects with the code `'ERR_NOT_LOCKED'` if the token is given back meanwhile, for example because its callback
   * ends.
   */
  waitAsync(token: PerhapsExclusive, options?: AwaitOptions): Promise<boolean>

  /** {@link Condition.waitFor} without blocking, in any thread; the predicate may be asynchronous. */
  waitForAsync(token: PerhapsExclusive, predicate: () => unknown, options?: AwaitOptions): Promise<boolean>

  /**
   * Wakes up to `count` waiters, first come, first served. Needs no lock.
   *
   * @param count a non-negative integer or `Infinity`, the default
   * @returns the number of woken waiters
   * @throws {TypeError} `count` is neither
   */
  notify(count?: number): number
}
export interface Condition extends ViewOf<'Condition'> {}

/**
 * A number of permits: 4 bytes of shared memory.
 *
 * With the option `permits` it is a limit: zero-filled memory has all of its permits, and the `Int32` counts those that
 * are taken. They can only be held, by {@link Semaphore.hold} or {@link Semaphore.use}, and come back when their thread
 * dies: so there are never more of them.
 *
 * Without the option it is a counted signal: zero-filled memory has no permits, {@link Semaphore.release} adds them,
 * and the `Int32` has those that are available. Acquired permits have no owner, so one thread may release those that
 * another acquired.
 *
 * First come, first served: a large request is not overtaken.
 *
 * @example
 * ```js
 * const limit = Semaphore.create({ permits: 3 })
 * await limit.use(1, () => fetch(url)) // at most three at a time
 *
 * const ready = new Semaphore()
 * ready.release() // wakes a thread that calls ready.acquire(), now or later
 * ```
 */
export class Semaphore {
  /** The size of the state in bytes. */
  static readonly byteLength: 4

  /** Makes an instance in memory of its own; to be posted to other threads, which give its clone to the constructor. */
  static create<Instance extends Semaphore = Semaphore>(
    this: new (...args: any[]) => Instance, options?: NewOptions & SemaphoreOptions
  ): Instance

  /** In memory of its own, as {@link Semaphore.create} makes it. */
  constructor()
  /**
   * @param options.permits 1 to 2**31 - 1: the limit; the same in every thread, and in all views of the four bytes
   * @throws {TypeError} `buffer` is not a `SharedArrayBuffer` or a clone, `byteOffset` or `permits` is not an integer
   *   or not the clone's, or an option is unknown
   * @throws {RangeError} `permits` is out of range, or `byteOffset` is not a multiple of 4, or leaves less than 4 bytes
   *
   * @example
   * ```js
   * const limit = new Semaphore(buffer, { permits: 3 })
   * new Worker(file, { workerData: limit }) // in the worker: new Semaphore(workerData)
   * ```
   */
  constructor(
    buffer: SharedBuffer | (ViewClone & { readonly permits?: number | undefined }),
    options?: ViewOptions & SemaphoreOptions
  )

  /**
   * The number of available permits. Of a limit: `permits` minus the taken ones, negative while other views with a
   * higher limit have more.
   */
  readonly available: number
  /** The limit; `undefined` if there is none. */
  readonly permits: number | undefined

  /**
   * Blocks until it has acquired `n` permits. Workers only.
   *
   * @param n 1 to 2**31 - 1, by default 1
   * @throws {TypeError} on the main thread; `n` is not an integer; this is a limit
   * @throws {RangeError} `n` is out of range
   * @throws {TimeoutError} the time is over
   */
  acquire(n?: number, options?: BlockOptions): void

  /** {@link Semaphore.acquire} without blocking, in any thread. */
  acquireAsync(n?: number, options?: AwaitOptions): Promise<void>

  /** Acquires `n` permits if they are available and there are no waiters. Never blocks. */
  tryAcquire(n?: number): boolean

  /**
   * Adds permits.
   *
   * @throws {TypeError} `n` is not an integer; this is a limit
   * @throws {RangeError} `n` is out of range, or there would be more than 2**31 - 1 permits
   */
  release(n?: number): void

  /**
   * Blocks until this thread holds `n` permits. They come back when the token is unlocked, or when the thread dies.
   * Workers only.
   *
   * @param n 1 to 2**31 - 1, of a limit to `permits`; by default 1
   * @throws {TypeError} on the main thread; `n` is not an integer
   * @throws {RangeError} `n` is out of range
   * @throws {TimeoutError} the time is over
   * @throws {Error} `ERR_DEADLOCK`: of a limit, this thread holds so many that the others cannot give back enough
   */
  hold(n?: number, options?: BlockOptions): PermitsToken

  /** {@link Semaphore.hold} without blocking, in any thread. */
  holdAsync(n?: number, options?: AwaitOptions): Promise<PermitsToken>

  /** Holds `n` permits if they are available and there are no waiters; otherwise returns null. Never blocks. */
  tryHold(n?: number): PermitsToken | null

  /** Runs `callback` with `n` permits held. They come back also after an error or a death. */
  use<T>(n: number, callback: (token: PermitsToken) => T | PromiseLike<T>, options?: AwaitOptions): Promise<T>
  /** For a callback that returns a promise or a value of another type. */
  use<T>(n: number, callback: (token: PermitsToken) => T, options?: AwaitOptions): Promise<Settled<T>>

  /**
   * {@link Semaphore.use}, blocking. Workers only.
   *
   * @throws like {@link Semaphore.hold}; the error of the callback; and, after the release, a `TypeError` if it returns
   *   a promise
   */
  useSync<T>(n: number, callback: (token: PermitsToken) => Synchronous<T>, options?: BlockOptions): T
}
export interface Semaphore extends ViewOf<'Semaphore'> {}

/**
 * Many readers or one writer: 4 bytes of shared memory. Zero-filled memory is an unlocked lock.
 *
 * First come, first served: a waiting writer stops new readers, and readers that wait behind it enter together. When a
 * writer dies, all later tokens have `ownerDied`, up to and including that of the next writer.
 *
 * Not re-entrant.
 *
 * @example
 * ```js
 * await rw.executeShared(() => read()) // beside other readers
 * await rw.executeLocked(() => write()) // alone
 * ```
 */
export class RwLock {
  /** The size of the state in bytes. */
  static readonly byteLength: 4

  /** Makes an instance in memory of its own; to be posted to other threads, which give its clone to the constructor. */
  static create<Instance extends RwLock = RwLock>(
    this: new (...args: any[]) => Instance, options?: NewOptions & RepairOption<ExclusiveToken> & ReentryOption
  ): Instance

  /** In memory of its own, as {@link RwLock.create} makes it. */
  constructor()
  /**
   * @throws like the constructor of {@link AsyncLock}
   *
   * @example
   * ```js
   * const rw = new RwLock()
   * ```
   */
  constructor(
    buffer: SharedBuffer | ViewClone, options?: ViewOptions & RepairOption<ExclusiveToken> & ReentryOption
  )

  /** Whether a thread writes now. */
  readonly locked: boolean
  /** The number of readers now. */
  readonly readers: number
  /** The `threadId` of the thread that writes now; null if there is none. */
  readonly holder: number | null
  /** Who writes now; null if nobody does, or it is not known. */
  readonly owner: Owner | null

  /** Blocks until this thread may write. Workers only; throws like {@link AsyncLock.lock}. */
  lock(options?: BlockOptions): ExclusiveToken
  /** Blocks until this thread may read. Workers only; throws like {@link AsyncLock.lock}. */
  lockShared(options?: BlockOptions): SharedToken
  /** The right to write if the lock is free without waiters; otherwise null. Never blocks. */
  tryLock(): ExclusiveToken | null
  /** The right to read if no thread writes or waits; otherwise null. Never blocks. */
  tryLockShared(): SharedToken | null
  /** Waits without blocking until this thread may write; rejects like {@link AsyncLock.lockAsync}. */
  lockAsync(options?: AwaitOptions): Promise<ExclusiveToken>
  /** Waits without blocking until this thread may read; rejects like {@link AsyncLock.lockAsync}. */
  lockSharedAsync(options?: AwaitOptions): Promise<SharedToken>
  /** Runs `callback` when this thread may write; then releases the lock, also if the callback fails. */
  executeLocked<T>(
    callback: (token: ExclusiveToken) => T | PromiseLike<T>, options?: AwaitOptions & RepairOption<ExclusiveToken>
  ): Promise<T>
  /** For a callback that returns a promise or a value of another type. */
  executeLocked<T>(
    callback: (token: ExclusiveToken) => T, options?: AwaitOptions & RepairOption<ExclusiveToken>
  ): Promise<Settled<T>>
  /** Runs `callback` when this thread may read; then releases the lock, also if the callback fails. */
  executeShared<T>(
    callback: (token: SharedToken) => T | PromiseLike<T>, options?: AwaitOptions & RepairOption<ExclusiveToken>
  ): Promise<T>
  /** For a callback that returns a promise or a value of another type. */
  executeShared<T>(
    callback: (token: SharedToken) => T, options?: AwaitOptions & RepairOption<ExclusiveToken>
  ): Promise<Settled<T>>
  /** {@link RwLock.executeLocked}, blocking. Workers only; throws like {@link AsyncLock.executeLockedSync}. */
  executeLockedSync<T>(
    callback: (token: ExclusiveToken) => Synchronous<T>,
    options?: BlockOptions & RepairOption<ExclusiveToken, NoPromise>
  ): T
  /** {@link RwLock.executeShared}, blocking. Workers only; throws like {@link AsyncLock.executeLockedSync}. */
  executeSharedSync<T>(
    callback: (token: SharedToken) => Synchronous<T>, options?: BlockOptions & RepairOption<ExclusiveToken, NoPromise>
  ): T
}
export interface RwLock extends ViewOf<'RwLock'> {}

/** The right to write under an {@link RwLock}. */
export interface ExclusiveToken extends UnlockToken {
  /**
   * Changes the right to write into a right to read; no thread writes in between. This token is no longer locked. If it
   * has `ownerDied`, so have all readers' tokens up to and including that of the next writer.
   *
   * @throws {Error} `code` is `'ERR_NOT_LOCKED'`: the token is not live
   */
  downgrade(): SharedToken
}

/**
 * A number of parties that wait for each other, again and again: 4 bytes of shared memory.
 *
 * A party that gives up is no longer counted. A party that dies while it waits stays counted: give the others a
 * timeout.
 *
 * @example
 * ```js
 * const barrier = new Barrier(buffer, { parties: 3 }) // in each of three threads
 * for (const step of steps) {
 *   compute(step)
 *   barrier.wait() // until the others have computed this step
 * }
 * ```
 */
export class Barrier {
  /** The size of the state in bytes. */
  static readonly byteLength: 4

  /** Makes an instance in memory of its own; to be posted to other threads, which give its clone to the constructor. */
  static create<Instance extends Barrier = Barrier>(
    this: new (...args: any[]) => Instance, options: NewOptions & { parties: number }
  ): Instance

  /** Of an instance, or the clone that posting one makes. */
  constructor(
    clone: ViewClone & { readonly parties: number }, options?: ViewOptions & { parties?: number | undefined }
  )
  /** Not allowed: a buffer does not say how many parties there are. */
  constructor(buffer: { readonly parties: 'must be given in the options' })
  /**
   * @param options.parties 1 to 65535; the same in every thread
   * @throws {TypeError} `buffer` is not a `SharedArrayBuffer` or a clone, `parties` or `byteOffset` is not an integer
   *   or not the clone's, or an option is unknown
   * @throws {RangeError} `parties` or `byteOffset` is out of range
   *
   * @example
   * ```js
   * const barrier = Barrier.create({ parties: 3 })
   * new Worker(file, { workerData: barrier }) // in the worker: new Barrier(workerData)
   * ```
   */
  constructor(buffer: SharedBuffer, options: ViewOptions & { parties: number })

  readonly parties: number

  /**
   * Blocks until all parties have arrived. Workers only. The last party does not block and is the leader.
   *
   * @throws {TypeError} on the main thread
   * @throws {TimeoutError} the time is over; this party is not counted
   */
  wait(options?: BlockOptions): { leader: boolean }

  /** {@link Barrier.wait} without blocking, in any thread. */
  waitAsync(options?: AwaitOptions): Promise<{ leader: boolean }>
}
export interface Barrier extends ViewOf<'Barrier'> {}

/**
 * Waiting once until something has happened a number of times: 4 bytes of shared memory.
 *
 * @example
 * ```js
 * const ready = new Latch(buffer, { count: 4 })
 * ready.countDown() // in each of four workers
 * await ready.waitAsync() // in main
 * ```
 */
export class Latch {
  /** The size of the state in bytes. */
  static readonly byteLength: 4

  /** Makes an instance in memory of its own; to be posted to other threads, which give its clone to the constructor. */
  static create<Instance extends Latch = Latch>(
    this: new (...args: any[]) => Instance, options: NewOptions & { count: number }
  ): Instance

  /** Of an instance, or the clone that posting one makes. */
  constructor(clone: ViewClone & { readonly count: number }, options?: ViewOptions & { count?: number | undefined })
  /** Not allowed: a buffer does not say the count. */
  constructor(buffer: { readonly count: 'must be given in the options' })
  /**
   * @param options.count 0 to 2**31 - 1; the same in every thread
   * @throws {TypeError} `buffer` is not a `SharedArrayBuffer` or a clone, `count` or `byteOffset` is not an integer or
   *   not the clone's, or an option is unknown
   * @throws {RangeError} `count` or `byteOffset` is out of range
   *
   * @example
   * ```js
   * const latch = Latch.create({ count: 4 })
   * new Worker(file, { workerData: latch }) // in the worker: new Latch(workerData)
   * ```
   */
  constructor(buffer: SharedBuffer, options: ViewOptions & { count: number })

  readonly count: number
  /** The count that is left until the latch opens. */
  readonly remaining: number

  /**
   * Counts down by `n`. The latch opens at 0.
   *
   * @param n 1 to 2**31 - 1, by default 1
   * @throws {TypeError} `n` is not an integer
   * @throws {RangeError} `n` is out of range
   */
  countDown(n?: number): void

  /**
   * Blocks until the latch is open. Workers only.
   *
   * @throws {TypeError} on the main thread
   * @throws {TimeoutError} the time is over
   */
  wait(options?: BlockOptions): void

  /** {@link Latch.wait} without blocking, in any thread. */
  waitAsync(options?: AwaitOptions): Promise<void>
}
export interface Latch extends ViewOf<'Latch'> {}

/** Whether a request excludes all others of its name, or exclusive ones only. */
export type LockMode = 'exclusive' | 'shared'

/**
 * The argument of the callback of a {@link LockManager}'s request.
 *
 * @example
 * ```js
 * await locks.request('cache', lock => console.log(lock.name, lock.mode, lock.ownerDied)) // cache exclusive false
 * ```
 */
export class Lock {
  private constructor()

  readonly name: string
  readonly mode: LockMode
  /**
   * Whether the last exclusive holder died with the name, or abandoned it: the protected state may be half changed.
   */
  readonly ownerDied: boolean
  /** Whether this request stole the name from a holder that lives: its callback may still run. */
  readonly tookOver: boolean
  /** Whether another request has stolen the name: this callback runs on without it. */
  readonly stolen: boolean
  /** Aborts when another request steals the name; undefined on a Node without `AbortController`. */
  readonly signal: AbortSignalIfAny

  /**
   * Leaves `ownerDied` to the next exclusive holder, once the callback has ended: the protected state may be half
   * changed. For a callback that failed halfway.
   *
   * @returns false if the name is not held any more
   * @throws {TypeError} the name is shared
   */
  abandon(): boolean
}

/** `AbortSignal`, if the library has it. */
type AbortSignalIfAny =
  typeof globalThis extends { AbortSignal: { prototype: infer T } } ? T : AbortSignalLike | undefined

/** Options of every request for a name. */
interface AnyLockOptions extends RepairOption<Lock> {
  /** By default `'exclusive'`. */
  mode?: LockMode | undefined
  /** If true, does not wait: if the name is not available, the callback is called with null. */
  ifAvailable?: boolean | undefined
  /**
   * If true, takes the name from its holders and overtakes all others. The holders' promises reject with an
   * `AbortError`.
   */
  steal?: boolean | undefined
  /** Ends the wait when it is aborted. It has no effect on a lock that has been granted. */
  signal?: AbortSignalLike | undefined
  /** Milliseconds: a number, not `NaN`. By default `Infinity`. Not in the specification. */
  timeout?: number | undefined
}

interface WaitingLockOptions extends AnyLockOptions {
  ifAvailable?: false | undefined
  steal?: false | undefined
}

interface AvailableLockOptions extends AnyLockOptions {
  steal?: false | undefined
  signal?: undefined
  timeout?: undefined
}

interface StealingLockOptions extends AnyLockOptions {
  mode?: 'exclusive' | undefined
  ifAvailable?: false | undefined
  signal?: undefined
  timeout?: undefined
}

/**
 * The options of {@link LockManager.request}; `ifAvailable`, `steal` and a wait cannot be combined, and a stealing
 * request is exclusive.
 */
export type LockOptions = WaitingLockOptions | AvailableLockOptions | StealingLockOptions

/** The options of {@link LockManager.requestSync}. */
export interface LockSyncOptions extends BlockOptions, RepairOption<Lock, NoPromise> {
  /** By default `'exclusive'`. */
  mode?: LockMode | undefined
  /** Do not wait: if the name is not available, the callback is called with null. Not together with `timeout`. */
  ifAvailable?: boolean | undefined
}

/** The options of {@link LockManager.hold}. */
export interface HoldSyncOptions extends BlockOptions {
  /** By default `'exclusive'`. */
  mode?: LockMode | undefined
}

interface WaitingHoldOptions extends AwaitOptions {
  /** By default `'exclusive'`. */
  mode?: LockMode | undefined
  steal?: false | undefined
}

interface StealingHoldOptions {
  mode?: 'exclusive' | undefined
  /** If true, takes the name from its holders and overtakes all others. They learn of it by `stolen` and `signal`. */
  steal: boolean
  signal?: undefined
  timeout?: undefined
}

/** The options of {@link LockManager.holdAsync}; `steal` cannot be combined with a wait, and is exclusive. */
export type HoldOptions = WaitingHoldOptions | StealingHoldOptions

/**
 * The right to release a name that is held without a callback. It is that of {@link LockManager.hold}, `holdAsync` and
 * `tryHold`. A {@link Condition} does not take it.
 *
 * @example
 * ```js
 * const token = await locks.holdAsync('cache')
 * try {
 *   await refresh(token.signal)
 * } finally {
 *   token.unlock()
 * }
 * ```
 */
export interface NamedToken extends UnlockToken, NotForConditions {
  readonly name: string
  readonly mode: LockMode
  /** Whether this request stole the name from a holder that lives, whose code may still go on. */
  readonly tookOver: boolean
  /** Whether another request has stolen the name. Then `locked` and `unlock()` are false. */
  readonly stolen: boolean
  /** Aborts when another request steals the name; undefined on a Node without `AbortController`. */
  readonly signal: AbortSignalIfAny
}

/** The names of a form for several. A string would be the list of its characters, and is a `TypeError`. */
type Names = Iterable<string> & object

/** The argument of the callback of {@link LockManager.requestAll}. */
export interface MultiLock {
  /** The names, each once, in the order of their UTF-16 code units. */
  readonly names: readonly string[]
  readonly mode: LockMode
  /** Whether one of the names has {@link Lock.ownerDied}. */
  readonly ownerDied: boolean
  /** Whether another request has stolen one of the names. Then the others were given back. */
  readonly stolen: boolean
  /** Aborts when another request steals one of the names; undefined on a Node without `AbortController`. */
  readonly signal: AbortSignalIfAny
  /** {@link Lock.abandon} for all of the names. */
  abandon(): boolean
}

/** The right to release several names, all at once. */
export interface MultiToken extends UnlockToken, NotForConditions, Omit<MultiLock, 'ownerDied' | 'abandon'> {}

/** The options of {@link LockManager.holdAll}; `ifAvailable` and a timeout cannot be combined. */
export interface MultiHoldSyncOptions extends BlockOptions {
  /** By default `'exclusive'`: that of all names. */
  mode?: LockMode | undefined
  /** Do not wait: if one of the names is not available, there is null in place of the lock. */
  ifAvailable?: boolean | undefined
}

interface WaitingMultiHoldOptions extends MultiHoldSyncOptions, AwaitOptions {
  ifAvailable?: false | undefined
}

interface AvailableMultiHoldOptions extends MultiHoldSyncOptions {
  signal?: undefined
  timeout?: undefined
}

/** The options of {@link LockManager.holdAllAsync}; `ifAvailable` and a wait cannot be combined. */
export type MultiHoldOptions = WaitingMultiHoldOptions | AvailableMultiHoldOptions

/** The options of {@link LockManager.requestAll}. `repair` is called once, with all names held. */
export type MultiLockOptions = MultiHoldOptions & RepairOption<MultiLock>

/** The options of {@link LockManager.requestAllSync}. */
export interface MultiLockSyncOptions extends MultiHoldSyncOptions, RepairOption<MultiLock, NoPromise> {}

/** Options with which the lock is not null. */
interface Waiting {
  ifAvailable?: false | undefined
}

/** A request, as {@link LockManager.query} lists it. */
export interface LockInfo {
  name: string
  mode: LockMode
  /** The thread that made it: `'<pid>-<threadId>'`. */
  clientId: string
}

/** The result of {@link LockManager.query}. */
export interface LockManagerSnapshot {
  held: LockInfo[]
  pending: LockInfo[]
}

/**
 * Locks by name, for all threads of the process: the Web Locks API, with `timeout`, `requestSync`, forms that give a
 * token, and further members of a {@link Lock}.
 *
 * First come, first served. A thread that ends gives its names back.
 *
 * @see https://w3c.github.io/web-locks/
 *
 * @example
 * ```js
 * await locks.request('cache', async lock => refresh()) // alone
 * locks.requestSync('cache', { mode: 'shared' }, () => read()) // blocks: workers only
 * ```
 */
export class LockManager {
  private constructor()

  /**
   * Runs `callback` with the name held, and releases it, also after an error. The result of the callback is awaited.
   *
   * The promise settles like the callback's result. Without calling it, it rejects with the signal's reason; with an
   * `Error` named `TimeoutError` when the time is over; with a `NotSupportedError` if options cannot be combined
   * or the name begins with `-`; and with a `TypeError` if an argument has a wrong type. If the lock is stolen, it
   * rejects with an `AbortError`.
   */
  request<T>(name: string, callback: (lock: Lock) => T | PromiseLike<T>): Promise<T>
  request<T>(name: string, options: LockOptions & { ifAvailable?: false | undefined } | undefined,
    callback: (lock: Lock) => T | PromiseLike<T>): Promise<T>
  request<T>(name: string, options: LockOptions | undefined,
    callback: (lock: Lock | null) => T | PromiseLike<T>): Promise<T>
  /** For a callback that returns a promise or a value of another type. */
  request<T>(name: string, callback: (lock: Lock) => T): Promise<Settled<T>>
  request<T>(name: string, options: LockOptions & { ifAvailable?: false | undefined } | undefined,
    callback: (lock: Lock) => T): Promise<Settled<T>>
  request<T>(name: string, options: LockOptions | undefined, callback: (lock: Lock | null) => T): Promise<Settled<T>>
  /** For options of the DOM's type, which may be anything. */
  request<T, O extends AnyLockOptions>(name: string,
    options: O & (boolean extends O['ifAvailable'] ? boolean extends O['steal'] ? unknown : never : never),
    callback: (lock: Lock | null) => T | PromiseLike<T>): Promise<T>

  /**
   * {@link LockManager.request}, blocking. Workers only.
   *
   * @returns the callback's result
   * @throws {TypeError} on the main thread; an argument has a wrong type; or, after the release, the callback returned
   *   a promise
   * @throws {TimeoutError} the time is over
   * @throws {DeadlockError} this thread would wait for itself, or there would be a cycle of threads that block without
   *   a timeout
   * @throws the error of the callback
   */
  requestSync<T>(name: string, callback: (lock: Lock) => Synchronous<T>): T
  requestSync<T>(name: string, options: LockSyncOptions & { ifAvailable?: false | undefined } | undefined,
    callback: (lock: Lock) => Synchronous<T>): T
  requestSync<T>(name: string, options: LockSyncOptions | undefined, callback: (lock: Lock | null) => Synchronous<T>): T

  /**
   * Blocks until this thread holds the name. Workers only.
   *
   * @returns a token, which releases the name once
   * @throws {TypeError} on the main thread; or an argument has a wrong type
   * @throws a `NotSupportedError` if the name begins with `-`
   * @throws {TimeoutError} the time is over
   * @throws {DeadlockError} like {@link LockManager.requestSync}
   */
  hold(name: string, options?: HoldSyncOptions | null): NamedToken

  /**
   * Waits without blocking until this thread holds the name. Rejects as {@link LockManager.request} does without
   * calling its callback. Who holds a name by a token learns of a steal by the token alone.
   */
  holdAsync(name: string, options?: HoldOptions | null): Promise<NamedToken>

  /** Takes the name if that needs no waiting; otherwise returns null. */
  tryHold(name: string, options?: { mode?: LockMode | undefined } | null): NamedToken | null

  /**
   * Runs `callback` with all of the names held, or with none: {@link LockManager.request} for several.
   *
   * The names are taken one after the other, in an order that is the same for all requests: so no two of them wait for
   * each other. One may be held while the next is awaited. A timeout (one for all), an abort or a steal gives back all.
   * Rejects as `request`; with a `RangeError` if there are no names; with a `NotSupportedError` for `steal`.
   *
   * @param names an array or another iterable, in any order; a name may be in it twice
   *
   * @example
   * ```js
   * await locks.requestAll(['account 7', 'account 3'], lock => transfer()) // lock.names: ['account 3', 'account 7']
   * ```
   */
  requestAll<T>(names: Names, callback: (lock: MultiLock) => T | PromiseLike<T>): Promise<T>
  requestAll<T>(names: Names, options: MultiLockOptions & Waiting | null | undefined,
    callback: (lock: MultiLock) => T | PromiseLike<T>): Promise<T>
  requestAll<T>(names: Names, options: MultiLockOptions | null | undefined,
    callback: (lock: MultiLock | null) => T | PromiseLike<T>): Promise<T>
  /** For a callback that returns a promise or a value of another type. */
  requestAll<T>(names: Names, callback: (lock: MultiLock) => T): Promise<Settled<T>>
  requestAll<T>(names: Names, options: MultiLockOptions & Waiting | null | undefined,
    callback: (lock: MultiLock) => T): Promise<Settled<T>>
  requestAll<T>(names: Names, options: MultiLockOptions | null | undefined,
    callback: (lock: MultiLock | null) => T): Promise<Settled<T>>

  /** {@link LockManager.requestAll}, blocking. Workers only. Throws like {@link LockManager.requestSync}. */
  requestAllSync<T>(names: Names, callback: (lock: MultiLock) => Synchronous<T>): T
  requestAllSync<T>(names: Names, options: MultiLockSyncOptions & Waiting | null | undefined,
    callback: (lock: MultiLock) => Synchronous<T>): T
  requestAllSync<T>(names: Names, options: MultiLockSyncOptions | null | undefined,
    callback: (lock: MultiLock | null) => Synchronous<T>): T

  /** Blocks until this thread holds all of the names. Workers only. Throws like {@link LockManager.requestAllSync}. */
  holdAll(names: Names, options?: MultiHoldSyncOptions & Waiting | null): MultiToken
  holdAll(names: Names, options: MultiHoldSyncOptions | null): MultiToken | null

  /** Waits without blocking until this thread holds all of the names. Rejects as {@link LockManager.requestAll}. */
  holdAllAsync(names: Names, options?: MultiHoldOptions & Waiting | null): Promise<MultiToken>
  holdAllAsync(names: Names, options: MultiHoldOptions | null): Promise<MultiToken | null>

  /** Lists all holders and waiters of the process, in the order of their requests. */
  query(): Promise<LockManagerSnapshot>
}

/**
 * The locks by name of this process.
 *
 * @example
 * ```js
 * await locks.request('cache', { timeout: 1000 }, () => refresh())
 * ```
 */
export const locks: LockManager

/**
 * A bounded queue of messages between threads, in shared memory.
 *
 * A message is a copy. {@link Queue.take} delivers it at most once. {@link Queue.use} delivers it at least once: if the
 * callback fails, or its thread ends, the message is delivered again, by default before all others. A thread may end at
 * any moment, in any way: a message that was put is delivered, no place is lost, and waiting threads go on.
 *
 * @example
 * ```js
 * const jobs = Queue.create({ capacity: 100, messageSize: 1024 })
 * new Worker(file, { workerData: jobs }) // in the worker: for (const job of new Queue(workerData)) work(job)
 * await jobs.putAsync({ path: 'a.txt' })
 * ```
 */
export class Queue<T = any> {
  /**
   * How many bytes a queue takes.
   *
   * @throws {TypeError} a number is not an integer
   * @throws {RangeError} a number is out of range
   */
  static byteLength(capacity: number, messageSize: number): number
  /**
   * How many bytes a value has as a message; those of a `Uint8Array` are its own. Throws like {@link Queue.tryPut} for
   * that value.
   */
  static sizeOf(value: unknown, format?: QueueFormat): number
  /** Makes an instance in memory of its own; to be posted to other threads, which give its clone to the constructor. */
  static create<Instance extends Queue = Queue>(
    this: new (...args: any[]) => Instance, options: NewOptions & QueueOptions
  ): Queue extends Instance ? Queue : Instance
  /** Makes one whose messages have this type. */
  static create<T = any>(options: NewOptions & QueueOptions): Queue<T>

  /** Of an instance, or the clone that posting one makes. */
  constructor(
    clone: ViewClone & { readonly capacity: number, readonly messageSize: number },
    options?: ViewOptions & { [key in keyof QueueOptions]?: QueueOptions[key] | undefined }
  )
  /** Not allowed: a buffer does not say the capacity. */
  constructor(buffer: { readonly capacity: 'must be given in the options' })
  /**
   * @param options.byteOffset a multiple of 8
   * @throws {TypeError} `buffer` is not a `SharedArrayBuffer` or a clone, a number is not an integer or not the
   *   clone's, or an option is unknown
   * @throws {RangeError} a number is out of range, the queue does not fit, or another thread has made it with other
   *   numbers
   */
  constructor(buffer: SharedBuffer, options: ViewOptions & QueueOptions)

  /** How many messages fit, those in use among them. */
  readonly capacity: number
  /** The bytes of the longest message. */
  readonly messageSize: number
  /** How many messages can be taken now, with those that came back. Of one moment, as `inUse`. */
  readonly length: number
  /** How many messages are in use now. */
  readonly inUse: number
  /** Whether {@link Queue.close} has been called. */
  readonly closed: boolean
  /** Whether it is closed, and no message is left or in use. */
  readonly ended: boolean

  /**
   * Blocks until there is room, and puts a message. Workers only. When it returns, the message is in.
   *
   * @throws {TypeError} on the main thread; `value` is undefined, a lock or a `SharedArrayBuffer`, its buffer is
   *   detached, or `v8.serialize` cannot write it; or an option has a wrong type
   * @throws {RangeError} `value` has more than `messageSize` bytes; nothing was changed
   * @throws {TimeoutError} the time is over
   * @throws {DeadlockError} this thread itself has all messages in use; or without a timeout, this and other threads
   *   that are blocked in such a put
   * @throws {Error} `code` is `'ERR_QUEUE_CLOSED'`: the queue is closed, or was closed meanwhile
   */
  put(value: T, options?: BlockOptions): void
  /** {@link Queue.put} without blocking, in any thread. Calls of one thread that are not awaited keep their order. */
  putAsync(value: T, options?: AwaitOptions): Promise<void>
  /**
   * Puts a message if there is room. False if there is none, if another thread is just putting, or if this thread has a
   * `putAsync` pending. Never waits. Throws like {@link Queue.put}, but no `TimeoutError`, and works on the main
   * thread.
   */
  tryPut(value: T): boolean

  /**
   * Blocks until there is a message, and takes it. Workers only. If this thread ends, messages that it has taken may be
   * lost with it.
   *
   * @returns undefined once the queue has ended: it is closed, and no message is left or in use
   * @throws {TypeError} on the main thread; or an option has a wrong type
   * @throws {TimeoutError} the time is over
   * @throws {DeadlockError} the queue is closed, and all that is left is in use by this thread itself
   * @throws {UnreadableError} this thread cannot read the message, which has been removed
   */
  take(options?: BlockOptions): T | undefined
  /** {@link Queue.take} without blocking, in any thread. */
  takeAsync(options?: AwaitOptions): Promise<T | undefined>
  /**
   * Takes a message if there is one; otherwise, at the end, or while another thread is just taking, undefined. Never
   * waits.
   */
  tryTake(): T | undefined

  /**
   * Blocks until there is a message, and takes what is there then, in one step. Workers only. If this thread ends
   * before it has dealt with them, all of them are lost with it. The batch ends before a message that cannot be read.
   *
   * @param max the most messages: an integer from 1
   * @returns from 1 to `max` messages; an empty array once the queue has ended
   * @throws {TypeError} on the main thread; `max` is not an integer; or an option has a wrong type
   * @throws {RangeError} `max` is less than 1
   * @throws {TimeoutError} the time is over
   * @throws {DeadlockError} the queue is closed, and all that is left is in use by this thread itself
   * @throws {UnreadableError} this thread cannot read the first message, which has been removed
   */
  takeMany(max: number, options?: BlockOptions): T[]
  /** {@link Queue.takeMany} without blocking, in any thread. */
  takeManyAsync(max: number, options?: AwaitOptions): Promise<T[]>
  /**
   * Takes what is there, at most `max` messages; an empty array if there is nothing, or while another thread is just
   * taking. Never waits.
   */
  tryTakeMany(max: number): T[]

  /**
   * Awaits a message, and calls the callback with it. The result is awaited. Only then, and only without an error, is
   * the message removed. If the callback fails, the message goes back and this promise rejects with that error; if the
   * thread ends, it goes back, too.
   *
   * @param options.timeout a bound for the wait only, as the signal
   * @param options.retry where the message of a callback that fails goes: by default `'first'`
   * @returns false if the queue has ended
   * @throws the error of the callback, a {@link TimeoutError}, an {@link UnreadableError}, or the signal's reason
   */
  use(callback: (value: T, delivery: Delivery) => unknown, options?: AwaitOptions & RetryOptions): Promise<boolean>
  /**
   * {@link Queue.use}, blocking: workers only. The callback is synchronous: an async function is a `TypeError` before
   * it begins; if another one returns a promise, the message goes back and this throws a `TypeError`. Throws like
   * {@link Queue.take} and the callback.
   */
  useSync<Result>(
    callback: (value: T, delivery: Delivery) => Synchronous<Result>, options?: BlockOptions & RetryOptions
  ): boolean

  /**
   * Resolves when the queue is idle: nothing waits, nothing is in use, and no put waits for room. An unused queue is
   * idle at once. Others may put again before the code behind `await` runs.
   */
  onIdle(options?: AwaitOptions): Promise<void>
  /**
   * {@link Queue.onIdle}, blocking. Workers only.
   *
   * @throws {TypeError} on the main thread; or an option has a wrong type
   * @throws {TimeoutError} the time is over
   * @throws {DeadlockError} this thread itself has a message in use
   */
  idle(options?: BlockOptions): void

  /**
   * Removes the messages that wait, not those in use. Waiting puts go on. While another thread is inside a step of
   * the queue, a worker blocks; on the main thread this removes nothing, and returns 0.
   *
   * @returns how many messages it has removed
   */
  clear(): number
  /** {@link Queue.clear}, but it awaits its turn while another thread is inside a step. */
  clearAsync(): Promise<number>

  /**
   * No put that begins later succeeds; the messages in it can still be taken. All waiters go on. Any thread may call
   * it, and again.
   *
   * @param options.discard whether the messages that wait are removed. Those in use may end, and do not come back
   * @throws {TypeError} an option is unknown, or has a wrong type
   */
  close(options?: { discard?: boolean | undefined }): void

  /**
   * Takes messages as `for await (const message of queue)` does, until the signal aborts: then it rejects with the
   * signal's reason.
   */
  messages(options?: { signal?: AbortSignalLike | undefined }): MessagesAsync<T>

  /** Takes messages, blocking, until the queue has ended. Workers only. */
  [Symbol.iterator](): IterableIterator<T>
}

/**
 * `for await (const message of queue)` takes messages until the end, if there is `Symbol.asyncIterator`.
 */
export interface Queue<T = any> extends ViewOf<'Queue'>, AsyncIterableIfAny<T> {}

/** The interface that `for await` requires, if the library has it. */
type AsyncIterableIfAny<T> = { [key in AsyncIteratorIfAny]: () => MessagesAsync<T> }

/**
 * The messages of a queue, one after the other. `return` and `throw` end the iteration: promises of `next` that are
 * pending resolve as at the end of the queue, and take no message.
 */
export type MessagesAsync<T> = {
  next(): Promise<IteratorResult<T, undefined>>
  return(value?: unknown): Promise<IteratorResult<T, any>>
  throw(error?: unknown): Promise<IteratorResult<T, any>>
} & AsyncIterableIfAny<T>

/** The error of a thread that cannot read a message of a {@link Queue}, which has been removed. */
export interface UnreadableError extends Error {
  code: 'ERR_QUEUE_UNREADABLE'
  /** Why it cannot be read. */
  cause: unknown
  /** Which delivery of the message this was: 1, 2, … */
  attempt: number
  format: QueueFormat | 'unknown'
  /** The message as it was written: by `v8.serialize`, or the text of `JSON.stringify` in UTF-8. */
  bytes: Uint8Array
}

/**
 * `'clone'`: as by `v8.serialize`. `'json'`: as by `JSON.stringify`, faster for small objects. A `Uint8Array` travels
 * as its bytes with both.
 */
export type QueueFormat = 'clone' | 'json'

export interface QueueOptions {
  /** How many messages fit, those in use among them: 1 to 2**28; the same in every thread. */
  capacity: number
  /** The bytes of the longest message: 0 to 2**28; the same in every thread. */
  messageSize: number
  /**
   * How this instance writes values; by default `'clone'`. Each message says how it was written, so takers need not
   * know.
   */
  format?: QueueFormat | undefined
}

/** The delivery of a message to a callback of {@link Queue.use}. */
export interface Delivery {
  /** Which delivery of the message this is, from 1 on. */
  readonly attempt: number
  /**
   * How many of the deliveries before have ended by the end of their thread, in the callback. So the callback has
   * failed, or put the message back, `attempt - deaths - 1` times.
   */
  readonly deaths: number
  /**
   * Lets the message go back once the callback has ended; `use` still fulfils. The last call counts.
   *
   * @param options.last whether it comes behind all messages that wait then, not before them. It needs no room, and may
   *   be the last of a closed queue
   * @throws {TypeError} an option is unknown, or has a wrong type
   */
  putBack(options?: { last?: boolean | undefined }): void
}

/** Where a message goes whose callback fails: see {@link Delivery.putBack}. */
export interface RetryOptions {
  retry?: 'first' | 'last' | undefined
}

/** A hold or a wait of a thread, as {@link snapshot} lists it. */
export interface Entry {
  /**
   * The class that is held or awaited; `'named'`: a name of {@link locks}; `'wait'`: `Atomics.wait` or `waitAsync`.
   */
  kind: 'AsyncLock' | 'RwLock' | 'Semaphore' | 'Condition' | 'Barrier' | 'Latch' | 'Queue' | 'named' | 'wait'
  /** Of a {@link Queue}: a wait to put, to take, to use or until it is idle, or a message in use. */
  mode?: 'exclusive' | 'shared' | 'permits' | 'put' | 'take' | 'use' | 'idle'
  /** That of a named lock, or the one given to the lock. */
  name?: string
  /** How many permits. */
  amount?: number
  /** The same number for entries of the same word or name. */
  id: number
  threadId: number
  /**
   * The `name` that its Worker was given, where Node tells it: 22.20, 24.6 and later. On older versions: of Workers
   * that an install reaches, if the environment has `ATOMICS_WAITASYNC_STALL`, `ATOMICS_WAITASYNC_DUMP` or
   * `ATOMICS_WAITASYNC_PROFILE`.
   */
  threadName?: string
  /** Whether the thread is blocked; if it waits and is not blocked, a promise is pending. */
  blocked: boolean
  /**
   * How long this has been so; `NaN` if that is not known. Of a hold it is a lower bound, unless stalls are reported:
   * 0 if nobody has awaited the lock.
   */
  milliseconds: number
  /**
   * Of a hold, if `ATOMICS_WAITASYNC_STALL` is set: the stack of the call that took it, the innermost frame first.
   */
  taken?: string
  /** Of a wait, with the same setting: the stack of the call that waits. */
  called?: string
  /** Of a hold, with the same setting: its token has been collected, so no code can unlock it by that. */
  collected?: true
  /**
   * Of a name in front of a lock of several processes (`atomics-waitasync/processes`) for which its thread still waits:
   * who has that lock, for people. If neither `ATOMICS_WAITASYNC_STALL` nor `ATOMICS_WAITASYNC_DUMP` is set, it is
   * `'another process'`. Of a wait for a lock in memory that processes share: the other process that has it.
   */
  awaits?: string
  /**
   * Of a wait for a notification, or for permits that nobody holds: the last threads that have used the same memory
   * and have ended, the latest first; at most three.
   */
  ended?: EndedThread[]
}

/** A thread that has ended. */
export interface EndedThread {
  threadId: number
  /** As that of an {@link Entry}. */
  threadName?: string
  /**
   * How it ended: by `terminate()`, by `process.exit()`, by an exception that nobody has caught, or as it had nothing
   * left to do. Known if the environment has `ATOMICS_WAITASYNC_STALL` or `ATOMICS_WAITASYNC_DUMP`.
   */
  how?: 'terminate' | 'exit' | 'exception' | 'end'
  /** How long ago. */
  milliseconds: number
}

/**
 * All holds and waits of this process by means of the package. No thread is stopped for it: each word's entries are
 * right for one moment, not all for the same one. The entries of a cycle were all there at one moment.
 *
 * @example
 * ```js
 * const { held, waiting } = snapshot()
 * for (const { kind, threadId, milliseconds } of held) console.log(kind, threadId, milliseconds)
 * ```
 */
export function snapshot(): Snapshot

/** The result of {@link snapshot}. */
export interface Snapshot {
  held: Entry[]
  /** The waiters of one word are in the order of its queue. */
  waiting: Entry[]
  cycles: CycleLink[][]
}

/**
 * A snapshot as a table for people: cycles first, then each lock with its holders and waiters.
 * `ATOMICS_WAITASYNC_DUMP=SIGQUIT` in the environment has that signal write the same text to the standard error.
 *
 * @throws {TypeError} if it is not of this shape; one that was sent as JSON is
 */
export function formatSnapshot(
  snapshot: { held: readonly Entry[], waiting: readonly Entry[], cycles: readonly (readonly CycleLink[])[] }
): string

/**
 * The message of the channel `atomics-waitasync:stall` of `diagnostics_channel`: waits for a lock that have lasted
 * longer than `ATOMICS_WAITASYNC_STALL` milliseconds.
 */
export interface StallMessage {
  /** The wait; of several, that of the longest. */
  entry: Entry
  /** How many more waits for the lock were found by the same look. */
  more: number
  /** Its holders. */
  holders: Entry[]
  /** If it is on a cycle: threads that have waited for one another for longer than that number. */
  cycle?: CycleLink[]
  /** Of a wait for a lock of several processes: who has that, as `query()` tells it; null if the engine does not. */
  process?: object | null
  /** The thread that waits: this one or, in the main thread, also one that is blocked. */
  threadId: number
}

/**
 * A thread or task of a cycle: it waits for the hold of the next one, the last for that of the first.
 */
export interface CycleLink extends DeadlockLink {
  /** Whether the thread is blocked in this wait. If not, only a promise of it waits, and its other tasks may go on. */
  blocked: boolean
  /**
   * The same for all links of a cycle: whether all its threads are blocked. A cycle through promises is probable, also
   * that of tasks of one thread, which is listed if stalls are reported (`ATOMICS_WAITASYNC_STALL`).
   */
  certain: boolean
}
