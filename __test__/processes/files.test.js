'use strict'
// nodes: >=16 (older ones lack what the engines need)

// Locks of files among processes: one at a time, in line, and what deaths, aborts and other people's hands leave.

const assert = require('assert')
const fs = require('fs')
const path = require('path')
const { test } = require('../harness')
const { NO_ORDER, isWine, scratchFolder, startMember, startMembers } = require('../fixtures/lock-processes')
const { noTable } = require('../fixtures/shared-memory')
const { files, memory, processLocks } = require('../../processes')

const LINUX = process.platform !== 'linux' && 'only Linux shows who waits'
const PROC = process.platform !== 'linux' && 'only Linux lists the threads of a process'
const DESCRIPTORS = process.platform !== 'linux' && 'how few descriptors there may be was looked at on Linux only'
// `LockFileEx` goes on after `CancelSynchronousIo`.
const INTERRUPTS = isWine && 'Wine interrupts no thread that waits for a lock of a file'
const LINKS = process.platform === 'win32' && 'Windows gives few users the right to make links'
const bound = (engine, key) => typeof engine[key] === 'function' ? engine[key].bind(engine) : engine[key]

/** Returns the only file with this ending. */
function fileIn (folder, ending = '.lock') {
  const names = fs.readdirSync(folder).filter(name => name.endsWith(ending))
  assert.strictEqual(names.length, 1)
  return path.join(folder, names[0])
}

test('processes get the lock in the order in which they came', { skip: NO_ORDER }, async t => {
  const folder = scratchFolder(t)
  const [holder, ...members] = await startMembers(t, folder, 5)
  await holder.hold('a')
  const order = []
  const all = []
  for (const [n, member] of members.entries()) {
    all.push(member.pass('a').then(({ token }) => order.push([token, n])))
    await member.waits('a')
  }
  await holder.release('a')
  await Promise.all(all)
  assert.deepStrictEqual(order.sort(([one], [other]) => one - other).map(([, n]) => n), [0, 1, 2, 3])
})

test('aborted waits do not grow in threads', { skip: PROC }, async t => {
  const folder = scratchFolder(t)
  const [holder, waiter] = await startMembers(t, folder, 2)
  await holder.hold('a')
  const threads = await waiter.run(async ({ locks, fs }) => {
    const inVain = number => Promise.all(Array.from({ length: number }, () =>
      locks.request('a', { timeout: 5 }, () => {}).catch(() => {})))
    await inVain(1)
    const before = fs.readdirSync('/proc/self/task').length
    for (let n = 0; n < 20; n++) await inVain(5)
    return fs.readdirSync('/proc/self/task').length - before
  })
  assert.ok(threads <= 1, `${threads} more threads`)
})

test('query() names holder and waiters, with label and thread', { skip: LINUX }, async t => {
  const folder = scratchFolder(t)
  const [holder, waiter] = await startMembers(t, folder, 2)
  const { token } = await holder.hold('a', { label: 'report' })
  await holder.hold('b', { mode: 'shared' })
  const waiting = waiter.pass('a')
  await waiter.waits('a')
  const { held, pending } = await waiter.run(({ locks }) => locks.query())
  const [exclusive, shared] = held.sort((one, another) => one.name < another.name ? -1 : 1)
  const { name, mode, pid, host, threadId, label, since, isOurs } = exclusive
  assert.deepStrictEqual(
    [name, mode, pid, host, threadId, label, isOurs],
    ['a', 'exclusive', holder.pid, require('os').hostname(), 0, 'report', false]
  )
  assert.ok(Math.abs(since * 1000 - token) < 1e6)
  assert.deepStrictEqual([shared.mode, shared.pid], ['shared', holder.pid])
  assert.deepStrictEqual(pending.map(each => [each.name, each.pid, each.isOurs]), [['a', waiter.pid, true]])
  const error = await waiter.pass('b', { timeout: 0 }).catch(each => each)
  assert.ok(error.message.includes(`held by process ${holder.pid}`), error.message)
  await holder.kill()
  await waiting
  assert.deepStrictEqual((await waiter.run(({ locks }) => locks.query())).held, [])
})

test('an engine that a program has wrapped or changed is asked by its public functions', async t => {
  const folder = scratchFolder(t)
  for (const wrap of [
    (engine, changes) => new Proxy(engine, { get: (_, key) => changes[key] || bound(engine, key) }),
    Object.assign
  ]) {
    const engine = files(folder)
    const { acquire } = engine
    let asked = 0
    const wrapped = wrap(engine, { acquire (...args) { asked++; return acquire.apply(engine, args) } })
    assert.strictEqual(await processLocks(wrapped).request('a', ({ name }) => name), 'a')
    assert.strictEqual(asked, 1)
    assert.strictEqual(processLocks(wrapped).requestSync('a', { ifAvailable: true }, ({ name }) => name), 'a')
  }
})

// ——— Other people's hands ———

for (const [how, remove] of Object.entries({
  'the file is removed': file => fs.unlinkSync(file),
  'the file is removed while it has a second link': file => {
    fs.linkSync(file, `${file}.${Date.now()}.link`)
    fs.unlinkSync(file)
  },
  'the file is moved': file => fs.renameSync(file, `${file}.${Date.now()}.old`),
  'the folder is removed': file => fs.rmSync(path.dirname(file), { recursive: true }),
  'the folder is moved': file => fs.renameSync(path.dirname(file), `${path.dirname(file)}.${Date.now()}.old`)
})) {
  const skip = how.includes('folder')
    ? process.platform === 'win32' && 'Windows moves and removes no folder of open files'
    : how.includes('removed') && isWine && 'Wine removes an open file only once it is closed'
  test(`${how}: the lock is lost, and others have it`, { skip }, async t => {
    const folder = path.join(scratchFolder(t), 'locks')
    const [holder, waiter, next] = await startMembers(t, folder, 3)
    const { token } = await holder.hold('a')
    remove(fileIn(folder))
    const after = await next.hold('a')
    assert.ok(after.token > token)
    assert.strictEqual((await holder.release('a').catch(error => error)).code, 'ERR_LOCK_LOST')
    if (INTERRUPTS) return
    // One that waits has opened a file that is going to be another one. It need not wait until the holder of that ends.
    const waiting = waiter.pass('a')
    await waiter.waits('a')
    remove(fileIn(folder))
    const isReleased = how.includes('second link')
    if (isReleased) assert.strictEqual((await next.release('a').catch(error => error)).code, 'ERR_LOCK_LOST')
    assert.ok((await waiting).token > after.token)
    if (!isReleased) assert.strictEqual((await next.release('a').catch(error => error)).code, 'ERR_LOCK_LOST')
    assert.strictEqual((await next.pass('a')).ownerDied, false)
  })
}

for (const engine of noTable ? [files] : [files, memory]) {
  test(`${engine.name}: a folder that cannot be made is an error at once, as often as one asks`, {
    skip: process.platform !== 'linux' && 'only Linux has such a folder'
  }, async () => {
    const folder = '/proc/atomics-waitasync/locks'
    const locks = processLocks(engine(folder))
    for (let n = 0; n < 2; n++) {
      const { code, cause, message } = await locks.hold('a', { timeout: 1000 }).catch(error => error)
      assert.deepStrictEqual([code, cause.code], ['ERR_LOCK_UNAVAILABLE', 'ENOENT'])
      assert.ok(message.includes(folder), message)
    }
  })
}

test('an error of the system has its code: there is a folder in the place of a lock', async t => {
  const folder = scratchFolder(t)
  const locks = processLocks(folder)
  await locks.request('a', () => {})
  const file = fileIn(folder)
  fs.unlinkSync(file)
  fs.mkdirSync(file)
  const { code, cause } = await locks.request('a', () => {}).catch(error => error)
  const expected = process.platform === 'win32' ? 'EPERM' : 'EISDIR'
  assert.deepStrictEqual([code, cause.code], ['ERR_LOCK_UNAVAILABLE', expected], cause.message)
})

test('a planted symbolic link is not followed', { skip: LINKS }, async t => {
  const folder = path.join(scratchFolder(t), 'locks')
  const member = await startMember(t, folder)
  await member.pass('a')
  const file = fileIn(folder)
  const target = path.join(path.dirname(folder), 'target')
  fs.writeFileSync(target, 'precious')
  fs.unlinkSync(file)
  fs.symlinkSync(target, file)
  const { code, cause } = await member.pass('a').catch(error => error)
  assert.deepStrictEqual([code, cause.code], ['ERR_LOCK_UNAVAILABLE', 'ELOOP'])
  assert.strictEqual(fs.readFileSync(target, 'utf8'), 'precious')
})

test('a damaged state counts as that of a dead holder, and tokens grow; another version is refused', async t => {
  const folder = scratchFolder(t)
  const member = await startMember(t, folder)
  let { token: last } = await member.pass('a')
  const file = fileIn(folder)
  const whole = fs.readFileSync(file)
  for (const bytes of [whole.slice(0, 20), Buffer.alloc(100), Buffer.from('something else'.repeat(10))]) {
    fs.writeFileSync(file, bytes)
    const { token, ownerDied } = await member.pass('a')
    assert.ok(token > last && ownerDied, `${token} after ${last}`)
    last = token
    assert.strictEqual((await member.pass('a')).ownerDied, false)
  }
  whole[4] = 9
  fs.writeFileSync(file, whole)
  const { code, message } = await member.pass('a').catch(error => error)
  assert.strictEqual(code, 'ERR_LOCK_UNAVAILABLE')
  assert.ok(/version 9/.test(message), message)
})

test('a token that is ahead of the clock is not given again', async t => {
  const folder = scratchFolder(t)
  const member = await startMember(t, folder)
  await member.pass('a')
  const file = fileIn(folder)
  const bytes = fs.readFileSync(file)
  const ahead = BigInt(Date.now() + 1e9) * BigInt(1000)
  bytes.writeBigUInt64LE(ahead, 8)
  const sum = [...bytes].reduce((hash, byte, n) => n >= 32 && n < 40
    ? hash
    : BigInt.asUintN(64, (hash ^ BigInt(byte)) * BigInt('0x100000001b3')), BigInt('0xcbf29ce484222325'))
  bytes.writeBigUInt64LE(sum, 32)
  fs.writeFileSync(file, bytes)
  assert.deepStrictEqual(await member.pass('a'), { token: Number(ahead) + 1, ownerDied: false })
})

/** Another user, whom a user namespace need not have. */
const NOBODY = 65534

function isThere (user) {
  try {
    return fs.readFileSync('/proc/self/uid_map', 'utf8').trim().split('\n').some(line => {
      const [first, , length] = line.trim().split(/\s+/).map(Number)
      return user >= first && user < first + length
    })
  } catch (_) {
    return true
  }
}

const ROOT = process.getuid === undefined || process.getuid() !== 0 ? 'only root becomes another user'
  : !isThere(NOBODY) && 'this user namespace has no other user'

test('files of another user: an error that says so, unless the folder is for both', { skip: ROOT }, async t => {
  const scratch = scratchFolder(t)
  fs.chmodSync(scratch, 0o755)
  for (const [mode, isShared] of [[0o755, false], [0o777, true], [0o1777, true]]) {
    const folder = path.join(scratch, mode.toString(8))
    fs.mkdirSync(folder)
    fs.chmodSync(folder, mode)
    const [owner, other] = await startMembers(t, folder, 2)
    await owner.pass('a')
    // It loads the library, which the other user may not reach.
    await other.pass('c')
    await other.run((_, user) => { process.seteuid(user) }, NOBODY)
    if (isShared) {
      await other.pass('a')
      await other.pass('b')
      await owner.pass('b')
      continue
    }
    for (const name of ['a', 'b']) {
      const { code, cause } = await other.pass(name).catch(error => error)
      assert.deepStrictEqual([code, cause.code], ['ERR_LOCK_UNAVAILABLE', 'EACCES'])
      assert.ok(/has? to be writable|have to be writable/.test(cause.message), cause.message)
    }
  }
})

test('a wait outlasts a moment without descriptors', { skip: DESCRIPTORS }, async t => {
  // So few that they are taken before the one that is kept has been closed, also on a slow machine.
  const member = await startMember(t, scratchFolder(t), {}, undefined, 200)
  const result = await member.run(async ({ locks, fs, sleep }) => {
    await locks.request('a', () => {})
    const taken = []
    try {
      for (;;) taken.push(fs.openSync('/dev/null'))
    } catch ({ code }) {
      if (code !== 'EMFILE') return code
    }
    // By the descriptor that the process has kept.
    const held = await locks.hold('c')
    const waiting = locks.request('a', () => 'granted')
    const now = await locks.request('b', { ifAvailable: true }, () => {}).catch(({ code }) => code)
    await sleep(100)
    for (const descriptor of taken) fs.closeSync(descriptor)
    await held.unlock()
    return [await waiting, now]
  }).catch(error => error)
  assert.deepStrictEqual(result, ['granted', 'ERR_LOCK_UNAVAILABLE'])
})

test('a lock ends with unlock() although a child process has what it inherits', async t => {
  const folder = scratchFolder(t)
  const [holder, next] = await startMembers(t, folder, 2)
  await holder.hold('a')
  await holder.run(({ require, kept }) => {
    kept.child = require('child_process').spawn(process.execPath, ['-e', 'setTimeout(() => {}, 600000)'])
  })
  await holder.release('a')
  await next.pass('a', { timeout: 0 })
  await holder.hold('a')
  const pid = await holder.run(({ kept }) => kept.child.pid)
  await holder.kill()
  assert.strictEqual((await next.pass('a', { timeout: 10000 })).ownerDied, true)
  try {
    process.kill(pid)
  } catch (_) {
    // On Windows it has ended with its parent.
  }
})
