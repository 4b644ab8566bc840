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

const { append } = require('../../util/intrinsics')

const isExclusive = ({ mode }) => mode === 'exclusive'
/** Permits, and what is no lock, have another mode or none. */
const isOfLock = (entry) => isExclusive(entry) || entry.mode === 'shared'

/** What each claim of a snapshot waits for: permits may be released by each of their holders, but also by other threads. */
function createObstacles ({ held, waiting }) {
  // By id.
  const holders = new Map()
  const writers = new Map()
  // By claim for a share.
  const ahead = new Map()
  for (const hold of held) {
    const list = holders.get(hold.id)
    if (list === undefined) holders.set(hold.id, [hold])
    // One entry for each thread is enough, and a thread's are next to each other.
    else if (list[list.length - 1].threadId !== hold.threadId) append(list, hold)
  }
  for (const claim of waiting) {
    if (isExclusive(claim)) writers.set(claim.id, claim)
    else if (isOfLock(claim) && writers.has(claim.id)) ahead.set(claim, writers.get(claim.id))
  }
  return {
    /** The entries of those who hold what `claim` waits for. */
    holdersFor: (claim) => (holders.get(claim.id) || []).filter((hold) => claim.mode !== 'shared' || isExclusive(hold)),
    /** The entry of the writer that `claim`, for a share, waits behind; undefined if there is none. */
    writerAhead: (claim) => ahead.get(claim)
  }
}

/**
 * A thread; or a claim ahead in a line, which waits for what it requests, whatever else its thread waits for. An edge
 * `{ waitsFor, holds, to }`: it waits for this, because `to` has that.
 */
const createNode = (threadId, blocked) => ({ threadId, blocked, edges: [], isOnRing: false })

/** The nodes of the threads, each with its edges. */
function graphOf (snapshot) {
  const { holdersFor, writerAhead } = createObstacles(snapshot)
  const threads = new Map()
  const claims = new Map()
  for (const { threadId } of snapshot.held) {
    if (!threads.has(threadId)) threads.set(threadId, createNode(threadId, false))
  }
  for (const { threadId, blocked } of snapshot.waiting) {
    if (blocked && threads.has(threadId)) threads.get(threadId).blocked = true
  }

  function toHolders (node, claim) {
    for (const holds of holdersFor(claim)) {
      if (holds.threadId !== claim.threadId) append(node.edges, { waitsFor: claim, holds, to: threads.get(holds.threadId) })
    }
  }

  function toWriter (node, claim) {
    const holds = writerAhead(claim)
    if (holds === undefined || holds.threadId === claim.threadId) return
    if (!claims.has(holds)) {
      claims.set(holds, createNode(holds.threadId, holds.blocked))
      toHolders(claims.get(holds), holds)
    }
    append(node.edges, { waitsFor: claim, holds, to: claims.get(holds) })
  }

  // Further claims of a thread for the same word add nothing.
  const seen = new Set()
  for (const claim of snapshot.waiting) {
    const node = threads.get(claim.threadId)
    // No thread waits for a thread that holds nothing.
    if (node === undefined || node.blocked !== claim.blocked || !isOfLock(claim)) continue
    const key = claim.threadId + claim.mode + claim.id
    if (seen.has(key)) continue
    seen.add(key)
    toHolders(node, claim)
    toWriter(node, claim)
  }
  return threads
}

/** The edges of the shortest ring through a node; undefined if there is none. */
function ringThrough (start, isBlocked) {
  // In the order in which the search has come to them: each node with the edge by which it has, and where that begins.
  const reached = new Map([[start, undefined]])
  for (const from of reached.keys()) {
    for (const edge of from.edges) {
      const { to } = edge
      if (to === start) return pathTo(edge, from, reached)
      if ((!isBlocked || to.blocked) && !reached.has(to)) reached.set(to, { edge, from })
    }
  }
  return undefined
}

/** The edges by which the search has come to `node`, and then `last`. */
function pathTo (last, node, reached) {
  const path = [last]
  for (let step = reached.get(node); step !== undefined; step = reached.get(step.from)) append(path, step.edge)
  return path.reverse()
}

/** The links of a ring, as users see them. It begins with the thread that has the smallest number. */
function linksOf (ring) {
  const { length } = ring
  let first = 0
  for (let n = 1; n < length; n++) if (ring[n].waitsFor.threadId < ring[first].waitsFor.threadId) first = n
  return ring.map((_, n) => {
    const { waitsFor } = ring[(first + n) % length]
    const { holds } = ring[(first + n + length - 1) % length]
    return { threadId: waitsFor.threadId, holds, waitsFor, blocked: waitsFor.blocked }
  })
}

/** The rings of a snapshot: `{ threadId, holds: Entry, waitsFor: Entry, blocked: boolean }[][]`. */
function cyclesOf (snapshot) {
  const cycles = []
  const threads = graphOf(snapshot)
  for (const isBlocked of [true, false]) {
    for (const node of threads.values()) {
      if (node.isOnRing || node.edges.length === 0 || (isBlocked && !node.blocked)) continue
      const ring = ringThrough(node, isBlocked)
      if (ring === undefined) continue
      for (const { to } of ring) to.isOnRing = true
      append(cycles, linksOf(ring))
    }
  }
  return cycles
}

module.exports = { createObstacles, cyclesOf }
