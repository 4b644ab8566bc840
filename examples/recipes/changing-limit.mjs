import { Semaphore } from 'atomics-waitasync'

const memory = new SharedArrayBuffer(8) // post it to the workers: they count, and change the limit, too
const most = new Int32Array(memory, 4)

const limit = () => new Semaphore(memory, { permits: Atomics.load(most, 0) })

Atomics.store(most, 0, 4)
const tokens = [1, 2, 3].map(() => limit().tryHold())
Atomics.store(most, 0, 2) // one too many is held now, and comes back in its own time
console.log('changing limit:', limit().available, limit().tryHold())
const next = limit().holdAsync()
for (const token of tokens) token.unlock()
const token = await next
token.unlock()
Atomics.store(most, 0, 6)
console.log('changing limit:', limit().available)
