'use strict'
// nodes: >=16 (older ones lack what the engines need)

// What the engines of servers do without their servers: arguments, and members of etcd that are played by this file.
// `npm run test:engines` has the checks with servers.

const assert = require('assert')
const { createHash } = require('crypto')
const { EventEmitter } = require('events')
const http = require('http')
const { test } = require('../harness')
const { etcd, postgresql, processLocks, redis } = require('../../processes')
const { Cluster } = require('../../lib/processes/engines/etcd-cluster')
const { Link } = require('../../lib/processes/engines/redis-connection')
const { describeHolder, infoOf, keyOf } = require('../../lib/processes/engines/holder')

class Client {
  constructor (config) { Object.assign(this, { host: 'localhost', port: 5432, database: 'app' }, config) }
}
const client = { duplicate: () => ({}), defineCommand () {}, options: { host: 'cache', port: 6379, db: 2 } }

test('wrong arguments of an engine are a TypeError or a RangeError, and nothing is opened', () => {
  for (const [make, Kind] of [
    [() => postgresql({}, {}), TypeError], [() => postgresql(undefined, {}), TypeError],
    [() => postgresql({ Client }, {}, { schema: '' }), TypeError],
    [() => postgresql({ Client }, {}, { schema: 1 }), TypeError],
    [() => postgresql({ Client }, {}, { prefix: 'a' }), TypeError],
    [() => postgresql({ Client }, {}, { lease: -1 }), RangeError],
    [() => redis('redis://localhost'), TypeError], [() => redis({ ...client, isCluster: true }), TypeError],
    [() => redis(client, { lease: 1 }), RangeError], [() => redis(client, { ttl: 1000 }), TypeError],
    [() => etcd([]), TypeError], [() => etcd('localhost:2379'), TypeError],
    [() => etcd('http://a', { lease: 1 }), RangeError],
    [() => etcd('http://a', { auth: { name: 'a' } }), TypeError]
  ]) assert.throws(make, error => error instanceof Kind, String(make))
})

test('an id names the server and what tells locks apart', () => {
  assert.strictEqual(postgresql({ default: { Client } }, { database: 'b' }).id, 'postgresql localhost:5432/b public')
  assert.strictEqual(redis(client, { prefix: 'mine' }).id, 'redis cache:6379/2 mine')
  // The prefix of a client counts, also one of node-redis, which has no `defineCommand`.
  const options = { ...client.options, keyPrefix: 'app:' }
  for (const each of [{ ...client, options }, { duplicate () {}, options }]) {
    assert.strictEqual(redis(each).id, 'redis cache:6379/2 app:locks')
  }
  assert.strictEqual(etcd(['http://b:2379', 'http://a:2379']).id, 'etcd a:2379,b:2379 locks')
})

test('a holder describes itself, also with a long or odd name; what somebody else has written has no fields', () => {
  const long = 'x'.repeat(1e6)
  const text = describeHolder(long, { label: 'l"', threadId: 3 })
  const keyOfName = name => keyOf(name).toString('hex')
  const { name, pid, host, threadId, label, since, isOurs, mode } = infoOf(text, 'exclusive', keyOfName(long))
  assert.strictEqual(name.length, 256)
  assert.deepStrictEqual([pid, threadId, label, isOurs, mode], [process.pid, 3, 'l"', true, 'exclusive'])
  assert.ok(host.length > 0 && Math.abs(since - Date.now()) < 60000)
  assert.notStrictEqual(text, describeHolder(long, { label: 'l"', threadId: 3 }))
  const oddName = '\ud800\0é…'
  const described = describeHolder(oddName, { label: '\0€'.repeat(1e5), threadId: 3 })
  assert.ok(/^[ -~]+$/.test(described) && described.length <= 4096, 'it takes more than ASCII')
  assert.strictEqual(infoOf(described, 'exclusive', keyOfName(oddName)).name, oddName)
  assert.strictEqual(infoOf(described, 'exclusive', keyOfName('another')).name, keyOfName('another'))
  for (const odd of ['', 'null', '1', '{', '[]', text.padEnd(5000)]) {
    const known = JSON.parse(JSON.stringify(infoOf(odd, 'shared', 'key')))
    assert.deepStrictEqual(known, { mode: 'shared', isOurs: false, name: 'key' }, odd)
  }
})

test('another process with this number and this name of its host is not this one', () => {
  const key = keyOf('a').toString('hex')
  const text = describeHolder('a')
  assert.strictEqual(infoOf(text, 'exclusive', key).isOurs, true)
  for (const birth of ['another', {}, undefined]) {
    assert.strictEqual(infoOf(JSON.stringify({ ...JSON.parse(text), birth }), 'exclusive', key).isOurs, false)
  }
})

test('different names have different keys, also such as are no Unicode', () => {
  const names = ['', '\0', '\ud800', '\udbff', '\ufffd', 'é', 'e\u0301', 'a'.repeat(1000)]
  assert.strictEqual(new Set(names.map(name => keyOf(name).toString('hex'))).size, names.length)
})

/** Starts a member of etcd. `answer(path, body, headers)`: `[status, body]`, or undefined for silence. */
async function startMember (t, answer) {
  const member = { calls: 0 }
  const server = http.createServer((request, response) => {
    let text = ''
    request.on('data', chunk => { text += chunk }).on('end', () => {
      member.calls++
      const [status, body] = answer(request.url, JSON.parse(text), request.headers) || []
      if (status !== undefined) response.writeHead(status).end(JSON.stringify(body))
    })
  })
  const sockets = new Set()
  server.on('connection', socket => sockets.add(socket))
  await new Promise(resolve => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return Object.assign(member, { url: new URL(`http://127.0.0.1:${server.address().port}`), server })
}

function clusterOf (t, members, options) {
  const cluster = new Cluster(members.map(({ url }) => url), { milliseconds: 100, ...options })
  t.after(() => cluster.close())
  return cluster
}

test('members are asked in turn, from the one that has answered last; one that is silent is passed over', async t => {
  const gone = await startMember(t, () => [200, {}])
  gone.server.close()
  const silent = await startMember(t, () => undefined)
  const leaderless = await startMember(t, () => [503, { error: 'etcdserver: no leader', code: 14 }])
  const sound = await startMember(t, path => [200, { path }])
  const cluster = clusterOf(t, [gone, silent, leaderless, sound])
  assert.deepStrictEqual(await cluster.call('kv/txn', {}), { path: '/v3/kv/txn', isRepeated: true })
  assert.deepStrictEqual(await cluster.call('kv/range', {}), { path: '/v3/kv/range', isRepeated: false })
  assert.deepStrictEqual([silent, leaderless, sound].map(({ calls }) => calls), [1, 1, 2])
})

test('a used connection is cut after the call: it is sent again, and its answer says so', async t => {
  const member = await startMember(t, () => [200, {}])
  const cluster = clusterOf(t, [member])
  assert.strictEqual((await cluster.call('kv/txn', {})).isRepeated, false)
  member.server.prependOnceListener('request', (request, response) => {
    request.on('end', () => request.socket.destroy())
    response.writeHead = () => ({ end () {} })
  })
  assert.strictEqual((await cluster.call('kv/txn', {})).isRepeated, true)
  assert.strictEqual(member.calls, 3)
})

test('all members fail: the error is that of the last; an error that is not a member\'s ends the call', async t => {
  const full = await startMember(t, () => [503, { message: 'etcdserver: request timed out', code: 14 }])
  const strict = await startMember(t, () => [400, { error: 'etcdserver: requested lease not found', code: 5 }])
  await assert.rejects(clusterOf(t, [full, full]).call('kv/txn', {}), /request timed out/)
  await assert.rejects(clusterOf(t, [strict, full]).call('kv/txn', {}), /requested lease not found/)
  assert.deepStrictEqual([full.calls, strict.calls], [3, 1])
})

test('a token that has expired is replaced; a wrong password is an error', async t => {
  let tokens = 0
  const member = await startMember(t, (path, { password }, { authorization }) => {
    if (path === '/v3/auth/authenticate') {
      if (password === 'right') return [200, { token: `t${++tokens}` }]
      return [400, { error: 'authentication failed', code: 3 }]
    }
    return authorization === 't2' ? [200, { fine: true }] : [401, { error: 'etcdserver: invalid auth token', code: 16 }]
  })
  const right = clusterOf(t, [member], { auth: { username: 'a', password: 'right' } })
  assert.strictEqual((await right.call('kv/range', {})).fine, true)
  assert.strictEqual((await right.call('kv/range', {})).fine, true)
  assert.strictEqual(tokens, 2)
  const wrong = clusterOf(t, [member], { auth: { username: 'a', password: 'wrong' } })
  await assert.rejects(wrong.call('kv/range', {}), /authentication failed/)
})

test('of a stream the first message that is meant counts; its end, or a silent member, is none', async t => {
  const messages = [{ result: { created: true } }, { result: { events: [{}] } }]
  const server = http.createServer((request, response) => {
    request.resume()
    if (request.url === '/v3/watch') for (const each of messages) response.write(`${JSON.stringify(each)}\n`)
    else response.write(`${JSON.stringify(messages[0])}\n`)
  })
  await new Promise(resolve => server.listen(0, '127.0.0.1', resolve))
  t.after(() => server.close())
  const cluster = clusterOf(t, [{ url: new URL(`http://127.0.0.1:${server.address().port}`) }])
  const isOpen = ({ events }) => events !== undefined
  assert.deepStrictEqual(await cluster.call('watch', {}, { isOpen }), { events: [{}], isRepeated: false })
  assert.deepStrictEqual(await cluster.call('silent', {}, { isOpen }), { isRepeated: false })
})

test('an answer without end is not read without end; what a line of keys has may be anything', async t => {
  let sent = 0
  const server = http.createServer((request, response) => {
    let isOver = false
    response.on('close', () => { isOver = true })
    const more = () => {
      if (isOver) return
      sent += 2 ** 20
      response.write('x'.repeat(2 ** 20), () => setImmediate(more))
    }
    request.resume()
    more()
  })
  await new Promise(resolve => server.listen(0, '127.0.0.1', resolve))
  t.after(() => server.close())
  const cluster = clusterOf(t, [{ url: new URL(`http://127.0.0.1:${server.address().port}`) }], { milliseconds: 20000 })
  await assert.rejects(cluster.call('kv/range', {}), /more than 16777216 characters/)
  assert.ok(sent < 2 ** 26, `${sent} bytes`)

  const base64 = text => Buffer.from(text).toString('base64')
  const line = name => `locks/line/${keyOf(name).toString('hex')}/`
  const kvs = [
    { key: base64('locks/line/stranger') },
    { key: base64(line('a') + 'b'), value: base64(describeHolder('a', { label: 'first' })) },
    { key: base64(line('empty') + '1') },
    { key: base64(line('a') + '9'), value: base64('{"name":"a","pid":{},"host":{"a":1}}') }
  ]
  const member = await startMember(t, (path, { sort_target: order }) => [200, { kvs: order === 'CREATE' ? kvs : [] }])
  const engine = etcd(String(member.url))
  t.after(() => engine.close())
  const { held, pending } = await engine.query()
  assert.deepStrictEqual(held.map(({ name, label }) => [name, label]), [
    ['a', 'first'], [keyOf('empty').toString('hex'), undefined]
  ])
  assert.deepStrictEqual(pending.map(({ name, pid, host, isOurs }) => [name, pid, host, isOurs]), [
    ['a', undefined, undefined, false]
  ])
})

test('two answers of a silent connection are late: one other connection takes its place', async () => {
  const made = []
  class Silent extends EventEmitter {
    duplicate () {
      const copy = new Silent()
      made.push(copy)
      return copy
    }

    async call (command) {
      if (command === 'INFO') return 'uptime_in_seconds:5\r\n'
      return made[0] === this ? new Promise(() => {}) : 'PONG'
    }

    async connect () {}
    defineCommand () {}
    disconnect () { this.emit('end') }
  }
  const link = new Link(new Silent(), 100)
  const ping = () => link.ask(server => server.ask(['PING']))
  const first = ping()
  await new Promise(resolve => setTimeout(resolve, 50))
  const second = ping()
  await assert.rejects(first, /has not answered for 100 ms/)
  assert.strictEqual(await ping(), 'PONG')
  await assert.rejects(second, /has not answered for 100 ms/)
  assert.strictEqual(await ping(), 'PONG')
  assert.strictEqual(made.length, 2)
  await link.close()
})

/** Plays ioredis: `answer(command, connection)` gives each answer, of the connections in the order of their numbers. */
class Played extends EventEmitter {
  constructor (answer, made = []) {
    super()
    Object.assign(this, { answer, made, options: {} })
  }

  duplicate () {
    const copy = new Played(this.answer, this.made)
    this.made.push(copy)
    return copy
  }

  async call (command, ...args) {
    return command === 'INFO' ? 'uptime_in_seconds:100\r\n' : this.answer(this.made.indexOf(this), command, ...args)
  }

  async connect () {}
  async subscribe () {}
  unsubscribe () { throw new Error('Connection is closed.') }
  defineCommand () {}
  disconnect () { this.emit('end') }
}

test('Redis: whenever it is asked for, there is one connection, which `close()` ends', async () => {
  for (let gap = 0; gap < 40; gap++) {
    const client = new Played(() => 'PONG')
    const link = new Link(client, 1000)
    const first = link.get()
    for (let n = 0; n < gap; n++) await undefined
    assert.strictEqual(await link.get(), await first)
    assert.strictEqual(client.made.length, 1, `after ${gap} jobs`)
    let ended = 0
    client.made[0].on('end', () => ended++)
    await link.close()
    assert.strictEqual(ended, 1)
  }
})

/** What Redis 6.2 says of a script, and later ones. */
for (const text of ['ERR Error running script: @user_script: 12: -READONLY You', 'READONLY You']) {
  test(`Redis: a server that has become a replica is left for the new one: ${text.slice(0, 8)}`, async t => {
    const demoted = new Error(`${text} can't write against a read only replica.`)
    let isDemoted = false
    const client = new Played((connection) => {
      if (isDemoted && connection === 0) throw demoted
      return [1, '0']
    })
    const engine = redis(client)
    t.after(() => engine.close())
    const { signal } = new AbortController()
    await engine.acquire('a', 'exclusive', signal, {}).then(grant => grant.release(false))
    isDemoted = true
    const grant = await engine.acquire('a', 'exclusive', signal, {})
    assert.strictEqual(grant.token, 1)
    assert.strictEqual(client.made.length, 2)
    await grant.release(false)
  })
}

test('Redis: a lock that was awaited is given if a method of the client throws; nobody need say who asks', async t => {
  let questions = 0
  const client = new Played(() => ++questions === 1 ? -1 : [2, '1'])
  const engine = redis(client)
  t.after(() => engine.close())
  const grant = await engine.acquire('a', 'exclusive', new AbortController().signal)
  assert.deepStrictEqual([grant.token, grant.ownerDied, questions], [2, true, 2])
  await grant.release(false)
})

test('Redis: a server that lacks a script loses no lock in the midst of a batch', async t => {
  const known = new Set()
  let holder
  function run (command, script, keys, lock, state, asker, more) {
    if (command === 'GET') return holder
    const hash = command === 'EVAL' ? createHash('sha1').update(script).digest('hex') : script
    if (command === 'EVAL') known.add(hash)
    if (!known.has(hash)) throw new Error('NOSCRIPT No matching script.')
    const isHeld = holder === asker ? 1 : 0
    // It is taken with a lease, and given back with the mark that is left.
    if (more > 1) holder = asker
    else if (more !== undefined) holder = undefined
    return more > 1 ? [1, '0'] : isHeld
  }
  const client = new Played(async (connection, ...command) => {
    try {
      return run(...command)
    } finally {
      await new Promise(resolve => setImmediate(resolve))
    }
  })
  const locks = processLocks(redis(client))
  t.after(() => locks.close())
  // Of this request, the server learns how a lock is taken and given back.
  await locks.request('a', () => {})
  assert.deepStrictEqual(await Promise.all([1, 2, 3].map(n => locks.request('a', async () => n))), [1, 2, 3])
})

for (const [what, odd] of [['undefined', undefined], ['null', null], ['a text', 'gone']]) {
  test(`Redis: a client that rejects with ${what} gives an error that says so`, async t => {
    const engine = redis(new Played(() => Promise.reject(odd)))
    // Which waits for what is undone, but does not keep the process alive.
    t.after(() => { engine.close() })
    const asked = processLocks(engine).request('a', () => {})
    await assert.rejects(asked, ({ code, message, cause }) => {
      assert.deepStrictEqual([code, cause instanceof Error], ['ERR_LOCK_UNAVAILABLE', true])
      return /Redis has failed with (undefined|null|the string "gone")/.test(message)
    })
  })
}
