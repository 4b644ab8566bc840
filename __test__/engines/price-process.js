'use strict'

// A process of price.js that takes one lock again and again. argv[2]: JSON `{ home, module, subject, url }`.
//
// - `by hand`: what promises as much as the engine. For PostgreSQL `pg_advisory_lock`, and in a table a token and the
//   mark of a holder, which the release clears. For Redis a script for `SET NX PX`, a token and that mark, and one that
//   compares, clears, deletes, and tells who waits.
// - `less by hand`: no token and no mark.
// - `engine`: its functions; `request`: `processLocks` over it.

const { createRequire } = require('module')
const path = require('path')
const { engineOf } = require('./engine-of')

const { home, module: engine, subject, url } = JSON.parse(process.argv[2])
const load = createRequire(path.join(home, 'package.json'))
const LEASE = 10000 // milliseconds
const NAME = 'a lock'

async function postgresqlByHand (isLess) {
  const client = new (load('pg').Client)({ connectionString: url })
  await client.connect()
  await client.query(`SELECT pg_advisory_lock(1); CREATE TABLE IF NOT EXISTS by_hand (
    key bigint PRIMARY KEY, token bigint NOT NULL, held boolean NOT NULL); SELECT pg_advisory_unlock(1)`)
  return async () => {
    await client.query('SELECT pg_advisory_lock($1)', [7])
    const unlock = () => client.query('SELECT pg_advisory_unlock($1)', [7])
    if (isLess) return unlock
    const { rows: [{ token }] } = await client.query(`WITH before AS (SELECT held FROM by_hand WHERE key = $1)
      INSERT INTO by_hand VALUES ($1, 1, true)
      ON CONFLICT (key) DO UPDATE SET token = by_hand.token + 1, held = true
      RETURNING token, (SELECT held FROM before) AS held`, [7])
    return async () => {
      await client.query('UPDATE by_hand SET held = false WHERE key = $1 AND token = $2', [7, token])
      return unlock()
    }
  }
}

/** Returns `ask`, which sends a command, and `listen`. */
async function redisClient () {
  if (engine === 'redis') {
    const client = new (load('ioredis').Redis)(url)
    const listen = async (channel, hear) => {
      const listener = client.duplicate()
      listener.on('message', hear)
      await listener.subscribe(channel)
    }
    return { ask: (...args) => client.call(...args), listen }
  }
  const client = load('redis').createClient({ url })
  await client.connect()
  const listen = async (channel, hear) => {
    const listener = client.duplicate()
    await listener.connect()
    await listener.subscribe(channel, hear)
  }
  return { ask: (...args) => client.sendCommand(args.map(String)), listen }
}

async function redisByHand (isLess) {
  const { ask, listen } = await redisClient()
  const lock = isLess ? 'less by hand' : 'by hand'
  const script = text => ask('SCRIPT', 'LOAD', text)
  const take = isLess ? undefined : await script(`
    if not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return false end
    local died = redis.call('EXISTS', KEYS[3])
    redis.call('SET', KEYS[3], ARGV[1])
    return { redis.call('INCR', KEYS[2]), died }`)
  const give = await script(`
    if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
    redis.call('DEL', unpack(KEYS))
    redis.call('PUBLISH', KEYS[1], '')
    return 1`)
  let hear = () => {}
  await listen(lock, () => hear())
  let count = 0
  return async () => {
    const own = `${process.pid} ${++count} ${Math.random()}`
    for (;;) {
      const told = new Promise(resolve => { hear = resolve })
      const taken = isLess
        ? await ask('SET', lock, own, 'NX', 'PX', LEASE)
        : await ask('EVALSHA', take, 3, lock, `${lock} token`, `${lock} held`, own, LEASE)
      if (taken !== null) break
      await told
    }
    return () => isLess ? ask('EVALSHA', give, 1, lock, own) : ask('EVALSHA', give, 2, lock, `${lock} held`, own)
  }
}

const byHand = isLess => engine === 'postgresql' ? postgresqlByHand(isLess) : redisByHand(isLess)
const ours = () => {
  const where = engine === 'postgresql' ? { connectionString: url } : url
  return engineOf(load, { module: engine, args: [where, {}] })
}

/** Each makes a function that takes the lock: it gives one that gives the lock back. */
const subjects = {
  'less by hand': () => byHand(true),
  'by hand': () => byHand(false),
  engine () {
    const never = new AbortController().signal
    const subject = ours()
    return async () => {
      const grant = await subject.acquire(NAME, 'exclusive', never, {})
      return () => grant.release(false)
    }
  },
  request () {
    const locks = load('atomics-waitasync/processes').processLocks(ours())
    return () => new Promise((resolve, reject) => {
      const done = locks.request(NAME, () => new Promise(end => resolve(() => {
        end()
        return done
      })))
      done.catch(reject)
    })
  }
}

const now = () => Number(process.hrtime.bigint()) / 1e6

async function main () {
  const take = await subjects[subject]()
  let giveBack
  const tasks = {
    async free ({ count }) {
      const times = []
      const before = process.cpuUsage()
      for (let n = 0; n < count; n++) {
        const began = now()
        await (await take())()
        times.push((now() - began) * 1000)
      }
      const { user, system } = process.cpuUsage(before)
      times.sort((a, b) => a - b)
      return { median: times[count >> 1], least: times[0], processor: (user + system) / count }
    },
    async take () {
      giveBack = await take()
      return now()
    },
    async release () {
      const began = now()
      await giveBack()
      return began
    }
  }
  process.on('message', async ({ task, ...options }) => process.send(await tasks[task](options)))
  process.on('disconnect', () => process.exit())
  process.send('ready')
}

main()
