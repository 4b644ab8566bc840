'use strict'
// nodes: >=16 (older ones lack what the engines need)

// Descriptors of free locks, which a process keeps for a moment: what others do to the files meanwhile, and when they
// are closed.

const assert = require('assert')
const { execFileSync, spawnSync } = require('child_process')
const fs = require('fs')
const path = require('path')
const { test } = require('../harness')
const { ENTRY, scratchFolder, startMember } = require('../fixtures/lock-processes')
const { processLocks } = require('../../processes')

const LINUX = process.platform !== 'linux' && 'only Linux shows descriptors'
const sleep = milliseconds => new Promise(resolve => setTimeout(resolve, milliseconds))

/** Counts the descriptors of this process for lock files in a folder, removed ones, too. All are closed each second. */
function keptIn (folder) {
  const linkOf = descriptor => {
    try {
      return fs.readlinkSync('/proc/self/fd/' + descriptor)
    } catch (_) {
      return ''
    }
  }
  return fs.readdirSync('/proc/self/fd').map(linkOf).filter(link => link.startsWith(folder + '/')).length
}

async function until (condition) {
  while (!condition()) await sleep(5)
}

/** What others do to the file of a free lock. */
const hands = {
  'is removed': file => fs.unlinkSync(file),
  'is removed, and has a second link': file => {
    fs.linkSync(file, file + '.link')
    fs.unlinkSync(file)
  },
  'is moved away': file => fs.renameSync(file, file + '.old'),
  'is replaced': file => {
    fs.copyFileSync(file, file + '.new')
    fs.renameSync(file + '.new', file)
  },
  'is truncated': file => fs.truncateSync(file),
  'moves with its folder': file => {
    fs.renameSync(path.dirname(file), path.dirname(file) + '.old')
    fs.mkdirSync(path.dirname(file))
  }
}

for (const [what, act] of Object.entries(hands)) {
  test(`the file of a kept descriptor ${what}: never two holders, and tokens grow`, { skip: LINUX }, async t => {
    const folder = path.join(scratchFolder(t), 'locks')
    const locks = processLocks(folder)
    const member = await startMember(t, folder)
    let first
    do first = await locks.request('a', ({ token }) => token)
    while (keptIn(folder) === 0)
    act(path.join(folder, fs.readdirSync(folder)[0]))
    const { token, ownerDied } = await member.hold('a')
    assert.ok(token > first && !ownerDied)
    assert.strictEqual(await locks.request('a', { ifAvailable: true }, lock => lock), null)
    assert.strictEqual(await locks.request('a', { ifAvailable: true, mode: 'shared' }, lock => lock), null)
    const next = locks.request('a', lock => [lock.token, lock.ownerDied])
    await member.release('a')
    const [last, hasDied] = await next
    assert.ok(last > token && !hasDied)
  })
}

test('a lock that has been given back is free for others, and shows nowhere', { skip: LINUX }, async t => {
  const folder = scratchFolder(t)
  const locks = processLocks(folder)
  do {
    for (const mode of ['exclusive', 'shared']) await locks.request('a', { mode }, () => {})
    await locks.request('b', lock => lock.abandon())
  } while (keptIn(folder) < 2)
  assert.deepStrictEqual((await locks.query()).held, [])
  // This thread stands still meanwhile.
  const program = `require(${JSON.stringify(ENTRY)}).processLocks(${JSON.stringify(folder)})
    .request('b', { timeout: 5000 }, lock => console.log(lock.ownerDied))`
  assert.strictEqual(execFileSync(process.execPath, ['-e', program], { encoding: 'utf8' }), 'true\n')
})

test('few are kept, and none for long', { skip: LINUX }, async t => {
  const folder = scratchFolder(t)
  const locks = processLocks(folder)
  let most = 0
  for (let n = 0; n < 100; n++) {
    await locks.request('name ' + n, () => {})
    most = Math.max(most, keptIn(folder))
  }
  // As many more may be about to be closed.
  assert.ok(most > 1 && most <= 2 * 16, `${most} descriptors`)
  await until(() => keptIn(folder) === 0)
})

test('they are closed before a descriptor is lacking for a lock', { skip: LINUX }, async t => {
  const member = await startMember(t, scratchFolder(t))
  const outcomes = await member.run(async ({ locks, fs }) => {
    for (const name of ['a', 'b', 'c']) await locks.request(name, () => {})
    const taken = []
    try {
      for (;;) taken.push(fs.openSync('/dev/null'))
    } catch ({ code }) {
      if (code !== 'EMFILE') return code
    }
    try {
      return await Promise.all(['d', 'e'].map(name => locks.request(name, { ifAvailable: true }, lock => lock.name)))
    } catch ({ code }) {
      return code
    } finally {
      for (const descriptor of taken) fs.closeSync(descriptor)
    }
  })
  assert.deepStrictEqual(outcomes, ['d', 'e'])
})

test('a drive can be unmounted soon after its locks are free', { skip: LINUX, timeout: 60000 }, async t => {
  const drive = path.join(scratchFolder(t), 'drive')
  fs.mkdirSync(drive)
  const run = (...args) => spawnSync(...args).status === 0
  if (!run('mount', ['-t', 'tmpfs', 'locks', drive])) return t.skip('it takes the right to mount')
  t.after(() => run('umount', ['--lazy', drive]))
  const locks = processLocks(path.join(drive, 'locks'))
  do await locks.request('a', () => {})
  while (keptIn(drive) === 0)
  await until(() => run('umount', [drive]))
  await assert.rejects(locks.request('a', () => {}), { code: 'ERR_LOCK_UNAVAILABLE' })
  assert.deepStrictEqual(fs.readdirSync(drive), [])
})
