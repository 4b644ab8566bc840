'use strict'

// Named locks use the package's own queue, whichever functions the global Atomics has.
// subjects: force

// A storm on named locks: threads that request in all ways, steal, abort and time out, and are terminated at any moment. Never are
// two exclusive holders together, every live request is served, and no name is left behind.

const assert = require('assert')
const { Worker } = require('worker_threads')
const { load } = require('../lib/agent/binding')
const { test } = require('./harness')
const { ALIVE, DYING, STOP, act, layout } = require('./fixtures/lock-manager-storm')
const { numberArgument, randomFrom, sleep, until, words } = require('./fixtures/queue-toolbox')
const size = require('./fixtures/size')
const { api: { locks } } = require('./subject')

const SEED = numberArgument('--seed', 1)
const MILLISECONDS = numberArgument('--milliseconds', size(4000, 1200))
const ACTORS = 4

for (const seed of [SEED, SEED + 1]) {
  test(`a storm on named locks, seed ${seed}`, { timeout: MILLISECONDS + 60000 }, async t => {
    const { state, words: length } = layout(ACTORS)
    const shared = words(length)
    const random = randomFrom(seed)
    let begun = 0
    const results = []
    const actors = []

    /** Starts a thread in the place of one that has ended. Its marks are removed: the next holders have been told. */
    const start = (actor) => {
      const worker = new Worker(require.resolve('./fixtures/lock-manager-storm.js'), {
        workerData: { storm: { actor, actors: ACTORS, words: shared, seed: seed * 1000 + begun++ } }
      })
      Atomics.store(shared, state(actor), ALIVE)
      const ended = new Promise(resolve => worker.on('exit', resolve))
      let ready
      const begins = new Promise(resolve => { ready = resolve })
      const result = new Promise((resolve, reject) => worker.on('message', (message) => 'served' in message || 'error' in message ? resolve(message) : ready()).on('error', reject))
      result.catch(() => {})
      t.after(() => worker.terminate())
      actors[actor] = { worker, begins, ended, result }
    }

    /** Words that a dead actor has left would be taken for those of its successor. */
    const clear = (actor) => {
      const { reader, writer } = layout(ACTORS)
      for (let name = 0; name < 4; name++) {
        Atomics.store(shared, reader(name, actor), 0)
        Atomics.compareExchange(shared, writer(name), actor + 1, 0)
      }
    }

    for (let actor = 1; actor < ACTORS; actor++) start(actor)
    Atomics.store(shared, state(0), ALIVE)
    const mine = act({ actor: 0, actors: ACTORS, words: shared, seed: seed * 1000 + 999, mayBlock: false })
    mine.catch(() => {})
    let deaths = 0
    const end = Date.now() + MILLISECONDS
    while (Date.now() < end) {
      await sleep(random() * 60)
      const actor = 1 + Math.floor(random() * (ACTORS - 1))
      const { worker, begins, ended, result } = actors[actor]
      // Node 10 ends the process if a worker is terminated before its first code has run.
      await begins
      const early = await Promise.race([result, Promise.resolve()])
      if (early !== undefined) assert.fail(early.error || 'an actor has ended too early')
      Atomics.store(shared, state(actor), DYING)
      worker.terminate()
      await ended
      deaths++
      clear(actor)
      start(actor)
    }
    Atomics.store(shared, STOP, 1)
    results.push({ served: await mine })
    for (let actor = 1; actor < ACTORS; actor++) results.push(await actors[actor].result)
    for (const { served, error } of results) assert.ok(error === undefined && served >= 0, error)
    await until(() => load().nameCount() <= 6, 'requests have left their lines')
    // A name whose last holder died remembers it until the next one has been told.
    for (const name of ['honest 0', 'honest 1', 'honest 2', 'honest 3', 'stolen 0', 'stolen 1']) await locks.request(name, () => {})
    assert.deepStrictEqual(await locks.query(), { held: [], pending: [] })
    await until(() => load().nameCount() === 0, 'no name is left')
    assert.ok(deaths > 0)
  })
}
