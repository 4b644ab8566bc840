'use strict'
// nodes: >=16 (older ones lack what the engines need)

// Leases of servers: `lost` aborts when one may be over, and never without need.

const assert = require('assert')
const { once } = require('events')
const { test } = require('../harness')
const { runNode } = require('../fixtures/run-node')
const { Lease, assertLease, now } = require('../../lib/processes/engines/server-lease')

const LONG = 60000
const yes = async () => true
const never = () => new Promise(() => {})
const sleep = milliseconds => new Promise(resolve => setTimeout(resolve, milliseconds))

for (const isGivenBack of [false, true]) {
  test(`a lease ends if no renewal is answered${isGivenBack ? ', also while it is given back' : ''}`, async () => {
    const lease = new Lease(30, now(), { renew: never, release: never })
    if (isGivenBack) lease.release(false)
    if (!lease.lost.aborted) await once(lease.lost, 'abort')
    assert.strictEqual(lease.remaining(), 0)
  })
}

test('a lease ends at the renewal that is refused, and does not at one that fails', async () => {
  const answers = [async () => { throw new Error('no network') }, async () => true, async () => false]
  const lease = new Lease(3000, now(), { renew: () => answers.shift()() })
  await once(lease.lost, 'abort')
  assert.strictEqual(answers.length, 0)
})

test('a lease that was given back does not end any more', async () => {
  const lease = new Lease(20, now(), { renew: yes, release: yes })
  assert.strictEqual(await lease.release(false), true)
  await sleep(60)
  assert.strictEqual(lease.lost.aborted, false)
})

test('a renewal counts from when it was sent', async () => {
  const lease = new Lease(3000, now(), { renew: () => sleep(500).then(yes) })
  let left = lease.remaining()
  for (let last = Infinity; left <= last; left = lease.remaining()) {
    last = left
    await sleep(10)
  }
  lease.stop()
  // Node's timers may be a millisecond early.
  assert.ok(left <= 2502, `${left} ms are left`)
})

test('what remains is told by the clock that has counted more: one stands still while a machine sleeps', () => {
  const { steady, wall } = now()
  for (const [sent, most] of [
    [{ steady, wall }, LONG], [{ steady: steady - 50000, wall }, 10000], [{ steady, wall: wall - 50000 }, 10000],
    [{ steady: steady - LONG, wall }, 0], [{ steady, wall: wall - LONG }, 0], [{ steady, wall: wall + LONG }, LONG]
  ]) {
    const lease = new Lease(LONG, sent, { renew: yes })
    const left = lease.remaining()
    lease.stop()
    assert.ok(left <= most && left > most - 10000, `${left}, not ${most}`)
  }
  assert.ok(now().steady >= steady)
})

test('leases let the process end once they are given back', async t => {
  const { stdout } = await runNode(t, ['-e', `
    const { Lease, now } = require(${JSON.stringify(require.resolve('../../lib/processes/engines/server-lease'))})
    const yes = async () => true
    const timers = () => process.getActiveResourcesInfo().filter(each => each === 'Timeout').length
    const leases = Array.from({ length: 100 }, () => new Lease(3e8, now(), { renew: yes, release: yes }))
    const held = timers()
    Promise.all(leases.map(each => each.release(false))).then(() => console.log(held, timers()))`])
  assert.strictEqual(stdout, '100 0\n')
})

test('a lease has to be a number of milliseconds that a timer can wait', () => {
  for (const wrong of ['1000', undefined, null, 1n]) assert.throws(() => assertLease(wrong, 'redis', 100), TypeError)
  for (const odd of [99, NaN, Infinity, 2 ** 31, -1]) assert.throws(() => assertLease(odd, 'redis', 100), RangeError)
  assertLease(100, 'redis', 100)
})
