// Four processes of a cluster share a cache and a limit. One of them is killed every tenth of a second.
//
//   node examples/cluster-cache/index.mjs [seconds]
//
// Linux, and Node 22.23, 24.16 or 26.1, or newer. If there is a redis-server, what a request costs is shown beside it.

import { spawn } from 'node:child_process'
import cluster from 'node:cluster'
import fs from 'node:fs'
import net from 'node:net'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { Semaphore } from 'atomics-waitasync'
import { sharedMemory } from 'atomics-waitasync/processes'
import { Cache } from './cache.mjs'

const PROCESSES = 4
const PERMITS = 3 // requests at a time that may ask the slow source, in all processes together
const KEYS = 500
const seconds = Number(process.argv[2] ?? 2)
const folder = cluster.isPrimary ? fs.mkdtempSync('/dev/shm/cluster-cache-') : process.env.FOLDER

const cache = new Cache(sharedMemory(`${folder}/cache`, Cache.bytesFor(256)))
const limit = new Semaphore(sharedMemory(`${folder}/limit`, 4), { permits: PERMITS })

/** What the cache saves: a slow source, which only so many may ask at a time. */
const ask = key => limit.use(1, async () => {
  await sleep(1)
  return { key, answer: key.repeat(3) }
})

async function request (key) {
  const known = await cache.get(key)
  if (known !== undefined) return known
  const value = await ask(key)
  await cache.set(key, value)
  return value
}

async function work () {
  for (;;) {
    const key = `key ${Math.floor(KEYS * Math.random() ** 3)}` // some are asked for more often
    const { key: found, answer } = await request(key)
    if (found !== key || answer !== key.repeat(3)) process.exit(1) // the primary will say so
    process.send(1)
  }
}

async function main () {
  let served = 0
  let killed = 0
  const start = () => cluster.fork({ FOLDER: folder }).on('message', () => served++)
  cluster.on('exit', (_, code, signal) => {
    if (signal !== 'SIGKILL') throw new Error(`a process ended with ${signal ?? `code ${code}`}`)
  })
  for (let n = 0; n < PROCESSES; n++) start()
  for (const end = Date.now() + seconds * 1000; Date.now() < end; killed++) {
    await sleep(100)
    const workers = Object.values(cluster.workers)
    workers[Math.floor(Math.random() * workers.length)].process.kill('SIGKILL')
    start()
  }
  const ends = Object.values(cluster.workers).map(worker => once(worker, 'exit'))
  for (const worker of Object.values(cluster.workers)) worker.process.kill('SIGKILL')
  await Promise.all(ends)

  const { entries, damaged } = await cache.lock.executeLocked(() => cache.check()) // repairs first, if need be
  const tokens = await Promise.all(Array.from({ length: PERMITS }, () => limit.holdAsync(1, { timeout: 5000 })))
  tokens.forEach(token => token.unlock())
  console.log(served, 'requests were served by processes of which', killed, 'were killed')
  console.log(`${entries} entries, ${damaged} damaged; ${limit.available} of ${PERMITS} permits are there`)
  await compare()
  fs.rmSync(folder, { recursive: true })
}

/** Says what a request of a cached value costs: here, and of a Redis on this machine. */
async function compare () {
  await request('key 0')
  const time = async get => {
    const begin = process.hrtime.bigint()
    for (let n = 0; n < 5000; n++) await get()
    return Number(process.hrtime.bigint() - begin) / 5000 / 1000
  }
  const here = await time(() => cache.get('key 0'))
  const options = ['--port', '0', '--unixsocket', `${folder}/redis`, '--save', '']
  const redis = spawn('redis-server', options, { stdio: 'ignore' })
  redis.on('error', () => {})
  const socket = await connect(`${folder}/redis`, redis)
  if (socket === undefined) return console.log('a cached value takes', here.toFixed(1), 'µs')
  const ask = async command => {
    socket.write(command)
    return once(socket, 'data')
  }
  await ask(`SET key0 ${JSON.stringify(JSON.stringify(await cache.get('key 0')))}\r\n`)
  const there = await time(async () => {
    const [reply] = await ask('GET key0\r\n')
    return JSON.parse(reply.subarray(reply.indexOf('\n') + 1))
  })
  console.log('a cached value takes', here.toFixed(1), 'µs, of Redis', there.toFixed(1), 'µs')
  socket.destroy()
  redis.kill()
}

/** Connects once the server is ready. Undefined if there is none. */
async function connect (path, server) {
  while (server.pid !== undefined && server.exitCode === null) {
    const socket = net.connect(path)
    try {
      await once(socket, 'connect')
      return socket
    } catch {
      await sleep(20)
    }
  }
}

if (cluster.isPrimary) await main()
else await work()
