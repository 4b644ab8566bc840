'use strict'
// nodes: >=16 (older ones lack what the engines need)

// `query` of files: it changes nothing, believes nothing that others have written, and names who keeps others waiting.

const assert = require('assert')
const { spawn, spawnSync } = require('child_process')
const { createHash } = require('crypto')
const fs = require('fs')
const net = require('net')
const path = require('path')
const { test } = require('../harness')
const { ENTRY, LINUX, NO_SHARERS, scratchFolder, startMember, startMembers } = require('../fixtures/lock-processes')
const slowness = require('../fixtures/slowness')
const { processLocks } = require('../../processes')

const SIGNALS = process.platform === 'win32' && 'Windows has no such files, signals or limits'
const unshare = (...args) => spawnSync('unshare', [...args, 'true']).status !== 0 && 'it takes unshare, and root'

const keyOf = name => createHash('sha256').update(Buffer.from(name, 'utf16le')).digest('hex')
const fileOf = (folder, name, ending = '.lock') => path.join(folder, keyOf(name) + ending)

/** Makes the bytes of a state that is whole. */
function stateOf (description, { token = 1, isMarked = true } = {}) {
  const text = Buffer.from(description)
  const bytes = Buffer.concat([Buffer.from('AWPL'), Buffer.alloc(36), text])
  bytes.writeUInt32LE(1, 4)
  bytes.writeBigUInt64LE(BigInt(token), 8)
  bytes.writeUInt32LE(isMarked ? 1 : 0, 24)
  bytes.writeUInt32LE(text.length, 28)
  const sum = [...bytes].reduce((hash, byte, n) => n >= 32 && n < 40
    ? hash
    : BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n), 0xcbf29ce484222325n)
  bytes.writeBigUInt64LE(sum, 32)
  return bytes
}

test('a query takes no lock: the only user of a name finds it free', { skip: NO_SHARERS }, async t => {
  const folder = scratchFolder(t)
  const [user, ...others] = await startMembers(t, folder, 3)
  // One whose holder has died is the one that has to be looked at.
  await user.run(({ locks }) => locks.request('a', lock => lock.abandon()))
  const go = path.join(folder, 'go')
  fs.writeFileSync(go, '')
  const looks = others.map(member => member.run(async ({ locks, fs }, file) => {
    let number = 0
    for (; fs.existsSync(file); number++) await locks.query('a')
    return number
  }, go))
  const inVain = await user.run(async ({ locks }) => {
    let count = 0
    for (let n = 0; n < 5000; n++) {
      await locks.request('a', { ifAvailable: true }, lock => { if (lock === null) count++; else lock.abandon() })
    }
    return count
  })
  fs.unlinkSync(go)
  const numbers = await Promise.all(looks)
  assert.strictEqual(inVain, 0)
  assert.ok(numbers.every(number => number > 10), `${numbers} looks`)
})

test('a query makes no folder, and finds nothing in one that is not there', async t => {
  const folder = path.join(scratchFolder(t), 'none')
  const locks = processLocks(folder)
  for (const name of [undefined, 'a']) assert.deepStrictEqual((await locks.query(name)).held, [])
  assert.strictEqual(fs.existsSync(folder), false)
})

test('what is no regular file is no lock: it is neither followed, nor does it block', { skip: SIGNALS }, async t => {
  const [folder, elsewhere] = [scratchFolder(t), scratchFolder(t)]
  const [locks, others] = [folder, elsewhere].map(each => processLocks(each))
  const secret = await others.hold('secret', { label: 'of another folder' })
  const place = name => fileOf(folder, name)
  fs.symlinkSync(fileOf(elsewhere, 'secret'), place('link'))
  fs.symlinkSync(fileOf(elsewhere, 'secret'), place('secret'))
  fs.symlinkSync(place('nowhere'), place('dangling'))
  fs.mkdirSync(place('folder'))
  assert.strictEqual(spawnSync('mkfifo', [place('fifo')]).status, 0)
  const server = net.createServer().listen(path.join(folder, 'socket'))
  await new Promise(resolve => server.once('listening', resolve))
  t.after(() => server.close())
  fs.renameSync(path.join(folder, 'socket'), place('socket'))
  const names = [undefined, 'link', 'secret', 'dangling', 'folder', 'fifo', 'socket']
  for (const name of names) assert.deepStrictEqual((await locks.query(name)).held, [], String(name))
  await secret.unlock()
})

test('of a file, however large, so much is read as a state has; that of another name is not shown', async t => {
  const [folder, elsewhere] = [scratchFolder(t), scratchFolder(t)]
  const [locks, others] = [folder, elsewhere].map(each => processLocks(each))
  const held = await locks.hold('large')
  fs.truncateSync(fileOf(folder, 'large'), 4e9)
  const before = process.memoryUsage().rss
  const [entry] = (await locks.query()).held
  assert.deepStrictEqual([entry.name, entry.isOurs], ['large', true])
  assert.ok(process.memoryUsage().rss - before < 1e9)
  await held.unlock().catch(() => {})
  const secret = await others.hold('secret')
  fs.linkSync(fileOf(elsewhere, 'secret'), fileOf(folder, 'b'))
  assert.ok((await locks.query()).held.every(({ name }) => name !== 'secret'))
  await secret.unlock()
})

const HOST = require('os').hostname()
/** Of this process, only Linux knows one. */
const OTHER_BIRTH = process.platform === 'linux' ? '' : 'another'
const odd = [{}, [], { toString: 1 }, 1e300, -1, 1.5, true, null, '\u001b[2J', 'x'.repeat(1000)]
const descriptions = [
  '', 'null', '1', '"text"', '[]', '{', '{"__proto__":{"pid":1}}', '\ud83d', '{"name":"a"'.padEnd(3000),
  ...odd.map(each => JSON.stringify({
    name: each, pid: each, host: each, threadId: each, label: each, since: each, birth: each
  })),
  JSON.stringify({ name: 'a', pid: process.pid, host: HOST, threadId: 0 }),
  JSON.stringify({ name: 'another', pid: process.pid, host: HOST, label: 'x', birth: OTHER_BIRTH })
]
const types = {
  name: 'string', mode: 'string', pid: 'number', host: 'string', threadId: 'number', label: 'string', since: 'number',
  isOurs: 'boolean'
}

test('whatever a holder is said to be: an entry has the types that it should have, and is not ours', async t => {
  const folder = scratchFolder(t)
  const holder = await startMember(t, folder)
  const locks = processLocks(folder)
  await holder.hold('a')
  for (const description of descriptions) {
    for (const bytes of [stateOf(description), Buffer.concat([stateOf(description), Buffer.alloc(1)]).slice(0, 50)]) {
      fs.writeFileSync(fileOf(folder, 'a'), bytes)
      for (const name of ['a', undefined]) {
        const { held } = await locks.query(name)
        const [entry] = held
        assert.strictEqual(held.length, 1, description)
        for (const [key, value] of Object.entries(entry)) {
          if (value !== undefined) assert.strictEqual(typeof value, types[key], `${key} of ${description}`)
        }
        assert.ok(entry.isOurs === false && entry.name.length <= 256, description)
        assert.ok(['a', keyOf('a')].includes(entry.name) || name === undefined, description)
      }
      const error = await locks.request('a', { timeout: 1 }, () => {}).catch(each => each)
      assert.strictEqual(error.code, 'ERR_TIMEOUT', description)
      assert.ok(!/this process/.test(error.message), error.message)
    }
  }
})

test('a lock of this process is ours although its state says otherwise', { skip: LINUX }, async t => {
  const folder = scratchFolder(t)
  const locks = processLocks(folder)
  const held = await locks.hold('a')
  fs.writeFileSync(fileOf(folder, 'a'), stateOf(JSON.stringify({ name: 'a', pid: 1, host: 'elsewhere' })))
  const [entry] = (await locks.query('a')).held
  assert.deepStrictEqual([entry.pid, entry.isOurs], [process.pid, true])
  await held.unlock()
})

test('a file that others have is no lock here, though it has the same number on another drive', {
  skip: LINUX || unshare('-m')
}, async t => {
  const folder = scratchFolder(t)
  const program = `(${async (entry, folder) => {
    const { spawn, spawnSync } = require('child_process')
    const fs = require('fs')
    const { processLocks } = require(entry)
    for (const drive of ['a', 'b']) {
      fs.mkdirSync(folder + '/' + drive)
      if (spawnSync('mount', ['-t', 'tmpfs', 'x', folder + '/' + drive]).status !== 0) return console.log('no mount')
    }
    const locks = processLocks(folder + '/a/locks')
    await locks.request('free', () => {})
    const [file] = fs.readdirSync(folder + '/a/locks')
    const { ino } = fs.statSync(folder + '/a/locks/' + file)
    let other
    for (let n = 0; n < 1000 && other === undefined; n++) {
      fs.writeFileSync(folder + '/b/file' + n, '')
      if (fs.statSync(folder + '/b/file' + n).ino === ino) other = folder + '/b/file' + n
    }
    const stranger = spawn('flock', [other, '-c', 'echo; read line'], { stdio: ['pipe', 'pipe', 'inherit'] })
    await new Promise(resolve => stranger.stdout.once('data', resolve))
    console.log(JSON.stringify((await locks.query('free')).held))
    // One that has the file itself is seen.
    const same = spawn('flock', [folder + '/a/locks/' + file, '-c', 'echo; read line'], { stdio: 'pipe' })
    await new Promise(resolve => same.stdout.once('data', resolve))
    console.log((await locks.query('free')).held.map(({ mode, isOurs }) => mode + isOurs).join())
    for (const each of [stranger, same]) each.stdin.end()
  }})(${JSON.stringify(ENTRY)}, ${JSON.stringify(folder)})`
  const { stdout } = spawnSync('unshare', ['-m', process.execPath, '-e', program], { encoding: 'utf8' })
  if (/no mount/.test(stdout)) t.skip('it takes the right to mount')
  assert.strictEqual(stdout, '[]\nexclusivefalse\n')
})

/** Runs a program in a container: it is process 1. Gives the child. */
function contained (t, fn, ...args) {
  const program = `(${fn})(${[ENTRY, ...args].map(each => JSON.stringify(each)).join()})`
  const options = ['--kill-child', '-pf', '--mount-proc', process.execPath, '-e', program]
  const child = spawn('unshare', options, { stdio: ['ignore', 'pipe', 'inherit'] })
  t.after(() => child.kill('SIGKILL'))
  return child
}

const said = child => new Promise(resolve => child.stdout.once('data', resolve))

for (const mode of ['exclusive', 'shared']) {
  test(`containers whose processes have one number: a holder is seen, not as ours, until it dies (${mode})`, {
    skip: (mode === 'shared' ? NO_SHARERS : LINUX) || unshare('-pf', '--mount-proc')
  }, async t => {
    const folder = scratchFolder(t)
    const holder = contained(t, (entry, folder, mode) => {
      const locks = require(entry).processLocks(folder, { label: 'of another container' })
      locks.request('a', { mode }, () => new Promise(() => { console.log('held'); setInterval(() => {}, 1e6) }))
    }, folder, mode)
    await said(holder)
    const ask = async () => JSON.parse(await said(contained(t, async (entry, folder) => {
      const locks = require(entry).processLocks(folder)
      const { held, pending } = await locks.query()
      const { message, code } = await locks.request('a', { timeout: 20 }, () => {}).catch(error => error) || {}
      console.log(JSON.stringify({ held, pending, message, code }))
    }, folder)))
    const { held, message, code } = await ask()
    assert.deepStrictEqual(held.map(each => [each.name, each.mode, each.isOurs]), [['a', mode, false]])
    assert.strictEqual(code, 'ERR_TIMEOUT')
    assert.strictEqual(held[0].label, mode === 'shared' ? undefined : 'of another container')
    assert.ok(!/this process/.test(message), message)
    const [outside] = (await processLocks(folder).query('a')).held
    assert.ok(outside.isOurs === false && outside.mode === mode, JSON.stringify(outside))
    holder.kill('SIGKILL')
    await new Promise(resolve => holder.once('exit', resolve))
    for (;;) {
      const { held: left, code: now } = await ask()
      if (left.length === 0 && now === undefined) break
    }
  })
}

test('the modes of waiters are told, wherever they are in the line', { skip: NO_SHARERS }, async t => {
  const folder = scratchFolder(t)
  const [holder, ...waiters] = await startMembers(t, folder, 5)
  await holder.hold('a')
  const modes = ['shared', 'exclusive', 'shared', 'exclusive']
  for (const [n, waiter] of waiters.entries()) {
    waiter.pass('a', { mode: modes[n] })
    await waiter.waits('a')
  }
  const { pending } = await holder.run(({ locks }) => locks.query('a'))
  const told = pending.map(({ pid, mode }) => [pid, mode])
  assert.deepStrictEqual(told, waiters.map(({ pid }, n) => [pid, modes[n]]))
  await holder.release('a')
})

test('a first waiter that is suspended with the line is pending, first of all', { skip: LINUX }, async t => {
  const folder = scratchFolder(t)
  const [holder, first, asker] = await startMembers(t, folder, 3)
  await holder.hold('a')
  first.pass('a')
  await first.waits('a')
  first.child.kill('SIGSTOP')
  const threads = `/proc/${first.pid}/task`
  const isStopped = thread => /\) T /.test(fs.readFileSync(`${threads}/${thread}/stat`, 'latin1'))
  while (!fs.readdirSync(threads).every(isStopped)) await new Promise(resolve => setImmediate(resolve))
  await holder.release('a')
  const { held, pending } = await asker.run(({ locks }) => locks.query('a'))
  assert.deepStrictEqual(held, [])
  const [entry] = pending
  assert.deepStrictEqual([entry.pid, entry.mode, entry.isOurs], [first.pid, 'exclusive', false])
  first.child.kill('SIGCONT')
})

test('a query that has no descriptor is an error, not nobody', { skip: SIGNALS }, async t => {
  const folder = scratchFolder(t)
  const [holder, asker] = await startMembers(t, folder, 2)
  await holder.hold('a')
  const codes = await asker.run(async ({ locks, fs }) => {
    await locks.query('a')
    const open = []
    const { code } = await (async () => { for (;;) open.push(fs.openSync('/dev/null')) })().catch(error => error)
    const of = []
    for (const name of ['a', undefined]) of.push(await locks.query(name).then(() => 'answered', error => error.code))
    for (const each of open) fs.closeSync(each)
    return [code, ...of]
  })
  assert.deepStrictEqual(codes, ['EMFILE', 'EMFILE', 'EMFILE'])
})

test('a folder of very many names: the loop turns while it is looked through', { timeout: 120000 }, async t => {
  const folder = scratchFolder(t)
  const locks = processLocks(folder)
  const bytes = stateOf('{}', { isMarked: false })
  const names = 10000 / slowness
  for (let n = 0; n < names; n++) fs.writeFileSync(fileOf(folder, `free ${n}`), bytes)
  const held = await locks.hold('a')
  let turns = 0
  let isOver = false
  const count = () => { if (!isOver) { turns++; setImmediate(count) } }
  setImmediate(count)
  const { held: [entry, ...more] } = await locks.query()
  isOver = true
  assert.deepStrictEqual([entry.name, more], ['a', []])
  assert.ok(turns > 2, `${turns} turns`)
  await held.unlock()
})
