import { AsyncLock } from 'atomics-waitasync'

export default async function handler (_, response) {
  const lock = new AsyncLock(new SharedArrayBuffer(4))
  response.end(await lock.executeLocked(() => 'passed'))
}
