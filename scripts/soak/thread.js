'use strict'

// A thread of the soak: its actors run until the round is over, or until it dies.

const { parentPort, workerData } = require('worker_threads')
const Actor = require('./actor')
const Arena = require('./arena')
const { operationsOf } = require('./operations')
const { slowness } = require('./subject')

const { buffers, clones, steady, only, settings } = workerData
const arena = new Arena({ buffers, clones, steady })

async function run () {
  const actors = settings.actors.map(actor => new Actor(arena, Object.assign({ id: settings.id, steady: settings.steady, seed: settings.seed }, actor)))
  for (const actor of actors) actor.alone = actors.length === 1
  arena.set('isOnline', settings.id, 1)
  const counts = await Promise.all(actors.map(actor => actor.run(operationsOf(only))))
  if (settings.steady) {
    const [latch] = arena.latches
    const [{ blocks }] = actors
    for (const { party } of actors) if (party !== undefined) latch.countDown()
    if (blocks) latch.wait({ timeout: slowness * 20000 })
    else await latch.waitAsync({ timeout: slowness * 20000 })
  }
  parentPort.postMessage(counts)
}

// An exception and no rejection, of which old Node only warns.
run().catch(error => process.nextTick(() => { throw error }))
