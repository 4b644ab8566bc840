// A thread that requests process locks and says what becomes of them: the main thread of a process of team.js, or a
// Worker of it.
//
// argv[2]: JSON `{ home, module, args, options }`: the engine is what the function `module` of `<home>/<module>.mts`
// gives for `args`. Anything that happens outside of a promise of a request is said as `outside`.

import fs from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { Worker, isMainThread, parentPort, threadId, workerData } from 'node:worker_threads'

const channel = isMainThread ? process : parentPort
const say = isMainThread ? message => process.send(message) : message => parentPort.postMessage(message)
const description = isMainThread ? JSON.parse(process.argv[2]) : workerData
const { home, module, args, options } = description

process.on('unhandledRejection', error => say({ event: 'outside', error: String(error) }))
process.on('uncaughtException', error => say({ event: 'outside', error: String(error) }))
process.on('warning', ({ name, message }) => {
  if (name !== 'ExperimentalWarning') say({ event: 'outside', error: `${name}: ${message}` })
})
if (isMainThread) process.on('disconnect', () => process.exit(1))

const load = name => import(pathToFileURL(path.join(home, `${name}.mts`)))
const { processLocks } = await load('process-locks')
const { [module]: engineOf } = await load(module)
const engine = engineOf(...args)
const locks = processLocks(asking(engine), options)

const finishes = new Map() // of callbacks that run
const controllers = new Map() // of requests with a signal
const workers = []

/** The engine, with a message about each wait that it is asked for. */
function asking (engine) {
  const acquire = (name, ...rest) => {
    say({ event: 'asked', name: name.slice(0, 100) })
    return engine.acquire(name, ...rest)
  }
  return { ...engine, acquire }
}

/** By engine: `left` counts what there is of locks and waits, `steal` takes all locks away from their holders. */
const insides = {
  sqlite: {
    left: () => 0,
    steal (folder) {
      for (const file of fs.readdirSync(folder)) fs.unlinkSync(path.join(folder, file))
    }
  },
  postgresql: {
    left: (config) =>
      asPostgres(config, "SELECT count(*)::int AS number FROM pg_locks WHERE locktype = 'advisory'").then(
        ({ rows }) => rows[0].number
      ),
    steal: (config) => asPostgres(config, "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'")
  },
  redis: {
    left: (url) => asRedis(url, async (client) => (await client.keys('locks:*:lock')).length),
    steal: (url) => asRedis(url, async (client) => client.del(await client.keys('locks:*:lock')))
  },
  etcd: {
    left: async (url) => (await leasesOf(url)).length,
    async steal (url) {
      for (const { ID } of await leasesOf(url)) await callEtcd(url, '/v3/lease/revoke', { ID })
    }
  }
}
insides.files = insides.sqlite

const clientOf = name => createRequire(path.join(home, 'package.json'))(name)

async function asPostgres (config, query) {
  const client = new (clientOf('pg').Client)(config)
  await client.connect()
  return client.query(query).finally(() => client.end())
}

function asRedis (url, action) {
  const client = new (clientOf('ioredis').Redis)(url)
  return action(client).finally(() => client.disconnect())
}

const callEtcd = async (url, path, body) =>
  (await fetch(new URL(path, url), { method: 'POST', body: JSON.stringify(body) })).json()
const leasesOf = async url => (await callEtcd(url, '/v3/lease/leases', {})).leases ?? []

const told = (error) => ({
  name: error.name,
  code: error.code,
  message: error.message,
  cause: error.cause && String(error.cause)
})

const actions = {
  /** `thread`: a Worker's number; the main thread's requests have none. */
  async request ({ id, name, options, isEndless }) {
    const controller = new AbortController()
    controllers.set(id, controller)
    const callback = lock => {
      lock.signal.addEventListener('abort', () => say({ id, event: 'lost' }))
      say({ id, event: 'granted', token: lock.token, ownerDied: lock.ownerDied, mode: lock.mode })
      return isEndless
        ? new Promise(() => {})
        : new Promise((resolve, reject) => finishes.set(id, { resolve, reject, lock }))
    }
    try {
      say({
        id,
        event: 'fulfilled',
        value: await locks.request(name, { ...options, signal: controller.signal }, callback)
      })
    } catch (error) {
      say({ id, event: 'rejected', error: told(error) })
    }
  },
  finish ({ id, value }) { finishes.get(id).resolve(value) },
  throw ({ id }) { finishes.get(id).reject(new Error('the callback failed')) },
  abort ({ id }) { controllers.get(id).abort(new Error('enough')) },
  /** Writes with the token of a lock, as one should: refused to an older one. */
  async write ({ id, resource, value }) {
    const { lock } = finishes.get(id)
    const { DatabaseSync } = await import('node:sqlite')
    const database = new DatabaseSync(resource, { timeout: 5000 })
    database.exec('CREATE TABLE IF NOT EXISTS account (id INTEGER PRIMARY KEY, value TEXT, token INTEGER)')
    database.exec('INSERT OR IGNORE INTO account VALUES (1, NULL, 0)')
    const { changes } = database
      .prepare('UPDATE account SET value = ?, token = ? WHERE token <= ?')
      .run(value, lock.token, lock.token)
    database.close()
    say({ id, event: 'written', isAccepted: changes === 1, isAborted: lock.signal.aborted })
  },
  /** Increments a counter in a file that nothing else protects, and checks that tokens never go back. */
  async count ({ id, name, file, rounds }) {
    const increment = async ({ token }) => {
      const [count, last] = fs.readFileSync(file, 'utf8').split(' ').map(Number)
      await new Promise(setImmediate)
      fs.writeFileSync(file, `${count + 1} ${token}`)
      if (token < last) throw new Error(`token ${token} after ${last}`)
    }
    const results = await Promise.allSettled(Array.from({ length: rounds }, () => locks.request(name, {}, increment)))
    say({
      id,
      event: 'counted',
      errors: results.filter(({ status }) => status === 'rejected').map(({ reason }) => `${reason}: ${reason.cause}`)
    })
  },
  /**
   * So many requests at once, each with a callback that takes some milliseconds: their numbers and tokens in the order
   * in which they ran.
   */
  async many ({ id, name, requests, milliseconds, mode }) {
    const order = []
    await Promise.all(
      Array.from({ length: requests }, (_, number) =>
        locks.request(name, { mode }, async ({ token }) => {
          order.push({ number, token })
          if (milliseconds > 0) await sleep(milliseconds)
        })
      )
    )
    say({ id, event: 'many', order })
  },
  /** So many shared requests, whose callbacks end once all have begun. */
  async together ({ id, name, requests }) {
    const all = Promise.withResolvers()
    let begun = 0
    const callback = () => {
      if (++begun === requests) all.resolve()
      return all.promise
    }
    await Promise.all(Array.from({ length: requests }, () => locks.request(name, { mode: 'shared' }, callback)))
    say({ id, event: 'together' })
  },
  /** Enters and leaves a room that has one place, in loops: `room` has the id of the process that is in it. */
  async visit ({ name, room }) {
    for (;;) {
      await sleep(Math.random() * 2)
      await locks.request(name, { mode: 'exclusive' }, async ({ token, ownerDied }) => {
        const [inside, last] = fs.readFileSync(room, 'utf8').split(' ')
        fs.writeFileSync(room, `${process.pid} ${token}`)
        say({ event: 'entered', inside, last: Number(last), token, ownerDied })
        await new Promise(setImmediate)
        const [still] = fs.readFileSync(room, 'utf8').split(' ')
        fs.writeFileSync(room, ` ${token}`)
        if (still !== String(process.pid)) throw new Error(`${still} came in`)
      }).catch(error => say({ event: 'failed', error: told(error) }))
    }
  },
  async takeAway ({ id }) {
    await insides[module].steal(args[0])
    say({ id, event: 'taken' })
  },
  async left ({ id }) { say({ id, event: 'left', number: await insides[module].left(args[0]) }) },
  async query ({ id, text }) {
    await asPostgres(args[0], text)
    say({ id, event: 'queried' })
  },
  /** From now on rights of files count, also for root. */
  obey ({ id }) {
    if (process.getuid() === 0) process.seteuid('nobody')
    say({ id, event: 'obeys' })
  },
  /** `args`: for its engine, other than those of the process. */
  worker ({ thread, args = description.args }) {
    workers[thread] = new Worker(new URL(import.meta.url), { workerData: { ...description, args } })
    workers[thread].on('message', message => say({ ...message, thread }))
    workers[thread].on('error', error => say({ event: 'outside', error: String(error) }))
  },
  async terminate ({ thread }) {
    await workers[thread].terminate()
    say({ event: 'terminated', thread })
  },
  async close () {
    await locks.close()
    say({ event: 'closed' })
    // From now on nothing of this file's keeps the thread alive.
    if (!isMainThread) return parentPort.close()
    process.removeAllListeners('disconnect')
    process.disconnect()
  }
}

function act (message) {
  const { thread, ...rest } = message
  if (isMainThread && thread !== undefined && !(message.do in { worker: 1, terminate: 1 }))
    workers[thread].postMessage(rest)
  else actions[message.do](message)
}

channel.on('message', act)
say({ event: 'ready', pid: process.pid, threadId })
