// Starts the given server, and prints its answer to /api/lock.

import { createRequire } from 'node:module'
import { createServer } from 'node:net'
import { once } from 'node:events'
import { setTimeout } from 'node:timers/promises'

const probe = createServer().listen(0, '127.0.0.1')
await once(probe, 'listening')
const { port } = probe.address()
await new Promise(resolve => probe.close(resolve))

Object.assign(process.env, { PORT: String(port), HOSTNAME: '127.0.0.1' })
const { log } = console
// The server's own messages.
console.log = () => {}
createRequire(import.meta.url)(process.argv[2])

let answer
while (answer === undefined) {
  await setTimeout(100)
  answer = await fetch(`http://127.0.0.1:${port}/api/lock`).then(response => response.text(), () => undefined)
}
log(answer)
process.exit()
