'use strict'

// The checks of single servers: what was found to break locks on them.

const assert = require('assert')
const { createHash } = require('crypto')
const fs = require('fs')
const path = require('path')
const { setTimeout: sleep } = require('timers/promises')
const { succeed } = require('../../scripts/lib/child')
const nodes = require('../../scripts/nodes')
const replicas = require('./replicas')

const NOBODY = 500 // milliseconds
const TABLE = 'atomics_waitasync_locks'

/** Settings of a role or database, in the arguments of an engine. */
const withSettings = ({ argsWith }, settings) =>
  argsWith(url => url.searchParams.set('options', settings.map(each => `-c ${each}`).join(' ')))

async function handsOver (held, waiter) {
  await sleep(NOBODY)
  assert.ok(!waiter.has('granted'), 'a second holder is in')
  await held.ends()
  await waiter.passes({ ownerDied: false })
}

/** Has one process hold so many names, for which another one waits. */
async function manyInLine (team, name, count) {
  const [holder, waiter] = await team.processes(2)
  const names = Array.from({ length: count }, (_, n) => `${name} ${n}`)
  const held = await Promise.all(names.map(each => holder.holds(each)))
  const waiting = await Promise.all(names.map(each => waiter.waits(each)))
  await sleep(NOBODY)
  return { waiter, held, waiting }
}

const ofPostgres = {
  async 'a server that ends long statements, and has other rules for transactions: a wait goes on' (place) {
    const args = withSettings(place, [
      'statement_timeout=100', 'lock_timeout=100', 'default_transaction_isolation=serializable',
      'default_transaction_read_only=on', 'standard_conforming_strings=off'
    ])
    const { held, waiter } = await place.team.inLine(place.name, args)
    await handsOver(held, waiter)
  },
  async 'a role that may not create the table uses the one that is there' ({ team, name, argsWith, query }) {
    await (await team.process()).passes(name)
    await query(`
      DO $$ BEGIN CREATE ROLE guest LOGIN; EXCEPTION WHEN OTHERS THEN NULL; END $$;
      ALTER ROLE guest CONNECTION LIMIT -1;
      REVOKE CREATE ON SCHEMA public FROM public; GRANT SELECT, INSERT, UPDATE ON ${TABLE} TO guest`)
    await (await team.process(argsWith(url => { url.username = 'guest' }))).passes(name)
  },
  async 'two roles whose search_path differs have the same tokens, and the same mark of a death' (place) {
    const { team, name, query } = place
    await query('CREATE SCHEMA IF NOT EXISTS other')
    const [one, other] = [await team.process(), await team.process(withSettings(place, ['search_path=other']))]
    const held = await one.holds(name)
    one.kill('SIGKILL')
    await other.passes(name, { ownerDied: true, after: held.token })
  },
  async 'another schema is another lock, and is made where it is missing' ({ team, name, args: [config, options] }) {
    const [one, other] = [await team.process(), await team.process([config, { ...options, schema: 'A "schema"' }])]
    const held = await one.holds(name)
    await other.passes(name)
    await held.ends()
  },
  async 'a server that has forgotten its tokens, or lost their table: they grow nevertheless' ({ team, name, query }) {
    const member = await team.process()
    const { token } = await member.passes(name)
    for (const change of [`DELETE FROM ${TABLE}`, `UPDATE ${TABLE} SET token = 3`]) {
      await query(change)
      await member.passes(name, { after: token })
    }
    await query(`DROP TABLE ${TABLE}`)
    await member.request(name).fails('ERR_LOCK_UNAVAILABLE')
    await member.passes(name, { after: token })
  },
  async 'any label is granted, whatever encoding, style of dates, or readers of values there are' (place) {
    const { team, name, argsWith, query } = place
    // It may be there, of another engine's check.
    const create = "CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'"
    await query(create).catch(() => {})
    await query('ALTER DATABASE latin SET DateStyle = German')
    const args = argsWith(url => { url.pathname = '/latin' })
    for (const [n, label] of ['a\0b', '\u20ac \u2026', '\ud800', "it's\\"].entries()) {
      const [holder, next] = await team.processes(2, args, { readsText: true })
      const held = await holder.holds(`${name} \u20ac ${n}`, { label })
      const waiter = await next.waits(`${name} \u20ac ${n}`, { label })
      let infos = await next.result('query', {})
      while (infos.pending.length === 0) infos = await next.result('query', {})
      const [{ label: told, name: toldName }] = infos.held
      assert.deepStrictEqual([told, toldName], [label, `${name} \u20ac ${n}`])
      const [{ since, pid, isOurs }] = infos.pending
      assert.ok(Math.abs(since - Date.now()) < 60000 && pid === next.child.pid && isOurs, JSON.stringify(infos))
      await held.ends()
      await waiter.passes({ ownerDied: false })
    }
  },
  async 'rows that others have written: entries without a process; tokens grow' ({ team, name, query }) {
    const member = await team.process()
    const held = await member.holds(name)
    const odd = JSON.stringify({ name: {}, host: { toString: 1 }, pid: '1', threadId: [], label: 5, since: {} })
    for (const [row, holder] of [['{', odd], ['null', 'x'.repeat(1e6)], ['5', ''], ['"another"', '[]']]) {
      await query(`UPDATE ${TABLE} SET name = '${row}', holder = '${holder}' WHERE held`)
      for (const asked of [name, undefined]) {
        const { held: [info] } = await member.result('query', { name: asked })
        assert.ok(asked === undefined ? /^-?\d+$/.test(info.name) : info.name === name, JSON.stringify(info))
        assert.deepStrictEqual([info.pid, info.isOurs], [member.child.pid, true])
      }
    }
    await held.ends()
    await query(`UPDATE ${TABLE} SET token = 9223372036854775807`)
    const { token } = await member.passes(name, { after: held.token })
    assert.ok(Number.isSafeInteger(token))
  },
  async 'no connection is left: ERR_LOCK_UNAVAILABLE names the limits, and one that is free is used again' (place) {
    const { team, name, argsWith, query } = place
    await (await team.process()).passes(name)
    await query(`
      DO $$ BEGIN CREATE ROLE few LOGIN; EXCEPTION WHEN OTHERS THEN NULL; END $$;
      ALTER ROLE few CONNECTION LIMIT 3; GRANT SELECT, INSERT, UPDATE ON ${TABLE} TO few`)
    const member = await team.process(argsWith(url => { url.username = 'few' }))
    const held = await Promise.all([1, 2, 3].map(n => member.holds(`${name} ${n}`)))
    const { message } = await member.request(`${name} 4`).fails('ERR_LOCK_UNAVAILABLE')
    assert.match(message, /max_connections = \d+.*CONNECTION LIMIT/)
    await held[0].ends()
    await member.passes(`${name} 4`)
    for (const request of held.slice(1)) await request.ends()
  },
  async 'a server that refuses a setting, as one on Windows does' ({ team, name, args }) {
    const refuses = ['client_connection_check_interval', 'tcp_keepalives_count']
    const [holder, next] = await team.processes(2, args, { refuses })
    const held = await holder.holds(name)
    await handsOver(held, await next.waits(name))
  },
  async 'thirty aborted waits are ended by few connections' ({ team, name, query }) {
    const { waiter, held, waiting } = await manyInLine(team, name, 30)
    await Promise.all(waiting.map(request => request.end('abort').fails('enough')))
    const application = `atomics-waitasync ${waiter.child.pid}/%`
    const { rows: [{ count }] } = await query(
      `SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE '${application}'`)
    assert.ok(Number(count) <= 2 * held.length, `${count} connections`)
    for (const request of held) await request.ends()
  }
}

const ofStandby = {
  async 'a standby gives no lock; after a failover with the old server alive, tokens differ and grow' (place) {
    const { team, name, argsOf, server, folder } = place
    const [holder, member] = await team.processes(2)
    await member.passes(name)
    const standby = await replicas.startStandby(server, fs.mkdtempSync(path.join(folder, 'failover-')))
    try {
      const abroad = await team.process(argsOf(standby.url))
      for (const mode of ['shared', 'exclusive']) {
        const { message } = await abroad.request(name, { mode }).fails('ERR_LOCK_UNAVAILABLE')
        assert.match(message, /standby/)
      }
      const held = await holder.holds(name)
      await standby.promote()
      const { token } = await abroad.passes(name, { after: held.token })
      await held.ends()
      await member.passes(name, { after: token })
    } finally {
      await standby.stop()
    }
  },
  async 'synchronous_commit = off and a server that is killed: no token comes twice, no death is forgotten' (place) {
    const { team, name, server, query } = place
    const args = withSettings(place, ['synchronous_commit=off'])
    const [holder, next] = await team.processes(2, args)
    let flushed = 0
    for (let n = 0; n < 5; n++) {
      const held = await holder.holds(`${name} ${n}`)
      const { rows: [{ all }] } = await query('SELECT pg_current_wal_flush_lsn() >= pg_current_wal_insert_lsn() AS all')
      if (all) flushed++
      await held.ends()
    }
    // The server itself may have written something meanwhile.
    assert.ok(flushed >= 4, `${flushed} of 5 grants are on the disk`)
    const held = await holder.holds(name)
    await server.stop('SIGKILL')
    await server.begin()
    await held.fails('ERR_LOCK_LOST')
    await next.passes(name, { ownerDied: true, after: held.token })
  }
}

async function lostAnswer ({ team, name, relay, behind }) {
  const [late, next] = [await team.process(behind), await team.process()]
  for (let n = 0; n < 5; n++) {
    await late.passes(`${name} ${n}`)
    relay.withhold()
    const request = late.request(`${name} ${n}`, { timeout: 0 })
    await sleep(20)
    relay.cut()
    relay.isOpen = true
    // Asked again by its owner, which has it already.
    const { error, ownerDied } = await request.next('granted', 'rejected')
    assert.deepStrictEqual([error && error.code, ownerDied, error && error.cause], [undefined, false, undefined])
    await request.ends()
    await next.passes(`${name} ${n}`, { ownerDied: false })
  }
}

const ofRedis = {
  async 'the program of the page shows that a write is refused' ({ home, server }) {
    // Old ones lack types.
    const { path: newest } = await nodes.get(nodes.versions.at(-1))
    const printed = await succeed(newest, ['--no-warnings', path.join(home, 'fencing.mts')], {
      env: { ...process.env, REDIS_URL: server.url },
      timeout: 60000
    })
    const page = fs.readFileSync(path.join(__dirname, '..', '..', 'docs', 'processes.md'), 'utf8')
    assert.strictEqual(printed, /^```text\n([^]*?)^```$/m.exec(page)[1])
  },
  async 'an answer that comes too late leaves no lock, and nobody has died' ({ team, name, relay, behind, inside }) {
    const [late, next] = [await team.process(behind), await team.process()]
    await late.passes(name)
    const deliver = relay.withhold()
    await late.request(name).fails('ERR_LOCK_UNAVAILABLE')
    // Its answer is still under way.
    await next.passes(name, { ownerDied: false })
    deliver()
    await late.passes(name, { ownerDied: false })
    assert.strictEqual(await inside(), 0)
  },
  async 'clients of both kinds with one prefix of keys exclude one another; one with another prefix is apart' (place) {
    const { team, name, args: [url, options] } = place
    const start = (keyPrefix, module) => team.process([url, { ...options, keyPrefix }], { module })
    const [one, other] = await Promise.all(['redis', 'node-redis'].map(module => start('app:', module)))
    const apart = await Promise.all(['redis', 'node-redis'].map(module => start('another:', module)))
    for (const [holder, next] of [[one, other], [other, one]]) {
      const held = await holder.holds(name)
      await next.request(name, { ifAvailable: true }).next('not available')
      const infos = await next.result('query', {})
      assert.deepStrictEqual(infos.held.map(each => [each.name, each.pid]), [[name, holder.child.pid]])
      for (const each of apart) await each.passes(name, { ownerDied: false })
      await handsOver(held, await next.waits(name))
    }
  },
  async 'keys that others have written are no entries, or such without a process; tokens grow' (place) {
    const { team, name, command } = place
    const member = await team.process()
    const key = `locks:{${createHash('sha256').update(Buffer.from(name, 'utf16le')).digest('hex')}}`
    const { token } = await member.passes(name)
    for (const odd of ['nan', 'text', '1e300', '-1']) {
      await command('HSET', `${key}:state`, 'token', odd)
      await member.passes(name, { after: token })
    }
    await command('SET', `locks:{${'z'.repeat(64)}}:lock`, 'x')
    await command('HSET', `locks:{${'0'.repeat(64)}}:lock`, 'a', 'b')
    await command('SET', `${key}:lock`, JSON.stringify({ name, pid: {}, host: { toString: 1 } }).padEnd(1e7))
    for (const asked of [{ name }, {}]) {
      const infos = await member.result('query', asked)
      assert.deepStrictEqual(infos.held.map(({ pid, isOurs }) => [pid, isOurs]), [[undefined, false]])
    }
    await member.request(name, { timeout: NOBODY }).fails('ERR_TIMEOUT')
    await command('DEL', `${key}:lock`, `locks:{${'z'.repeat(64)}}:lock`, `locks:{${'0'.repeat(64)}}:lock`)
  },
  'an answer that is lost with its connection leaves no lock, and nobody has died': lostAnswer,
  async 'control: a TAKE that does not give its owner the same lock again is found out' (place) {
    const [url, options] = place.behind
    await assert.rejects(lostAnswer({ ...place, behind: [url, { ...options, isForgetful: true }] }), /ERR_TIMEOUT/)
  },
  async 'twenty names that are awaited for two seconds take few commands' ({ team, name, command }) {
    const { held, waiting } = await manyInLine(team, name, 20)
    const processed = async () => Number(/total_commands_processed:(\d+)/.exec(await command('INFO', 'stats'))[1])
    const before = await processed()
    await sleep(2000)
    const commands = await processed() - before
    // Those of scripts are counted, too. Without news there were thousands.
    assert.ok(commands < 600, `${commands} commands`)
    for (const request of held) await request.ends()
    for (const request of waiting) await request.passes({ ownerDied: false })
    return `${commands} commands`
  },
  async 'ten free locks send no text of a script, and do not ask for the server\'s age' ({ team, name, command }) {
    const member = await team.process()
    const sent = async () => {
      const stats = await command('INFO', 'commandstats')
      return ['eval', 'info'].map(each => Number((new RegExp(`cmdstat_${each}:calls=(\\d+)`).exec(stats) || [0, 0])[1]))
    }
    await member.passes(name)
    const [texts, ages] = await sent()
    for (let n = 0; n < 10; n++) await member.passes(name)
    const [textsLater, agesLater] = await sent()
    assert.strictEqual(textsLater, texts)
    assert.ok(agesLater - ages < 5, `${agesLater - ages} questions`) // this check asks, too
    await command('SCRIPT', 'FLUSH')
    await member.passes(name)
    assert.ok((await sent())[0] > texts, 'a server that has forgotten the scripts')
  },
  async 'a user who may use no channels waits all the same' ({ team, name, argsWith, command }) {
    await command('ACL', 'SETUSER', 'mute', 'on', 'nopass', '~*', '+@all', 'resetchannels')
    const args = argsWith(url => { [url.username, url.password] = ['mute', 'any'] })
    const { held, waiter } = await team.inLine(name, args)
    await handsOver(held, waiter)
  },
  async 'a server that has forgotten its tokens: they grow nevertheless' ({ team, name, forget }) {
    const member = await team.process()
    const { token } = await member.passes(name)
    await forget()
    await member.passes(name, { after: token, ownerDied: false })
  }
}

/** Holds locks while each member of a cluster is killed and started anew. */
async function survives ({ team, name, members, args, more }) {
  const [holder, next] = await team.processes(2, args, more)
  for (const [n, member] of members.entries()) {
    const held = await holder.holds(`${name} ${n}`)
    const waiter = await next.waits(`${name} ${n}`)
    await member.stop('SIGKILL')
    await holder.passes(`${name} other ${n}`)
    await handsOver(held, waiter)
    await member.begin()
  }
}

const ofEtcd = {
  async 'any member of a cluster dies: locks are kept, and further ones are given' (place) {
    const { team, name, folder, engine } = place
    const members = await replicas.startCluster(fs.mkdtempSync(path.join(folder, 'cluster-')), 3)
    try {
      const urls = members.map(({ url }) => url)
      await survives({ team, name, members, args: engine.args(urls, 5 * engine.lease) })
    } finally {
      await Promise.all(members.map(member => member.stop()))
    }
  },
  async 'a member that falls silent: locks are kept, and further ones are given' (place) {
    const { team, name, relay, server, engine } = place
    const args = engine.args([`http://127.0.0.1:${relay.port}`, server.url], 5 * engine.lease)
    const [holder, next] = await team.processes(2, args)
    const held = await holder.holds(name)
    const waiter = await next.waits(name)
    await sleep(NOBODY)
    relay.fallSilent()
    await holder.passes(`${name} other`)
    await handsOver(held, waiter)
  },
  async 'HTTPS with certificates, and a role with a password' ({ team, name, folder, engine }) {
    const home = fs.mkdtempSync(path.join(folder, 'tls-'))
    fs.chmodSync(home, 0o755)
    const files = await replicas.createCertificates(path.join(home, 'certificates'))
    const [member] = await replicas.startCluster(home, 1, files)
    try {
      const tls = replicas.contentsOf(files)
      await replicas.enableAuth(member.url, tls, { username: 'app', password: 'a secret' })
      const args = options => [[member.url], { lease: 5 * engine.lease, tls, ...options }]
      const auth = { username: 'app', password: 'a secret' }
      const { held, waiter } = await team.inLine(name, args({ auth }))
      await handsOver(held, waiter)
      for (const wrong of [{}, { auth: { ...auth, password: 'another' } }, { auth, tls: {} }])
        await (await team.process(args(wrong))).request(name).fails('ERR_LOCK_UNAVAILABLE')
    } finally {
      await member.stop()
    }
  }
}

module.exports = { ofEtcd, ofPostgres, ofRedis, ofStandby }
