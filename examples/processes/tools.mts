import { createHash } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'

/** A key of fixed length for any name, also for one that is long or no valid Unicode. */
export const keyOf = (name: string): Buffer => createHash('sha256').update(Buffer.from(name, 'utf16le')).digest()

/** Tries every so many milliseconds, give or take a half, until there is a result. */
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
