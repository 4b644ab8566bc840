'use strict'

// Threads that end before each operation of a name that they hold. They replace functions of Atomics before they load
// the package, so nothing may load it in them before.
// subjects: export
// timeout: 300

// A thread that ends at any point of holding a name: it goes to those who wait, though no thread is started and no time
// limit helps, and nothing of it is left.

const assert = require('assert')
const { test } = require('../harness')
const { api } = require('../subject')
const { load } = require('../../lib/agent/load-binding')
const { until } = require('../fixtures/queue-toolbox')
const { atEachPoint, startVictim, survivorsOf, withEachKind } = require('../fixtures/victims')

const { locks } = api
const { nameCount } = load()

/** What the victim does: see fixtures/name-victim.js. */
const WAYS = ['holds', 'reads', 'abandons', 'steals', 'blocks', 'tries', 'asks whether it was stolen']

/** Survivors, which hold the name and give it back; they tell whether a holder had died. */
const holder = {
  async holdAsync () {
    const token = await locks.holdAsync('x')
    const { ownerDied } = token
    token.unlock()
    return ownerDied
  }
}
const survivors = survivorsOf(({ api: { locks } }) => ({
  hold () {
    const token = locks.hold('x')
    const { ownerDied } = token
    token.unlock()
    return ownerDied
  }
}), () => undefined)

const waiting = () => api.snapshot().waiting.filter(({ name }) => name === 'x').length

withEachKind(survivors, (kind, survive, test) => {
  for (const way of WAYS) {
    for (const isHeld of [false, true]) {
      const state = isHeld ? 'held' : 'free'
      test(`a thread that ${way} a ${state} name ends at any point, beside a ${kind} that waits`, t => (
        atEachPoint(1, async point => {
          const victim = await startVictim(t, 'name-victim.js', { way, point })
          const token = isHeld ? locks.tryHold('x') : undefined
          victim.begin()
          if (isHeld) await until(() => victim.isOver || waiting() === 1 || token.stolen, 'it waits, or steals')
          else await victim.over()
          const before = waiting()
          const survivor = survive(t, holder, 'hold')
          if (isHeld && !token.stolen) {
            await until(() => survivor.isOver || waiting() > before || victim.isOver, 'the survivor waits')
            token.unlock()
          }
          await survivor.ended
          await victim.over()
          const { isDone } = victim
          if (!isDone) await victim.ended
          if (isDone && !isHeld && way !== 'abandons') assert.strictEqual(survivor.value, false)
          if (token !== undefined) assert.strictEqual(token.unlock(), false)
          assert.deepStrictEqual(await locks.query(), { held: [], pending: [] })
          assert.strictEqual(nameCount(), 0)
          return isDone
        })
      ))
    }
  }
})

test('a thread that ends with a name in each mode tells the next exclusive holder', async t => {
  for (const [way, told] of [['holds', true], ['reads', false]]) {
    const seen = []
    await atEachPoint(1, async point => {
      const victim = await startVictim(t, 'name-victim.js', { way, point })
      await victim.run()
      if (!victim.isDone) await victim.ended
      seen.push(await holder.holdAsync())
      return victim.isDone
    }, 1)
    assert.strictEqual(seen.includes(true), told)
    assert.strictEqual(seen.pop(), false)
  }
})
