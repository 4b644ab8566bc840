import { isMainThread, Worker } from 'worker_threads'
import { Lock, locks, LockInfo, snapshot } from 'atomics-waitasync'

let cache: string | undefined

async function refresh(lock: Lock): Promise<string> {
  if (lock.ownerDied) cache = undefined
  return lock.mode
}

async function read(signal?: AbortSignal): Promise<string> {
  return locks.request('cache', { mode: 'shared', signal, timeout: 1000 }, () => cache ?? 'nothing')
}

async function main() {
  new Worker(__filename)
  cache = await locks.request('cache', refresh)
  const isFree = await locks.request('cache', { ifAvailable: true }, lock => lock !== null)
  const { held, pending } = await locks.query()
  const names = [...held, ...pending].map((info: LockInfo) => info.name)
  console.log(await read(), isFree, names.join(), snapshot().waiting.length)
}

if (isMainThread) void main()
else console.log(locks.requestSync('cache', { timeout: 50 }, lock => lock.name))
