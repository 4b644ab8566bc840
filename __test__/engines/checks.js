'use strict'

// The checks of an engine: each with its title, its engines, and its course.
//
// A check gets a `team` of processes, a `name` for its locks that no other check has, and the rest of place.js:
// `engine` is its row of abilities.js, `relay` stands in front of its server for processes with the arguments `behind`.
// A lock that nobody gets can only be told by waiting: NOBODY. Everything else waits for what happens.

const assert = require('assert')
const fs = require('fs')
const path = require('path')
const { setTimeout: sleep } = require('timers/promises')
const { find } = require('../../scripts/lib/cargo')
const { succeed } = require('../../scripts/lib/child')
const { LEASE } = require('./abilities')
const { ofEtcd, ofPostgres, ofRedis, ofStandby } = require('./attacks')
const room = require('./room')
const { LATE } = require('./team')

const NOBODY = 500 // milliseconds

/** Checks that nobody gets these locks for a while. */
async function nobodyGets (...requests) {
  await sleep(NOBODY)
  for (const request of requests) assert.ok(!request.has('granted'), 'a second holder is in')
}

/** Checks that nobody gets these before the holder gives the lock back. Then all do, and nobody has died. */
async function handsOver (held, ...waiters) {
  await nobodyGets(...waiters)
  await held.ends()
  await Promise.all(waiters.map(waiter => waiter.passes({ ownerDied: false })))
}

/** Checks that a waiter has the lock of a lost holder. It learns of that, until a callback has ended well. */
async function inherits (waiter, held) {
  const { member, name } = waiter
  const { token } = await waiter.gets({ ownerDied: true, after: held.token })
  await waiter.end('throw').fails('the callback failed')
  await member.passes(name, { ownerDied: true, after: token })
  await member.passes(name, { ownerDied: false })
}

async function isUnavailable (member, name) {
  assert.ok((await member.request(name).fails('ERR_LOCK_UNAVAILABLE')).cause, 'it has no cause')
}

/** How large a file may be that a process writes to. */
const limitFiles = ({ child }, bytes) => succeed('prlimit', ['--pid', String(child.pid), `--fsize=${bytes}:unlimited`])

const ofAll = {
  async 'two threads of a process that take different ways to the same locks: one at a time' (place) {
    const { team, name, folder, engine, behind } = place
    const link = path.join(folder, 'link')
    fs.symlinkSync(folder, link, 'junction')
    const [member, abroad] = await team.processes(2)
    const thread = await member.worker(behind || engine.args(link))
    for (const [one, other] of [[undefined, thread], [thread, undefined]]) {
      const held = await member.holds(name, {}, one)
      // A vain attempt of one thread must not cost the other one its lock.
      await handsOver(held, await member.waits(name, {}, other), await abroad.waits(name))
    }
  },
  async 'a wait that times out or is aborted leaves nothing behind' ({ team, name }) {
    const [holder, waiter, next] = await team.processes(3)
    const held = await holder.holds(name)
    const inVain = [NOBODY, -1].map(timeout => waiter.request(name, { timeout }))
    for (const request of inVain) await request.fails('ERR_TIMEOUT')
    // The engine is asked anew each time, so it knows the end of the other waits.
    for (let n = 0; n < 2; n++) inVain.push((await waiter.waits(name)).end('abort'))
    for (const request of inVain.slice(2)) await request.fails('enough')
    await handsOver(held, await next.waits(name))
    assert.ok(!inVain.some(request => request.has('granted')))
    await waiter.passes(name)
  },
  async 'aborts at any moment, two hundred of them, leave nothing behind' ({ team, name, inside }) {
    const members = await team.processes(2)
    for (let n = 0; n < 100; n++) {
      const requests = members.map(member => member.request(name))
      await sleep(Math.random() * 4)
      for (const request of requests) request.end('abort')
      await Promise.all(requests.map(async request => {
        if ((await request.next('granted', 'rejected')).event === 'granted') await request.ends()
      }))
    }
    for (const member of members) await member.passes(name, { ownerDied: false })
    for (const late = Date.now() + LATE; await inside() > 0;) assert.ok(Date.now() < late, 'something is left')
  },
  async 'a hundred waits that are aborted at any moment are over although another process holds the lock' (place) {
    const [holder, waiter] = await place.team.processes(2)
    const held = await holder.holds(place.name)
    for (let n = 0; n < 100; n++) {
      const request = await waiter.waits(place.name) // for the first time since the last one
      await sleep(Math.random() * 4)
      await request.end('abort').fails('enough')
    }
    await held.ends()
    await waiter.passes(place.name)
  },
  async 'one attempt: of a lock that is free it succeeds, fifty of fifty, and of one that is held it does not' (place) {
    const [one, other] = await place.team.processes(2)
    for (let n = 0; n < 25; n++) {
      await one.request(`${place.name} ${n % 2}`, { timeout: 0 }).passes()
      await other.request(`${place.name} ${n % 2}`, { ifAvailable: true }).passes()
    }
    const held = await one.holds(place.name)
    const error = await other.request(place.name, { timeout: 0 }).fails('ERR_TIMEOUT')
    assert.ok(error.message.includes(`process ${one.child.pid}`), error.message)
    await other.request(place.name, { ifAvailable: true }).next('not available')
    await handsOver(held, await other.waits(place.name))
  },
  async 'query() says who holds a lock and who waits, as far as the engine knows' ({ team, name, engine }) {
    const { holder, held, next, waiter } = await team.inLine(name)
    let infos = await next.result('query', { name })
    // It is on its way.
    while (infos.pending && infos.pending.length === 0) infos = await next.result('query', { name })
    const [{ pid, mode, isOurs, name: told, since }] = infos.held
    assert.deepStrictEqual(
      [infos.held.length, pid, mode, isOurs, told], [1, holder.child.pid, 'exclusive', false, name],
      JSON.stringify(infos)
    )
    assert.ok(Math.abs(since - Date.now()) < 60000, String(since))
    if (infos.pending) assert.deepStrictEqual(infos.pending.map(each => each.pid), [next.child.pid])
    else assert.strictEqual(engine.server, 'redis')
    const all = await holder.result('query')
    const [ours] = all.held.filter(each => each.name === name)
    assert.deepStrictEqual([ours.pid, ours.isOurs], [holder.child.pid, true])
    await held.ends()
    await waiter.passes()
    assert.deepStrictEqual((await next.result('query', { name })).held, [])
  },
  async 'a process that holds and awaits nothing ends by itself, without close()' ({ team, name }) {
    const member = await team.process()
    await member.passes(name)
    await member.leaves()
  },
  async 'kill -9 of the holder: the next ones learn of it until a callback has ended well' ({ team, name }) {
    const { holder, held, waiter } = await team.inLine(name)
    holder.kill('SIGKILL')
    await inherits(waiter, held)
  },
  async 'kill -9 of a waiter: its place goes to the next' ({ team, name }) {
    const { held, next: victim } = await team.inLine(name)
    const waiter = await (await team.process()).waits(name)
    victim.kill('SIGKILL')
    await victim.ended
    await held.ends()
    await waiter.passes({ ownerDied: false })
  },
  async 'a worker that is terminated with the lock: another process gets it and learns of it' ({ team, name }) {
    const [holder, next] = await team.processes(2)
    const thread = await holder.worker()
    const held = await holder.holds(name, {}, thread)
    const waiter = await next.waits(name)
    holder.do('terminate', { worker: thread })
    await inherits(waiter, held)
    await holder.passes(name, { ownerDied: false })
  },
  async 'any string is a name, and different ones are different' ({ team, name }) {
    const [one, other] = await team.processes(2)
    const names = [
      '', ' ', '-', "'; DROP TABLE process_locks; --", '"', '\\', '\0', '\0\0', '../../etc/passwd', 'a/b', '__proto__',
      '$1', '\ud800', '\udbff', '\udc00', '\ufffd', 'é', 'e\u0301', 'x'.repeat(1e6), 'x'.repeat(1e6) + 'y'
    ].map(each => each + name)
    const held = await Promise.all(names.map(each => one.holds(each)))
    const waiter = await other.waits(names.at(-1))
    await nobodyGets(waiter)
    for (const request of held) await request.ends()
    await waiter.passes()
  },
  async 'close() rejects what waits, waits for what runs, and lets the process end' ({ team, name }) {
    const [member, next] = await team.processes(2)
    const [held, other] = [await member.holds(name), await member.holds(`${name}, other`)]
    const waiting = [member.request(name), await next.waits(name)]
    member.do('close')
    await next.closes()
    for (const request of [...waiting, member.request(name)]) await request.fails('AbortError')
    assert.ok(!member.has({ event: 'closed' }))
    for (const request of [held, other]) await request.ends()
    await member.exits()
  },
  async 'a batch: requests of a thread run in their order, 32 under one lock' ({ team, name, engine }) {
    const one = await team.process()
    // More shared locks are held together than a batch has.
    for (const [mode, isTogether] of [['exclusive', false], ['shared', false], ['shared', true]]) {
      if (!engine.modes.includes(mode)) continue
      const from = one.messages.length
      const { order } = await one.result('many', { name, number: 100, mode, isTogether })
      assert.deepStrictEqual(order.map(({ number }) => number), Array.from({ length: 100 }, (_, n) => n))
      const asked = one.messages.slice(from).filter(({ event }) => event === 'asked').length
      assert.ok(asked >= 4, `${asked} locks`)
      if (mode === 'exclusive') assert.ok(new Set(order.map(({ token }) => token)).size < 20)
    }
  },
  async 'a batch ends after its time: where processes are in line, another one gets in between' (place) {
    const [one, other] = await place.team.processes(2)
    const many = one.result('many', { name: place.name, number: 32, milliseconds: 40 })
    await one.next({ event: 'asked' })
    const between = await other.passes(place.name)
    const { order } = await many
    assert.ok(new Set(order.map(({ token }) => token)).size >= 16, 'of 40 ms, 50 ms begin two at most')
    if (place.engine.isInLine) assert.ok(order.at(-1).token > between.token)
  }
}

const LIMIT = 800 // milliseconds

const ofLimits = {
  async 'maxHold: a holder that is late loses the lock, and the next one learns of it; others do not' (place) {
    const { team, name } = place
    const [holder, next] = await team.processes(2)
    const begin = Date.now()
    const held = await holder.holds(name, { maxHold: LIMIT })
    const waiter = await next.waits(name)
    await held.fails('ERR_LOCK_LOST')
    await held.next('lost')
    await inherits(waiter, held)
    assert.ok(Date.now() - begin >= LIMIT - 1, `lost after ${Date.now() - begin} ms`)
    held.end('finish')
    // In time. What is kept for the next name, such as a session, has no limit any more.
    for (let n = 0; n < 2; n++) await holder.request(name, { maxHold: LIMIT }).passes({ ownerDied: false })
    const unlimited = await holder.holds(name)
    await sleep(LIMIT + NOBODY)
    await handsOver(unlimited, await next.waits(name))
  },
  async 'maxHold: no limit counts while a request waits, nor for those behind it' ({ team, name }) {
    const [holder, next] = await team.processes(2)
    const held = await holder.holds(name)
    const limited = await next.waits(name, { maxHold: LIMIT })
    await sleep(LIMIT + NOBODY)
    await held.ends()
    const { token } = await limited.gets({ ownerDied: false })
    const behind = next.request(name)
    await limited.fails('ERR_LOCK_LOST')
    await behind.gets({ ownerDied: true, after: token })
    await sleep(LIMIT + NOBODY)
    await behind.ends()
  }
}

const ofStandstill = {
  async 'maxHold: a holder that stands still loses the lock, too' ({ team, name, engine }) {
    const [holder, next] = await team.processes(2)
    const held = await holder.holds(name, { maxHold: LIMIT })
    const waiter = await next.waits(name)
    holder.kill('SIGSTOP')
    const stopped = Date.now()
    await waiter.gets({ ownerDied: true, after: held.token })
    // A lease that has been renewed may last for a third of its time longer.
    const most = LIMIT + engine.lease + 1000
    assert.ok(Date.now() - stopped < most, `${Date.now() - stopped} ms`)
    held.end('finish')
    holder.kill('SIGCONT')
    assert.ok((await held.next('ending')).isLost, 'isLost has not looked at the clock')
    await held.fails('ERR_LOCK_LOST')
    await handsOver(waiter, await holder.waits(name))
  }
}

const ofShared = {
  async 'shared locks are held together, of one process and of several, and keep an exclusive one out' (place) {
    const { team, name } = place
    const [one, other, writer] = await team.processes(3)
    await writer.passes(name)
    const readers = await Promise.all([one, one, other].map(member => member.holds(name, { mode: 'shared' })))
    const exclusive = await writer.waits(name)
    await nobodyGets(exclusive)
    for (const reader of readers) await reader.ends()
    await exclusive.gets({ after: readers[0].token })
    await handsOver(exclusive, one.request(name, { mode: 'shared' }))
  }
}

const ofExclusive = {
  async 'a mode that it lacks is a NotSupportedError' ({ team, name }) {
    await (await team.process()).request(name, { mode: 'shared' }).fails('NotSupportedError')
  }
}

const withoutLease = {
  async 'a holder that stands still keeps its lock until it goes on, or is killed' ({ team, name }) {
    for (const end of ['SIGCONT', 'SIGKILL']) {
      const { holder, held, waiter } = await team.inLine(name)
      holder.kill('SIGSTOP')
      await nobodyGets(waiter)
      await nobodyGets(waiter)
      holder.kill(end)
      if (end === 'SIGCONT') await handsOver(held, waiter)
      else await inherits(waiter, held)
    }
  }
}

const withLease = {
  async 'a holder that stands still for longer than its lease: its token is old, its promise is ERR_LOCK_LOST' (place) {
    const { holder, held, waiter } = await place.team.inLine(place.name)
    holder.kill('SIGSTOP')
    const stopped = Date.now()
    await waiter.gets({ ownerDied: true, after: held.token })
    await sleep(stopped + 2 * place.engine.lease - Date.now())
    held.end('finish') // which is the first thing that it finds
    holder.kill('SIGCONT')
    assert.ok((await held.next('ending')).isLost, 'isLost has not looked at the clock')
    await held.fails('ERR_LOCK_LOST')
    await held.next('lost')
    // The lock that it has given back is not the other one's.
    await handsOver(waiter, await holder.waits(place.name))
  }
}

const ofServers = {
  async 'the holder\'s connection is cut: lock.signal aborts, the promise rejects with ERR_LOCK_LOST' (place) {
    const { team, name, relay, behind } = place
    const [holder, next] = [await team.process(behind), await team.process()]
    const earlier = await holder.holds(`${name}, earlier`)
    await earlier.ends()
    const held = await holder.holds(name)
    const begin = Date.now()
    relay.cut()
    await held.next('lost')
    await held.fails('ERR_LOCK_LOST')
    assert.ok(Date.now() - begin < LEASE + 1000, `${Date.now() - begin} ms`)
    assert.ok(!earlier.has('lost'), 'it was given back before')
    await inherits(next.request(name), held)
    await holder.request(name).fails('ERR_LOCK_UNAVAILABLE')
  },
  async 'the network falls silent: its promise rejects when its callback ends, or at once with a lease' (place) {
    const { team, name, engine, relay, behind } = place
    const [member, next] = [await team.process(behind), await team.process()]
    const [held, ending] = await Promise.all([member.holds(name), member.holds(`${name} ending`)])
    const abroad = await next.holds(`${name} abroad`)
    const waiter = await member.waits(`${name} abroad`, { timeout: 1000 })
    relay.fallSilent()
    ending.end('finish')
    await waiter.fails('ERR_TIMEOUT')
    if (engine.lease > 0) await held.next('lost')
    else held.end('finish')
    for (const request of [held, ending]) await request.fails('ERR_LOCK_LOST')
    if (engine.lease > 0) await next.passes(name, { ownerDied: true })
    await member.closes()
    await abroad.ends()
  },
  async 'a server that is silent on new and used connections: ERR_LOCK_UNAVAILABLE, and the process can end' (place) {
    const { team, name, relay, behind } = place
    const used = await team.process(behind)
    // Two connections, one of which is still there at the end.
    const before = await Promise.all([1, 2].map(n => used.holds(`${name} ${n}`)))
    for (const request of before) await request.ends()
    relay.fallSilent()
    const members = [used, await team.process(behind)]
    await Promise.all(members.map(async member => {
      await isUnavailable(member, name)
      await member.closes()
    }))
  },
  async 'nobody listens where the server should be: ERR_LOCK_UNAVAILABLE, and the process ends by itself' (place) {
    await place.relay.close()
    const member = await place.team.process(place.behind)
    for (let n = 0; n < 2; n++) await isUnavailable(member, place.name)
    await member.closes()
  },
  // Nothing tells a holder that its file has gone.
  async 'a callback that never ends, with a lost lock: the promise rejects, and the name can be had again' (place) {
    const holder = await place.team.process()
    const held = await holder.holds(place.name)
    await place.inside('taken')
    await held.fails('ERR_LOCK_LOST')
    await holder.passes(place.name, { after: held.token })
  }
}

const ofOurServers = {
  async 'kill -9 of the server and a new start, with a holder and a waiter' ({ team, name, engine, server, patient }) {
    const { held, next, waiter } = await team.inLine(name, engine.outlives ? patient : undefined)
    await server.stop('SIGKILL')
    const restarted = Date.now()
    await server.begin()
    if (engine.outlives) {
      await nobodyGets(waiter)
      await held.ends()
    } else {
      await held.fails('ERR_LOCK_LOST')
    }
    // It depends on the query under way whether the wait fails or goes on.
    if ((await waiter.next('granted', 'rejected')).event === 'granted') await waiter.ends()
    else await waiter.fails('ERR_LOCK_UNAVAILABLE')
    await next.passes(name, { after: held.token })
    // One that has forgotten its locks waits for the end of a lease that there may have been.
    if (engine.server === 'redis') assert.ok(Date.now() - restarted > engine.lease)
  }
}

const onDisk = {
  async 'no space on the disk: ERR_LOCK_UNAVAILABLE; to a holder ERR_LOCK_LOST, and the next one learns of it' (place) {
    const { team, name } = place
    const [holder, next] = await team.processes(2)
    const held = await holder.holds(name)
    await limitFiles(holder, '0')
    assert.ok((await held.end('finish').fails('ERR_LOCK_LOST')).cause, 'it has no cause')
    for (const each of [name, `${name}, new`]) await isUnavailable(holder, each)
    await next.passes(name, { ownerDied: true })
    await limitFiles(holder, 'unlimited')
    for (const each of [name, `${name}, new`]) await holder.passes(each, { ownerDied: false })
  }
}

const inFolder = {
  async 'a folder that may not be written, or has gone: ERR_LOCK_UNAVAILABLE until it is there again' (place) {
    const { team, name, folder, engine } = place
    const own = path.join(folder, 'rights')
    fs.mkdirSync(own)
    const member = await team.process(engine.args(own))
    await member.passes(name)
    const [locks] = engine.args(own)
    fs.chmodSync(locks, 0o555)
    for (const file of fs.readdirSync(locks)) fs.chmodSync(path.join(locks, file), 0o444)
    member.do('obey')
    for (const each of [name, `${name}, new`]) await isUnavailable(member, each)
    fs.rmSync(locks, { recursive: true })
    await isUnavailable(member, name)
    fs.mkdirSync(locks)
    fs.chmodSync(locks, 0o777)
    await member.passes(name)
  }
}

const ofTaken = {
  async 'a lock that was taken away before its callback ends: its promise is ERR_LOCK_LOST, not fulfilled' (place) {
    const [holder, next] = await place.team.processes(2)
    const held = await holder.holds(place.name)
    await place.inside('taken')
    await held.end('finish').fails('ERR_LOCK_LOST')
    for (const member of [next, holder]) await member.passes(place.name)
  }
}

const controls = {
  ...room.controls,
  async 'control: an engine that lacks the question at the end is found out' (place) {
    place.team.description.lacks = 'the question at the end'
    const [check] = Object.values(ofTaken)
    await assert.rejects(check(place), /not ERR_LOCK_LOST/)
  }
}

const isShared = ({ engine }) => engine.modes.includes('shared')
const hasServer = ({ server }) => server !== undefined
const hasFiles = ({ engine }) => engine.module === 'files'
const notOnWindows = reason => process.platform !== 'win32' || `Windows ${reason}`

/** Whether checks concern a place: true or false, or why they cannot be made there. */
const groups = [
  [() => true, { ...room.checks, ...ofAll }],
  [isShared, ofShared],
  [place => !isShared(place), ofExclusive],
  [({ engine }) => engine.lease === 0 && notOnWindows('has no SIGSTOP'), withoutLease],
  [({ engine }) => engine.lease > 0, withLease],
  [() => true, ofLimits],
  [({ engine, server }) => server !== undefined || engine.module === 'memory', ofStandstill],
  [hasServer, ofServers],
  [({ server }) => server !== undefined && (server.isOurs || 'not our server'), ofOurServers],
  [({ engine }) => engine.server === 'postgresql', ofPostgres],
  [({ engine, server }) => engine.server === 'postgresql' && (server.isOurs || 'not our server'), ofStandby],
  [({ engine }) => engine.server === 'redis', ofRedis],
  [({ engine, server }) => engine.server === 'etcd' && (server.isOurs || 'not our server'), ofEtcd],
  [({ engine }) => engine.isFew === true && notOnWindows('keeps files that are open'), controls],
  [place => hasFiles(place) && (find('prlimit') !== null || 'no prlimit'), onDisk],
  [place => hasFiles(place) && notOnWindows('has other rights'), inFolder],
  [() => notOnWindows('keeps files that are open'), ofTaken]
]

exports.checks = groups.flatMap(([when, group]) =>
  Object.entries(group).map(([what, check]) => ({ when, what, check }))
)
