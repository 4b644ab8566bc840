import { createHash } from 'node:crypto'
import fs from 'node:fs'
import path from 'node:path'
import { setTimeout } from 'node:timers/promises'
import type { Engine, Grant, Mode } from './process-locks.mts'

const POLL = 5 // milliseconds

/** Makes a key of fixed length for any name: also for a long one, or invalid Unicode. */
export const keyOf = (name: string): Buffer => createHash('sha256').update(Buffer.from(name, 'utf16le')).digest()

/** Tries every so many milliseconds until there is a result: give or take a half. */
export async function poll<T> (
  milliseconds: number, signal: AbortSignal, attempt: () => T | undefined | Promise<T | undefined>
): Promise<T> {
  for (;;) {
    signal.throwIfAborted()
    const result = await attempt()
    if (result !== undefined) return result
    await setTimeout(milliseconds * (0.5 + Math.random()), undefined, { signal })
  }
}

/** Locks by files of a folder: `attempt` takes that of a file unless another one has it. */
export function inFolder (
  kind: string, folder: string, attempt: (file: string, mode: Mode) => Grant | undefined
): Engine {
  fs.mkdirSync(folder, { recursive: true })
  return {
    id: `${kind} ${path.resolve(folder)}`,
    modes: ['exclusive', 'shared'],
    acquire (name, mode, signal) {
      const file = path.join(folder, `${keyOf(name).toString('hex')}.lock`)
      return poll(POLL, signal, () => attempt(file, mode))
    },
    async close () {}
  }
}
