// Libraries with Symbol.dispose: tokens release at the end of a block.
// needs: typescript >= 5.2, lib >= esnext

import { AsyncLock, locks } from 'atomics-waitasync'

const lock = new AsyncLock(new SharedArrayBuffer(AsyncLock.byteLength))

async function use (): Promise<void> {
  using token = await lock.lockAsync()
  using maybe = lock.tryLock()
  using name = await locks.holdAsync('name')
  const disposable: Disposable = token
  const nothing: void = token[Symbol.dispose]()
  // @ts-expect-error the lock itself is no token
  using wrong = lock
}

import { Queue } from 'atomics-waitasync'

export async function takes(queue: Queue<{ path: string }>): Promise<void> {
  for await (const { path } of queue) path.length
}
