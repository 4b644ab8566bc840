'use strict'

// An uncontended lock: locking and unlocking it in a worker, and by executeLocked on the main thread.

const { fresh, timeCalls } = require('../sampling')
const { BYTES, available, open } = require('../locks')
const { Member } = require('../team')

/** These have no blocking form; `article` differs from `host` in its awaiting form only. */
const ONLY_AWAIT = ['article', 'async-mutex', 'web-locks']

/** The timed loops. Each is called with the result of `open`. */
const loops = {
  token: function ({ lock }, count) {
    for (let n = 0; n < count; n++) lock.lock().unlock()
  },
  instance: function ({ lock }, count) {
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
  },
  // A free one is had: there is nothing else to look for.
  tryToken: function ({ lock }, count) {
    for (let n = 0; n < count; n++) lock.tryLock().unlock()
  },
  tryInstance: function ({ lock }, count) {
    for (let n = 0; n < count; n++) {
      lock.tryLock()
      lock.unlock()
    }
  },
  awaitToken: async function ({ lock }, count) {
    for (let n = 0; n < count; n++) (await lock.lockAsync()).unlock()
  },
  awaitInstance: async function ({ lock }, count) {
    for (let n = 0; n < count; n++) {
      await lock.lockAsync()
      lock.unlock()
    }
  },
  execute: async function ({ execute }, count, callback) {
    for (let n = 0; n < count; n++) await execute(callback)
  },
  executeLocked: async function ({ lock }, count, callback) {
    for (let n = 0; n < count; n++) await lock.executeLocked(callback)
  }
}

const isOurs = name => name === 'ours' || name === 'again'

/** Returns the samples of one figure: `loopOf(name, lock)` times `count` operations. */
function sample (figure, names, locks, loopOf, count, rounds) {
  const own = {}
  for (const name of names) own[name] = fresh(loopOf(name, locks[name]))
  return timeCalls(figure, names, rounds, count, name => own[name](locks[name], count, callback), 30)
}

async function openAll (names, entry) {
  const locks = {}
  for (const name of names) locks[name] = await open(name, { sab: new SharedArrayBuffer(BYTES), entry })
  return locks
}

const callback = () => {}

async function run ({ rounds, entry }) {
  const names = available(entry === 'pure'
    ? ['host', 'ours', 'again', 'floor', 'article', 'async-mutex', 'multithreading', 'worker-mutex', 'web-locks']
    // An install would reach the others, too.
    : ['host', 'ours', 'again', 'floor'])
  const blockingNames = names.filter(name => !ONLY_AWAIT.includes(name))
  const member = new Member('lock', 'uncontended', { entry, names: blockingNames, rounds: rounds(300) })
  const blocking = await member.ask()
  await member.end()

  if (entry !== 'pure') require('../../../force')
  const locks = await openAll(names, entry)
  // Beside the article's class only.
  const few = names.filter(name => isOurs(name) || name === 'host')
  const execute = (_, { lock }) => lock ? loops.executeLocked : loops.execute
  const tryOne = name => isOurs(name) ? loops.tryToken : loops.tryInstance
  const awaitOne = name => isOurs(name) ? loops.awaitToken : loops.awaitInstance
  return Object.assign(blocking,
    await sample(`execute-${entry}`, names, locks, execute, 500, rounds(100)),
    await sample(`try-lock-${entry}`, few, locks, tryOne, 1e4, rounds(200)),
    await sample(`lock-async-${entry}`, few, locks, awaitOne, 2000, rounds(200)))
}

const threads = {
  async uncontended ({ entry, names, rounds }) {
    if (entry !== 'pure') require('../../../force')
    const locks = await openAll(names, entry)
    const few = names.filter(name => isOurs(name) || name === 'host')
    const loopOf = name => isOurs(name) ? loops.token : name === 'host' ? loops.instance : loops.others
    const samples = Object.assign(await sample(`lock-unlock-${entry}`, names, locks, loopOf, 1e4, rounds),
      await sample(`lock-unlock-instance-${entry}`, few, locks, () => loops.instance, 1e4, rounds))
    return () => samples
  }
}

module.exports = { run, threads }
