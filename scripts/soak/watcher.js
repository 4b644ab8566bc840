'use strict'

// Looks at everything of a round, 20 times a second, from a thread that takes part in nothing. Its laws:
//
// - nothing that is free stays free for a second while somebody waits for it and can run
// - no item is left in a queue for a second while a consumer waits
// - no operation lasts for MOST_TICKS
//
// Time counts only while this thread ran as it should, and the others had processors: the process may have been stopped.

const fs = require('fs')
const { workerData } = require('worker_threads')
const starved = require('../../__test__/fixtures/starved')
const Arena = require('./arena')
const { api, now } = require('./subject')

const TICK = 50
/** A tick that comes so late does not count, and what was seen before it neither. */
const LATE = 150
const MOST_FREE = 1000
/** 30 s. */
const MOST_TICKS = 600

const { ACTORS, COUNT, PERMITS } = Arena
const { buffers, steady, names } = workerData
const arena = new Arena({ buffers, steady })
const { words } = arena

/** What can stay free: where it lies, whether it is free, and a count that changes when it is taken. */
const things = []
const watch = (kind, index, more, isFree, taken, waits) => {
  const at = arena.place(kind, index, more)
  things.push({ name: `${kind} ${index}`, object: Arena.encode(kind, index), at, isFree, taken, waits: waits === undefined ? at : waits, since: undefined })
}
for (let n = 0; n < COUNT.lock; n++) watch('lock', n, 0, at => Atomics.load(words, at) === 0, () => arena.get('lockTaken', n))
for (let n = 0; n < COUNT.rw; n++) watch('rw', n, 0, at => Atomics.load(words, at) === 0, () => arena.get('rwTaken', n))
for (let n = 0; n < COUNT.semaphore; n++) watch('semaphore', n, 0, at => Atomics.load(words, at) === PERMITS, () => arena.get('semaphoreTaken', n))
for (let n = 0; n < COUNT.queue; n++) {
  watch('queue', n, 0, at => Atomics.load(words, at) === 0, () => arena.get('queueTaken', n))
  const items = arena.place('queue', n, 4)
  watch('queue', n, 0, at => Atomics.load(words, at) === 0 && Atomics.load(words, items) > 0, () => arena.get('queueTaken', n), arena.place('queue', n, 2))
}

/** Whether every thread that is at an object can run. */
function canRun (object) {
  const used = ACTORS * (arena.get('lastId') + 1)
  for (let actor = 0; actor < used; actor++) {
    if (arena.get('operation', actor) === 0 || arena.get('object', actor) !== object) continue
    if (arena.get('isPaused', Math.floor(actor / ACTORS)) === 1 || arena.isDying(actor)) return false
  }
  return true
}

function violation (text) {
  clearInterval(timer)
  if (Atomics.exchange(arena.ledger, arena.at('violated'), 1) === 0) fs.writeSync(2, `\nVIOLATION: ${text}\n`)
}

function check () {
  for (const thing of things) {
    const { name, at, isFree, taken, waits, object } = thing
    const count = taken()
    if (!isFree(at) || api.waiterCount(words, waits) === 0 || !canRun(object) || (thing.since && thing.since.count !== count)) {
      thing.since = undefined
    } else if (thing.since === undefined) {
      thing.since = { count, time: now(), starved: starved() }
    } else if (now() - thing.since.time > MOST_FREE) {
      const free = now() - thing.since.time - (starved() - thing.since.starved)
      if (free > MOST_FREE) {
        violation(`${name}, or what its lock protects, has been free for ${Math.round(free)} ms while ${api.waiterCount(words, waits)} wait for it`)
        return
      }
    }
  }
  const ticks = arena.add('ticks', 0, 1)
  const used = ACTORS * (arena.get('lastId') + 1)
  for (let actor = 0; actor < used; actor++) {
    const operation = arena.get('operation', actor)
    if (operation === 0 || arena.isDying(actor) || ticks - arena.get('since', actor) < MOST_TICKS) continue
    violation(`actor ${actor % ACTORS} of thread ${Math.floor(actor / ACTORS)} has been at '${names[operation - 1]}' (${Arena.decode(arena.get('object', actor))}) for ${MOST_TICKS * TICK / 1000} s`)
    return
  }
}

let last = now()
const timer = setInterval(() => {
  if (arena.get('stop') === 2) return clearInterval(timer)
  const present = now()
  if (present - last > LATE) for (const thing of things) thing.since = undefined
  else check()
  last = present
}, TICK)
