'use strict'

// Looks at a whole round, 20 times a second: from an idle thread. Its laws:
//
// - nothing that is free stays free for a second while somebody waits for it and can run
// - no item is left in a queue for a second while a consumer waits; in a Queue, no room either while a producer waits,
//   and it is not idle while anybody waits for that
// - no operation lasts for MOST_TICKS
// - a snapshot agrees with itself
//
// Time counts only while this thread ran as it should, and the others had processors: the process may have been
// stopped.

const fs = require('fs')
const { workerData } = require('worker_threads')
const Arena = require('./arena')
const { look } = require('./snapshot')
const { now, slowness, starved } = require('./subject')

const TICK = 50
/** A tick that comes so late does not count, and what was seen before it neither. */
const LATE = 150
const MOST_FREE = slowness * 1000
/** 30 s. */
const MOST_TICKS = slowness * 600

const { ACTORS, COUNT, PERMITS } = Arena
const { buffers, steady, names } = workerData
const arena = new Arena({ buffers, steady })
const { words } = arena

/** The last snapshot, by name: how many hold it, and how many wait. */
let named = {}
/** Those who wait in it. */
let waiting = []
/**
 * The things that can stay free: whether it is free, a count that changes when it is taken, and how many wait for it.
 */
const things = []
const watch = (kind, index, isFree, waiters, taken = () => arena.get(`${kind}Taken`, index)) => {
  things.push({ name: `${kind} ${index}`, object: Arena.encode(kind, index), isFree, taken, waiters, since: undefined })
}
const is = (kind, index, value) => Atomics.load(words, arena.place(kind, index)) === value
arena.locks.forEach((lock, n) => watch('lock', n, () => is('lock', n, 0), () => lock.waiters))
arena.rws.forEach((rw, n) => watch('rw', n, () => is('rw', n, 0), () => rw.waiters))
arena.semaphores.forEach((semaphore, n) => {
  watch('semaphore', n, () => semaphore.available === PERMITS, () => semaphore.waiters)
})
arena.queues.forEach(({ lock, condition, items }, n) => {
  watch('queue', n, () => is('queue', n, 0), () => lock.waiters)
  watch('queue', n, () => is('queue', n, 0) && Atomics.load(words, items) > 0, () => condition.waiters)
})
arena.messages.forEach((queue, n) => {
  const { id } = queue
  const waitsTo = modes => entry => entry.kind === 'Queue' && entry.id === id && modes.includes(entry.mode)
  const waitersTo = (...modes) => () => waiting.filter(waitsTo(modes)).length
  const changes = () => arena.changesOf(n)
  watch('messages', n, () => queue.length > 0, waitersTo('take', 'use'), changes)
  watch('messages', n, () => arena.hasRoom(n), waitersTo('put'), changes)
  watch('messages', n, () => arena.isIdle(n), waitersTo('idle'), changes)
})
for (let n = 0; n < COUNT.name; n++) {
  const count = what => (named[arena.nameOf(n)] || { held: 0, waiting: 0 })[what]
  watch('name', n, () => count('held') === 0, () => count('waiting'))
}

/** Whether every thread that is at an object can run. */
function canRun (object) {
  for (let actor = 0; actor < arena.actors; actor++) {
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
  const seen = look(arena)
  if (seen.problem !== undefined) return violation(seen.problem)
  named = {}
  waiting = seen.waiting
  for (const what of ['held', 'waiting']) {
    for (const { name } of seen[what])
      if (name !== undefined) (named[name] = named[name] || { held: 0, waiting: 0 })[what]++
  }
  for (const thing of things) {
    const { name, isFree, taken, waiters, object } = thing
    const count = taken()
    if (!isFree() || waiters() === 0 || !canRun(object) || (thing.since && thing.since.count !== count)) {
      thing.since = undefined
    } else if (thing.since === undefined) {
      thing.since = { count, time: now(), starved: starved() }
    } else if (now() - thing.since.time > MOST_FREE) {
      const free = now() - thing.since.time - (starved() - thing.since.starved)
      if (free > MOST_FREE) {
        violation(
          `${name}, or what its lock protects, has been free for ${Math.round(free)} ms while ${waiters()} wait for it`
        )
        return
      }
    }
  }
  const ticks = arena.add('ticks', 0, 1)
  for (let actor = 0; actor < arena.actors; actor++) {
    const operation = arena.get('operation', actor)
    if (operation === 0 || arena.isDying(actor) || ticks - arena.get('since', actor) < MOST_TICKS) continue
    return violation(`an operation has taken ${MOST_TICKS * TICK / 1000} s:\n${arena.present(names).join('\n')}`)
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
