'use strict'

// The checks of an engine: what each is called, which engines it concerns, and what has to happen.
//
// A check gets a `team` of processes, a `name` for its locks that no other check has, the engine's row of abilities.js,
// and what else place.js gives. A lock that nobody gets can only be told by waiting: NOBODY. Everything else waits for
// what happens.

const assert = require('assert')
const fs = require('fs')
const path = require('path')
const { find } = require('../lib/cargo')
const { succeed } = require('../lib/child')
const { outputOf, page } = require('../lib/embedded')

const NOBODY = 500 // milliseconds
const ROUNDS = 100 // of each thread
const sleep = milliseconds => new Promise(resolve => setTimeout(resolve, milliseconds))

/** Nobody gets these locks, for as long as that can be waited for. */
async function nobodyGets (...requests) {
  await sleep(NOBODY)
  for (const request of requests) assert.ok(!request.isGranted, 'a second holder is in')
}

/** A free lock is granted, and ends well. Gives what was said of the grant. */
const passes = (member, name, options) => member.request(name, options).passes()

const isShared = ({ modes }) => modes.includes('shared')
const WINDOWS = process.platform === 'win32'
const hasServer = ({ server }) => server !== undefined
const hasNone = ({ server }) => server === undefined
const isPostgres = ({ module }) => module === 'postgresql'

/** The engine's arguments for a PostgreSQL server with another URL. */
function argsWith ({ engine, server }, change) {
  const url = new URL(server.url)
  change(url)
  return engine.args(String(url))
}

/** Its arguments with a lease that outlasts a busy machine and a restart, if it has one. */
const patient = ({ args, lease }, server) => lease > 0 ? args(server.url, 5 * lease) : undefined

/** How large a file may be that a process writes to. */
const limitFiles = ({ child }, bytes) => succeed('prlimit', ['--pid', String(child.pid), `--fsize=${bytes}:unlimited`])

/** Ends by itself after `close`. */
async function closes (member) {
  member.do('close')
  assert.deepStrictEqual(await member.exits(), { code: 0, signal: null })
}

async function isUnavailable (request) {
  const error = await request.error
  assert.strictEqual(error.code, 'ERR_LOCK_UNAVAILABLE')
  assert.ok(error.cause, 'it has no cause')
}

const checks = [
  {
    what: 'one at a time: four processes of two threads increment a counter that nothing else protects',
    async check ({ team, name, folder, engine, server }) {
      const file = path.join(folder, 'counter')
      fs.writeFileSync(file, '0 0')
      const members = await team.processes(4, patient(engine, server))
      for (const member of members) await member.worker()
      const results = await Promise.all(
        members.flatMap((member) =>
          [undefined, 0].map((thread) => member.result('count', 'counted', { name, file, rounds: ROUNDS, thread }))
        )
      )
      assert.deepStrictEqual(results.flatMap(({ errors }) => errors), [])
      assert.strictEqual(parseInt(fs.readFileSync(file, 'utf8')), 8 * ROUNDS)
    }
  },
  {
    what: 'two threads of a process that take different ways to the same locks: one at a time',
    async check ({ team, name, folder, engine, relay, argsBehind }) {
      const link = path.join(folder, 'link')
      if (!fs.existsSync(link)) fs.symlinkSync(folder, link, 'junction')
      const [member, abroad] = await team.processes(2)
      const thread = await member.worker(relay ? argsBehind(relay) : engine.args(link))
      for (const [one, other] of [[undefined, thread], [thread, undefined]]) {
        const held = await member.holds(name, {}, { thread: one })
        // What one thread tries in vain must not cost the other one its lock.
        const waiters = [member.request(name, {}, { thread: other }), abroad.request(name)]
        for (const waiter of waiters) await waiter.asked
        await nobodyGets(...waiters)
        await held.ends()
        await Promise.all(waiters.map(async waiter => {
          await waiter.passes()
        }))
      }
    }
  },
  {
    what: 'shared locks are held together, of one process and of several, and keep an exclusive one out',
    concerns: isShared,
    async check ({ team, name }) {
      const [one, other, writer] = await team.processes(3)
      await passes(writer, name)
      const readers = [one, one, other].map(member => member.request(name, { mode: 'shared' }))
      const [first] = await Promise.all(readers.map(reader => reader.granted))
      const exclusive = await writer.waits(name)
      await nobodyGets(exclusive)
      for (const reader of readers) await reader.ends()
      assert.ok((await exclusive.granted).token > first.token)
      const late = one.request(name, { mode: 'shared' })
      await nobodyGets(late)
      await exclusive.ends()
      await late.passes()
    }
  },
  {
    what: 'a mode that it lacks is a NotSupportedError',
    concerns: engine => !isShared(engine),
    async check ({ team, name }) {
      const member = await team.process()
      assert.strictEqual((await member.request(name, { mode: 'shared' }).error).name, 'NotSupportedError')
    }
  },
  {
    what: 'a wait that times out or is aborted leaves nothing behind',
    async check ({ team, name }) {
      const [holder, waiter, next] = await team.processes(3)
      const held = await holder.holds(name)
      const late = waiter.request(name, { timeout: 50 })
      assert.strictEqual((await late.error).code, 'ERR_TIMEOUT')
      const aborted = await waiter.waits(name)
      aborted.act('abort')
      assert.strictEqual((await aborted.error).message, 'enough')
      // The engine is asked anew, so it has been told of the end of the other waits.
      const another = await waiter.waits(name)
      another.act('abort')
      const free = await next.waits(name)
      await nobodyGets(free)
      await held.ends()
      assert.strictEqual((await free.passes()).ownerDied, false)
      assert.ok(!late.isGranted && !aborted.isGranted)
      await passes(waiter, name)
    }
  },
  {
    what: 'aborts at any moment, two hundred of them, leave nothing behind',
    async check ({ team, name, left }) {
      const [one, other] = await team.processes(2)
      for (let n = 0; n < 100; n++) {
        const requests = [one, other].map(member => member.request(name))
        await sleep(Math.random() * 4)
        for (const request of requests) request.act('abort')
        await Promise.all(requests.map(async request => {
          const { event } = await request.next('granted', 'rejected')
          if (event === 'granted') await request.ends()
        }))
      }
      for (const member of [one, other]) assert.strictEqual((await passes(member, name)).ownerDied, false)
      await left(0)
    }
  },
  {
    what: 'a wait that is aborted at any moment, a hundred times, is over although another process holds the lock',
    async check ({ team, name }) {
      const [holder, waiter] = await team.processes(2)
      const held = await holder.holds(name)
      for (let n = 0; n < 100; n++) {
        const request = waiter.request(name)
        await request.asked // for the first time since the last one
        await sleep(Math.random() * 4)
        request.act('abort')
        assert.strictEqual((await request.error).message, 'enough')
      }
      await held.ends()
      await passes(waiter, name)
    }
  },
  {
    what: 'kill -9 of the holder: the next ones learn of it until a callback has ended well',
    async check ({ team, name }) {
      const [holder, next] = await team.processes(2)
      const { token } = await holder.request(name).granted
      const waiter = await next.waits(name)
      holder.kill('SIGKILL')
      const told = await waiter.granted
      assert.ok(told.ownerDied && told.token > token, JSON.stringify(told))
      waiter.act('throw')
      assert.strictEqual((await waiter.error).message, 'the callback failed')
      assert.strictEqual((await passes(next, name)).ownerDied, true)
      const [one, two] = [next.request(name), next.request(name)]
      assert.strictEqual((await one.granted).ownerDied, false)
      one.act('throw')
      await one.error
      assert.strictEqual((await two.passes()).ownerDied, false)
    }
  },
  {
    what: 'kill -9 of a waiter: its place goes to the next',
    async check ({ team, name }) {
      const [holder, victim, next] = await team.processes(3)
      const held = await holder.holds(name)
      await victim.request(name).asked
      const waiter = await next.waits(name)
      victim.kill('SIGKILL')
      await victim.ended
      await held.ends()
      assert.strictEqual((await waiter.passes()).ownerDied, false)
    }
  },
  {
    what: 'a worker that is terminated with the lock: another process gets it and learns of it',
    async check ({ team, name }) {
      const [holder, next] = await team.processes(2)
      const thread = await holder.worker()
      await holder.request(name, {}, { thread }).granted
      const waiter = await next.waits(name)
      holder.do('terminate', { thread })
      assert.strictEqual((await waiter.passes()).ownerDied, true)
      assert.strictEqual((await passes(holder, name)).ownerDied, false)
    }
  },
  {
    what: 'a holder that stands still keeps its lock until it goes on, or is killed',
    concerns: ({ lease }) => lease === 0,
    needs: () => WINDOWS ? 'Windows has no SIGSTOP' : undefined,
    async check ({ team, name }) {
      for (const end of ['SIGCONT', 'SIGKILL']) {
        const [holder, next] = await team.processes(2)
        const held = await holder.holds(name)
        const waiter = await next.waits(name)
        holder.kill('SIGSTOP')
        await nobodyGets(waiter)
        await nobodyGets(waiter)
        holder.kill(end)
        if (end === 'SIGCONT') await held.ends()
        assert.strictEqual((await waiter.passes()).ownerDied, end === 'SIGKILL')
      }
    }
  },
  {
    what: 'a holder that stands still for longer than its lease: its token is refused, its promise is ERR_LOCK_LOST',
    concerns: ({ lease }) => lease > 0,
    async check ({ team, name, engine, resource }) {
      const [holder, next] = await team.processes(2)
      const held = holder.request(name)
      const { token } = await held.granted
      holder.kill('SIGSTOP')
      const stopped = Date.now()
      const waiter = next.request(name)
      const told = await waiter.granted
      assert.ok(told.ownerDied && told.token > token, JSON.stringify(told))
      assert.strictEqual((await waiter.write(resource, 'new')).isAccepted, true)
      await sleep(stopped + 2 * engine.lease - Date.now())
      held.act('write', { resource, value: 'old' }) // it is the first thing that it finds
      holder.kill('SIGCONT')
      assert.strictEqual((await held.next('written')).isAccepted, false)
      held.finish()
      assert.strictEqual((await held.error).code, 'ERR_LOCK_LOST')
      await held.lost
      // What it has given back is not the other one's.
      const third = await holder.waits(name)
      await nobodyGets(third)
      await waiter.ends()
      await third.passes()
    }
  },
  {
    what: 'kill -9 of the server and a new start, with a holder and a waiter',
    concerns: hasServer,
    needs: ({ server }) => server.isOurs ? undefined : 'not our server',
    async check ({ team, name, engine, server }) {
      const [holder, next] = await team.processes(2, engine.atRestart === 'kept' ? patient(engine, server) : undefined)
      const held = holder.request(name)
      const { token } = await held.granted
      const waiter = await next.waits(name)
      await server.stop('SIGKILL')
      const restarted = Date.now()
      await server.begin()
      if (engine.atRestart === 'lost') {
        assert.strictEqual((await held.error).code, 'ERR_LOCK_LOST')
      } else {
        await nobodyGets(waiter)
        await held.ends()
      }
      // It depends on what was under way whether the wait fails or goes on.
      if ((await waiter.next('granted', 'rejected')).event === 'granted') await waiter.ends()
      else assert.strictEqual((await waiter.error).code, 'ERR_LOCK_UNAVAILABLE')
      const told = await passes(next, name)
      assert.ok(told.token > token, JSON.stringify(told))
      // One that has forgotten its locks waits for the end of a lease that there may have been.
      if (engine.module === 'redis') assert.ok(Date.now() - restarted > engine.lease)
    }
  },
  {
    what: 'the holder\'s connection is cut: lock.signal aborts, the promise rejects with ERR_LOCK_LOST',
    concerns: hasServer,
    async check ({ team, name, engine, relay, argsBehind }) {
      const [holder, next] = [await team.process(argsBehind(relay)), await team.process()]
      const held = holder.request(name)
      const { token } = await held.granted
      const begin = Date.now()
      relay.cut()
      await held.lost
      assert.strictEqual((await held.error).code, 'ERR_LOCK_LOST')
      if (engine.atCut === 'lease') assert.ok(Date.now() - begin < engine.lease + 1000, `${Date.now() - begin} ms`)
      const waiter = next.request(name)
      const told = await waiter.passes()
      assert.ok(told.ownerDied && told.token > token, JSON.stringify(told))
      assert.strictEqual((await holder.request(name).error).code, 'ERR_LOCK_UNAVAILABLE')
    }
  },
  {
    what: 'a connection that is cut after its lock was given back: the signal of that lock does not abort',
    concerns: hasServer,
    async check ({ team, name, relay, argsBehind }) {
      const holder = await team.process(argsBehind(relay))
      const held = await holder.holds(name)
      await held.ends()
      const later = await holder.holds(`${name}, later`)
      relay.cut()
      await later.lost
      assert.ok(!holder.messages.some(({ id, event }) => id === held.id && event === 'lost'))
    }
  },
  {
    what: 'the network falls silent: its promise rejects when its callback ends, or at once with a lease',
    concerns: hasServer,
    async check ({ team, name, engine, relay, argsBehind }) {
      const [member, next] = [await team.process(argsBehind(relay)), await team.process()]
      const [held, ending, abroad] = [
        member.request(name),
        member.request(`${name} ending`),
        next.request(`${name} abroad`)
      ]
      await Promise.all([held.granted, ending.granted, abroad.granted])
      const waiter = await member.waits(`${name} abroad`, { timeout: 1000 })
      relay.fallSilent()
      ending.finish()
      assert.strictEqual((await waiter.error).code, 'ERR_TIMEOUT')
      if (engine.lease > 0) await held.lost
      else held.finish()
      for (const request of [held, ending]) assert.strictEqual((await request.error).code, 'ERR_LOCK_LOST')
      if (engine.lease > 0) assert.strictEqual((await passes(next, name)).ownerDied, true)
      await closes(member)
      await abroad.ends()
    }
  },
  {
    what: 'a server that is silent on new and on used connections: ERR_LOCK_UNAVAILABLE, and the process can end',
    concerns: hasServer,
    async check ({ team, name, relay, argsBehind }) {
      const used = await team.process(argsBehind(relay))
      // Two connections, one of which is still there at the end.
      const before = [1, 2].map(n => used.request(`${name} ${n}`))
      for (const request of before) await request.granted
      for (const request of before) await request.ends()
      relay.fallSilent()
      const members = [used, await team.process(argsBehind(relay))]
      await Promise.all(members.map(async member => {
        await isUnavailable(member.request(name))
        await closes(member)
      }))
    }
  },
  {
    what: 'a server that ends long statements, and has other rules for transactions: a wait goes on',
    concerns: isPostgres,
    async check ({ team, name, ...place }) {
      const settings = ['statement_timeout=100', 'lock_timeout=100', 'default_transaction_isolation=serializable',
        'default_transaction_read_only=on']
      const options = settings.map(each => `-c ${each}`).join(' ')
      const [holder, waiter] = await Promise.all(
        [1, 2].map(() => team.process(argsWith(place, (url) => url.searchParams.set('options', options))))
      )
      const held = await holder.holds(name)
      const wait = await waiter.waits(name)
      await nobodyGets(wait)
      await held.ends()
      await wait.passes()
    }
  },
  {
    what: 'a role that may not create the table uses the one that is there',
    concerns: isPostgres,
    async check ({ team, name, ...place }) {
      const owner = await team.process()
      await passes(owner, name)
      await owner.result('query', 'queried', { text: `
        DO $$ BEGIN CREATE ROLE guest LOGIN; EXCEPTION WHEN OTHERS THEN NULL; END $$;
        REVOKE CREATE ON SCHEMA public FROM public; GRANT SELECT, INSERT, UPDATE ON process_locks TO guest` })
      await passes(await team.process(argsWith(place, url => { url.username = 'guest' })), name)
    }
  },
  {
    what: 'no space on the disk: ERR_LOCK_UNAVAILABLE; while it holds, ERR_LOCK_LOST, and the next one learns of it',
    concerns: hasNone,
    needs: () => find('prlimit') ? undefined : 'no prlimit',
    async check ({ team, name }) {
      const [holder, next] = await team.processes(2)
      const held = await holder.holds(name)
      await limitFiles(holder, '0')
      held.finish()
      const error = await held.error
      assert.ok(error.code === 'ERR_LOCK_LOST' && error.cause, JSON.stringify(error))
      for (const each of [name, `${name}, new`]) await isUnavailable(holder.request(each))
      assert.strictEqual((await passes(next, name)).ownerDied, true)
      await limitFiles(holder, 'unlimited')
      for (const each of [name, `${name}, new`]) assert.strictEqual((await passes(holder, each)).ownerDied, false)
    }
  },
  {
    what: 'a folder that may not be written, or has gone: ERR_LOCK_UNAVAILABLE until it is there again',
    concerns: hasNone,
    needs: () => WINDOWS ? 'Windows has other rights' : undefined,
    async check ({ team, name, folder, engine }) {
      const own = path.join(folder, 'rights')
      fs.mkdirSync(own)
      const member = await team.process(engine.args(own))
      await passes(member, name)
      const [locks] = engine.args(own)
      fs.chmodSync(locks, 0o555)
      for (const file of fs.readdirSync(locks)) fs.chmodSync(path.join(locks, file), 0o444)
      await member.result('obey', 'obeys')
      for (const each of [name, `${name}, new`]) await isUnavailable(member.request(each))
      fs.rmSync(locks, { recursive: true })
      await isUnavailable(member.request(name))
      fs.mkdirSync(locks)
      fs.chmodSync(locks, 0o777)
      await passes(member, name)
    }
  },
  {
    what: 'a lock that was taken away in the middle of its callback, which ends at once: ERR_LOCK_LOST, not success',
    needs: () => WINDOWS ? 'Windows keeps files that are open' : undefined,
    async check ({ team, name, takeAway }) {
      const [holder, next] = await team.processes(2)
      const held = await holder.holds(name)
      await takeAway()
      held.finish()
      assert.strictEqual((await held.error).code, 'ERR_LOCK_LOST')
      await passes(next, name)
      await passes(holder, name)
    }
  },
  {
    what: 'a callback that never ends, with a lost lock: the promise rejects, and the process can have the name again',
    concerns: hasServer, // nothing tells a holder that its file has gone
    async check ({ team, name, takeAway }) {
      const [holder] = await team.processes(1)
      const held = holder.request(name, {}, { isEndless: true })
      const { token } = await held.granted
      await takeAway()
      assert.strictEqual((await held.error).code, 'ERR_LOCK_LOST')
      const again = holder.request(name)
      assert.ok((await again.passes()).token > token)
    }
  },
  {
    what: 'the program of the page shows that a write is refused',
    concerns: ({ module }) => module === 'redis',
    async check ({ node, home, server }) {
      const printed = await succeed(node, ['--no-warnings', path.join(home, 'fencing.mts')], {
        env: { ...process.env, REDIS_URL: server.url },
        timeout: 60000
      })
      assert.strictEqual(printed, outputOf(fs.readFileSync(page, 'utf8'), 'fencing.mts'))
    }
  },
  {
    what: 'nobody listens where the server should be: ERR_LOCK_UNAVAILABLE, and the process ends by itself',
    concerns: hasServer,
    async check ({ team, name, relay, argsBehind }) {
      const args = argsBehind(relay)
      await relay.close()
      const member = await team.process(args)
      for (let n = 0; n < 2; n++) await isUnavailable(member.request(name))
      await closes(member)
    }
  },
  {
    what: 'any string is a name, and different ones are different',
    async check ({ team, name }) {
      const [one, other] = await team.processes(2)
      const names = [
        '', ' ', '-', "'; DROP TABLE process_locks; --", '"', '\\', '\0', '\0\0', '../../etc/passwd', 'a/b',
        '__proto__', '$1', '\ud800', '\udbff', '\udc00', '\ufffd', 'é', 'e\u0301', 'x'.repeat(1e6),
        'x'.repeat(1e6) + 'y'
      ].map((each) => each + name)
      const held = names.map(each => one.request(each))
      for (const request of held) await request.granted
      const waiter = await other.waits(names[names.length - 1])
      await nobodyGets(waiter)
      for (const request of held) await request.ends()
      await waiter.passes()
    }
  },
  {
    what: 'close() rejects what waits, waits for what runs, and lets the process end',
    async check ({ team, name }) {
      const [member, next] = await team.processes(2)
      const held = await member.holds(name)
      const waiting = [member.request(name), member.request(`${name}, other`)]
      await waiting[1].granted
      const abroad = await next.waits(name)
      member.do('close')
      next.do('close')
      assert.strictEqual((await waiting[0].error).name, 'AbortError')
      assert.strictEqual((await abroad.error).name, 'AbortError')
      assert.deepStrictEqual(await next.exits(), { code: 0, signal: null })
      assert.strictEqual((await member.request(name).error).name, 'AbortError')
      assert.ok(!member.messages.some(({ event }) => event === 'closed'))
      for (const request of [held, waiting[1]]) await request.ends()
      assert.deepStrictEqual(await member.exits(), { code: 0, signal: null })
    }
  },
  {
    what: 'a batch: requests of a thread run in their order, 32 under one lock',
    async check ({ team, name, engine }) {
      const [one] = await team.processes(1)
      for (const mode of engine.modes) {
        const { order } = await one.result('many', 'many', { name, requests: 100, milliseconds: 0, mode })
        assert.deepStrictEqual(order.map(({ number }) => number), Array.from({ length: 100 }, (_, n) => n))
        const asked = one.messages.filter(message => message.event === 'asked' && message.name === name).length
        assert.ok(asked >= 4, `${asked} locks`)
        if (mode === 'exclusive') assert.ok(new Set(order.map(({ token }) => token)).size < 20)
      }
    }
  },
  {
    what: 'shared locks of a thread are held together, more of them than a batch has',
    concerns: isShared,
    async check ({ team, name }) {
      const [one] = await team.processes(1)
      await one.result('together', 'together', { name, requests: 100 })
    }
  },
  {
    what: 'a batch ends after its time: where processes are in line, another one gets in between',
    async check ({ team, name, engine }) {
      const [one, other] = await team.processes(2)
      const many = one.result('many', 'many', { name, requests: 32, milliseconds: 40, mode: 'exclusive' })
      await one.next(message => message.event === 'asked')
      const between = await passes(other, name)
      const { order } = await many
      assert.ok(new Set(order.map(({ token }) => token)).size >= 16, 'of 40 ms, 50 ms begin two at most')
      if (engine.isInLine) assert.ok(order[order.length - 1].token > between.token)
    }
  }
]

module.exports = { checks, passes }
