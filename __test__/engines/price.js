'use strict'

// What the engines of servers cost, beside a program by hand that does the same.
//
//   node __test__/engines/price.js [--only redis] [--rounds 5] [--locks 200]
//
// A row is a ratio to the program by hand of the least median of all rounds, which take turns: of a free lock of the
// engine, of one by `request`, and of a lock that is handed over to a second connection. By hand is, for PostgreSQL,
// `pg_advisory_lock` with a token and a mark in a table, which the release clears; for Redis `SET NX PX`, a release
// that compares, and a message for who waits.

const fs = require('fs')
const { createRequire } = require('module')
const path = require('path')
const { argumentsOf, command, whole } = require('../../scripts/lib/arguments')
const { LOCKED, installed } = require('../../scripts/lib/npm')
const { withScratch } = require('../../scripts/lib/scratch')
const { copyExample } = require('../../scripts/lib/example')
const { engineOf } = require('./engine-of')
const servers = require('./servers')

const EXAMPLE = path.join(__dirname, '..', '..', 'examples', 'processes')
const NAME = 'a lock'
const never = new AbortController().signal

/** By hand: each makes what takes the lock and gives the function that gives it back. */
const byHand = {
  async postgresql (load, url) {
    const client = new (load('pg').Client)({ connectionString: url })
    await client.connect()
    await client.query(`CREATE TABLE IF NOT EXISTS by_hand (key bigint PRIMARY KEY, token bigint NOT NULL,
      held boolean NOT NULL)`)
    return {
      async take () {
        await client.query('SELECT pg_advisory_lock($1)', [7])
        const { rows: [{ token, held }] } = await client.query(`WITH before AS (SELECT held FROM by_hand WHERE key = $1)
          INSERT INTO by_hand VALUES ($1, 1, true)
          ON CONFLICT (key) DO UPDATE SET token = by_hand.token + 1, held = true
          RETURNING token, (SELECT held FROM before) AS held`, [7])
        return async () => {
          await client.query('UPDATE by_hand SET held = false WHERE key = $1 AND token = $2', [7, token])
          await client.query('SELECT pg_advisory_unlock($1)', [7])
          return held
        }
      },
      close: () => client.end()
    }
  },
  async redis (load, url) {
    const { Redis } = load('ioredis')
    const [client, listener] = [new Redis(url), new Redis(url)]
    let hear = () => {}
    await listener.subscribe('by hand')
    listener.on('message', () => hear())
    client.defineCommand('giveBack', { numberOfKeys: 1, lua: `if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
      redis.call('DEL', KEYS[1]); redis.call('PUBLISH', 'by hand', ''); return 1` })
    let count = 0
    return {
      async take () {
        const own = `${process.pid} ${++count} ${Math.random()}`
        for (;;) {
          const told = new Promise(resolve => { hear = resolve })
          if (await client.set('by hand', own, 'PX', 10000, 'NX') === 'OK') break
          await told
        }
        return () => client.giveBack('by hand', own)
      },
      close () { client.disconnect(); listener.disconnect() }
    }
  }
}

const ours = {
  postgresql: (load, url) => engineOf(load, { module: 'postgresql', args: [{ connectionString: url }] }),
  redis: (load, url) => engineOf(load, { module: 'redis', args: [url, {}] }),
  'node-redis': (load, url) => engineOf(load, { module: 'node-redis', args: [url, {}] })
}

const subjectOf = engine => ({
  async take () {
    const grant = await engine.acquire(NAME, 'exclusive', never)
    return () => grant.release(false)
  },
  close: () => engine.close()
})

/** The median, in microseconds. */
function median (times) {
  times.sort((a, b) => a - b)
  return times[times.length >> 1] * 1000
}

async function free ({ take }, locks) {
  const times = []
  for (let n = 0; n < locks; n++) {
    const start = performance.now()
    const giveBack = await take()
    await giveBack()
    times.push(performance.now() - start)
  }
  return median(times)
}

/** From the release of one to the grant of the other, which has been waiting for it. */
async function handedOver ([one, other], locks) {
  const times = []
  let giveBack = await one.take()
  for (let n = 0; n < locks; n++) {
    const next = (n % 2 === 0 ? other : one).take()
    // It waits by now.
    await new Promise(resolve => setTimeout(resolve, 5))
    const start = performance.now()
    const done = giveBack()
    giveBack = await next
    times.push(performance.now() - start)
    await done
  }
  await giveBack()
  return median(times)
}

async function main () {
  const { only, rounds, locks } = argumentsOf(__filename, {
    only: { type: 'string', default: '', read: text => new RegExp(text) },
    rounds: { type: 'string', default: '5', read: whole },
    locks: { type: 'string', default: '200', read: whole }
  })
  const modules = path.join(await installed('processes', EXAMPLE, LOCKED), 'node_modules')
  await withScratch(async scratch => {
    fs.chmodSync(scratch, 0o755) // for the servers' account
    const load = createRequire(path.join(copyExample(scratch, modules, EXAMPLE), 'package.json'))
    for (const name of Object.keys(ours).filter(each => only.test(each))) {
      fs.mkdirSync(path.join(scratch, name))
      const kind = name.replace('node-', '')
      const server = await servers.start(kind, path.join(scratch, name))
      await price(name, load, server.url, byHand[kind], { rounds, locks })
      await server.stop()
    }
  })
}

async function price (name, load, url, hand, { rounds, locks }) {
  const { processLocks } = load('atomics-waitasync/processes')
  const hands = [await hand(load, url), await hand(load, url)]
  const engines = [ours[name](load, url), ours[name](load, url)]
  const held = processLocks(ours[name](load, url))
  const pair = engines.map(subjectOf)
  const request = { take: () => new Promise((resolve, reject) => {
    const done = held.request(NAME, () => new Promise(end => resolve(() => { end(); return done })))
    done.catch(reject)
  }) }
  const rows = {
    'free, by hand': () => free(hands[0], locks),
    'free, engine': () => free(pair[0], locks),
    'free, request': () => free(request, locks),
    'handed over, by hand': () => handedOver(hands, locks / 4),
    'handed over, engine': () => handedOver(pair, locks / 4)
  }
  const least = {}
  for (let n = 0; n < rounds; n++) {
    for (const row of Object.keys(rows)) least[row] = Math.min(await rows[row](), least[row] || Infinity)
  }
  for (const [row, value] of Object.entries(least)) {
    const ratio = value / least[row.replace(/, .*/, ', by hand')]
    console.log(`${name.padEnd(12)}${row.padEnd(24)}${value.toFixed(0).padStart(7)} µs ${ratio.toFixed(2).padStart(6)}`)
  }
  await Promise.all([...hands, ...pair, held].map(each => each.close()))
}

command(main)
