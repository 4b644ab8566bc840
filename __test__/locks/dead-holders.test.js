'use strict'

// Threads that end while they hold something, or as it is granted. Of an AsyncLock: ends/owner-death.test.js.

const assert = require('assert')
const { test } = require('../harness')
const { HOLDS, newHold } = require('../fixtures/holds')
const { startMember, untilWaiters, waiters } = require('../fixtures/family-toolbox')
const { TURNS_ONCE_MORE, busy, now, randomFrom, startWorker } = require('../fixtures/queue-toolbox')

/** The ways in which a thread may end. */
const WAYS = {
  'terminate()': member => { member.terminate() },
  'process.exit()': member => { member.do('exit', 3) },
  'an exception': member => { member.do('throwLater') }
}

for (const kind of HOLDS.filter(({ name }) => name !== 'AsyncLock')) {
  const { label, name, options, isExclusive, most, args, tries, blocks, awaits, runs, all } = kind

  for (const way of Object.keys(WAYS)) {
    test(`${label}, ${way}: what a thread holds comes back; told of it: ${isExclusive ? 'one' : 'none'}`, async t => {
      const it = newHold(kind)
      const { sab, on, isFree } = it
      const member = await startMember(t, sab)
      const forms = [blocks, awaits, runs]
      for (const held of most === 1 ? forms.map(form => [form]) : [forms]) {
        const victim = await startMember(t, sab)
        // Permits that it has given back, or has not got, do not come back.
        await on(victim)(`${tries} as before`, ...args)
        await victim.do('unlock', 'before')
        for (const form of held) {
          if (form !== runs) await on(victim)(`${form} as ${form}`, ...args)
          else on(victim)(form, ...args, { tell: 1, holdUntil: 2 }).catch(() => {})
        }
        if (held.includes(runs)) await victim.untilSet(1)
        await on(victim)(all.blocks, ...all.args, { timeout: 1 }).catch(() => {})
        const blocked = on(member)(all.blocks, ...all.args)
        await untilWaiters(sab, 0, 1)
        const awaited = it.waitForAll()
        WAYS[way](victim)
        assert.deepStrictEqual(await blocked, { ownerDied: isExclusive, locked: true })
        await victim.exited
        await member.do('unlock', 'token')
        const token = await awaited
        assert.strictEqual(token.ownerDied, false)
        token.unlock()
        assert.ok(isFree())
      }
    })
  }

  for (const form of [awaits, runs].concat(label === 'Semaphore' ? 'acquireAsync' : [])) {
    // A promise of permits may settle in that turn.
    const skip = name === 'Semaphore' && form !== runs && TURNS_ONCE_MORE
    test(`${label}, ${form}: what a thread is granted that dies before it knows comes back`, { skip }, async t => {
      const it = newHold(kind)
      const victim = await startMember(t, it.sab)
      const held = await it.waitForAll()
      const call = [name, 0, options, form, form === runs ? args.concat({ tell: 3, holdUntil: 4 }) : args]
      victim.do('beginAndBeBusy', 'call', call, 1, 2)
      await victim.untilSet(1)
      assert.strictEqual(waiters(it.sab), 1)
      const next = it.waitForAll()
      held.unlock()
      assert.strictEqual(waiters(it.sab), 1, 'granted')
      await victim.terminate()
      assert.deepStrictEqual([victim.isSet(0), victim.isSet(3)], [false, false])
      const token = await next
      assert.strictEqual(token.ownerDied, isExclusive)
      token.unlock()
      assert.ok(it.isFree())
    })
  }
}

test('threads that die at any moment leave all permits of a limit behind', { timeout: 60000 }, async t => {
  const random = randomFrom(3)
  const { sab, thing: limit, isFree } = newHold(HOLDS.find(({ label }) => label === 'Semaphore with permits'))
  const { permits } = limit
  const survivor = startWorker(t, { sab, permits }, ({ api, data: { sab, permits } }) => {
    const limit = new api.Semaphore(sab, { permits })
    for (;;) limit.useSync(1, () => {})
  })
  const end = now() + 400
  for (let round = 0; now() < end || round < 3; round++) {
    const victim = startWorker(t, { sab, permits }, async ({ api, post, data: { sab, permits } }) => {
      const limit = new api.Semaphore(sab, { permits })
      post('begins')
      for (;;) {
        limit.hold(permits).unlock()
        await limit.use(1, () => {})
      }
    })
    victim.done().catch(() => {})
    await victim.next()
    busy(random() * 3)
    await victim.terminate()
    const token = await limit.holdAsync(permits, { timeout: 20000 })
    assert.strictEqual(limit.available, 0)
    token.unlock()
  }
  await survivor.terminate()
  assert.ok(isFree())
})
