'use strict'

/**
 * Callbacks of a thread under one lock of the engine.
 *
 * What a callback gives counts once the engine has said that the lock was held after it. A lock that is lost rejects at
 * once the promises of all callbacks whose results do not count yet; and no further callback begins.
 */

const { lostError } = require('./errors')
const { now } = require('../util/intrinsics')

class Batch {
  /**
   * @param {import('./engine-claim').Line} line
   * @param {object} grant
   * @param {{ most: number, milliseconds: number }} limits how many callbacks there are, and how late the last begins
   */
  constructor (line, grant, { most, milliseconds }) {
    this.line = line
    this.grant = grant
    this.most = most
    this.late = now() + milliseconds
    /** Made once somebody asks for the signal: that takes longer than a free lock of files. */
    this.loser = undefined
    /** The error of a lock that was lost. Signals of Node before 16.14 have no reason. */
    this.error = undefined
    this.lost = new Promise((resolve, reject) => { this.rejectLost = reject })
    this.lost.catch(() => {})
    this.running = new Set()
    this.ownerDied = grant.ownerDied
    this.begun = 0
    this.isOver = false
    this.isAsking = false
    // Each settles the promise of a callback that has ended, once it is known whether the lock was held.
    this.unconfirmed = []
    this.heed = undefined
    if (grant.isSilent) return
    this.heed = () => this.lose(grant.lost.reason)
    grant.lost.addEventListener('abort', this.heed)
    if (grant.lost.aborted) this.heed()
  }

  get isLost () { return this.error !== undefined }

  get signal () {
    if (this.loser === undefined) {
      this.loser = new AbortController()
      if (this.isLost) this.loser.abort(this.error)
    }
    return this.loser.signal
  }

  /** Whether the lock is lost. Unless its use `isOver`, the clock counts, too: no timer may have run since. */
  looksLost (isOver) {
    if (!this.isLost && !isOver && this.grant.remaining() <= 0) this.lose(new Error('The lease is over'))
    return this.isLost
  }

  lose (cause) {
    if (this.isLost) return
    this.error = lostError(this.line.name, cause)
    this.rejectLost(this.error)
    if (this.loser !== undefined) this.loser.abort(this.error)
  }

  /** Runs the callbacks, and gives the lock back. Never rejects. The last results wait for `settle`. */
  async run () {
    if (this.line.mode === 'exclusive') await this.runInTurn()
    else for (const each of this.running) await each // also those that join meanwhile
    this.isOver = true
    await this.look(() => this.grant.release(this.ownerDied || this.isLost))
    if (this.heed !== undefined) this.grant.lost.removeEventListener('abort', this.heed)
    if (this.isLost) this.settle()
  }

  async runInTurn () {
    for (let claim = this.next(); claim !== undefined; claim = this.next()) {
      this.ask()
      await this.runOne(claim)
    }
  }

  /** Begins the requests that wait for a shared lock. */
  join () {
    for (let claim = this.next(); claim !== undefined; claim = this.next()) {
      const done = this.runOne(claim).then(() => {
        this.running.delete(done)
        if (this.running.size > 0) this.ask()
      })
      this.running.add(done)
    }
  }

  next () {
    if (this.isOver || this.isLost || this.begun >= this.most || (this.begun > 0 && now() > this.late)) return undefined
    const claim = this.line.shift()
    if (claim !== undefined) this.begun++
    return claim
  }

  async runOne (claim) {
    const isExclusive = this.line.mode === 'exclusive'
    const lock = new ProcessLock(this)
    let leavesMark
    try {
      const value = await Promise.race([this.lost, this.call(claim, lock)])
      // One that saw the death and ended well has repaired the protected state.
      leavesMark = isExclusive ? false : this.ownerDied
      this.unconfirmed.push(() => this.isLost ? claim.reject(this.error) : claim.resolve(value))
    } catch (error) {
      leavesMark = this.ownerDied || (isExclusive && claim.options.repair !== undefined)
      this.unconfirmed.push(() => claim.reject(error))
    }
    this.ownerDied = leavesMark || (isExclusive && lock.end())
  }

  async call (claim, lock) {
    await null // its request has to return first
    const { repair } = claim.options
    if (repair !== undefined && this.ownerDied) {
      await claim.call(repair, lock)
      if (this.isLost) throw this.error
      if (lock.isAbandoned) throw new Error('The repair of ' + this.line.name + ' has abandoned its lock')
      this.ownerDied = false
      lock.ownerDied = false
    }
    return claim.call(claim.callback, lock)
  }

  /** Asks for the results that are there; for further ones, once that is answered. The last wait for the release. */
  async ask () {
    if (this.isAsking || this.isOver || this.unconfirmed.length === 0) return
    this.isAsking = true
    const results = this.unconfirmed.splice(0)
    await this.look(() => this.grant.held())
    this.settle(results)
    this.isAsking = false
    await this.ask()
  }

  /** Finds out whether the lock is held. */
  async look (isHeld) {
    try {
      if (!await Promise.race([this.lost, isHeld()])) this.lose()
    } catch (error) {
      this.lose(error)
    }
  }

  /** Settles the promises of callbacks that have ended. */
  settle (results = this.unconfirmed.splice(0)) {
    for (const settle of results) settle()
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

module.exports = { Batch, ProcessLock }
