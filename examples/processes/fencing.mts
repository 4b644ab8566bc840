// A process is suspended with a lock for longer than its lease. Then it writes, and is refused by its token.
//
//   REDIS_URL=redis://127.0.0.1:6379 node examples/processes/fencing.mts        (not on Windows, which has no SIGSTOP)

import { fork } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout } from 'node:timers/promises'
import { processLocks, redis, type ProcessLock } from 'atomics-waitasync/processes'
import { Redis } from 'ioredis'

const LEASE = 1500 // milliseconds
const [who, file = path.join(os.tmpdir(), `fencing-${process.pid}.db`)] = process.argv.slice(2)
const say = (text: string) => console.log(`${who}: ${text}`)

/** Writes, but only with the latest token, or a later one. */
function write (balance: number, { token }: ProcessLock) {
  const database = new DatabaseSync(file)
  const update = database.prepare('UPDATE account SET balance = ?, token = ? WHERE token <= ?')
  const { changes } = update.run(balance, token, token)
  database.close()
  say(`writes ${balance}: ${changes === 1 ? 'done' : 'refused'}`)
}

/** Runs the callback with the lock, in a process of its own. */
async function withLock (callback: (lock: ProcessLock) => unknown) {
  const client = new Redis(process.env.REDIS_URL ?? 'redis://127.0.0.1:6379', { lazyConnect: true })
  const locks = processLocks(redis(client, { lease: LEASE, prefix: file }))
  await locks.request('account', callback).then(() => say('has given back the lock'), error => say(error.code ?? error))
  await locks.close()
  if (process.connected) process.disconnect!()
}

if (who === 'slow') {
  await withLock(async (lock) => {
    say('has the lock, and is suspended')
    await new Promise(resolve => process.send!('suspended', resolve))
    process.kill(process.pid, 'SIGSTOP')
    say(`goes on; its signal is aborted: ${lock.signal.aborted}; the lock is lost: ${lock.isLost}`)
    write(50, lock)
  })
} else if (who === 'quick') {
  await withLock((lock) => {
    say(`has the lock; the last holder died or lost it: ${lock.ownerDied}`)
    write(90, lock)
  })
} else {
  const database = new DatabaseSync(file)
  database.exec('CREATE TABLE account (balance INTEGER, token INTEGER); INSERT INTO account VALUES (100, 0)')
  const start = (name: string) => fork(import.meta.filename, [name, file])
  const end = (child: ReturnType<typeof start>) => new Promise(resolve => child.on('exit', resolve))

  const slow = start('slow')
  // A process that is suspended does not end with this one.
  process.on('exit', () => {
    slow.kill('SIGKILL')
    fs.rmSync(file)
  })
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1))
  await new Promise((resolve, reject) => {
    slow.on('message', resolve).on('exit', () => reject(new Error('the process has ended without the lock')))
  })
  await end(start('quick'))
  await setTimeout(LEASE)
  slow.kill('SIGCONT')
  await end(slow)
  console.log('balance:', database.prepare('SELECT balance FROM account').get()!.balance)
  database.close()
}
