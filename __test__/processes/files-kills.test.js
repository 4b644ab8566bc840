'use strict'
// nodes: >=16 (older ones lack what the engines need)
// timeout: 400

// Locks of files whose holder is killed, or suspended for a while, at one of its system calls, one after the other, by
// strace.

const assert = require('assert')
const { spawn, spawnSync } = require('child_process')
const { createHash } = require('crypto')
const fs = require('fs')
const path = require('path')
const { test } = require('../harness')
const { ENTRY, scratchFolder } = require('../fixtures/lock-processes')
const size = require('../fixtures/size')
const { files, processLocks } = require('../../processes')

const NO_STRACE = spawnSync('strace', ['-V']).status !== 0 && 'there is no strace'
/** musl's library has some other calls; strace passes over those that a system does not have. */
const CALLS = [
  'openat,?open', 'flock', 'statx,newfstatat,fstat,?stat,?lstat', 'pread64', 'pwrite64,?pwritev2', 'fdatasync,fsync',
  'fcntl,?fcntl64', 'close'
]
const FILE = createHash('sha256').update(Buffer.from('a', 'utf16le')).digest('hex') + '.lock'

/**
 * Runs in the process: takes a lock and gives it back, and again, by the descriptor that it has kept. Its room has the
 * token while it is inside.
 */
function visit (entry, folder, isDurable, room) {
  const fs = require('fs')
  fs.writeFileSync(room + '.pid', String(process.pid))
  const api = require(entry)
  const locks = api.processLocks(api.files(folder, { durable: isDurable }))
  const once = () => locks.request('a', async ({ token }) => {
    fs.writeFileSync(room, String(token))
    await new Promise(resolve => setTimeout(resolve, 1))
    fs.writeFileSync(room, '')
  })
  once().then(once)
}

/** Returns the arguments of strace for a visitor that gets a signal at the `place`th of these calls for its file. */
function signalAt (signal, call, place, folder, isDurable, room) {
  const program = `(${visit})(${[ENTRY, folder, isDurable, room].map(each => JSON.stringify(each)).join(', ')})`
  return [
    '-f', '-qq', '-o', '/dev/null', '-P', folder, '-P', path.join(folder, FILE), '-e', `trace=${call}`,
    '-e', `inject=${call}:signal=${signal}:when=${place}`, process.execPath, '-e', program
  ]
}

/**
 * Runs a visitor that is killed at the `place`th of these calls for its file. Returns whether it was; and what the next
 * holder is told: `{ before, inside, token, ownerDied }`.
 */
async function killAt (t, call, place, isDurable, isNew) {
  const scratch = scratchFolder(t)
  const folder = path.join(scratch, 'locks')
  fs.mkdirSync(folder)
  const room = path.join(scratch, 'room')
  fs.writeFileSync(room, '')
  const locks = processLocks(files(folder))
  const before = isNew ? 0 : await locks.request('a', ({ token }) => token)
  const { status, signal } = spawnSync('strace', signalAt('KILL', call, place, folder, isDurable, room))
  const inside = fs.readFileSync(room, 'utf8')
  const told = await locks.request('a', ({ token, ownerDied }) => ({ token, ownerDied }))
  assert.strictEqual(await locks.request('a', ({ ownerDied }) => ownerDied), false)
  return { isKilled: signal === 'SIGKILL' || status === 137, before, inside, ...told }
}

const cases = CALLS.flatMap(call => [false, true].flatMap(isDurable =>
  [true, false].map(isNew => ({ call, isDurable, isNew }))))

const seen = { kills: 0, told: 0, untold: 0 }

for (const [n, { call, isDurable, isNew }] of cases.entries()) {
  const what = `${call}, ${isDurable ? 'durable' : 'not durable'}, ${isNew ? 'a new file' : 'a file that is there'}`
  const skip = NO_STRACE || (!size.has(4, n) && 'another part of them is run')
  test(`killed at ${what}`, { skip, timeout: 120000 }, async t => {
    for (let place = 1; ; place++) {
      const { isKilled, before, inside, token, ownerDied } = await killAt(t, call, place, isDurable, isNew)
      assert.ok(token > before, `token ${token} after ${before}`)
      if (!isKilled) {
        assert.strictEqual(ownerDied, false)
        return
      }
      seen.kills++
      seen[ownerDied ? 'told' : 'untold']++
      if (inside !== '') assert.ok(ownerDied && token > Number(inside), 'nothing was said of a death inside')
    }
  })
}

test('some of them had the lock, and some did not', { skip: NO_STRACE }, () => {
  assert.ok(seen.told > 0 && seen.untold > 0, JSON.stringify(seen))
})

/** Resolves with whether a process is suspended, all of its threads for a while, or has ended. */
async function suspended (room, ended) {
  let isOver = false
  ended.then(() => { isOver = true })
  for (let looks = 0; !isOver; looks++) {
    if (looks === 20) return true
    await new Promise(resolve => setTimeout(resolve, 2))
    try {
      const threads = `/proc/${fs.readFileSync(room + '.pid', 'utf8')}/task`
      const stateOf = id => /^State:\s+(\w)/m.exec(fs.readFileSync(`${threads}/${id}/status`))[1]
      if (!fs.readdirSync(threads).every(id => 'tT'.includes(stateOf(id)))) looks = 0
    } catch (_) {
      looks = 0
    }
  }
  return false
}

const suspensions = { all: 0, held: 0, free: 0 }

for (const [n, call] of CALLS.entries()) {
  const isDurable = n % 2 === 1
  const what = `${call}, ${isDurable ? 'durable' : 'not durable'}`
  test(`suspended at ${what}: never two inside, and nobody has died`, { skip: NO_STRACE, timeout: 120000 }, async t => {
    const scratch = scratchFolder(t)
    const folder = path.join(scratch, 'locks')
    const room = path.join(scratch, 'room')
    const locks = processLocks(files(folder))
    let last = await locks.request('a', ({ token }) => token)
    for (let place = 1; ; place++) {
      fs.writeFileSync(room, '')
      fs.rmSync(`${room}.pid`, { force: true })
      const visitor = spawn('strace', signalAt('STOP', call, place, folder, isDurable, room), { stdio: 'inherit' })
      const ended = new Promise(resolve => visitor.once('exit', resolve))
      t.after(() => { visitor.kill('SIGKILL') })
      const isSuspended = await suspended(room, ended)
      const pid = Number(fs.readFileSync(`${room}.pid`, 'utf8'))
      const visited = fs.readFileSync(room, 'utf8')
      // strace counts by thread: one that waits is suspended, too.
      let again
      const goOn = () => {
        again = setInterval(() => {
          try {
            process.kill(pid, 'SIGCONT')
          } catch (_) {
            // It has ended, and strace has not.
          }
        }, 5)
      }
      const goesOn = async (lock) => {
        if (lock === null) {
          suspensions.held++
          goOn()
          return
        }
        suspensions.free++
        assert.ok(visited === '' && lock.token > last && !lock.ownerDied, `${visited} ${lock.token} ${lock.ownerDied}`)
        goOn()
        // It is awaited, if it comes at all: it may have been before.
        await new Promise(resolve => setTimeout(resolve, 50))
        assert.strictEqual(fs.readFileSync(room, 'utf8'), '', 'two are inside')
      }
      if (isSuspended) {
        suspensions.all++
        await locks.request('a', { ifAvailable: true }, goesOn)
      }
      const code = await ended
      clearInterval(again)
      assert.strictEqual(code, 0)
      const { token, ownerDied } = await locks.request('a', ({ token, ownerDied }) => ({ token, ownerDied }))
      assert.ok(token > last && !ownerDied, `${token} after ${last}, ${ownerDied}`)
      last = token
      if (!isSuspended) return
    }
  })
}

test('some of them were suspended with the lock, and some without', { skip: NO_STRACE }, () => {
  assert.ok(suspensions.held > 0 && suspensions.free > 0, JSON.stringify(suspensions))
})
