'use strict'

// Claims that give up: by an abort, a timeout or their thread's death. Those behind go on, and no grant is lost.

const assert = require('assert')
const { test } = require('../harness')
const { api } = require('../subject')
const { HOLDS, newHold } = require('../fixtures/holds')
const { startMember, turns, untilWaiters, waiters, watch } = require('../fixtures/family-toolbox')
const { TinyController, memory } = require('../fixtures/lock-toolbox')
const { now, randomFrom, startWorker, until } = require('../fixtures/queue-toolbox')

const HELD = { ownerDied: false, locked: true }

for (const kind of HOLDS.filter(({ most }) => most > 1)) {
  const { label, blocks, args, all } = kind
  for (const how of ['an abort', 'a timeout', 'its thread\'s death']) {
    test(`${label}: when the first gives up (${how}), those behind it go on`, async t => {
      const it = newHold(kind)
      const { sab, isFree, on } = it
      const [victim, member] = await Promise.all([startMember(t, sab), startMember(t, sab)])
      const held = it.take()
      const controller = new TinyController()
      const first = watch(how === 'an abort' ? it.waitForAll({ signal: controller.signal })
        : how === 'a timeout' ? it.waitForAll({ timeout: 100 }) : on(victim)(all.blocks, ...all.args))
      await untilWaiters(sab, 0, 1)
      const blocked = on(member)(blocks, ...args)
      // On a busy machine the time may be over by now, and the second come only after the last.
      await until(() => waiters(sab) === 2 || first.state !== 'pending')
      if (first.state !== 'pending') await blocked
      const awaited = it.wait()
      const last = watch(it.waitForAll())
      if (how === 'an abort') controller.abort()
      if (how.endsWith('death')) await victim.terminate()
      assert.deepStrictEqual(await blocked, HELD)
      const token = await awaited
      assert.strictEqual(token.ownerDied, false)
      await turns()
      assert.deepStrictEqual([last.state, waiters(sab)], ['pending', 1])
      for (const each of [held, token]) each.unlock()
      await member.do('unlock', 'token')
      await until(() => last.state === 'fulfilled')
      last.value.unlock()
      assert.ok(isFree())
    })
  }
}

// ——— at the moment of the grant ———

const WRITES = { blocks: 'lock', awaits: 'lockAsync', args: [], cost: 100 }
const READS = { blocks: 'lockShared', awaits: 'lockSharedAsync', args: [], cost: 1 }
const permits = (blocks) => [1, 2, 3].map(cost => ({ blocks, awaits: `${blocks}Async`, args: [cost], cost }))
/** By name: what may be claimed, what that costs, and how much may be in use at a time. */
const STORMS = {
  AsyncLock: { name: 'AsyncLock', most: 100, claims: [WRITES] },
  RwLock: { name: 'RwLock', most: 100, claims: [WRITES, READS] },
  'Semaphore, permits': { name: 'Semaphore', most: 3, claims: permits('acquire') },
  'Semaphore, tokens': { name: 'Semaphore', most: 3, claims: permits('hold') },
  'Semaphore with permits': { name: 'Semaphore', options: { permits: 3 }, most: 3, claims: permits('hold') }
}

for (const label of Object.keys(STORMS)) {
  test(`${label}: timeouts and aborts that meet the grant lose nothing`, { timeout: 60000 }, async t => {
    const { name, options, most, claims } = STORMS[label]
    const sab = memory(4)
    const thing = new api[name](sab, options)
    if (name === 'Semaphore' && options === undefined) thing.release(most)
    const words = new Int32Array(sab)
    const [free] = words
    const [inUse, stop] = [0, 0].map(() => new Int32Array(new SharedArrayBuffer(4)))
    const seed = 8

    /**
     * Makes a claim: `begin(options)`; `isMine()`, once it is granted: whether it fits beside the others; `end(token)`.
     */
    const newClaim = ({ thing, claims, inUse, most, random }, method) => {
      const { [method]: form, args, cost } = claims[Math.floor(random() * claims.length)]
      const isMine = () => Atomics.add(inUse, 0, cost) + cost <= most
      const end = token => {
        Atomics.sub(inUse, 0, cost)
        if (token === undefined) thing.release(cost)
        else if (!token.unlock()) throw new Error('it was not held')
      }
      return { begin: options => thing[form](...args, options), isMine, end }
    }
    const dataOf = seed => ({ sab, name, options, most, claims, inUse, stop, seed })
    const workers = [1, 2].map(n => startWorker(t, dataOf(seed + n), `({ api, post, randomFrom, data }) => {
      const random = randomFrom(data.seed)
      const thing = new api[data.name](data.sab, data.options)
      post('begins')
      let served = 0
      while (Atomics.load(data.stop, 0) === 0) {
        const { begin, isMine, end } = (${newClaim})(Object.assign({ thing, random }, data), 'blocks')
        try {
          const token = begin({ timeout: random() * 2 })
          if (!isMine()) throw new Error('too much is in use')
          served++
          end(token)
        } catch (error) {
          if (error.name !== 'TimeoutError') throw error
        }
      }
      return served
    }`))
    for (const worker of workers) await worker.next()

    const random = randomFrom(seed)
    let [served, gaveUp] = [0, 0]
    const attempt = async () => {
      const controller = new TinyController({ reason: 'abort' })
      const { begin, isMine, end } = newClaim({ thing, claims, inUse, most, random }, 'awaits')
      const result = begin({ timeout: random() * 4, signal: controller.signal })
      if (random() < 0.5) setTimeout(controller.abort, random() * 3)
      let token
      try {
        token = await result
      } catch (error) {
        assert.ok(error === 'abort' || error.name === 'TimeoutError', String(error))
        gaveUp++
        return
      }
      assert.ok(isMine(), `seed ${seed}`)
      served++
      if (random() < 0.3) await turns(1)
      end(token)
    }
    const end = now() + 400
    while (now() < end || served === 0 || gaveUp === 0) await Promise.all(Array.from({ length: 5 }, attempt))
    Atomics.store(stop, 0, 1)
    for (const worker of workers) assert.ok(await worker.done() > 0)
    assert.deepStrictEqual([words[0], inUse[0], waiters(sab)], [free, 0, 0], `seed ${seed}`)
  })
}
