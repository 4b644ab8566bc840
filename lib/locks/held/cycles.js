'use strict'

/**
 * Cycles of threads that wait for one another, among the entries of a snapshot: rings.
 *
 * | a claim for | waits for |
 * |---|---|
 * | a lock, exclusive access | each holder |
 * | a share | the writer, and the nearest writer ahead of it in the line |
 * | permits | nothing: any thread may add permits |
 *
 * These are the rules of src/lock/deadlock.rs; but here promises count, and claims that have a time-out. A blocked thread waits for what
 * it blocks for only: its promises cannot go on before. Any other thread waits for what each of its promises waits for, except for what it
 * holds itself: another task of it may release that.
 *
 * Each thread that is on a ring is on one of those that are returned, and none is returned twice: rings of blocked threads come first,
 * and a ring is looked for only through a thread that is on no earlier one. So there are no more rings than threads, and the work is that
 * of one breadth-first search for each thread that both holds and waits.
 */

const { bare, createArray, createMap, define } = require('../../util/intrinsics')

const isExclusive = ({ mode }) => mode === 'exclusive'
/** Permits, and what is no lock, have another mode or none. */
const isOfLock = (entry) => isExclusive(entry) || entry.mode === 'shared'

function push (array, value) {
  array[array.length] = value
}

/** An ordinary array, filled without the setters of prototypes. */
function append (array, value) {
  define(array, array.length, value, true, true)
}

/** What each claim of a snapshot waits for. */
function createObstacles ({ held, waiting }) {
  // By id.
  const holders = createMap()
  const writers = createMap()
  // By claim for a share.
  const ahead = createMap()
  for (let n = 0; n < held.length; n++) {
    const hold = held[n]
    if (!isOfLock(hold)) continue
    const list = holders.get(hold.id)
    if (list === undefined) {
      const first = createArray(1)
      first[0] = hold
      holders.set(hold.id, first)
    // One entry for each thread is enough, and a thread's are next to each other.
    } else if (list[list.length - 1].threadId !== hold.threadId) push(list, hold)
  }
  for (let n = 0; n < waiting.length; n++) {
    const claim = waiting[n]
    if (isExclusive(claim)) writers.set(claim.id, claim)
    else if (isOfLock(claim) && writers.has(claim.id)) ahead.set(claim, writers.get(claim.id))
  }
  return {
    /** The entries of those who hold what `claim` waits for. */
    holdersFor (claim) {
      const list = createArray(0)
      const all = holders.get(claim.id)
      if (all === undefined || !isOfLock(claim)) return list
      for (let n = 0; n < all.length; n++) if (isExclusive(claim) || isExclusive(all[n])) push(list, all[n])
      return list
    },
    /** The entry of the writer that `claim`, for a share, waits behind; undefined if there is none. */
    writerAhead: (claim) => ahead.get(claim)
  }
}

/** A thread; or a claim ahead in a line, which waits for what it requests, whatever else its thread waits for. */
class Node {
  constructor (threadId, blocked) {
    this.threadId = threadId
    this.blocked = blocked
    /** `{ waitsFor, holds, to }`: it waits for this, because `to` has that. */
    this.edges = createArray(0)
    this.isOnRing = false
  }
}
bare(Node)

/** The nodes of the threads, each with its edges. */
function graphOf (snapshot) {
  const { holdersFor, writerAhead } = createObstacles(snapshot)
  const { held, waiting } = snapshot
  const nodes = createArray(0)
  const threads = createMap()
  const claims = createMap()
  for (let n = 0; n < held.length; n++) {
    const { threadId } = held[n]
    if (threads.has(threadId)) continue
    const node = new Node(threadId, false)
    threads.set(threadId, node)
    push(nodes, node)
  }
  for (let n = 0; n < waiting.length; n++) {
    const { threadId, blocked } = waiting[n]
    if (blocked && threads.has(threadId)) threads.get(threadId).blocked = true
  }

  function toHolders (node, claim) {
    const list = holdersFor(claim)
    for (let n = 0; n < list.length; n++) {
      const holds = list[n]
      if (holds.threadId !== claim.threadId) push(node.edges, { waitsFor: claim, holds, to: threads.get(holds.threadId) })
    }
  }

  function toWriter (node, claim) {
    const holds = writerAhead(claim)
    if (holds === undefined || holds.threadId === claim.threadId) return
    if (!claims.has(holds)) {
      claims.set(holds, new Node(holds.threadId, holds.blocked))
      toHolders(claims.get(holds), holds)
    }
    push(node.edges, { waitsFor: claim, holds, to: claims.get(holds) })
  }

  // Further claims of a thread for the same word add nothing.
  const seen = createMap()
  for (let n = 0; n < waiting.length; n++) {
    const claim = waiting[n]
    const node = threads.get(claim.threadId)
    // No thread waits for a thread that holds nothing.
    if (node === undefined || node.blocked !== claim.blocked || !isOfLock(claim)) continue
    const key = claim.threadId + claim.mode + claim.id
    if (seen.has(key)) continue
    seen.set(key, true)
    toHolders(node, claim)
    toWriter(node, claim)
  }
  return nodes
}

/** The edges of the shortest ring through a node; undefined if there is none. */
function ringThrough (start, isBlocked) {
  const reachedBy = createMap()
  const queue = createArray(1)
  queue[0] = start
  for (let n = 0; n < queue.length; n++) {
    const { edges } = queue[n]
    for (let m = 0; m < edges.length; m++) {
      const edge = edges[m]
      const { to } = edge
      if (to === start) return pathTo(edge, queue[n], reachedBy)
      if ((isBlocked && !to.blocked) || reachedBy.has(to)) continue
      reachedBy.set(to, { edge, from: queue[n] })
      push(queue, to)
    }
  }
  return undefined
}

/** The edges by which the search has come to `node`, and then `last`. */
function pathTo (last, node, reachedBy) {
  const reversed = createArray(1)
  reversed[0] = last
  for (let step = reachedBy.get(node); step !== undefined; step = reachedBy.get(step.from)) push(reversed, step.edge)
  const path = createArray(0)
  for (let n = reversed.length - 1; n >= 0; n--) push(path, reversed[n])
  return path
}

/** The links of a ring, as users see them. It begins with the thread that has the smallest number. */
function linksOf (ring) {
  let first = 0
  for (let n = 1; n < ring.length; n++) if (ring[n].waitsFor.threadId < ring[first].waitsFor.threadId) first = n
  const links = []
  for (let n = 0; n < ring.length; n++) {
    const { waitsFor } = ring[(first + n) % ring.length]
    const { holds } = ring[(first + n + ring.length - 1) % ring.length]
    append(links, { threadId: waitsFor.threadId, holds, waitsFor, blocked: waitsFor.blocked })
  }
  return links
}

/** The rings of a snapshot: `{ threadId, holds: Entry, waitsFor: Entry, blocked: boolean }[][]`. */
function cyclesOf (snapshot) {
  const cycles = []
  const nodes = graphOf(snapshot)

  function findRings (isBlocked) {
    for (let n = 0; n < nodes.length; n++) {
      const node = nodes[n]
      if (node.isOnRing || node.edges.length === 0 || (isBlocked && !node.blocked)) continue
      const ring = ringThrough(node, isBlocked)
      if (ring === undefined) continue
      for (let m = 0; m < ring.length; m++) ring[m].to.isOnRing = true
      append(cycles, linksOf(ring))
    }
  }

  findRings(true)
  findRings(false)
  return cycles
}

module.exports = { append, createObstacles, cyclesOf }
