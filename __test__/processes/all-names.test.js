'use strict'
// nodes: >=16 (older ones lack what the engines need)

// Requests for several names: all or none, whatever happens between the first and the last.

const assert = require('assert')
const fs = require('fs')
const path = require('path')
const util = require('util')
const { test } = require('../harness')
const { FakeEngine, withResolvers } = require('../fixtures/fake-engine')
const { scratchFolder, startMember, startMembers } = require('../fixtures/lock-processes')
const { TinyController } = require('../fixtures/lock-toolbox')
const slowness = require('../fixtures/slowness')
const { processLocks } = require('../../processes')

const turn = () => new Promise(resolve => setImmediate(resolve))
const code = promise => promise.then(() => 'fulfilled', error => error.code || error.name)
const fail = () => { throw new Error('on purpose') }

/** An engine whose locks have names: it notes who is asked for, what is held, and the deaths that releases report. */
class NamedEngine extends FakeEngine {
  constructor (options) {
    super()
    Object.assign(this, { names: [], held: new Map(), ends: [], marks: new Set(), gates: new Map() }, options)
  }

  async acquire (name, mode, signal) {
    this.names.push(name)
    const aborted = new Promise((resolve, reject) => {
      signal.addEventListener('abort', () => reject(new Error('given up')))
    })
    aborted.catch(() => {})
    if (this.gates.has(name)) await Promise.race([this.gates.get(name).promise, aborted])
    return this.grantOf(name)
  }

  async attempt (name) {
    this.names.push(name)
    return this.gates.has(name) ? undefined : this.grantOf(name)
  }

  grantOf (name) {
    const grant = this.grant()
    grant.ownerDied = this.marks.has(name)
    const { release } = grant
    grant.release = async died => {
      this.held.delete(name)
      this.ends.push(died ? name + ' died' : name)
      if (died) this.marks.add(name)
      else this.marks.delete(name)
      return release(died)
    }
    this.held.set(name, this.losers[this.losers.length - 1])
    return grant
  }

  /** Keeps a name from being granted until the result is resolved. */
  close (name) {
    if (name === undefined) return super.close()
    const gate = withResolvers()
    this.gates.set(name, gate)
    return gate
  }
}

/** Runs a test of each form: a request, and a hold with what the callback would do. */
const forms = {
  requestAll: (locks, names, options, callback) => locks.requestAll(names, options, callback),
  holdAll: async (locks, names, options, callback) => {
    const lock = await locks.holdAll(names, options)
    if (lock === null) return callback(null)
    const result = await callback(lock)
    await lock.unlock()
    return result
  }
}

for (const [form, call] of Object.entries(forms)) {
  test(`${form}: sorted by code units, without doubles; the lock has names and tokens in their order`, async () => {
    const engine = new NamedEngine()
    const locks = processLocks(engine)
    // By code points, U+1F600 would be behind U+FFFD.
    const given = ['b', '\ufffd', 'a', 'B', 'b', '', '\u{1f600}']
    const sorted = ['', 'B', 'a', 'b', '\u{1f600}', '\ufffd']
    const seen = await call(locks, new Set(given), {}, lock => {
      assert.strictEqual(engine.held.size, 6)
      for (const list of ['names', 'tokens']) {
        assert.throws(() => { lock[list].push('d') }, TypeError)
        assert.throws(() => { lock[list] = [] }, TypeError)
      }
      return [lock.names, lock.tokens, lock.mode, lock.ownerDied, lock.isLost, lock.signal.aborted]
    })
    assert.deepStrictEqual(seen, [sorted, [1, 2, 3, 4, 5, 6], 'exclusive', false, false, false])
    assert.deepStrictEqual([engine.names, engine.ends.sort(), engine.held.size], [sorted, sorted, 0])
    const shared = { mode: 'shared' }
    const one = await call(locks, (function * () { yield 'x' })(), shared, ({ names, mode }) => [names, mode])
    assert.deepStrictEqual(one, [['x'], 'shared'])
  })

  test(`${form}: an abort or a timeout while any of the names is awaited leaves nothing held`, async () => {
    const names = ['a', 'b', 'c']
    for (const [n, late] of names.entries()) {
      for (const how of ['abort', 'timeout', 'close', 'attempt']) {
        const engine = new NamedEngine({ marks: new Set(['a']) })
        engine.holders = [{ name: late, mode: 'exclusive', pid: 12, host: 'abc' }]
        const locks = processLocks(engine)
        const gate = engine.close(late)
        const aborter = new AbortController()
        const options = {
          abort: { signal: aborter.signal }, timeout: { timeout: 30 * slowness }, close: {}, attempt: { timeout: 0 }
        }[how]
        const asked = call(locks, names, options, fail)
        asked.catch(() => {})
        while (engine.names.length <= n) await turn()
        // An attempt that is in vain may be over.
        if (how !== 'attempt') assert.deepStrictEqual([...engine.held.keys()], names.slice(0, n))
        if (how === 'abort') aborter.abort()
        const closed = how === 'close' && locks.close()
        const error = await asked.catch(reason => reason)
        // Who was told of a death without a repair leaves it to the next one.
        const ends = names.slice(0, n).map(name => name === 'a' ? 'a died' : name)
        const left = [engine.ends.sort(), engine.held.size, engine.names.length]
        assert.deepStrictEqual(left, [ends, 0, n + 1], how + late)
        assert.strictEqual(error.name, how === 'abort' || how === 'close' ? 'AbortError' : 'TimeoutError')
        if (error.name === 'TimeoutError') {
          assert.ok(error.message.startsWith(`Timed out after ${options.timeout} ms waiting for "${late}", held by `))
        }
        gate.resolve()
        engine.gates.clear()
        if (how === 'close') await closed
        else assert.strictEqual(await call(locks, names, {}, lock => lock.ownerDied), true)
      }
    }
  })

  test(`${form}: one deadline for all names`, async () => {
    const engine = new NamedEngine()
    const gates = ['a', 'b', 'c'].map(name => engine.close(name))
    const began = performance.now()
    const late = code(call(processLocks(engine), ['a', 'b', 'c'], { timeout: 300 * slowness }, fail))
    for (const gate of gates.slice(0, 2)) {
      await new Promise(resolve => setTimeout(resolve, 100 * slowness))
      gate.resolve()
    }
    assert.strictEqual(await late, 'ERR_TIMEOUT')
    // With a deadline for each, it would be 500 ms.
    assert.ok(performance.now() - began < 480 * slowness)
  })

  test(`${form}: ifAvailable gives null if one of them is taken, and nothing is held`, async () => {
    for (const late of ['a', 'b', 'c']) {
      const engine = new NamedEngine()
      engine.close(late)
      const locks = processLocks(engine)
      assert.strictEqual(await call(locks, ['c', 'b', 'a'], { ifAvailable: true }, lock => lock), null)
      const last = engine.names.pop()
      assert.deepStrictEqual([engine.held.size, engine.ends.sort(), last], [0, engine.names, late])
      engine.gates.clear()
      const all = call(locks, ['a', 'b'], { ifAvailable: true }, lock => lock.names)
      assert.deepStrictEqual(await all, ['a', 'b'])
    }
  })

  test(`${form}: a name that is lost while another one is awaited gives back all`, async () => {
    const engine = new NamedEngine()
    engine.close('c')
    const asked = call(processLocks(engine), ['a', 'b', 'c'], {}, fail)
    while (engine.names.length < 3) await turn()
    engine.held.get('a').abort(FakeEngine.cable)
    const error = await asked.catch(reason => reason)
    assert.deepStrictEqual([error.code, /"a"/.test(error.message)], ['ERR_LOCK_LOST', true])
    await turn()
    assert.deepStrictEqual([engine.ends.sort(), engine.held.size], [['a died', 'b'], 0])
  })

  test(`${form}: abandon() and errors leave marks on all`, async () => {
    const engine = new NamedEngine()
    const locks = processLocks(engine)
    let late
    assert.strictEqual(await call(locks, ['a', 'b'], {}, lock => (late = lock).abandon()), true)
    assert.deepStrictEqual([engine.ends.splice(0).sort(), late.abandon()], [['a died', 'b died'], false])
    assert.strictEqual(await call(locks, ['b', 'c'], {}, lock => lock.ownerDied), true)
    assert.deepStrictEqual(engine.ends.splice(0).sort(), ['b', 'c'])
    assert.strictEqual(await call(locks, ['a'], { mode: 'shared' }, lock => lock.abandon()), false)
  })
}

test('requestAll: a loss during the callback rejects at once, marks the others, and gives them back', async () => {
  const engine = new NamedEngine()
  const locks = processLocks(engine)
  const gate = withResolvers()
  let lock
  const asked = locks.requestAll(['a', 'b'], given => {
    lock = given
    return gate.promise
  })
  while (lock === undefined) await turn()
  engine.held.get('b').abort(FakeEngine.cable)
  const error = await asked.catch(reason => reason)
  assert.deepStrictEqual([error.code, lock.signal.aborted, lock.isLost], ['ERR_LOCK_LOST', true, true])
  await turn()
  assert.deepStrictEqual(engine.ends.sort(), ['a died', 'b died'])
  gate.resolve()
  assert.strictEqual(await locks.requestAll(['a'], ({ ownerDied }) => ownerDied), true)
})

test('requestAll: after a standstill no callback begins without the first of its locks', async () => {
  const engine = new NamedEngine()
  const gate = engine.close('b')
  let left = Infinity
  engine.grantOf = name => {
    const grant = NamedEngine.prototype.grantOf.call(engine, name)
    return name === 'a' ? { ...grant, remaining: () => left } : grant
  }
  const asked = processLocks(engine).requestAll(['a', 'b'], fail)
  while (!engine.names.includes('b')) await turn()
  left = 0
  gate.resolve()
  assert.strictEqual(await code(asked), 'ERR_LOCK_LOST')
  assert.strictEqual(engine.held.size, 0)
})

test('requestAll: fulfils once each of the locks was still held at the end', async () => {
  const engine = new NamedEngine()
  engine.answers.release.push(async () => true, async () => false)
  const locks = processLocks(engine)
  assert.strictEqual(await code(locks.requestAll(['a', 'b'], () => 1)), 'ERR_LOCK_LOST')
  engine.answers.release.push(async () => false)
  const lock = await locks.holdAll(['a', 'b'])
  for (let n = 0; n < 2; n++) assert.strictEqual(await code(lock.unlock()), 'ERR_LOCK_LOST')
  // An error of the callback comes first.
  engine.answers.release.push(async () => false)
  await assert.rejects(locks.requestAll(['a', 'b'], fail), /on purpose/)
})

test('requestAll: one repair, with all held, if one of the names says that its holder died', async () => {
  const engine = new NamedEngine({ marks: new Set(['b']) })
  const locks = processLocks(engine)
  const repaired = []
  const repair = async lock => {
    await turn()
    repaired.push([lock.ownerDied, [...engine.held.keys()]])
  }
  const request = (options, callback) => locks.requestAll(['a', 'b'], options, callback)
  assert.strictEqual(await request({ repair }, lock => lock.ownerDied), false)
  assert.strictEqual(await request({ repair }, lock => lock.ownerDied), false)
  assert.deepStrictEqual([repaired, engine.ends.splice(0).sort()], [[[true, ['a', 'b']]], ['a', 'a', 'b', 'b']])
  // An error of the callback counts as a death with a repair, and changes nothing without.
  await assert.rejects(request({}, fail), /on purpose/)
  assert.deepStrictEqual(engine.ends.splice(0).sort(), ['a', 'b'])
  await assert.rejects(request({ repair }, fail), /on purpose/)
  assert.deepStrictEqual(engine.ends.splice(0).sort(), ['a died', 'b died'])
  await assert.rejects(request({ repair: fail }, () => assert.fail('it runs')), /on purpose/)
  await assert.rejects(request({ repair: lock => { lock.abandon() } }, () => assert.fail('it runs')), /abandoned/)
  assert.deepStrictEqual(engine.ends.splice(0).sort(), ['a died', 'a died', 'b died', 'b died'])
  await assert.rejects(request({}, fail), /on purpose/)
  assert.deepStrictEqual(engine.ends.splice(0).sort(), ['a died', 'b died'])
  assert.strictEqual(await request({}, lock => lock.ownerDied), true)
  assert.deepStrictEqual(engine.ends.splice(0).sort(), ['a', 'b'])
})

test('requestAll and holdAll: odd arguments are rejections, and ask for nothing', async () => {
  const engine = new NamedEngine()
  const locks = processLocks(engine)
  const names = [
    ['a', /must be an array, or another iterable, of names, not the string "a"/],
    [undefined, /of names, not undefined/], [{}, /another iterable, of names/],
    [[1], /a name must be a string, not the number 1/], [['a', null], /a name must be/],
    [[], /^RangeError: \w+: names must have at least one name$/], [new Set(), /at least one name/],
    [{ get [Symbol.iterator] () { return fail() } }, /on purpose/],
    [{ * [Symbol.iterator] () { yield 'a'; fail() } }, /on purpose/]
  ]
  for (const [odd, message] of names) {
    await assert.rejects(locks.requestAll(odd, () => {}), message)
    await assert.rejects(locks.holdAll(odd), message)
  }
  await assert.rejects(locks.requestAll(['a']), /^TypeError: requestAll: callback must be a function/)
  await assert.rejects(locks.requestAll(['a'], () => {}, () => {}), /^TypeError: requestAll: options must be an object/)
  await assert.rejects(locks.requestAll(['a'], { steal: true }, () => {}), /requestAll: options may have mode, /)
  await assert.rejects(locks.holdAll(['a'], { repair () {} }), /holdAll: options may have /)
  await assert.rejects(locks.requestAll(['a'], { mode: 'shared', repair () {} }, () => {}), /repair needs an exclusive/)
  const { signal } = new AbortController()
  const aborted = AbortSignal.abort()
  await assert.rejects(locks.requestAll(['a'], { signal: aborted }, fail), { name: 'AbortError' })
  assert.deepStrictEqual(engine.names, [])
  assert.strictEqual(await locks.requestAll(['a'], { signal }, () => 1), 1)
})

test('holdAll: unlock() gives all back, once; close() waits for it', async () => {
  const engine = new NamedEngine()
  const locks = processLocks(engine)
  const lock = await locks.holdAll(['b', 'a'])
  assert.deepStrictEqual([lock.names, lock.tokens, lock.name], [['a', 'b'], [1, 2], undefined])
  const closed = locks.close()
  await turn()
  assert.strictEqual(engine.isClosed, false)
  await (Symbol.asyncDispose ? lock[Symbol.asyncDispose]() : lock.unlock())
  await lock.unlock()
  await closed
  assert.deepStrictEqual([engine.ends.sort(), engine.isClosed], [['a', 'b'], true])
})

test('processes that ask for the same names in different orders count, and one that is killed is noticed', async t => {
  const folder = scratchFolder(t)
  const file = path.join(folder, 'number')
  fs.writeFileSync(file, '0')
  const members = await startMembers(t, path.join(folder, 'locks'), 3)
  const count = (member, names, rounds) => member.run(async ({ fs, locks }, number, all, times) => {
    for (let n = 0; n < times; n++) {
      await locks.requestAll(all, { timeout: 20000 }, async () => {
        const before = Number(fs.readFileSync(number, 'utf8'))
        await new Promise(resolve => setImmediate(resolve))
        fs.writeFileSync(number, String(before + 1))
      })
    }
  }, file, names, rounds)
  await Promise.all([
    count(members[0], ['a', 'b', 'c'], 40), count(members[1], ['c', 'a'], 40), count(members[2], ['b', 'c'], 40)
  ])
  assert.strictEqual(fs.readFileSync(file, 'utf8'), '120')

  await members[0].run(async ({ locks, kept }) => { kept.all = await locks.holdAll(['a', 'b']) })
  const waiting = members[1].run(({ locks }) => locks.requestAll(['c', 'b'], lock => lock.ownerDied))
  await members[1].waits('b')
  assert.strictEqual(await members[2].pass('a', { ifAvailable: true }), null)
  await members[0].kill()
  assert.strictEqual(await waiting, true)
  assert.deepStrictEqual((await members[2].pass('a')).ownerDied, true)
  assert.deepStrictEqual((await members[2].pass('b')).ownerDied, false)
})

test('a lock shows what it is of, in each form', async t => {
  const locks = processLocks(scratchFolder(t))
  const said = []
  const say = lock => said.push(util.inspect(lock, { breakLength: Infinity }).replace(/\d{2,}/g, '1'))
  await locks.request('a', say)
  await locks.requestAll(['a', 'b'], say)
  const held = await locks.hold('a')
  say(held)
  await held.unlock()
  const sync = locks.holdSync('a', { ifAvailable: true })
  say(sync)
  sync.unlock()
  await locks.request('c', { permits: 2 }, say)
  const one = "{ name: 'a', mode: 'exclusive', token: 1, ownerDied: false, isLost: false }"
  const all = "{ names: [ 'a', 'b' ], mode: 'exclusive', tokens: [ 1, 1 ], ownerDied: false, isLost: false }"
  const permit = "ProcessLock { name: 'c', mode: 'exclusive', token: 1, permit: 0, ownerDied: false, isLost: false }"
  assert.deepStrictEqual(said, [
    'ProcessLock ' + one, 'AllLock ' + all, 'ProcessLock ' + one, 'ProcessLock ' + one, permit
  ])
})

test('more names than a process may have descriptors: a timeout gives back all', {
  skip: process.platform !== 'linux' && 'how few descriptors there may be was looked at on Linux only'
}, async t => {
  const member = await startMember(t, scratchFolder(t), {}, undefined, 128)
  const names = Array.from({ length: 150 }, (_, n) => `name ${n}`)
  const request = (all, timeout) => member.run(({ locks }, wanted, limit) => (
    locks.requestAll(wanted, { timeout: limit }, lock => lock.names.length).catch(({ code }) => code)), all, timeout)
  // Some of these are over while names are taken, others while a descriptor is awaited.
  for (const timeout of [1, 5, 20, 100, 1000]) assert.strictEqual(await request(names, timeout), 'ERR_TIMEOUT')
  assert.strictEqual(await request(names.slice(0, 20), 20000), 20)
})

test('many requests of a batch listen to the loss of their lock: Node does not warn of a leak', async t => {
  const warnings = []
  const note = warning => warnings.push(String(warning))
  process.on('warning', note)
  t.after(() => process.removeListener('warning', note))
  const locks = processLocks(scratchFolder(t))
  const twelve = request => Promise.all(Array.from({ length: 12 }, request))
  await twelve(() => locks.requestAll(['a'], () => {}))
  await twelve(() => locks.request('b', ({ signal }) => signal.addEventListener('abort', fail)))
  await turn()
  assert.deepStrictEqual(warnings, [])
  // As jsdom does.
  const { AbortController } = global
  t.after(() => { global.AbortController = AbortController })
  global.AbortController = TinyController
  assert.strictEqual(await locks.request('c', ({ signal }) => signal.aborted), false)
})
