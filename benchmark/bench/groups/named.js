'use strict'

// Named locks beside Node's own Web Locks: a request that finds its name free, pending requests for one name and for many, and workers
// that request one name in loops. There a number is read, and written one larger: updates get lost if two are inside at once.

const { now, sleep, takeTurns } = require('../sampling')
const { Member, serve } = require('../team')

const HOST = typeof navigator === 'object' && navigator.locks ? navigator.locks : undefined

const open = (variant) => variant === 'host' ? HOST : require('../../../pure').locks
const variants = () => (HOST === undefined ? [] : ['host']).concat('ours', 'again')

/** Requests that are pending at once. Of as many names Node's own takes minutes, since it looks through all of them each time. */
const PENDING = 10000
const NAMES = 300
const MOST_NAMES = 10000

async function uncontended (locks, count) {
  const callback = () => {}
  const begin = now()
  for (let n = 0; n < count; n++) await locks.request('uncontended', callback)
  return (now() - begin) / count
}

/**
 * Each name is held, and then awaited by as many as there are requests for each. Nanoseconds for each request, from first to last. All
 * callbacks give a promise: where many of them return at once, Node's own grants none of the rest any more.
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
  const free = await takeTurns(names, rounds(100), async (name) => ({ 'named-request': await uncontended(open(name), 500) }),
    { warmUp: 20, gc: false })
  const lines = await takeTurns(names, rounds(3), async (name) => ({
    'named-pending': await pending(open(name), 1, size),
    'named-names': await pending(open(name), few, 1)
  }))
  const many = await takeTurns(['ours', 'again'], rounds(5), async (name) => ({ 'named-many-names': await pending(open(name), most, 1) }))
  return Object.assign(free, lines, many, await inWorkers(names, rounds, quick))
}

/** Workers in loops, two and eight. */
async function inWorkers (names, rounds, quick) {
  const lost = {}
  const results = {}
  for (const count of [2, 8]) {
    const teams = {}
    for (const name of names) {
      const words = new Int32Array(new SharedArrayBuffer(8))
      teams[name] = { words, members: Array.from({ length: count }, () => new Member('named', 'loop', { name, count, words })) }
    }
    Object.assign(results, await takeTurns(names, rounds(5), async (name) => {
      const { words, members } = teams[name]
      words.fill(0)
      const counts = Promise.all(members.map(member => member.ask({})))
      await sleep(quick ? 20 : 300)
      Atomics.store(words, 1, 1)
      const begun = await counts
      const done = begun.reduce((sum, { done }) => sum + done, 0)
      lost[name] = (lost[name] || 0) + done - words[0]
      return { [`named-workers-${count}`]: begun.reduce((sum, { took }) => sum + took, 0) / count / done / 1e3 }
    }, { warmUp: 1, gc: false }))
    await Promise.all([].concat(...names.map(name => teams[name].members.map(member => member.end()))))
  }
  for (const name of names) lost[name] = [lost[name]]
  return Object.assign(results, { 'named-lost': lost })
}

const threads = {
  async loop ({ name, count, words }, port) {
    const locks = open(name)
    const callback = () => {
      const value = words[0]
      for (let n = 0; n < 500; n++) Atomics.load(words, 1)
      words[0] = value + 1
    }
    // So that the thread does not end while its request is pending.
    setInterval(() => {}, 1000)
    serve(port, async () => {
      const begin = now()
      let done = 0
      while (Atomics.load(words, 1) === 0) {
        await locks.request('loop ' + name + count, callback)
        done++
      }
      return { done, took: now() - begin }
    })
  }
}

module.exports = { open, run, threads, variants }
