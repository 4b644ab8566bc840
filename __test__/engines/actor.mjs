// A thread that requests process locks and tells their fates: the main thread of a process of team.js, or a Worker of
// it.
//
// argv[2]: JSON `{ home, … }`: the folder of the packages, and what engine-of.js makes the engine of. Anything that
// happens outside of a promise of a request is said as `outside`.

import fs from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Worker, isMainThread, parentPort, threadId, workerData } from 'node:worker_threads'
import { changed, engineOf } from './engine-of.js'

const channel = isMainThread ? process : parentPort
const say = message => isMainThread ? process.send(message) : parentPort.postMessage(message)
const description = isMainThread ? JSON.parse(process.argv[2]) : workerData

const outside = error => say({ event: 'outside', error: String(error) })
process.on('unhandledRejection', outside)
process.on('uncaughtException', outside)
process.on('warning', warning => { if (warning.name !== 'ExperimentalWarning') outside(warning) })
if (isMainThread) process.on('disconnect', () => process.exit(1))

const load = createRequire(path.join(description.home, 'package.json'))
const { processLocks } = load('atomics-waitasync/processes')
const engine = engineOf(load, description)
const locks = processLocks(changed(engine, { acquire }))

const requests = new Map() // from their ids to what ends them
const workers = []

/** Acquires by the engine, with a message about each wait. */
function acquire (name, ...rest) {
  say({ event: 'asked', name: name.slice(0, 100) })
  return engine.acquire(name, ...rest)
}

const told = ({ name, code, message, cause }) => ({ name, code, message, cause: cause && String(cause) })

/**
 * Enters and leaves a room that has one place: its file has who is in it, the last token, and the number of visits,
 * which nothing else protects.
 */
function visit (name, file) {
  const me = `${process.pid}/${threadId}`
  return locks.request(name, {}, async ({ token, ownerDied }) => {
    const [inside, last, visits] = fs.readFileSync(file, 'utf8').split(' ')
    fs.writeFileSync(file, `${me} ${token} ${visits}`)
    say({ event: 'entered', inside, last, token, ownerDied })
    await new Promise(setImmediate)
    const [still] = fs.readFileSync(file, 'utf8').split(' ')
    fs.writeFileSync(file, ` ${token} ${Number(visits) + 1}`)
    if (still !== me) throw new Error(`${still} came in`)
  }).catch(error => say({ event: 'failed', error: told(error) }))
}

/** The result of an action is said as `done`. Those with `thread`, a Worker's number, are its. */
const actions = {
  request ({ id, name, options }) {
    const controller = new AbortController()
    const promise = new Promise((resolve, reject) => requests.set(id, {
      finish: resolve,
      throw: () => reject(new Error('the callback failed')),
      abort: () => controller.abort(new Error('enough'))
    }))
    const callback = lock => {
      if (lock === null) return say({ id, event: 'not available' })
      const { signal, token, ownerDied } = lock
      signal.addEventListener('abort', () => say({ id, event: 'lost' }))
      say({ id, event: 'granted', token, ownerDied })
      return promise.finally(() => say({ id, event: 'ending', isLost: lock.isLost }))
    }
    locks.request(name, { ...options, signal: controller.signal }, callback).then(
      () => say({ id, event: 'fulfilled' }),
      error => say({ id, event: 'rejected', error: told(error) })
    )
  },
  end ({ id, way }) { requests.get(id)[way]() },
  /** Makes so many visits at once: or one after the other without end. */
  async visits ({ name, file, rounds }) {
    while (rounds === undefined) {
      await sleep(Math.random() * 2)
      await visit(name, file)
    }
    await Promise.all(Array.from({ length: rounds }, () => visit(name, file)))
    return {}
  },
  /**
   * Makes so many requests at once. Each callback takes some milliseconds, or ends once all have begun (`isTogether`):
   * their numbers and tokens in the order in which they ran.
   */
  async many ({ name, number, milliseconds = 0, mode, isTogether }) {
    const order = []
    let resolveAll
    const all = new Promise(resolve => { resolveAll = resolve })
    const callback = n => async ({ token }) => {
      if (order.push({ number: n, token }) === number) resolveAll()
      if (milliseconds > 0) await sleep(milliseconds)
      if (isTogether) await all
    }
    await Promise.all(Array.from({ length: number }, (_, n) => locks.request(name, { mode }, callback(n))))
    return { order }
  },
  /** Obeys rights of files from now on, also as root. */
  obey () { if (process.getuid() === 0) process.seteuid('nobody') },
  /** `args`: for its engine, other than those of the process. */
  start ({ args = description.args }) {
    const worker = new Worker(new URL(import.meta.url), { workerData: { ...description, args } })
    const thread = workers.push(worker) - 1
    worker.on('message', message => say({ ...message, thread })).on('error', outside)
  },
  terminate ({ worker }) { workers[worker].terminate() },
  async query ({ name }) {
    const { held, pending } = await locks.query(name)
    return { held, pending }
  },
  async close () {
    await locks.close()
    say({ event: 'closed' })
    actions.leave()
  },
  /** From now on nothing of this file's keeps the process alive. */
  leave () {
    process.removeAllListeners('disconnect')
    process.disconnect()
  }
}

async function act ({ thread, ...message }) {
  if (thread !== undefined) return workers[thread].postMessage(message)
  const result = await actions[message.do](message)
  if (result !== undefined) say({ id: message.id, event: 'done', ...result })
}

channel.on('message', act)
say({ event: 'ready' })
