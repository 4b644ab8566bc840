'use strict'

/**
 * Callbacks of a thread under one lock of the engine.
 *
 * What a callback gives counts once the engine has said that the lock was held after it. A lock that is lost rejects at
 * once the promises of all callbacks whose results do not count yet; and no further callback begins.
 */

const { setMaxListeners } = require('events')
const { showState } = require('../util/instances')
const { onAbort } = require('./built-in-engine')
const { lostError } = require('./arguments')
const { LONGEST_TIMER, clearTimeout, setTimeout, wallClock } = require('../util/timers')

/** Waits for the jobs that are there. */
const RETURNED = Promise.resolve()
/** Waits for one job more. In it, a claim that has not waited hears what settles it, before those behind do. */
const heard = async () => { await undefined }

class Batch {
  /**
   * @param {import('./engine-claim').Line} line
   * @param {{ most: number, milliseconds: number, scope: import('async_hooks').AsyncResource }} terms how many
   *   callbacks there are, and how late the last begins; the engine's asynchronous context
   * @param {import('./engine-claim').Claim} [first] one that has not waited in the line
   */
  constructor (line, terms, first) {
    this.line = line
    this.terms = terms
    this.first = first
    this.isExclusive = line.mode === 'exclusive'
    this.isLocal = line.place !== undefined
    /** The named lock in front; the controller of a question to the engine; its answer. */
    this.front = this.asking = this.grant = undefined
    this.ownerDied = false
    this.since = 0
    /** Made once somebody asks for the signal: that takes longer than a free lock of files. */
    this.loser = undefined
    /** The error of a lock that was lost. Signals of Node before 16.14 have no reason. */
    this.error = undefined
    /** Has an error that neither a callback nor the engine has thrown. */
    this.failure = undefined
    /** Rejects once the lock is lost. A local one is lost only by an answer, for which nothing waits. */
    this.lost = this.rejectLost = undefined
    /** Ends the listening to the signal of a grant. */
    this.ignore = undefined
    this.begun = this.running = 0
    this.onIdle = undefined
    this.isOver = this.isAsking = false
    this.timer = undefined
    // Claims whose callbacks have ended: a list. They are settled once it is known whether the lock was held.
    this.unconfirmed = this.last = undefined
  }

  hold (grant, isBuiltIn) {
    this.grant = grant
    this.ownerDied = grant.ownerDied
    // The token of a lock of this machine is the moment of its grant, or later. To read the clock takes longer.
    this.since = this.isLocal && this.isExclusive ? Math.floor(grant.token / 1000) : wallClock()
    if (!this.isLocal) this.heedLoss(isBuiltIn)
  }

  /** Apart from that, since functions that are made take memory. */
  heedLoss (isBuiltIn) {
    const { grant } = this
    this.lost = new Promise((resolve, reject) => { this.rejectLost = reject })
    this.lost.catch(() => {})
    if (isBuiltIn) return grant.whenLost((reason) => this.lose(reason))
    const { lost } = grant
    const heed = () => this.lose(lost.reason)
    this.ignore = onAbort(lost, heed)
    if (lost.aborted) heed()
  }

  get isLost () { return this.error !== undefined }

  get signal () {
    if (this.loser === undefined) {
      this.loser = new AbortController()
      try {
        // Each request of a batch may listen: Node would warn of a leak.
        setMaxListeners(0, this.loser.signal)
      } catch (_) {
        // A program has replaced the class.
      }
      if (this.isLost) this.loser.abort(this.error)
    }
    return this.loser.signal
  }

  /** Whether the lock is lost. Unless its use `isOver`, the clock counts, too: no timer may have run since. */
  looksLost (isOver) {
    if (!this.isLost && !isOver && this.grant.remaining() <= 0) this.lose(new Error('Its time is over'))
    return this.isLost
  }

  lose (cause) {
    if (this.isLost) return
    this.error = lostError(this.line.name, cause)
    if (this.rejectLost !== undefined) this.rejectLost(this.error)
    if (this.loser !== undefined) this.loser.abort(this.error)
  }

  /** Settles as the promise does, or rejects once the lock is lost. */
  unlessLost (promise) { return this.lost === undefined ? promise : Promise.race([this.lost, promise]) }

  /**
   * Takes the next step: runs a callback, or waits for those that share the lock; at last, gives the lock back. Returns
   * a promise of the step's end, which never rejects; undefined once the batch is over. The last results wait for
   * `settle`. After an error that no callback has thrown, it gives the lock back.
   */
  next () {
    if (this.isOver) return undefined
    try {
      if (this.hasNext) {
        if (this.unconfirmed !== undefined) this.ask()
        const claim = this.first || this.line.shift()
        this.first = undefined
        const later = this.run(this.begin(claim))
        if (later !== undefined) return later
        // Those whose results are there may ask again meanwhile, and be served under the same lock.
        if (this.hasNext) return this.begun === 1 ? heard() : RETURNED
      }
      if (this.running > 0) {
        this.ask()
        return new Promise((resolve) => { this.onIdle = resolve })
      }
      return this.giveBack()
    } catch (error) {
      return this.fail(error)
    }
  }

  /** Gives the lock back, unless its use goes on. Returns a promise if that lasts, which never rejects. */
  giveBack () {
    if (this.isOver || this.running > 0 || this.hasNext) return undefined
    this.isOver = true
    return this.look()
  }

  /** Begins the requests that wait for a shared lock. One that has not waited begins by itself, in its own context. */
  join () {
    while (this.hasNextInLine) this.share(this.begin(this.line.shift()))
  }

  async share (claim) {
    await undefined // its request has to return first
    await this.run(claim)
    if (this.running > 0) this.ask()
    else if (this.onIdle !== undefined) this.onIdle()
  }

  get hasNext () {
    return this.first === undefined ? this.hasNextInLine : !this.isOver && !this.isLost
  }

  get hasNextInLine () {
    const { first, line, terms: { milliseconds, most } } = this
    if (this.isOver || this.isLost || line.claims.size === 0) return false
    const begun = first === undefined ? this.begun : this.begun + 1
    if (begun === 0) return true
    // By this clock, since the other takes memory. Of one that has been set back, the time is over.
    const now = wallClock()
    // The token is ahead of a clock that was set back before the grant.
    if (this.since > now && begun === 1) this.since = now
    const age = now - this.since
    if (begun < most && age >= 0 && age < milliseconds) return true
    // For good: who gives the lock back has asked before, and the clock may be set meanwhile.
    this.since = -Infinity
    return false
  }

  /** Leaves the line once time lets no further callback begin. Those behind then wait for the front, as reports say. */
  whenLate (serve) {
    if (this.timer !== undefined) return
    const { line } = this
    // A hook of async_hooks may come here while the timer is made.
    this.timer = null
    this.timer = setTimeout(() => {
      // A timer may be early.
      this.since = -Infinity
      if (line.batch !== this) return
      line.batch = undefined
      serve()
    }, Math.min(this.terms.milliseconds, LONGEST_TIMER))
  }

  /** Counts a claim that begins. */
  begin (claim) {
    this.begun++
    this.running++
    return claim
  }

  /** Runs the callback of a claim. Returns a promise if that lasts, which never rejects. */
  run (claim) {
    const lock = new ProcessLock(this)
    let value
    try {
      claim.assertWanted()
      // It may have come late, to a thread that was busy.
      if (!this.isLocal && this.looksLost()) throw this.error
    } catch (error) {
      return this.note(claim, error, true)
    }
    try {
      const mends = claim.options.repair !== undefined && this.ownerDied
      value = mends ? this.repair(claim, lock) : claim.callWithin(this.front.token, claim.callback, lock)
    } catch (error) {
      return this.end(claim, lock, error, true)
    }
    if (typeof value === 'object' || typeof value === 'function') return this.hear(claim, lock, value)
    return this.end(claim, lock, value, false)
  }

  async repair (claim, lock) {
    await this.unlessLost(claim.callWithin(this.front.token, claim.options.repair, lock))
    if (this.isLost) throw this.error
    if (lock.isAbandoned) throw new Error('The repair of ' + this.line.name + ' has abandoned its lock')
    this.ownerDied = false
    lock.ownerDied = false
    return claim.callWithin(this.front.token, claim.callback, lock)
  }

  async hear (claim, lock, promise) {
    let value
    try {
      value = await this.unlessLost(promise)
    } catch (error) {
      this.end(claim, lock, error, true)
      return this.giveBack()
    }
    this.end(claim, lock, value, false)
    return this.giveBack()
  }

  /** Ends a callback. One that saw a death and ended well has repaired the protected state. */
  end (claim, lock, result, hasFailed) {
    const { isExclusive } = this
    const isAbandoned = lock.end()
    const keepsMark = hasFailed || !isExclusive
    const isUnsound = isExclusive && (isAbandoned || (hasFailed && claim.options.repair !== undefined))
    this.ownerDied = isUnsound || (keepsMark && this.ownerDied)
    this.note(claim, result, hasFailed)
  }

  /** Notes what a claim is to be settled with: later, so that a request that follows finds both locks free. */
  note (claim, result, hasFailed) {
    this.running--
    claim.result = result
    claim.hasFailed = hasFailed
    if (this.unconfirmed === undefined) this.unconfirmed = claim
    else this.last.next = claim
    this.last = claim
  }

  /** Asks for the results that are there; for further ones, once that is answered. The last wait for the release. */
  async ask () {
    if (this.isAsking || this.isOver || this.unconfirmed === undefined) return
    this.isAsking = true
    const ended = this.unconfirmed
    this.unconfirmed = undefined
    const held = this.look()
    if (held !== undefined) await held
    this.settle(ended)
    this.isAsking = false
    await this.ask()
  }

  /** Asks whether the lock is held; at the end, by giving it back. Returns a promise if the answer comes later. */
  look () {
    const { grant, isLocal, isOver } = this
    const died = this.ownerDied || this.isLost
    try {
      const answer = isLocal
        ? isOver ? grant.releaseNow(died) : grant.heldNow()
        : this.terms.scope.runInAsyncScope(() => isOver ? grant.release(died) : grant.held())
      if (typeof answer !== 'boolean') return this.hearEngine(answer)
      if (!answer) this.lose()
    } catch (error) {
      this.lose(error)
    }
    return undefined
  }

  async hearEngine (answer) {
    try {
      if (!await this.unlessLost(answer)) this.lose()
    } catch (error) {
      this.lose(error)
    }
  }

  /** Gives the lock back after an error that no callback has thrown. There may be none yet. Never rejects. */
  async fail (error) {
    this.failure = { error }
    if (this.grant === undefined) return
    this.lose(error)
    this.isOver = true
    await this.look()
  }

  /** Settles the promises of callbacks that have ended. */
  settle (ended = this.unconfirmed) {
    if (this.isOver && this.timer !== undefined) clearTimeout(this.timer)
    if (this.isOver && this.ignore !== undefined) this.ignore()
    if (ended === this.unconfirmed) this.unconfirmed = undefined
    for (let claim = ended; claim !== undefined; claim = claim.next) {
      if (this.isLost && !claim.hasFailed) claim.settle(this.error, true)
      else claim.settle(claim.result, claim.hasFailed)
    }
  }
}

/** The argument of a callback. */
class ProcessLock {
  #holding
  #isOver = false

  /** @param {object} holding a Batch, or what has its `line`, `grant`, `ownerDied`, `signal` and `looksLost` */
  constructor (holding) {
    this.#holding = holding
    this.ownerDied = holding.ownerDied
    this.isAbandoned = false
  }

  get name () { return this.#holding.line.name }
  get mode () { return this.#holding.line.mode }
  get token () { return this.#holding.grant.token }
  get permit () { return this.#holding.grant.permit }
  get signal () { return this.#holding.signal }
  get isLost () { return this.#holding.looksLost(this.#isOver) }

  /** Lets the next holder see `ownerDied`, once the callback ends. False if it has ended. */
  abandon () {
    if (this.#isOver || this.mode === 'shared') return false
    this.isAbandoned = true
    return true
  }

  /** Ends its use. Returns whether it was abandoned. */
  end () {
    this.#isOver = true
    return this.isAbandoned
  }
}

function showLock (Class) {
  showState(Class, ({ name, names, mode, token, tokens, permit, ownerDied, isLost }) => {
    if (names !== undefined) return { names, mode, tokens, ownerDied, isLost }
    return { name, mode, token, ...permit !== undefined && { permit }, ownerDied, isLost }
  })
}

showLock(ProcessLock)

module.exports = { Batch, ProcessLock, showLock }
