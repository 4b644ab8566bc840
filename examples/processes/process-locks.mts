import { AsyncLocalStorage } from 'node:async_hooks'
import { locks } from 'atomics-waitasync'

/**
 * Locks by name for all threads of all processes of an engine.
 *
 * - The named lock of atomics-waitasync stands in front: one thread of a process at a time has or asks for the engine's
 *   exclusive lock of a name. Engines rely on it.
 * - Requests of one thread run as a batch under one lock of the engine: up to `batch` of them, none of which begins
 *   later than `batchTime` milliseconds after the first. Then it is the turn of other threads and processes.
 * - A promise fulfils only once the engine has said, after the end of the callback, that the lock was still held.
 * - It rejects as soon as the loss of the lock is noticed, and no other callback begins under that lock. The one that
 *   runs, runs on: its writes have to carry the token. The next holder has `ownerDied`.
 * - Every error is a rejection of the promise that `request` returned.
 */

export type Mode = 'exclusive' | 'shared'

/** What a callback gets. */
export interface ProcessLock {
  readonly name: string
  readonly mode: Mode
  /** Grows with every exclusive lock of this name that the engine grants. */
  readonly token: number
  /** Whether the last exclusive holder died or lost the lock: the protected state may be half changed. */
  readonly ownerDied: boolean
  /** Aborts when the loss of the lock is noticed; its reason is the error of the promise. */
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

/**
 * A lock of the engine. `held` and `release` give false, or reject, if it is no longer ours. `lost` aborts when that is
 * noticed.
 */
export interface Grant {
  readonly token: number
  readonly ownerDied: boolean
  readonly lost: AbortSignal
  held (): Promise<boolean>
  /** Called once, also after a loss. If `died`, the next holder has `ownerDied`. */
  release (died: boolean): Promise<boolean>
}

interface Claim {
  callback: (lock: ProcessLock) => unknown
  begin: () => void
  resolve: (value: any) => void
  reject: (error: unknown) => void
}

/** What one thread wants of a name in a mode. */
interface Line {
  name: string
  mode: Mode
  claims: Set<Claim>
  order: Iterator<Claim>
  asking?: AbortController | undefined
  batch?: ReturnType<typeof batchOf> | undefined
}

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
      const late = () => giveUp(failure('ERR_TIMEOUT', `Timed out after ${timeout} ms waiting for ${show(name)}`))
      const timer = timeout <= LONGEST_TIMER ? setTimeout(late, Math.max(0, timeout)) : undefined
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
      lines.set(key, { name, mode, claims, order: claims.values() })
    }
    return lines.get(key)!
  }

  /** Sees to it that a lock is asked for if claims wait. */
  function serve (line: Line) {
    if (line.mode === 'shared') line.batch?.join()
    if (line.asking !== undefined || (line.mode === 'exclusive' && line.batch !== undefined)) return
    if (line.claims.size === 0) return forget(line)
    line.asking = new AbortController()
    const done = ask(line, line.asking).finally(() => asked.delete(done))
    asked.add(done)
  }

  function forget (line: Line) {
    const key = `${line.mode} ${line.name}`
    if (line.batch === undefined && lines.get(key) === line) lines.delete(key)
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
      const why = (error as Error).message || (error as { code: string }).code
      const unavailable = failure('ERR_LOCK_UNAVAILABLE', `No lock for ${show(name)}: ${why}`, error)
      for (let claim = shift(line); claim !== undefined; claim = shift(line)) claim.reject(unavailable)
    }
    serve(line)
  }

  /** Runs a batch under a lock, and gives the lock back. Never rejects. */
  async function run (line: Line, grant: Grant) {
    const mine = batchOf({ line, grant, most: batch, late: performance.now() + batchTime })
    line.batch = mine
    line.asking = undefined
    serve(line)
    await mine.run()
    if (line.batch === mine) line.batch = undefined
  }

  async function close () {
    closed ??= new DOMException('The locks have been closed', 'AbortError')
    for (const giveUp of leave) giveUp(closed)
    await Promise.all(asked)
    await engine.close()
  }

  return { request, close }
}

/** Takes the first claim. One iterator for all: a new one would pass by all that have left. */
function shift (line: Line) {
  let { value: first } = line.order.next()
  if (first === undefined) {
    line.order = line.claims.values()
    first = line.order.next().value
  }
  if (first === undefined) return undefined
  line.claims.delete(first)
  first.begin()
  return first as Claim
}

/**
 * Callbacks of a thread under one lock of the engine. What one gives counts once the engine has said that the lock was
 * held after it.
 */
function batchOf ({ line, grant, most, late }: { line: Line, grant: Grant, most: number, late: number }) {
  const { name, mode } = line
  const loser = new AbortController()
  const { signal } = loser
  const lost = new Promise<never>((resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
  lost.catch(() => {})
  const running = new Set<Promise<void>>()
  let { ownerDied } = grant
  let begun = 0
  let isOver = false
  let isAsking = false
  const unconfirmed: { claim: Claim, value: unknown }[] = []

  function lose (cause?: unknown) {
    loser.abort(failure('ERR_LOCK_LOST', `The lock of ${show(name)} was lost before the end of its callback`, cause))
  }

  const heed = () => lose(grant.lost.reason)
  grant.lost.addEventListener('abort', heed)
  if (grant.lost.aborted) heed()

  /** Never rejects. */
  async function run () {
    if (mode === 'exclusive') await runInTurn()
    else for (const each of running) await each // also those that join meanwhile
    isOver = true
    await confirm(() => grant.release(ownerDied || signal.aborted))
    grant.lost.removeEventListener('abort', heed)
  }

  async function runInTurn () {
    for (let claim = next(); claim !== undefined; claim = next()) {
      ask()
      await runOne(claim)
    }
  }

  /** Begins the requests that wait for a shared lock. */
  function join () {
    for (let claim = next(); claim !== undefined; claim = next()) {
      const done = runOne(claim).then(() => {
        running.delete(done)
        if (running.size > 0) ask()
      })
      running.add(done)
    }
  }

  function next () {
    if (isOver || signal.aborted || begun >= most || (begun > 0 && performance.now() > late)) return undefined
    const claim = shift(line)
    if (claim !== undefined) begun++
    return claim
  }

  async function runOne (claim: Claim) {
    try {
      const lock = { name, mode, token: grant.token, ownerDied, signal }
      const value = await Promise.race([lost, call(claim.callback, lock)])
      // One that was told of the death and ended well has repaired the protected state.
      ownerDied &&= mode === 'shared'
      unconfirmed.push({ claim, value })
    } catch (error) {
      claim.reject(error)
    }
  }

  /** Asks for the results that are there; for further ones, once that is answered. */
  async function ask () {
    if (isAsking || unconfirmed.length === 0) return
    isAsking = true
    await confirm(() => grant.held())
    isAsking = false
    await ask()
  }

  async function confirm (isHeld: () => Promise<boolean>) {
    const results = unconfirmed.splice(0)
    try {
      if (!await Promise.race([lost, isHeld()])) lose()
    } catch (error) {
      lose(error)
    }
    for (const { claim, value } of results) {
      if (signal.aborted) claim.reject(signal.reason)
      else claim.resolve(value)
    }
  }

  return { join, run }
}

/** Calls it later: its request has to return first. */
async function call (callback: Claim['callback'], lock: ProcessLock) {
  await null
  return callback(lock)
}

const LONGEST_TIMER = 2 ** 31 - 1
const NAMES = {
  ERR_TIMEOUT: 'TimeoutError',
  ERR_LOCK_LOST: 'LockLostError',
  ERR_LOCK_UNAVAILABLE: 'LockUnavailableError'
}

const show = (name: string) => JSON.stringify(name.length > 64 ? `${name.slice(0, 64)}…` : name)

function failure (code: keyof typeof NAMES, message: string, cause?: unknown) {
  return Object.assign(new Error(message, { cause }), { name: NAMES[code], code })
}

function check (name: unknown, mode: unknown, timeout: unknown, callback: unknown) {
  if (typeof name !== 'string') throw new TypeError(`name is ${typeof name}: it must be a string`)
  if (mode !== 'exclusive' && mode !== 'shared') {
    throw new TypeError(`mode is ${String(mode)}: it must be 'exclusive' or 'shared'`)
  }
  if (typeof timeout !== 'number' || Number.isNaN(timeout)) {
    throw new TypeError(`timeout is ${String(timeout)}: it must be a number of milliseconds`)
  }
  if (typeof callback !== 'function') throw new TypeError(`callback is ${typeof callback}: it must be a function`)
}
