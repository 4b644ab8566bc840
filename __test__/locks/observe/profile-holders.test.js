'use strict'
// timeout: 120

// ATOMICS_WAITASYNC_PROFILE_HOLDERS: for how long others waited, by the calls that held.

const assert = require('assert')
const fs = require('fs')
const path = require('path')
const { test } = require('../../harness')
const { needsChannels } = require('../../fixtures/channels')
const readProfile = require('../../fixtures/cpuprofile')
const { scratchFolder } = require('../../fixtures/entries/folders')
const { run } = require('../../fixtures/programs')
const { until } = require('../../fixtures/queue-toolbox')
const slowness = require('../../fixtures/slowness')

const CODE = 'ATOMICS_WAITASYNC_PROFILE_HOLDERS'
const WAITS = 'ATOMICS_WAITASYNC_PROFILE'

const fileFor = (t) => path.join(scratchFolder(t), 'holders.cpuprofile')

/** Runs a program that ends well. Gives what the file then has, and what the program told. */
async function holdersOf (t, fn, more) {
  const file = fileFor(t)
  const { code, signal, stderr, told } = await run(t, { env: Object.assign({ [CODE]: file }, more) }, fn)
  assert.deepStrictEqual([code, signal, stderr], [0, null, ''])
  return Object.assign(readProfile(file), { told: told() })
}

/** The name of the function that is charged, without its receiver. */
const functionOf = ({ frames }) => /[\w$]*$/.exec(frames[0].functionName.replace(/ \[as .*/, ''))[0]

/** Returns the milliseconds of each function, and lock. */
function byFunction (rows) {
  const times = {}
  for (const row of rows) {
    const key = `${functionOf(row)}, ${row.leaf}`
    times[key] = (times[key] || 0) + row.milliseconds
  }
  return times
}

/** Checks that a time is within 5 % of the truth. */
function assertNear (milliseconds, truth, what) {
  assert.ok(Math.abs(milliseconds - truth) < 0.05 * truth + slowness, `${what}: ${milliseconds} ms of ${truth}`)
}

test('each holder is charged as long as others waited for it, and who waits is not', async t => {
  const { rows, counts, told: [truth] } = await holdersOf(t, async ({ newLock, now, sleep, tell }) => {
    const lock = newLock('accounts')
    const truth = { one: 0, three: 0, callback: 0 }
    // Two promises wait, and one of them from half of the time on.
    async function others (key, milliseconds) {
      const waits = []
      const wait = () => waits.push([now(), lock.lockAsync().then(token => token.unlock())])
      wait()
      await sleep(milliseconds / 2)
      wait()
      await sleep(milliseconds / 2)
      const end = now()
      for (const [began] of waits) truth[key] += end - began
      return waits.map(([, served]) => served)
    }
    async function one () {
      const token = lock.tryLock()
      const waits = await others('one', 20)
      token.unlock()
      await Promise.all(waits)
    }
    async function three () {
      const token = lock.tryLock()
      const waits = await others('three', 60)
      token.unlock()
      await Promise.all(waits)
    }
    async function callback () {
      let waits
      await lock.executeLocked(async () => { waits = await others('callback', 20) })
      await Promise.all(waits)
    }
    for (let n = 0; n < 8; n++) {
      await one()
      await three()
      await callback()
      // Nobody waits for this one.
      lock.tryLock().unlock()
    }
    tell(truth)
  })
  const times = byFunction(rows)
  const names = ['one', 'three', 'callback']
  const charged = names.map(name => times[`${name}, AsyncLock "accounts"`])
  const said = JSON.stringify({ times, truth, counts })
  for (const name of names) assertNear(times[`${name}, AsyncLock "accounts"`], truth[name], said)
  // The first of the two that waited holds the lock for a moment, while the second one waits.
  const all = rows.reduce((sum, { milliseconds }) => sum + milliseconds, 0)
  assertNear(all, charged.reduce((sum, time) => sum + time, 0), said)
})

test('what an observer releases as a callback form ends is charged to the observer', needsChannels, async t => {
  const { rows } = await holdersOf(t, async ({ newLock, sleep, subscribe }) => {
    const accounts = newLock('accounts')
    const other = newLock('other')
    const token = other.tryLock()
    subscribe('hold', function observer ({ name }) { if (name === 'accounts') token.unlock() })
    const waits = [other.lockAsync()]
    async function callback () {
      await accounts.executeLocked(() => {
        waits.push(accounts.lockAsync())
        return sleep(30)
      })
    }
    await callback()
    for (const wait of waits) (await wait).unlock()
  })
  const charged = rows.map(row => `${functionOf(row)}, ${row.leaf}`).sort()
  assert.deepStrictEqual(charged, ['callback, AsyncLock "accounts"', 'observer, AsyncLock "other"'])
})

/** Holds by every form while a promise waits, each for 30 ms. Most are in this thread. */
async function holdByAll ({ api, newLock, sleep, startWorker, until, words }) {
  const accounts = newLock('accounts')
  const rates = api.RwLock.create({ name: 'rates' })
  const files = api.Semaphore.create({ name: 'files', permits: 1 })
  const changed = api.Condition.create()
  const served = []
  const whileAwaited = (wait) => {
    served.push(wait.then(token => token.unlock()))
    return sleep(30)
  }
  const { locks } = api
  const forms = {
    async token () {
      const token = accounts.tryLock()
      await whileAwaited(accounts.lockAsync())
      token.unlock()
    },
    async abandoned () {
      const token = accounts.tryLock()
      await whileAwaited(accounts.lockAsync())
      token.abandon()
    },
    async callback () { await accounts.executeLocked(() => whileAwaited(accounts.lockAsync())) },
    async unawaited () {
      let end
      const ended = new Promise(resolve => { end = resolve })
      accounts.executeLocked(() => whileAwaited(accounts.lockAsync()).then(end))
      await ended
    },
    async condition () {
      const token = accounts.tryLock()
      await whileAwaited(accounts.lockAsync())
      await changed.waitAsync(token, { timeout: 1 })
      token.unlock()
    },
    async shared () {
      const token = rates.tryLockShared()
      await whileAwaited(rates.lockAsync())
      token.unlock()
    },
    async exclusive () { await rates.executeLocked(() => whileAwaited(rates.lockSharedAsync())) },
    async downgraded () {
      const token = rates.tryLock()
      await whileAwaited(rates.lockSharedAsync())
      token.downgrade().unlock()
    },
    async downgradedCallback () {
      let end
      const ended = new Promise(resolve => { end = resolve })
      rates.executeLocked(token => {
        token.downgrade()
        return whileAwaited(rates.lockAsync()).then(end)
      })
      await ended
    },
    async permits () { await files.use(1, () => whileAwaited(files.holdAsync())) },
    async heldPermits () {
      const token = files.tryHold()
      await whileAwaited(files.holdAsync())
      token.unlock()
    },
    async named () { await locks.request('cache', () => whileAwaited(locks.holdAsync('cache'))) },
    async namedToken () {
      const token = locks.tryHold('cache')
      await whileAwaited(locks.holdAsync('cache'))
      token.unlock()
    }
  }
  for (const form of Object.keys(forms)) {
    await forms[form]()
    await Promise.all(served.splice(0))
  }
  const go = words(1)
  const thread = startWorker({ accounts, changed, go }, ({ Atomics, api, data: { accounts, changed, go }, revive }) => {
    const lock = new api.AsyncLock(accounts)
    const untilTold = (n) => { while (Atomics.load(go, 0) < n); }
    const forms = {
      blocking () {
        const token = lock.lock()
        untilTold(1)
        token.unlock()
      },
      blockingCallback () { lock.executeLockedSync(() => untilTold(3)) },
      blockingCondition () {
        const token = lock.lock()
        untilTold(5)
        new api.Condition(changed).wait(token, { timeout: 1 })
        token.unlock()
      }
    }
    // Not before the promise has been served.
    Object.keys(forms).forEach((form, n) => {
      untilTold(2 * n)
      forms[form]()
    })
  })
  for (let n = 0; n < 3; n++) {
    await until(() => accounts.locked)
    await whileAwaited(accounts.lockAsync())
    go[0]++
    await Promise.all(served.splice(0))
    go[0]++
  }
  await thread.done()
}

test('holds of every form are charged at the call of the program, with the name of their lock', async t => {
  const { rows, counts } = await holdersOf(t, holdByAll)
  // The second hold of a token that waits with a Condition may be awaited for a moment.
  const charged = rows.filter(({ milliseconds }) => milliseconds > 10)
  const accounts = 'token abandoned callback unawaited condition blocking blockingCallback blockingCondition'
  const names = [
    ...accounts.split(' ').map(name => `${name}, AsyncLock "accounts"`), 'shared, RwLock "rates" (shared)',
    'exclusive, RwLock "rates" (exclusive)', 'downgraded, RwLock "rates" (exclusive)',
    'downgradedCallback, RwLock "rates" (shared)',
    'permits, permits of Semaphore "files"', 'heldPermits, permits of Semaphore "files"',
    'named, the lock named "cache"', 'namedToken, the lock named "cache"'
  ]
  assert.deepStrictEqual(Object.keys(byFunction(charged)).sort(), names.sort())
  for (const row of charged) {
    const { milliseconds } = row
    assert.ok(milliseconds > 15 && milliseconds < 30 + slowness * 1000, `${functionOf(row)}: ${milliseconds} ms`)
    assert.strictEqual(row.frames[0].url, 'function-of-the-test.js')
  }
  assert.ok(counts.holds >= names.length && counts.holds < 2 * names.length, JSON.stringify(counts))
})

test('of many holds some are recorded for all, and the sum is the time that was waited', async t => {
  const { rows, counts, told: [waited] } = await holdersOf(t, async ({ newLock, sleep, tell, now }) => {
    const lock = newLock()
    const token = lock.tryLock()
    let waited = 0
    const tokens = async () => {
      const began = now()
      const token = await lock.lockAsync()
      waited += now() - began
      token.unlock()
    }
    const callbacks = () => {
      const began = now()
      return lock.executeLocked(() => { waited += now() - began })
    }
    const waits = Array.from({ length: 10000 }, (_, n) => n % 2 ? tokens() : callbacks())
    await sleep(300)
    token.unlock()
    await Promise.all(waits)
    tell(waited)
  })
  const total = rows.reduce((sum, { milliseconds }) => sum + milliseconds, 0)
  const said = `${total} ms of ${waited}, ${JSON.stringify(counts)}`
  assert.ok(counts.recorded < 5000, said)
  assert.ok(total > 0.9 * waited && total < 1.1 * waited, said)
})

test('of short holds, too, those that are recorded stand for the others', async t => {
  const { rows, counts, told: [waited] } = await holdersOf(t, async ({ busy, newLock, now, tell }) => {
    const lock = newLock()
    let waited = 0
    for (let n = 0; n < 20000; n++) {
      const token = lock.tryLock()
      const began = now()
      const wait = lock.lockAsync()
      busy(0.02)
      token.unlock()
      waited += now() - began
      ;(await wait).unlock()
    }
    tell(waited)
  })
  const total = rows.reduce((sum, { milliseconds }) => sum + milliseconds, 0)
  const said = `${total} ms of ${waited}, ${JSON.stringify(counts)}`
  assert.ok(counts.factor > 4, said)
  assert.ok(total > 0.5 * waited && total < 1.5 * waited, said)
})

const needsSignals = { skip: process.platform === 'win32' && 'this system has no signals' }
test('a dump writes both files at once, and a process that is killed leaves them', needsSignals, async t => {
  const [file, waits] = [fileFor(t), fileFor(t)]
  const env = { [CODE]: file, [WAITS]: waits, ATOMICS_WAITASYNC_DUMP: 'SIGQUIT' }
  const { signal, lines: [seconds] } = await run(t, { env }, async ({ newLock, require, say, sleep, until }) => {
    const { readFileSync } = require('fs')
    const lock = newLock('accounts')
    const token = lock.tryLock()
    const wait = lock.lockAsync()
    await sleep(20)
    token.unlock()
    await wait
    process.kill(process.pid, 'SIGQUIT')
    for (const name of ['ATOMICS_WAITASYNC_PROFILE', 'ATOMICS_WAITASYNC_PROFILE_HOLDERS']) {
      await until(() => readFileSync(process.env[name], 'utf8').includes('AsyncLock'))
    }
    say(Math.round(process.uptime()))
    process.kill(process.pid, 'SIGKILL')
    await sleep(1e6)
  })
  assert.strictEqual(signal, 'SIGKILL')
  assert.ok(seconds < 9, `after ${seconds} s`)
  const [held, waited] = [file, waits].map(file => readProfile(file).rows)
  assert.deepStrictEqual([...held, ...waited].map(({ leaf }) => leaf), ['AsyncLock "accounts"', 'AsyncLock "accounts"'])
  assert.ok(held[0].milliseconds > 10, `${held[0].milliseconds} ms`)
})

test('holds in Workers are charged, also of a terminated one; a file that is a folder is one warning', async t => {
  const folder = scratchFolder(t)
  const waits = fileFor(t)
  const program = async ({ newLock, sleep, startWorker, until }) => {
    const lock = newLock()
    const thread = startWorker(lock, async ({ api, data, post, sleep }) => {
      const lock = new api.AsyncLock(data)
      async function inWorker () {
        const token = lock.lock()
        while (lock.waiters === 0) await sleep(1)
        await sleep(30)
        token.unlock()
        post('charged')
        await sleep(1e6)
      }
      await inWorker()
    })
    await until(() => lock.locked)
    const token = await lock.lockAsync()
    await thread.next()
    await thread.terminate()
    token.unlock()
  }
  const { rows } = await holdersOf(t, program)
  assert.deepStrictEqual(rows.filter(({ milliseconds }) => milliseconds > 10).map(functionOf), ['inWorker'])
  const { code, stderr } = await run(t, { env: { [CODE]: folder, [WAITS]: waits } }, program)
  const warnings = stderr.split('\n').filter(line => line.includes(CODE))
  assert.deepStrictEqual([code, warnings.length], [0, 1], stderr)
  assert.ok(warnings[0].includes(`[${CODE}] Warning: ${CODE}: cannot write ${folder}: `), warnings[0])
  assert.strictEqual(readProfile(waits).rows.length, 1)
})

test('the file is there from the start', async t => {
  const file = fileFor(t)
  const ended = run(t, { env: { [CODE]: file } }, async ({ sleep }) => { await sleep(300) })
  await until(() => fs.existsSync(file))
  assert.deepStrictEqual(readProfile(file).rows, [])
  await ended
})
