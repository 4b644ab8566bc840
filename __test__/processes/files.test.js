'use strict'
// nodes: >=16 (older ones lack what the engines need)

// Locks of files among processes: one at a time, in line, and what deaths, aborts and other people's hands leave.

const assert = require('assert')
const fs = require('fs')
const path = require('path')
const { test } = require('../harness')
const { NO_ORDER, isWine, scratchFolder, startMember, startMembers } = require('../fixtures/lock-processes')
const size = require('../fixtures/size')
const { files, processLocks } = require('../../processes')

const LINUX = process.platform !== 'linux' && 'only Linux shows who waits'
const PROC = process.platform !== 'linux' && 'only Linux lists the threads of a process'
const DESCRIPTORS = process.platform !== 'linux' && 'how few descriptors there may be was looked at on Linux only'
const SIGNALS = process.platform === 'win32' && 'Windows has no such signals'
// `LockFileEx` goes on after `CancelSynchronousIo`.
const INTERRUPTS = isWine && 'Wine interrupts no thread that waits for a lock of a file'
const LINKS = process.platform === 'win32' && 'Windows gives few users the right to make links'
const bound = (engine, key) => typeof engine[key] === 'function' ? engine[key].bind(engine) : engine[key]
const sleep = milliseconds => new Promise(resolve => setTimeout(resolve, milliseconds))

/** Returns the only file with this ending. */
function fileIn (folder, ending = '.lock') {
  const names = fs.readdirSync(folder).filter(name => name.endsWith(ending))
  assert.strictEqual(names.length, 1)
  return path.join(folder, names[0])
}

/** Increments a number in a file, which nothing but the lock protects; gives what happened. */
const increment = async ({ locks, fs, require }, file, rounds, isLocked) => {
  const once = async () => {
    const number = Number(fs.readFileSync(file, 'utf8'))
    await new Promise(resolve => setImmediate(resolve))
    fs.writeFileSync(file, String(number + 1))
  }
  for (let n = 0; n < rounds; n++) await (isLocked ? locks.request('number', once) : once())
}

/** Counts in several processes of two threads each. Returns the number in the file. */
async function count (t, isLocked, rounds) {
  const folder = scratchFolder(t)
  const file = path.join(folder, 'number')
  fs.writeFileSync(file, '0')
  const members = await startMembers(t, path.join(folder, 'locks'), 3)
  await Promise.all(members.map(async member => {
    // A second task of the same thread.
    await Promise.all([member.run(increment, file, rounds, isLocked), member.run(increment, file, rounds, isLocked)])
  }))
  return Number(fs.readFileSync(file, 'utf8')) - 6 * rounds
}

test('one at a time: processes increment a number that nothing else protects; without locks, some is lost', async t => {
  assert.strictEqual(await count(t, true, 50), 0)
  // On a busy machine, processes may run one after the other.
  for (let rounds = 50; await count(t, false, rounds) === 0; rounds *= 4) {
    assert.ok(rounds < 1e4, 'the control proves nothing')
  }
})

test('tokens grow from process to process, and are no lower than the clock', async t => {
  const folder = scratchFolder(t)
  const members = await startMembers(t, folder, 2)
  const before = Date.now() * 1000
  let last = before
  for (let n = 0; n < 6; n++) {
    const { token, ownerDied } = await members[n % 2].pass('a')
    assert.ok(token > last && ownerDied === false, `${token} after ${last}`)
    last = token
  }
  assert.ok(last < Date.now() * 1000 + 1e6)
})

test('kill -9 of a holder: the next one has the lock soon, and is told, until one ends well', async t => {
  const folder = scratchFolder(t)
  const [holder, next] = await startMembers(t, folder, 2)
  const held = await holder.hold('a')
  const waiting = next.run(({ locks }) => locks.request('a', ({ token, ownerDied }) => {
    throw new Error(`${token} ${ownerDied}`)
  }))
  await next.waits('a')
  await holder.kill()
  const [token, ownerDied] = (await waiting.catch(error => error)).message.split(' ')
  assert.ok(Number(token) > held.token)
  assert.strictEqual(ownerDied, 'true')
  assert.strictEqual((await next.pass('a')).ownerDied, true)
  assert.strictEqual((await next.pass('a')).ownerDied, false)
})

test('processes that are killed at any moment: one inside at a time, deaths are seen', { timeout: 120000 }, async t => {
  const folder = scratchFolder(t)
  const file = path.join(folder, 'room')
  const killed = new Set()
  let visits = 0
  const problems = []
  fs.writeFileSync(file, ' 0')
  const visitor = async () => {
    const member = await startMember(t, path.join(folder, 'locks'))
    member.child.on('message', ({ visit }) => {
      if (visit === undefined) return
      const { inside, last, token, ownerDied } = visit
      visits++
      if (inside !== '' && !killed.has(Number(inside))) problems.push(`${inside} was inside, alive`)
      if ((inside !== '' || last === undefined) && !ownerDied) problems.push(`did not see the death of ${inside}`)
      if (!(token > Number(last || 0))) problems.push(`token ${token} after ${last}`)
    })
    member.run(async ({ locks, fs }, room) => {
      for (;;) {
        await locks.request('room', async ({ token, ownerDied }) => {
          const [inside, last] = fs.readFileSync(room, 'utf8').split(' ')
          fs.writeFileSync(room, `${process.pid} ${token}`)
          process.send({ visit: { inside, last, token, ownerDied } })
          await new Promise(resolve => setImmediate(resolve))
          if (fs.readFileSync(room, 'utf8') !== `${process.pid} ${token}`) process.send({ outside: 'another came in' })
          fs.writeFileSync(room, ` ${token}`)
        })
      }
    }, file)
    return member
  }
  const members = [await visitor(), await visitor()]
  for (let n = 0; n < size(40, 6); n++) {
    const successor = visitor()
    await sleep(Math.random() * 20)
    const [victim] = members.splice(n % 2, 1)
    killed.add(victim.pid)
    await victim.kill()
    assert.deepStrictEqual(victim.outside, [])
    members.push(await successor)
  }
  for (const before = visits; visits < before + 5;) await sleep(1)
  assert.deepStrictEqual(problems, [])
})

test('a holder that stands still keeps its lock', { skip: SIGNALS }, async t => {
  const folder = scratchFolder(t)
  const [holder, next] = await startMembers(t, folder, 2)
  const { token } = await holder.hold('a')
  holder.child.kill('SIGSTOP')
  assert.strictEqual(await next.pass('a', { ifAvailable: true }), null)
  const waiting = next.pass('a')
  await next.waits('a')
  assert.strictEqual(await next.pass('a', { ifAvailable: true }), null)
  holder.child.kill('SIGCONT')
  await holder.release('a')
  const after = await waiting
  assert.ok(after.token > token && after.ownerDied === false)
})

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

test('a process that asks for a lock again and again leaves it to those that wait', async t => {
  const folder = scratchFolder(t)
  const [greedy, next] = await startMembers(t, folder, 2)
  // It goes on until the other one has had the lock often enough.
  const loop = greedy.run(async ({ locks, kept }) => {
    while (!kept.isOver) await locks.request('a', () => new Promise(resolve => setTimeout(resolve, 1)))
  })
  for (let n = 0; n < 20; n++) await next.pass('a')
  await greedy.run(({ kept }) => { kept.isOver = true })
  await loop
})

test('readers share a lock; a writer that waits goes before new readers', async t => {
  const folder = scratchFolder(t)
  const [one, other, writer, late] = await startMembers(t, folder, 4)
  const shared = { mode: 'shared' }
  await Promise.all([one.hold('a', shared), other.hold('a', shared)])
  assert.strictEqual(await writer.pass('a', { ifAvailable: true }), null)
  const writing = writer.hold('a')
  await writer.waits('a')
  assert.strictEqual(await late.pass('a', { mode: 'shared', ifAvailable: true }), null)
  const reading = late.pass('a', shared)
  await late.waits('a')
  await Promise.all([one.release('a'), other.release('a')])
  const { token } = await writing
  await writer.release('a')
  assert.strictEqual((await reading).token, token)
})

test('a writer that gives up lets new readers in', { skip: INTERRUPTS }, async t => {
  const folder = scratchFolder(t)
  const [reader, writer, late] = await startMembers(t, folder, 3)
  const shared = { mode: 'shared' }
  await reader.hold('a', shared)
  const writing = writer.run(({ locks, kept }) => {
    kept.controller = new AbortController()
    return locks.request('a', { signal: kept.controller.signal }, () => {})
  })
  await writer.waits('a')
  await writer.run(({ kept }) => kept.controller.abort())
  assert.strictEqual((await writing.catch(error => error)).name, 'AbortError')
  await late.pass('a', shared)
  await reader.release('a')
  // Its thread is still there, and serves its next requests.
  assert.strictEqual((await writer.pass('a')).ownerDied, false)
})

test('waits that time out or are aborted at any moment leave nothing behind', async t => {
  const folder = scratchFolder(t)
  const [holder, waiter, next] = await startMembers(t, folder, 3)
  await holder.hold('a')
  const codes = await waiter.run(async ({ locks }) => {
    const all = []
    for (let n = 0; n < 100; n++) {
      all.push(locks.request('a', { timeout: Math.random() * 20 }, () => 'granted').catch(({ code }) => code))
    }
    return [...new Set(await Promise.all(all))]
  })
  assert.deepStrictEqual(codes, ['ERR_TIMEOUT'])
  const count = await waiter.run(async ({ locks, sleep }) => {
    // While the lock comes and goes.
    let granted = 0
    const turns = Array.from({ length: 60 }, async (_, n) => {
      await sleep(n)
      const controller = new AbortController()
      setTimeout(() => controller.abort(), Math.random() * 3)
      await locks.request('b', { signal: controller.signal }, () => { granted++ }).catch(() => {})
    })
    await Promise.all(turns)
    return granted
  })
  assert.ok(count >= 0)
  for (const name of ['a', 'b']) {
    const waiting = next.pass(name)
    if (name === 'a') await holder.release('a')
    assert.strictEqual((await waiting).ownerDied, false)
  }
  if (!LINUX) assert.deepStrictEqual(await next.run(({ locks }) => locks.query()), { held: [], pending: [] })
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

test('more names are awaited than there are threads; then none holds the loop', { timeout: 120000 }, async t => {
  const folder = scratchFolder(t)
  const [holder, waiter] = await startMembers(t, folder, 2)
  const NAMES = size(1100, 300)
  await holder.run(({ locks, kept }, names) => {
    kept.all = []
    return Promise.all(Array.from({ length: names }, async (_, n) => kept.all.push(await locks.hold(`name ${n}`))))
  }, NAMES)
  const waiting = waiter.run(({ locks }, names) => Promise.all(
    Array.from({ length: names }, (_, n) => locks.request(`name ${n}`, ({ ownerDied }) => ownerDied))
  ), NAMES)
  await sleep(200)
  await holder.run(({ kept }) => Promise.all(kept.all.map(lock => lock.unlock())))
  assert.deepStrictEqual([...new Set(await waiting)], [false])
  await waiter.run(({ locks }) => locks.close())
  waiter.child.disconnect()
  assert.deepStrictEqual(await waiter.ended, { code: 0, signal: null })
})

test('two folders are apart; a folder by two ways is one', { skip: LINKS }, async t => {
  const folder = scratchFolder(t)
  const [one, other] = [path.join(folder, 'one'), path.join(folder, 'other')]
  const member = await startMember(t, one)
  const apart = await startMember(t, other)
  await member.hold('a')
  await apart.pass('a')
  fs.symlinkSync(one, path.join(folder, 'link'))
  const same = await startMember(t, path.join(folder, 'link'))
  assert.strictEqual(await same.pass('a', { ifAvailable: true }), null)
  const isFree = await member.run(({ api }, link) =>
    api.processLocks(link).request('a', { ifAvailable: true }, lock => lock !== null), path.join(folder, 'link'))
  assert.strictEqual(isFree, false)
})

test('any string is a name', async t => {
  const folder = scratchFolder(t)
  const [one, other] = await startMembers(t, folder, 2)
  const names = ['', ' ', '-', '\0', '../../etc/passwd', 'a/b', '__proto__', '\ud800', '\udc00', 'é', 'e\u0301',
    'x'.repeat(1e6), 'x'.repeat(1e6) + 'y']
  for (const name of names) await one.hold(name)
  assert.strictEqual(await other.pass(names[11], { ifAvailable: true }), null)
  for (const name of names) await one.release(name)
  await other.pass(names[11], { ifAvailable: true })
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
  'the folder is moved': file => fs.renameSync(path.dirname(file), `${path.dirname(file)}.${Date.now()}.old`)
})) {
  const skip = how === 'the folder is moved'
    ? process.platform === 'win32' && 'Windows moves no folder of open files'
    : how.includes('removed') && isWine && 'Wine removes an open file only once it is closed'
  test(`${how}: the lock is lost, and others have it`, { skip }, async t => {
    const folder = path.join(scratchFolder(t), 'locks')
    const [holder, waiter, next] = await startMembers(t, folder, 3)
    const { token } = await holder.hold('a')
    remove(fileIn(folder))
    if (!fs.existsSync(folder)) fs.mkdirSync(folder)
    const after = await next.hold('a')
    assert.ok(after.token > token)
    assert.strictEqual((await holder.release('a').catch(error => error)).code, 'ERR_LOCK_LOST')
    if (INTERRUPTS) return
    // One that waits has opened a file that is going to be another one. It need not wait until the holder of that ends.
    const waiting = waiter.pass('a')
    await waiter.waits('a')
    remove(fileIn(folder))
    if (!fs.existsSync(folder)) fs.mkdirSync(folder)
    const isReleased = how.includes('second link')
    if (isReleased) assert.strictEqual((await next.release('a').catch(error => error)).code, 'ERR_LOCK_LOST')
    assert.ok((await waiting).token > after.token)
    if (!isReleased) assert.strictEqual((await next.release('a').catch(error => error)).code, 'ERR_LOCK_LOST')
    assert.strictEqual((await next.pass('a')).ownerDied, false)
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
  const folder = scratchFolder(t)
  const member = await startMember(t, folder)
  await member.pass('a')
  const result = await member.run(async ({ locks, fs, sleep, require }) => {
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
