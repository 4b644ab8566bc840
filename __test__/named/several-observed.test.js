'use strict'

// Several names in one request with ATOMICS_WAITASYNC_STALL: cycles, where they were taken, and forgotten tokens.

const assert = require('assert')
const { test } = require('../harness')
const { needsContexts } = require('../fixtures/contexts')
const { toldBy } = require('../fixtures/programs')

/** Cycles count once they are older than the period. Their reports are warnings. */
const SOON = { after: 1, execArgv: ['--no-warnings'] }
const needsWeakRef = { skip: typeof WeakRef !== 'function' && 'this Node has no WeakRef' }

test('what is held waits for the name that is awaited next; each has the place of the call', needsContexts, async t => {
  const [cycles, places] = await toldBy(t, SOON, async ({ api, links, tell, turn, untilWaiting }) => {
    const { locks, snapshot } = api
    const other = locks.tryHold('b')
    const takeAll = () => locks.requestAll(['a', 'b', 'c', 'd'], () => {})
    takeAll()
    locks.request('d', () => turn().then(() => locks.request('a', () => {})))
    await untilWaiting(2, 0, { blocked: false })
    other.unlock()
    await untilWaiting(2, 1, { blocked: false })
    const { cycles, held, waiting } = snapshot()
    tell(cycles.map(links))
    const ofAll = held.concat(waiting.filter(({ name }) => name === 'd')).filter(({ name, taken }) => (
      taken === undefined || name !== 'd'))
    tell(ofAll.map(({ name, taken, called }) => [name, (taken || called).includes('at takeAll ')]).sort())
    process.exit()
  })
  assert.strictEqual(cycles.length, 1)
  assert.deepStrictEqual(cycles[0].sort(), ['0 a d false false', '0 d a false false'])
  assert.deepStrictEqual(places, [['a', true], ['b', true], ['c', true], ['d', true]])
})

test('each of the names waits for what is requested in the callback', needsContexts, async t => {
  const [cycles] = await toldBy(t, SOON, async ({ api, links, tell, turn, untilWaiting }) => {
    const { locks, snapshot } = api
    const NAMES = ['a', 'b', 'c']
    // The holder of the last name waits for another one of the list each time.
    for (let n = 0; n < 3; n++) {
      const names = NAMES.map(name => name + n)
      locks.requestAll(names, () => turn().then(() => locks.request('z' + n, () => {})))
      locks.request('z' + n, () => turn().then(() => locks.request(names[n], () => {})))
    }
    await untilWaiting(6, 1, { blocked: false })
    tell(snapshot().cycles.map(links))
    process.exit()
  })
  assert.deepStrictEqual(cycles.map(cycle => cycle.sort()).sort(), ['a0 z0', 'b1 z1', 'c2 z2'].map(pair => {
    const [one, other] = pair.split(' ')
    return [`0 ${one} ${other} false false`, `0 ${other} ${one} false false`]
  }))
})

test('each name of a token that was collected is said to be forgotten', needsWeakRef, async t => {
  const [names, isHeld] = await toldBy(t, { after: 300, execArgv: ['--expose-gc'] }, async ({ api, tell, until }) => {
    const { locks, snapshot } = api
    const forget = async () => { await locks.holdAllAsync(['a', 'b', 'c']) }
    const kept = await locks.holdAllAsync(['d', 'e'])
    await forget()
    // The callback of a request has no token that could be forgotten.
    locks.requestAll(['f', 'g'], () => new Promise(() => {}))
    const collected = () => snapshot().held.filter(({ collected }) => collected).map(({ name }) => name)
    await until(() => {
      global.gc()
      return collected().length >= 3
    })
    for (let n = 0; n < 20; n++) await new Promise(resolve => setTimeout(() => resolve(global.gc()), 50))
    tell(collected().sort())
    tell([kept.locked, kept.unlock()])
    process.exit()
  })
  assert.deepStrictEqual([names, isHeld], [['a', 'b', 'c'], [true, true]])
})
