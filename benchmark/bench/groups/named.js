'use strict'

// Named locks beside Node's own Web Locks: a request that finds its name free, pending requests for one name and for
// many, and workers that request one name in loops (race.js).

const { now, takeTurns, timeCalls } = require('../sampling')
const { Team, calibrate, teamsInTurn, threads } = require('../race')

const HOST = typeof navigator === 'object' && navigator.locks ? navigator.locks : undefined

const open = (variant) => variant === 'host' ? HOST : require('../../../pure').locks
/** The names of these in locks.js. */
const LOCKS = { host: 'web-locks', ours: 'named', again: 'named' }
const variants = () => (HOST === undefined ? [] : ['host']).concat('ours', 'again')

/**
 * Requests that are pending at once. Of as many names Node's own takes minutes, since it looks through all of them each
 * time.
 */
const PENDING = 10000
const NAMES = 300
const MOST_NAMES = 10000

async function uncontended (locks, count) {
  const callback = () => {}
  for (let n = 0; n < count; n++) await locks.request('uncontended', callback)
}

/**
 * Holds each name, and then awaits it so often. Nanoseconds for each request, from first to last. All callbacks give a
 * promise: where many of them return at once, Node's own grants none of the rest any more.
 */
async function pending (locks, names, requests) {
  let release
  const gate = new Promise((resolve) => { release = resolve })
  const callback = () => gate
  const promises = new Array(names * (requests + 1)).fill(null)
  const begin = now()
  let index = 0
  for (let name = 0; name < names; name++) {
    promises[index++] = locks.request('pending ' + name, callback)
    for (let n = 0; n < requests; n++) promises[index++] = locks.request('pending ' + name, callback)
  }
  release()
  await Promise.all(promises)
  return (now() - begin) / promises.length
}

async function run ({ rounds, quick }) {
  const names = variants()
  const [size, few, most] = quick ? [100, 30, 100] : [PENDING, NAMES, MOST_NAMES]
  const free = await timeCalls('named-request', names, rounds(100), 500, name => uncontended(open(name), 500), 20)
  const lines = await takeTurns(names, rounds(3), async (name) => ({
    'named-pending': await pending(open(name), 1, size),
    'named-names': await pending(open(name), few, 1)
  }))
  const many = await takeTurns(['ours', 'again'], rounds(5), async (name) => ({
    'named-many-names': await pending(open(name), most, 1)
  }))
  return Object.assign(free, lines, many, await inWorkers(names, rounds, quick))
}

/** Runs workers in loops, two and eight: with four microseconds of work inside. */
async function inWorkers (names, rounds, quick) {
  const steps = 4 * calibrate()
  const inLoops = (count) => {
    const teamOf = name => new Team('named', LOCKS[name], new Array(count).fill(undefined), steps)
    return teamsInTurn(names, teamOf, rounds(5), async (team) => {
      return { [`named-workers-${count}`]: 1e3 / (await team.race(quick ? 20 : 300)).throughput }
    }, { gc: false })
  }
  const [few, many] = [await inLoops(2), await inLoops(8)]
  const lost = {}
  for (const name of names) lost[name] = few.lost[name].concat(many.lost[name])
  return Object.assign(few, many, { 'named-lost': lost })
}

module.exports = { HOST, open, run, threads, variants }
