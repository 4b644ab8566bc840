import { AsyncLocalStorage } from 'node:async_hooks'
import { locks } from 'atomics-waitasync'

/**
 * Locks by name for the threads of all processes that use the same engine.
 *
 * - The named lock of atomics-waitasync stands in front: one thread of a process at a time has or asks for the engine's exclusive lock of
 *   a name. Engines rely on it.
 * - Requests of one thread run as a batch under one lock of the engine: up to `batch` of them, none of which begins later than
 *   `batchTime` milliseconds after the first. Then it is the turn of other threads and processes.
 * - A promise fulfils only once the engine has said, after the end of the callback, that the lock was still held.
 * - It rejects as soon as the loss of the lock is noticed. The callback runs on: what it writes has to carry the token.
 * - Every error is a rejection of the promise that `request` returned.
 */

export type Mode = 'exclusive' | 'shared'

/** What a callback gets. */
export interface ProcessLock {
  readonly name: string
  readonly mode: Mode
  /** Grows with every exclusive lock of this name that the engine grants. */
  readonly token: number
  /** Whether the last exclusive holder died or lost the lock: what it protects may be half changed. */
  readonly ownerDied: boolean
  /** Aborts when the loss of the lock is noticed. */
  readonly signal: AbortSignal
}

/** `signal` and `timeout` (milliseconds) end the wait. They have no effect on a callback that has begun. */
export interface RequestOptions { mode?: Mode, signal?: AbortSignal, timeout?: number }

export interface ProcessLocks {
  request<T> (name: string, options: RequestOptions, callback: (lock: ProcessLock) => T | PromiseLike<T>): Promise<T>
  /** Rejects the requests that wait, waits for the callbacks that run, and closes the engine. */
  close (): Promise<void>
}

/** What keeps locks for several processes. */
export interface Engine {
  /** The same name under two ids is two locks. */
  readonly id: string
  readonly modes: readonly Mode[]
  /** Waits for a lock. After an abort it rejects and leaves nothing behind, or gives the lock. */
  acquire (name: string, mode: Mode, signal: AbortSignal): Promise<Grant>
  close (): Promise<void>
}

/** A lock of the engine. `held` and `release` give false, or reject, if it is no longer ours. */
export interface Grant {
  readonly token: number
  readonly ownerDied: boolean
  readonly lost: AbortSignal
  held (): Promise<boolean>
  /** Called once, also after a loss. If `died`, the next holder has `ownerDied`. */
  release (died: boolean): Promise<boolean>
}

interface Claim { callback: (lock: ProcessLock) => unknown, begin: () => void, resolve: (value: any) => void, reject: (error: unknown) => void }

/** What one thread wants of a name in a mode. `join`: begins claims under the shared lock that it holds. */
interface Line { name: string, mode: Mode, claims: Set<Claim>, order: Iterator<Claim>, asking?: AbortController | undefined, isBusy: boolean, join?: (() => void) | undefined }

export function processLocks (engine: Engine, { batch = 32, batchTime = 50 } = {}): ProcessLocks {
  if (!(batch >= 1)) throw new RangeError(`batch is ${batch}: it must be 1 at least`)
  const lines = new Map<string, Line>()
  const leave = new Set<(reason: unknown) => void>()
  const asked = new Set<Promise<void>>()
  let closed: Error | undefined

  function request<T> (name: string, options: RequestOptions, callback: (lock: ProcessLock) => T | PromiseLike<T>) {
    return new Promise<T>((resolve, reject) => {
      const { mode = 'exclusive', signal, timeout = Infinity } = options
      check(name, mode, timeout, callback)
      if (!engine.modes.includes(mode)) throw new DOMException(`${engine.id} has no ${mode} locks`, 'NotSupportedError')
      if (closed !== undefined) throw closed
      signal?.throwIfAborted()

      const line = lineOf(name, mode)
      const giveUp = (reason: unknown) => {
        claim.begin()
        line.claims.delete(claim)
        reject(reason)
        if (line.claims.size === 0) stopAsking(line)
      }
      const abort = () => giveUp(signal!.reason)
      const timer = timeout <= LONGEST_TIMER
        ? setTimeout(() => giveUp(failure('ERR_TIMEOUT', `Timed out after ${timeout} ms waiting for ${show(name)}`)), Math.max(0, timeout))
        : undefined
      const begin = () => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', abort)
        leave.delete(giveUp)
      }
      const claim = { callback: AsyncLocalStorage.bind(callback), begin, resolve, reject }
      signal?.addEventListener('abort', abort)
      leave.add(giveUp)
      line.claims.add(claim)
      serve(line)
    })
  }

  function lineOf (name: string, mode: Mode) {
    const key = `${mode} ${name}`
    if (!lines.has(key)) {
      const claims = new Set<Claim>()
      lines.set(key, { name, mode, claims, order: claims.values(), isBusy: false })
    }
    return lines.get(key)!
  }

  /** Takes the first claim. One iterator for all: a new one would pass by all that have left. */
  function shift (line: Line) {
    let { value: first } = line.order.next()
    if (first === undefined) {
      line.order = line.claims.values()
      first = line.order.next().value
    }
    if (first !== undefined) line.claims.delete(first)
    return first as Claim | undefined
  }

  /** Sees to it that a lock is asked for if claims wait. */
  function serve (line: Line) {
    line.join?.()
    if (line.asking !== undefined || line.isBusy) return
    if (line.claims.size === 0) return forget(line)
    line.asking = new AbortController()
    const done = ask(line, line.asking).finally(() => asked.delete(done))
    asked.add(done)
  }

  function forget (line: Line) {
    const key = `${line.mode} ${line.name}`
    if (line.join === undefined && lines.get(key) === line) lines.delete(key)
  }

  function stopAsking (line: Line) {
    line.asking?.abort()
    line.asking = undefined
    serve(line)
  }

  /** Gets the lock and runs a batch. Never rejects. */
  async function ask (line: Line, asking: AbortController) {
    const { name, mode } = line
    try {
      await locks.request(`${engine.id}: ${name}`, { mode, signal: asking.signal }, async () => {
        const grant = await engine.acquire(name, mode, asking.signal)
        if (asking.signal.aborted) await grant.release(grant.ownerDied)
        else await run(line, grant)
      })
    } catch (error) {
      if (asking.signal.aborted) return
      line.asking = undefined
      const unavailable = failure('ERR_LOCK_UNAVAILABLE', `No lock for ${show(name)}: ${(error as Error).message || (error as { code: string }).code}`, error)
      for (let claim = shift(line); claim !== undefined; claim = shift(line)) {
        claim.begin()
        claim.reject(unavailable)
      }
    }
    serve(line)
  }

  /** Runs a batch under a lock and gives the lock back. Never rejects. */
  async function run (line: Line, grant: Grant) {
    const { name, mode } = line
    const end = performance.now() + batchTime
    const lost = new Promise<undefined>(resolve => grant.lost.addEventListener('abort', () => resolve(undefined), { once: true }))
    const results = new Results(grant, lost)
    let { ownerDied } = grant
    let begun = 0

    function next () {
      const isOver = begun === batch || grant.lost.aborted || (begun > 0 && performance.now() > end)
      const claim = isOver ? undefined : shift(line)
      if (claim === undefined) return undefined
      begun++
      claim.begin()
      return claim
    }

    async function runOne ({ callback, resolve, reject }: Claim) {
      const outcome = await Promise.race([lost, outcomeOf(callback, { name, mode, token: grant.token, ownerDied, signal: grant.lost })])
      if (outcome === undefined) reject(lockLost(name))
      else if ('error' in outcome) reject(outcome.error)
      else {
        // A callback that was told of the death and ended well has repaired what the lock protects.
        ownerDied &&= mode === 'shared'
        results.add(isOurs => isOurs ? resolve(outcome.value) : reject(lockLost(name)))
      }
    }

    line.asking = undefined
    if (mode === 'exclusive') {
      line.isBusy = true
      for (let claim = next(); claim !== undefined; claim = next()) {
        results.ask()
        await runOne(claim)
      }
    } else {
      const ends: Promise<void>[] = []
      let active = 0
      const begin = async (claim: Claim) => {
        active++
        await runOne(claim)
        if (--active > 0) results.ask()
      }
      const join = () => { for (let claim = next(); claim !== undefined; claim = next()) ends.push(begin(claim)) }
      line.join = join
      serve(line)
      for (const each of ends) await each
      if (line.join === join) line.join = undefined
    }
    await results.end(ownerDied)
    line.isBusy = false
  }

  async function close () {
    closed ??= new DOMException('The locks have been closed', 'AbortError')
    for (const giveUp of leave) giveUp(closed)
    await Promise.all(asked)
    await engine.close()
  }

  return { request, close }
}

/** Results of callbacks: each counts once the engine has said that the lock was held after it. */
class Results {
  readonly #grant: Grant
  readonly #lost: Promise<undefined>
  #settle: ((isOurs: boolean) => void)[] = []
  #isAsking = false

  constructor (grant: Grant, lost: Promise<undefined>) {
    this.#grant = grant
    this.#lost = lost
  }

  add (settle: (isOurs: boolean) => void) { this.#settle.push(settle) }

  /** Asks for those that are there; further ones, once that is answered. */
  async ask () {
    if (this.#isAsking || this.#settle.length === 0) return
    this.#isAsking = true
    await this.#answer(() => this.#grant.held())
    this.#isAsking = false
    await this.ask()
  }

  end (died: boolean) { return this.#answer(() => this.#grant.release(died)) }

  async #answer (question: () => Promise<boolean>) {
    const settle = this.#settle.splice(0)
    const isOurs = await Promise.race([question().catch(() => false), this.#lost])
    for (const each of settle) each(isOurs === true)
  }
}

/** What a callback gives or throws. Never rejects: a callback that runs on after a loss does no harm. */
async function outcomeOf (callback: Claim['callback'], lock: ProcessLock): Promise<{ value: unknown } | { error: unknown }> {
  await null // its request has to return first
  try {
    return { value: await callback(lock) }
  } catch (error) {
    return { error }
  }
}

const LONGEST_TIMER = 2 ** 31 - 1
const NAMES = { ERR_TIMEOUT: 'TimeoutError', ERR_LOCK_LOST: 'LockLostError', ERR_LOCK_UNAVAILABLE: 'LockUnavailableError' }

const show = (name: string) => JSON.stringify(name.length > 64 ? `${name.slice(0, 64)}…` : name)

function failure (code: keyof typeof NAMES, message: string, cause?: unknown) {
  return Object.assign(new Error(message, { cause }), { name: NAMES[code], code })
}

const lockLost = (name: string) => failure('ERR_LOCK_LOST', `The lock of ${show(name)} was lost before the end of its callback`)

function check (name: unknown, mode: unknown, timeout: unknown, callback: unknown) {
  if (typeof name !== 'string') throw new TypeError(`name is ${typeof name}: it must be a string`)
  if (mode !== 'exclusive' && mode !== 'shared') throw new TypeError(`mode is ${String(mode)}: it must be 'exclusive' or 'shared'`)
  if (typeof timeout !== 'number' || Number.isNaN(timeout)) throw new TypeError(`timeout is ${String(timeout)}: it must be a number of milliseconds`)
  if (typeof callback !== 'function') throw new TypeError(`callback is ${typeof callback}: it must be a function`)
}
