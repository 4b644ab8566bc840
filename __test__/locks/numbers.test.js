'use strict'

// The numbers that classes take: the error of a wrong one says which are allowed, and nothing changes.

const assert = require('assert')
const { test } = require('../harness')
const { api } = require('../subject')
const { startMember, waiters } = require('../fixtures/family-toolbox')
const { memory, rejection } = require('../fixtures/lock-toolbox')

const { Barrier, Latch, Semaphore } = api
const MOST = 0x7fffffff

/** Methods of a semaphore. */
const callsOf = (semaphore, names, ...rest) =>
  names.map(name => [`${name}: n`, n => semaphore[name](n, () => assert.fail('it ran')), 1, ...rest])

/** Calls with a number: its name, the call, the least and the most that is allowed, what the error says of that. */
const CALLS = {
  constructors (sab) {
    return [
      ['Barrier: parties', parties => new Barrier(sab, { parties }), 1, 0xffff],
      ['Latch: count', count => new Latch(sab, { count }), 0, MOST],
      ['Semaphore: permits', permits => new Semaphore(sab, { permits }), 1, MOST],
      ['Semaphore: permits', permits => Semaphore.create({ permits }), 1, MOST]
    ]
  },
  'a Latch' (sab) {
    const latch = new Latch(sab, { count: 3 })
    return [['countDown: n', n => latch.countDown(n), 1, MOST]]
  },
  'a Semaphore' (sab, member) {
    const semaphore = new Semaphore(sab)
    const on = member.on('Semaphore')
    semaphore.release(5)
    return callsOf(semaphore, ['tryAcquire', 'release', 'acquireAsync', 'tryHold', 'holdAsync', 'use'], MOST)
      .concat(['acquire', 'hold', 'useSync'].map(name => [`${name}: n`, n => on(name, n), 1, MOST]))
  },
  'a Semaphore with permits' (sab, member) {
    const permits = 3
    const limit = new Semaphore(sab, { permits })
    const on = member.on('Semaphore', 0, { permits })
    const more = ', the limit of this semaphore'
    return callsOf(limit, ['tryHold', 'holdAsync', 'use'], permits, more)
      .concat(['hold', 'useSync'].map(name => [`${name}: n`, n => on(name, n), 1, permits, more]))
  }
}

const FRACTIONS = [1.5, NaN, Infinity].map(n => [n, `the number ${n}`])
const NO_INTEGERS = [[null, 'null'], ['1', 'the string "1"'], ...FRACTIONS]

for (const of of Object.keys(CALLS)) {
  test(`${of}: a wrong number is an error that says which are allowed, and changes nothing`, async t => {
    const sab = memory(4)
    const calls = CALLS[of](sab, await startMember(t, sab))
    const [before] = new Int32Array(sab)
    for (const [number, call, least, most, more = ''] of calls) {
      const refuses = async (given, name, problem) => {
        const error = await rejection((async () => call(given))())
        assert.deepStrictEqual([error.name, error.message], [name, `${number} must be ${problem}`])
        assert.deepStrictEqual([new Int32Array(sab)[0], waiters(sab)], [before, 0], number)
      }
      for (const [given, what] of NO_INTEGERS) await refuses(given, 'TypeError', `an integer, not ${what}`)
      for (const n of [least - 1, most + 1, 2 ** 40].concat(least > 0 ? [-1, -0] : [])) {
        await refuses(n, 'RangeError', `from ${least} to ${most}${more}, not the number ${Object.is(n, -0) ? '-0' : n}`)
      }
    }
  })
}

test('a Barrier and a Latch need their number; a Semaphore without permits has no limit', () => {
  const sab = memory(4)
  for (const [Class, number] of [[Barrier, 'parties'], [Latch, 'count']]) {
    const error = { name: 'TypeError', message: `${Class.name}: ${number} must be an integer, not undefined` }
    for (const options of [undefined, {}, { [number]: undefined }]) assert.throws(() => new Class(sab, options), error)
  }
  assert.strictEqual(new Barrier(sab, { parties: 0xffff }).parties, 0xffff)
  assert.strictEqual(new Latch(sab, { count: MOST }).count, MOST)
  for (const options of [{}, { permits: undefined }]) assert.strictEqual(new Semaphore(sab, options).permits, undefined)
})
