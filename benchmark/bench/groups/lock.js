'use strict'

// An uncontended lock: locking and unlocking it in a worker, and by executeLocked on the main thread.

const { fresh, now, takeTurns } = require('../sampling')
const { BYTES, available, open } = require('../locks')
const { Member, serve } = require('../team')

const MANY = { warmUp: 30, gc: false }

/** These have no blocking form; `article` differs from `host` in its awaiting form only. */
const ONLY_AWAIT = ['article', 'async-mutex', 'web-locks']

/** What is timed: each loop is called with what `open` gives. */
const loops = {
  tokens: {
    ours: function ({ lock }, count) { for (let n = 0; n < count; n++) lock.lock().unlock() },
    host: function ({ lock }, count) {
      for (let n = 0; n < count; n++) {
        lock.lock()
        lock.unlock()
      }
    },
    others: function ({ block, release }, count) {
      for (let n = 0; n < count; n++) {
        block()
        release()
      }
    }
  },
  instance: {
    ours: function ({ lock }, count) {
      for (let n = 0; n < count; n++) {
        lock.lock()
        lock.unlock()
      }
    }
  },
  tryLock: {
    // A free one is had: there is nothing else to look for.
    ours: function ({ lock }, count) { for (let n = 0; n < count; n++) lock.tryLock().unlock() },
    host: function ({ lock }, count) {
      for (let n = 0; n < count; n++) {
        lock.tryLock()
        lock.unlock()
      }
    }
  },
  lockAsync: {
    ours: async function ({ lock }, count) { for (let n = 0; n < count; n++) (await lock.lockAsync()).unlock() },
    host: async function ({ lock }, count) {
      for (let n = 0; n < count; n++) {
        await lock.lockAsync()
        lock.unlock()
      }
    }
  },
  execute: async function ({ execute }, count, callback) { for (let n = 0; n < count; n++) await execute(callback) },
  executeLocked: async function ({ lock }, count, callback) { for (let n = 0; n < count; n++) await lock.executeLocked(callback) }
}

async function run ({ rounds, entry }) {
  const results = {}
  const names = available(entry === 'pure'
    ? ['host', 'ours', 'again', 'floor', 'article', 'async-mutex', 'multithreading', 'worker-mutex', 'web-locks']
    // What is installed would reach the others, too.
    : ['host', 'ours', 'again', 'floor'])

  const member = new Member('lock', 'uncontended', { entry, names: names.filter(name => !ONLY_AWAIT.includes(name)), rounds: rounds(300) })
  const blocking = await member.ask()
  await member.end()
  results[`lock-unlock-${entry}`] = blocking.tokens
  results[`lock-unlock-instance-${entry}`] = blocking.instance

  if (entry !== 'pure') require('../../../force')
  const locks = {}
  for (const name of names) {
    const lock = await open(name, { sab: new SharedArrayBuffer(BYTES), entry })
    locks[name] = { ...lock, loop: fresh(lock.lock ? loops.executeLocked : loops.execute) }
  }
  const count = 500
  const callback = () => {}
  const executed = await takeTurns(names, rounds(100), async (name) => {
    const lock = locks[name]
    const begin = now()
    await lock.loop(lock, count, callback)
    return { value: (now() - begin) / count }
  }, MANY)
  results[`execute-${entry}`] = executed.value
  return Object.assign(results, await onMain(locks, entry, rounds))
}

/** What else is done on the main thread without blocking it, beside the article's class. */
async function onMain (locks, entry, rounds) {
  const names = Object.keys(locks).filter(name => name === 'host' || name === 'ours' || name === 'again')
  const results = {}
  for (const [figure, kind, count] of [[`try-lock-${entry}`, 'tryLock', 1e4], [`lock-async-${entry}`, 'lockAsync', 2000]]) {
    const own = {}
    for (const name of names) own[name] = fresh(loops[kind][name === 'host' ? 'host' : 'ours'])
    const samples = await takeTurns(names, rounds(200), async (name) => {
      const begin = now()
      await own[name](locks[name], count)
      return { [figure]: (now() - begin) / count }
    }, MANY)
    Object.assign(results, samples)
  }
  return results
}

const threads = {
  async uncontended ({ entry, names, rounds }, port) {
    if (entry !== 'pure') require('../../../force')
    const figures = {}
    for (const figure of ['tokens', 'instance']) {
      const locks = {}
      for (const name of names) {
        if (figure === 'instance' && name !== 'ours' && name !== 'again' && name !== 'host') continue
        const kind = name === 'again' ? 'ours' : name
        const loop = loops[figure][kind] || loops.tokens[kind] || loops.tokens.others
        locks[name] = { ...await open(name, { sab: new SharedArrayBuffer(BYTES), entry }), loop: fresh(loop) }
      }
      const count = 1e4
      const samples = await takeTurns(Object.keys(locks), rounds, async (name) => {
        const lock = locks[name]
        const begin = now()
        lock.loop(lock, count)
        return { value: (now() - begin) / count }
      }, MANY)
      figures[figure] = samples.value
    }
    serve(port, () => figures)
  }
}

module.exports = { run, threads }
