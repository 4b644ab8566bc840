'use strict'

// A thread of the soak: its actors run until the round is over, or until it dies.

const { parentPort, workerData } = require('worker_threads')
const { runActors } = require('./actor')
const Arena = require('./arena')
const { operationsOf } = require('./operations')

const { buffers, clones, steady, only, settings } = workerData
const arena = new Arena({ buffers, clones, steady })

async function run () {
  arena.set('isOnline', settings.id, 1)
  parentPort.postMessage(await runActors(arena, settings, operationsOf(only)))
}

// An exception and no rejection, of which old Node only warns.
run().catch(error => process.nextTick(() => { throw error }))
