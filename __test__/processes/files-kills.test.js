'use strict'
// nodes: >=16 (older ones lack what the engines need)
// timeout: 400

// Locks of files whose holder is killed at one of its system calls, one after the other, by strace.

const assert = require('assert')
const { spawnSync } = require('child_process')
const { createHash } = require('crypto')
const fs = require('fs')
const path = require('path')
const { test } = require('../harness')
const { ENTRY, scratchFolder } = require('../fixtures/lock-processes')
const size = require('../fixtures/size')
const { files, processLocks } = require('../../processes')

const NO_STRACE = spawnSync('strace', ['-V']).status !== 0 && 'there is no strace'
const CALLS = ['openat', 'flock', 'statx,newfstatat,fstat', 'pread64', 'pwrite64', 'fdatasync,fsync', 'close']
const FILE = createHash('sha256').update(Buffer.from('a', 'utf16le')).digest('hex') + '.lock'

/** Runs in the process: takes a lock and gives it back. Its room has the token while it is inside. */
function visit (entry, folder, isDurable, room) {
  const fs = require('fs')
  const api = require(entry)
  api.processLocks(api.files(folder, { durable: isDurable })).request('a', async ({ token }) => {
    fs.writeFileSync(room, String(token))
    await new Promise(resolve => setTimeout(resolve, 1))
    fs.writeFileSync(room, '')
  })
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
  const program = `(${visit})(${[ENTRY, folder, isDurable, room].map(each => JSON.stringify(each)).join(', ')})`
  const { status, signal } = spawnSync('strace', [
    '-f', '-qq', '-o', '/dev/null', '-P', folder, '-P', path.join(folder, FILE), '-e', `trace=${call}`,
    '-e', `inject=${call}:signal=KILL:when=${place}`, process.execPath, '-e', program
  ])
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
