'use strict'

/**
 * Permits of a name: locks of files, of which each holder has one. The system gives back those of a process that ends.
 *
 * | lock | who has it |
 * |---|---|
 * | door | who compares the number of permits with that of the others, for a moment |
 * | users | who holds or awaits a permit, shared; alone, for a moment, the first of them, who writes the number |
 * | that of the name | the same, shared: so requests without permits stay out |
 * | turn | the first in line, who waits for all permits at once, each by a thread, and keeps the first that it gets |
 * | permits | each its holder |
 */

const { now } = require('../../util/intrinsics')
const { throwIfAborted } = require('../../waiting/errors')
const { permitsError } = require('../arguments')
const { LocalGrant, onAbort, sleep } = require('../built-in-engine')

const [DOOR, USERS, TURN, PERMIT, NAME] = [0, 1, 2, 3]
const MOMENT = 5 // milliseconds
/** How many milliseconds a process that ends keeps its locks at most. */
const END = 3 * MOMENT
/** How many milliseconds an attempt waits at the door. Who has that may be suspended. */
const LONGEST = 1000

/**
 * Takes a permit. Resolves with undefined if an attempt is in vain.
 * @param {import('./files').Files} engine
 */
async function takePermit (engine, name, { label, permits }, signal, isAttempt) {
  const placeOf = placesOf(engine, name, permits)
  const attempt = (place, passesLine = true) => {
    throwIfAborted(signal)
    return engine.isSlow ? engine.attemptSlowly(place, label, signal) : engine.ask(place, label, passesLine)
  }
  const wait = async (place) => await attempt(place, false) || engine.wait(place, label, signal)
  const kept = []
  let found
  try {
    const door = await (isAttempt ? soon(placeOf(DOOR), LONGEST, true) : wait(placeOf(DOOR)))
    if (door === undefined) return undefined
    await within(door, async () => {
      await compare()
      // Given back in this order: whoever finds no users finds the name free.
      for (const place of [placeOf(NAME, 'shared'), placeOf(USERS, 'shared')]) kept.push(await sure(place))
    })
    // An attempt passes those in line, of whom the first may be suspended.
    found = isAttempt
      ? await tryAll()
      : await within(await wait(placeOf(TURN)), async () => await tryAll() || firstOf())
  } finally {
    if (found === undefined) await giveBack()
  }
  if (found === undefined) return undefined
  const { grant, permit } = found
  const { ownerDied, token } = grant
  const release = async (died) => {
    try {
      return await grant.release(died)
    } finally {
      await giveBack()
    }
  }
  return Object.assign(new LocalGrant(), { token, ownerDied, permit, held: () => grant.held(), release })

  /** @throws {RangeError} others use the name with another number, or without permits */
  async function compare () {
    const users = await attempt(placeOf(USERS))
    if (users === undefined) {
      const others = engine.permitsOf(name, true)
      if (others !== permits) throw permitsError(name, permits, others)
      return
    }
    // Its description has the number.
    await within(users, async () => returnUnused(await sure(placeOf(NAME))))
  }

  /** Takes a lock that only requests without permits keep; and for a moment, processes that end. */
  async function sure (place) {
    const grant = await soon(place, END, false)
    if (grant === undefined) throw permitsError(name, permits)
    return grant
  }

  /** Tries to take a lock that others may have for a moment. */
  async function soon (place, milliseconds, passesLine) {
    for (const until = now() + milliseconds; ;) {
      const isLast = now() >= until
      const grant = await attempt(place, passesLine)
      if (grant !== undefined || isLast) return grant
      await sleep(MOMENT, signal)
    }
  }

  async function tryAll () {
    for (let permit = 0; permit < permits; permit++) {
      const grant = await attempt(placeOf(PERMIT, 'exclusive', permit))
      if (grant !== undefined) return { grant, permit }
    }
    return undefined
  }

  async function firstOf () {
    const places = Array.from({ length: permits }, (_, permit) => placeOf(PERMIT, 'exclusive', permit))
    // One for each: Node warns of a signal with many listeners.
    const stops = places.map(() => new AbortController())
    const stop = () => { for (const each of stops) each.abort() }
    const ignore = onAbort(signal, stop)
    let first
    const waits = places.map(async (place, permit) => {
      const grant = await engine.wait(place, label, stops[permit].signal)
      if (first !== undefined) return returnUnused(grant)
      first = { grant, permit }
      stop()
    })
    const ends = await Promise.allSettled(waits)
    ignore()
    if (first === undefined) throw ends[0].reason
    return first
  }

  async function giveBack () {
    for (const grant of kept.splice(0)) await grant.release(false)
  }
}

/** Makes the places of a name's locks. Those of the last name are kept: a key takes as long as a lock. */
function placesOf (engine, name, permits) {
  const { last } = engine
  const isKept = last !== undefined && last.name === name && last.permits === permits
  const { places } = isKept ? last : (engine.last = { name, permits, places: new Map() })
  return (part, mode = 'exclusive', index = 0) => {
    const which = part + mode + index
    let place = places.get(which)
    if (place === undefined) {
      place = engine.placeOf(name, mode, { permits, part: part === NAME ? undefined : [part, index] })
      places.set(which, place)
    }
    return place
  }
}

const returnUnused = (grant) => grant.release(grant.ownerDied)

/** Does something with a lock that is then given back. */
async function within (grant, body) {
  try {
    return await body()
  } finally {
    await grant.release(false)
  }
}

module.exports = { takePermit }
