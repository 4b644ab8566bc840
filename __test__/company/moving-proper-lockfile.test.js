'use strict'
// nodes: >=20 (the scripts that install packages need it)
// timeout: 300

// docs/coming-from-proper-lockfile.md, with the real package beside this one.

const assert = require('assert')
const { spawn } = require('child_process')
const fs = require('fs')
const path = require('path')
const { setTimeout: sleep } = require('timers/promises')
const { scratchFolder } = require('../fixtures/entries/folders')
const { codeOf, load, movingFrom } = require('../fixtures/moving')
const { runNode } = require('../fixtures/run-node')
const { pathName, processLocks } = require('../../processes')

const moving = movingFrom('proper-lockfile', ['proper-lockfile'])
const { test } = moving

/** Makes a file and what its cells know. `theirs` and `ours` run a cell of a pair. */
async function place (t) {
  const folder = scratchFolder(t)
  const file = path.join(folder, 'data.json')
  fs.writeFileSync(file, '{}')
  const lockfile = await load('proper-lockfile')
  const locks = processLocks(path.join(folder, 'locks'))
  const held = new Map()
  return {
    file, folder, lockfile, locks, held,
    theirs: (pair, names) => moving.theirs(pair, { ...lockfile, file, ...names }),
    ours: (pair, names) => moving.ours(pair, { locks, pathName, file, held, ...names })
  }
}

test('lock: a second one fails at once; release: it is free again', async t => {
  const { theirs, ours } = await place(t)
  const release = await theirs('await lock(file)')
  const lock = await ours('await lock(file)')
  assert.strictEqual(await codeOf(theirs('await lock(file)')), 'ELOCKED')
  const error = await ours('await lock(file)').catch(each => each)
  assert.deepStrictEqual([error.code, error.holder.pid], ['ERR_TIMEOUT', process.pid])
  await theirs('await release()', { release })
  await ours('await release()', { lock })
  assert.strictEqual(await codeOf(theirs('await release()', { release })), 'ERELEASED')
  assert.strictEqual(await codeOf(ours('await release()', { lock })), 'none')
  await (await theirs('await lock(file)'))()
  await (await ours('await lock(file)')).unlock()
})

test('retries: the wait goes on until the lock is free', async t => {
  const { theirs, ours } = await place(t)
  const cell = 'await lock(file, { retries: 5 })'
  const [release, lock] = [await theirs('await lock(file)'), await ours('await lock(file)')]
  const order = []
  const [their, our] = [[theirs, release], [ours, () => lock.unlock()]].map(([run, free]) => {
    const next = run(cell).then(value => {
      order.push('next')
      return value
    })
    return { next, free }
  })
  await sleep(50)
  assert.deepStrictEqual(order, [])
  await Promise.all([their.free(), our.free()])
  await (await their.next)()
  await (await our.next).unlock()
})

test('`retries: n` of theirs wait for as long as the page says', async t => {
  const { file, lockfile } = await place(t)
  const page = fs.readFileSync(path.join(__dirname, '..', '..', 'docs', 'coming-from-proper-lockfile.md'), 'utf8')
  const [, formula] = /For `retries: n`[^`]*`timeout: ([^`]+)`/.exec(page)
  fs.mkdirSync(`${file}.lock`)
  const { setTimeout: later } = global
  t.after(() => { global.setTimeout = later })
  for (const retries of [0, 1, 3, 5, 8]) {
    let sum = 0
    global.setTimeout = (callback, milliseconds) => {
      sum += milliseconds
      return later(callback, 0)
    }
    assert.strictEqual(await codeOf(lockfile.lock(file, { retries })), 'ELOCKED')
    global.setTimeout = later
    // eslint-disable-next-line no-new-func -- the page's own expression
    assert.strictEqual(new Function('n', `return ${formula}`)(retries), sum, String(retries))
  }
})

test('unlock: by the file', async t => {
  const { theirs, ours, held, locks } = await place(t)
  await theirs('await lock(file)')
  const lock = await ours('await lock(file)')
  held.set(lock.name, lock)
  await theirs('await unlock(file)')
  await ours('await unlock(file)')
  assert.strictEqual(await codeOf(theirs('await unlock(file)')), 'ENOTACQUIRED')
  assert.strictEqual(await theirs('await check(file)'), false)
  assert.deepStrictEqual((await locks.query(lock.name)).held, [])
})

test('check: true while it is held, otherwise false', async t => {
  const { theirs, ours } = await place(t)
  const cell = 'await check(file)'
  assert.deepStrictEqual([await theirs(cell), await ours(cell)], [false, false])
  const [release, lock] = [await theirs('await lock(file)'), await ours('await lock(file)')]
  assert.deepStrictEqual([await theirs(cell), await ours(cell)], [true, true])
  await Promise.all([release(), lock.unlock()])
  assert.deepStrictEqual([await theirs(cell), await ours(cell)], [false, false])
})

test('lockSync, checkSync, unlockSync: nothing is awaited', async t => {
  const { file, folder, theirs, ours, held, locks } = await place(t)
  process.env.LOCKS = path.join(folder, 'locks')
  t.after(() => { delete process.env.LOCKS })
  const { isHeld } = require(path.join(await moving.project(t), 'is-held.js'))
  const check = async () => [await theirs('checkSync(file)'), await ours('checkSync(file)', { isHeld })]
  assert.deepStrictEqual(await check(), [false, false])
  const [releaseSync, lock] = [await theirs('lockSync(file)'), await ours('lockSync(file)')]
  assert.deepStrictEqual(await check(), [true, true])
  assert.strictEqual(await codeOf(theirs('lockSync(file)')), 'ELOCKED')
  assert.strictEqual(await codeOf(ours('lockSync(file)')), 'ERR_TIMEOUT')
  await theirs('releaseSync()', { releaseSync })
  assert.strictEqual(await ours('releaseSync()', { lock }), undefined)
  assert.deepStrictEqual(await check(), [false, false])
  await theirs('lockSync(file)')
  held.set(pathName(file), await ours('lockSync(file)'))
  await theirs('unlockSync(file)')
  await ours('unlockSync(file)')
  assert.deepStrictEqual(await check(), [false, false])
  // A look at a lock leaves the mark of a death to the next holder.
  await locks.request(pathName(file), lock => { lock.abandon() })
  assert.deepStrictEqual(await check(), [false, false])
  assert.strictEqual(await locks.request(pathName(file), ({ ownerDied }) => ownerDied), true)
})

test('two spellings of a file are one lock, of a file that is not there, too', async t => {
  const { file, folder, lockfile, locks } = await place(t)
  fs.symlinkSync(folder, path.join(folder, 'link'), 'junction')
  const spellings = [file, path.join(folder, 'link', 'data.json'), path.relative('', file)]
  for (const one of spellings) {
    const [release, lock] = [await lockfile.lock(one), await locks.hold(pathName(one))]
    for (const other of spellings) {
      assert.strictEqual(await codeOf(lockfile.lock(other)), 'ELOCKED')
      assert.strictEqual(await locks.hold(pathName(other), { ifAvailable: true }), null)
    }
    await Promise.all([release(), lock.unlock()])
  }
  fs.unlinkSync(file)
  assert.strictEqual(await codeOf(lockfile.lock(file)), 'ENOENT')
  await (await lockfile.lock(file, { realpath: false }))()
  const lock = await locks.hold(pathName(file))
  assert.strictEqual(await locks.hold(pathName(spellings[1]), { ifAvailable: true }), null)
  await lock.unlock()
})

/** Runs a program of the page for a file, `count` times at once, half of them by another spelling. */
async function runAll (t, project, programs, file, other, folder = path.join(project, 'locks')) {
  const env = { LOCKS: folder }
  const args = programs.map((name, n) => [path.join(project, name), n % 2 === 0 ? file : other])
  const ends = await Promise.all(args.map(each => runNode(t, each, { env })))
  for (const { code, stderr } of ends) assert.deepStrictEqual([code, stderr], [0, ''])
}

test('the programs before, after and during the change count right, by two spellings', { timeout: 120000 }, async t => {
  const { file, folder } = await place(t)
  const project = await moving.project(t)
  fs.symlinkSync(folder, path.join(folder, 'link'), 'junction')
  const after = fs.readFileSync(path.join(project, 'after.js'), 'utf8')
  // The program after the change, with both locks.
  fs.writeFileSync(path.join(project, 'both.js'), after
    .replace(/^const locks = .*$/m, "const { withBoth } = require('./during.js')")
    .replace('locks.request(name, { timeout: 60000 }, ', 'withBoth(name, '))
  for (const programs of [['before', 'before'], ['after', 'after'], ['before', 'both', 'both', 'before']]) {
    fs.writeFileSync(file, '{"total":0}')
    await runAll(t, project, programs.map(name => `${name}.js`), file, path.join(folder, 'link', 'data.json'))
    assert.strictEqual(JSON.parse(fs.readFileSync(file, 'utf8')).total, 20 * programs.length, programs.join())
  }
})

test('the program after the change keeps the permissions of the file', async t => {
  const { file, folder } = await place(t)
  if (process.platform === 'win32') return t.skip('it has no such permissions')
  fs.writeFileSync(file, '{"total":0}')
  fs.chmodSync(file, 0o600)
  await runAll(t, await moving.project(t), ['after.js'], file, '', path.join(folder, 'locks'))
  assert.strictEqual((fs.statSync(file).mode & 0o777).toString(8), '600')
})

test('a class with lock(), before and after: one lock for two spellings; the readers of ours share', async t => {
  const { file, folder, locks } = await place(t)
  const project = await moving.project(t)
  fs.symlinkSync(folder, path.join(folder, 'link'), 'junction')
  for (const name of ['store-before', 'store-after']) {
    const { Store } = require(path.join(project, `${name}.js`))
    const [one, other] = [new Store(file), new Store(path.join(folder, 'link', 'data.json'))]
    const release = await one.lock()
    const next = other.lock()
    assert.strictEqual(await Promise.race([next, sleep(50, 'waits')]), 'waits', name)
    await release();
    (await next)()
    if (name === 'store-before') continue
    fs.writeFileSync(path.join(folder, '.locks', '.gitignore'), '*\n')
    await one.read(() => other.read(() => {})) // both inside
    assert.deepStrictEqual((await one.locks.query()).held, [])
  }
  assert.deepStrictEqual((await locks.query()).held, [])
})

test('the program after the change is killed: no update of another is lost', { timeout: 120000 }, async t => {
  const { file, folder } = await place(t)
  const project = await moving.project(t)
  fs.symlinkSync(folder, path.join(folder, 'link'), 'junction')
  fs.writeFileSync(file, '{"total":0}')
  const total = () => JSON.parse(fs.readFileSync(file, 'utf8')).total
  const env = { ...process.env, LOCKS: path.join(folder, 'locks') }
  let kills = 0
  for (let n = 0; n < 10; n++) {
    const before = total()
    const victim = spawn(process.execPath, [path.join(project, 'after.js'), file], { env, stdio: 'inherit' })
    const ended = new Promise(resolve => victim.on('exit', (code, signal) => { resolve(signal) }))
    const others = runAll(t, project, ['after.js'], path.join(folder, 'link', 'data.json'), '', env.LOCKS)
    while (total() < before + 1 + n) await sleep(1)
    victim.kill('SIGKILL')
    if (await ended === 'SIGKILL') kills++
    await others
    assert.ok(total() >= before + 20 && total() <= before + 40, `${before} → ${total()}`)
  }
  assert.ok(kills > 0)
})

/** Starts a process that takes the lock of a file by both packages; resolves once it has them. */
async function holder (t, project, file, then) {
  const code = `
    const lockfile = require('proper-lockfile')
    const { pathName, processLocks } = require('atomics-waitasync/processes')
    const file = ${JSON.stringify(file)}
    const locks = processLocks(${JSON.stringify(path.join(path.dirname(file), 'locks'))})
    async function main () {
      await lockfile.lock(file, { stale: 2000 })
      await locks.hold(pathName(file))
      require('fs').writeSync(1, 'held')
      ${then}
    }
    main()`
  const child = spawn(process.execPath, ['-e', code], { cwd: project, stdio: ['ignore', 'pipe', 'inherit'] })
  t.after(() => { child.kill('SIGKILL') })
  const ended = new Promise(resolve => child.on('exit', resolve))
  await new Promise((resolve, reject) => {
    child.stdout.once('data', resolve)
    child.on('exit', () => { reject(new Error('it has ended')) })
  })
  return { child, ended }
}

test('a holder is killed: theirs is free after `stale`, ours at once, with ownerDied', async t => {
  const { file, lockfile, locks } = await place(t)
  const { child, ended } = await holder(t, await moving.project(t), file, 'setInterval(() => {}, 1000)')
  child.kill('SIGKILL')
  await ended
  const lock = await locks.hold(pathName(file), { timeout: 0 })
  assert.strictEqual(lock.ownerDied, true)
  await lock.unlock()
  assert.strictEqual(await codeOf(lockfile.lock(file, { stale: 2000 })), 'ELOCKED')
  const release = await lockfile.lock(file, { stale: 2000, retries: { retries: 100, minTimeout: 100, factor: 1 } })
  await release()
})

test('a holder whose event loop is busy: theirs is overtaken, ours is not', async t => {
  const { file, lockfile, locks } = await place(t)
  await holder(t, await moving.project(t), file, 'for (;;);')
  const release = await lockfile.lock(file, { stale: 2000, retries: { retries: 100, minTimeout: 100, factor: 1 } })
  assert.strictEqual(await locks.hold(pathName(file), { ifAvailable: true }), null)
  await release()
})

test('a lock that is held keeps no process alive, and is free after its end', async t => {
  const { file, lockfile, locks } = await place(t)
  const { ended } = await holder(t, await moving.project(t), file, '')
  assert.strictEqual(await ended, 0)
  assert.strictEqual(await lockfile.check(file), false)
  assert.deepStrictEqual((await locks.query(pathName(file))).held, [])
})

test('a lock file is removed: onCompromised, by default an uncaught error; ours rejects', async t => {
  const { file, folder, lockfile, locks } = await place(t)
  const alive = setInterval(() => {}, 1000) // their timer keeps no process alive
  const compromised = new Promise(resolve => {
    lockfile.lock(file, { stale: 2000, onCompromised: resolve })
      .then(() => { fs.rmSync(`${file}.lock`, { recursive: true }) })
  })
  assert.strictEqual((await compromised).code, 'ECOMPROMISED')
  clearInterval(alive)
  const code = `require('proper-lockfile').lock(${JSON.stringify(file)}, { stale: 2000 }).then(() => {
    require('fs').rmSync(${JSON.stringify(`${file}.lock`)}, { recursive: true })
    setTimeout(() => {}, 10000)
  })`
  const { code: exitCode, stderr } = await runNode(t, ['-e', code], { cwd: await moving.project(t) })
  assert.strictEqual(exitCode, 1)
  assert.ok(stderr.includes("code: 'ECOMPROMISED'"), stderr)

  const remove = () => {
    for (const name of fs.readdirSync(path.join(folder, 'locks'))) fs.unlinkSync(path.join(folder, 'locks', name))
  }
  const lock = await locks.hold(pathName(file))
  remove()
  const second = `require('atomics-waitasync/processes').processLocks(${JSON.stringify(path.join(folder, 'locks'))})
    .request(${JSON.stringify(pathName(file))}, { timeout: 0 }, () => console.log('two holders'))`
  const { stdout } = await runNode(t, ['-e', second], { cwd: await moving.project(t) })
  assert.deepStrictEqual([stdout, lock.signal.aborted, lock.isLost], ['two holders\n', false, false])
  const fail = () => { throw Object.assign(new Error('of its own'), { code: 'OWN' }) }
  assert.strictEqual(await codeOf((async () => { try { fail() } finally { await lock.unlock() } })()), 'ERR_LOCK_LOST')
  assert.strictEqual(await codeOf(locks.request(pathName(file), remove)), 'ERR_LOCK_LOST')
  assert.strictEqual(await codeOf(locks.request(pathName(file), () => {
    remove()
    fail()
  })), 'OWN')
})

test('options: lockfilePath is a name of its own choice, realpath: false a resolved path', async t => {
  const { file, folder, lockfile, locks } = await place(t)
  const lockfilePath = path.join(folder, 'settings')
  const [release, lock] = [await lockfile.lock(file, { lockfilePath }), await locks.hold('settings')]
  assert.strictEqual(await lockfile.check(file), false)
  assert.strictEqual(await codeOf(lockfile.lock(file, { lockfilePath })), 'ELOCKED')
  assert.strictEqual(await locks.hold('settings', { ifAvailable: true }), null)
  await Promise.all([release(), lock.unlock()])
  assert.ok(!fs.existsSync(lockfilePath))
  assert.ok(fs.readdirSync(path.join(folder, 'locks')).length > 0)
})

moving.finish()
