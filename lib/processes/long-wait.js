'use strict'

/**
 * Waits for an engine that last: snapshots, dumps and reports of stalls say who has the lock.
 *
 * A thread that waits for an engine has the named lock in front, so other threads of the process would be told of that
 * thread alone. The engine is asked who has the lock only if somebody is to read it: with `ATOMICS_WAITASYNC_STALL` or
 * `ATOMICS_WAITASYNC_DUMP` in the environment; and then less and less often. Otherwise a snapshot says that it is
 * another process.
 */

const { threadId } = require('../util/worker-threads')
const { agent } = require('../agent/find-agent')
const { now } = require('../util/intrinsics')
const { clearTimeout, setTimeout } = require('../util/timers')
const { STALL } = require('../util/variables')
const { SERIAL } = require('../holding/request')
const theList = require('../holding/the-list')
const { within } = require('./built-in-engine')
const { describeHolder, obstacleIn, relationOf, show } = require('./arguments')

/** Milliseconds after which a wait is noted, if stalls are not reported; and the most between two questions. */
const FIRST = 1000
/** If they are, waits for this thread may be reported earlier. */
const SOON = 50
const LONGEST = 60000

/** Names the lock in front, which a thread has while it waits. */
const frontOf = (engine, name) => engine.id + ': ' + name

/** Makes the hold of the name in front a task: reports know that its thread awaits no other lock within it. */
function beginTask ({ token }) {
  const { tasks } = theList()
  if (tasks !== undefined) tasks.begin(token[SERIAL])
}

function endTask ({ token }) {
  const { tasks } = theList()
  if (tasks !== undefined) tasks.endOf(token[SERIAL])
}

/** A wait of this thread for the lock of an engine. */
class LongWait {
  #front
  #name
  #id
  #began = now()
  #after
  #isReported
  isOver = false
  isNoted = false

  constructor (engine, name) {
    const { stallAfter, dumpSignal } = agent().native
    this.#front = frontOf(engine, name)
    this.#name = name
    this.#id = engine.id
    this.#isReported = stallAfter !== 0
    this.#after = stallAfter === 0 ? FIRST : Math.min(SOON, stallAfter)
    this.isEnabled = stallAfter !== 0 || dumpSignal !== undefined
  }

  /** Milliseconds until there is something to note. */
  get left () { return this.#began + this.#after - now() }

  /** Lets snapshots say who has the lock, if that is known. */
  tell (holder) {
    const who = (holder && describeHolder(holder)) || 'another process'
    this.isNoted = true
    agent().native.binding.waitsElsewhere(this.#front, who)
    return who
  }

  /**
   * Notes who has the lock. Returns the text of a report, if it is time for one.
   * @param {object} [holder] an entry of `query`
   */
  note (holder, isBlocked) {
    if (this.isOver) return undefined
    const who = this.tell(holder)
    const age = now() - this.#began
    const { stallAfter } = agent().native
    this.#after = age < stallAfter ? stallAfter : this.isEnabled ? age + Math.min(age, LONGEST) : Infinity
    if (!this.#isReported || age < stallAfter) return undefined
    this.#isReported = false
    const thread = threadId === 0 ? 'the main thread' : 'thread ' + threadId
    const promise = 'A promise of ' + thread + ' has been pending'
    const subject = isBlocked ? 'Thread ' + threadId + ' has been blocked' : promise
    const time = age < 1000 ? Math.round(age) + ' ms' : (age / 1000).toFixed(1) + ' s'
    const phrase = 'the lock ' + show(this.#name) + ' of ' + this.#id
    return subject + ' for ' + time + ' waiting for ' + phrase + ':\n  ' + relationOf(holder, who)
  }

  /** Makes the message of a report. Undefined if another request has stolen the name in front. */
  message (holder) {
    const isFront = ({ kind, name, threadId: id }) => kind === 'named' && name === this.#front && id === threadId
    // Here, and below: what reports need is loaded for them.
    const front = require('../observe/snapshot').snapshot().held.find(isFront)
    if (front === undefined) return undefined
    const { kind, mode, name, id, blocked } = front
    const entry = { kind, mode, name, id, threadId, blocked, milliseconds: now() - this.#began }
    return { entry, more: 0, holders: [], process: holder === undefined ? null : holder, threadId }
  }

  end () {
    this.isOver = true
    if (this.isNoted) agent().native.binding.waitsElsewhere(this.#front)
  }
}

/**
 * Watches a wait for a promise, in its request's context. Returns a function that ends this.
 * @param {import('async_hooks').AsyncResource} scope the engine's asynchronous context
 * @param {import('./engine-claim').Claim} [claim] the first that waits
 */
function watch (engine, scope, name, claim) {
  const wait = new LongWait(engine, name)
  let timer
  const again = () => { if (wait.left < Infinity) timer = setTimeout(look, Math.max(1, wait.left)).unref() }
  async function look () {
    if (wait.left > 0) return again()
    if (!wait.isNoted) wait.tell()
    const holder = wait.isEnabled ? await soonestHolder(engine, scope, name) : undefined
    const text = wait.note(holder, false)
    if (text !== undefined) report(text, claim && claim.origin, wait.message(holder))
    if (!wait.isOver) again()
  }
  again()
  return () => {
    clearTimeout(timer)
    wait.end()
  }
}

function report (text, call, message) {
  process.emitWarning(text, { code: STALL, ...call !== undefined && require('../observe/stalls').detailOf(call) })
  if (message !== undefined) require('../observe/channels').publishStall(message)
}

/** How long the error of a timeout waits for its holder. */
const SOON_ENOUGH = 1000

/**
 * Lists who holds locks and who waits: of one name, or of all.
 * @param {import('async_hooks').AsyncResource} scope the engine's asynchronous context
 */
async function query (engine, scope, name) {
  if (typeof engine.query !== 'function') return { held: [] }
  const { held, pending } = await scope.runInAsyncScope(() => engine.query(name))
  const { HOST, checked, shorten } = require('./engines/holder')
  const named = name === undefined ? {} : { name: shorten(name) }
  const isOurs = ({ pid, host }) => pid === process.pid && [undefined, HOST].includes(host)
  // Those of an engine of somebody else may have anything in their fields.
  const list = (infos) => infos.map((info) => ({ isOurs: isOurs(info), ...info, ...checked(info), ...named }))
  return pending === undefined ? { held: list(held) } : { held: list(held), pending: list(pending) }
}

/** Returns the first holder; undefined if the engine does not tell it soon. Never rejects. */
async function soonestHolder (engine, scope, name) {
  try {
    return obstacleIn(await within(SOON_ENOUGH, query(engine, scope, name), () => undefined))
  } catch (_) {
    return undefined
  }
}

/** Asks an engine who has a lock; undefined if it does not say. */
function holderOf (engine, name) {
  try {
    return obstacleIn(engine.querySync(name))
  } catch (_) {
    return undefined
  }
}

/** Watches a blocking wait: the thread calls `look` now and then, and `end`. */
function watchBlocked (engine, name) {
  const wait = new LongWait(engine, name)
  const look = () => {
    if (wait.left > 0) return
    const text = wait.note(wait.isEnabled ? holderOf(engine, name) : undefined, true)
    if (text === undefined) return
    agent().native.binding.leaveReport(require('../observe/stalls').textWhileBlocked(text))
  }
  return { look, end: () => wait.end() }
}

module.exports = { beginTask, endTask, frontOf, holderOf, query, soonestHolder, watch, watchBlocked }
