'use strict'

/**
 * Reports waits that last longer than `ATOMICS_WAITASYNC_STALL` milliseconds. A native thread looks for them
 * (core/src/observe/reports.rs has the rules): it writes those of blocked threads to the standard error, and leaves
 * those of promises to the promises' thread, which makes each a warning. Each is a message on the channel
 * `atomics-waitasync:stall`, too: of that thread; of the main thread for a blocked one, which can call no listener.
 *
 * They say where and when holds began, and which tokens were collected. core/src/held/notes.rs knows it for the
 * reports of all threads.
 *
 * Stacks become texts in code that a program may have replaced (`Error.prepareStackTrace`), and that code may use
 * locks. So the stack of a call is taken before the call does anything. A claim has its number, and native code by the
 * register CALL, since its hold begins when it is granted.
 *
 * A token that was collected cannot unlock any more. A timer looks at the tokens, by a WeakRef each, where there is
 * such a thing (Node 14.6 and later). A FinalizationRegistry would tell of it without looking, but it lets workers of
 * many versions hang. The WeakRef is made by the timer: it keeps its token until the end of the job that makes it, and
 * the job of a worker may be a loop without an end.
 */

const { agent } = require('../agent/find-agent')
const { CALL } = require('../agent/registers')
const { setImmediate, setInterval } = require('../util/timers')
const { createMap, createWeakRef, load, max, now, parse } = require('../util/intrinsics')
const { STALL } = require('../util/variables')
const { originOf, placeHere } = require('./call-stacks')
const { Holds, stalled } = require('./channels')
const { INNER, UNAVAILABLE, after, isVisible } = require('../holding/request')
const theList = require('../holding/the-list')

// ——— Reports ———

/** Notes this call: where it is; and within the callbacks of which holds, by serial numbers, if that can be known. */
function callOf () {
  const origin = originOf()
  if (origin !== undefined) return origin
  const { tasks } = theList()
  return { __proto__: null, place: placeHere(), within: tasks === undefined ? undefined : tasks.within() }
}

function keepsHold () {
  const { native: { binding }, tasks } = theList()
  if (tasks !== undefined) binding.noteTask(tasks.within()[0], false)
}

/** Lets native code look for long waits. This thread takes its reports. */
function listen (native) {
  const { binding } = native
  binding.reportStalls()
  // That of another copy would keep the realm of that copy.
  if (native.onReports !== undefined) return
  const tellAll = () => {
    for (let json = binding.nextReport(); typeof json === 'string'; json = binding.nextReport()) tell(parse(json))
    agent().door.open()
  }
  // If this thread was busy, grants are delivered first. Node 10 takes two turns for that.
  native.onReports = () => {
    try {
      // eslint-disable-next-line own/one-door -- in a turn of its own
      setImmediate(() => { setImmediate(tellAll) })
    } catch (_) {
      // A program has replaced functions that Node's timers need.
    }
  }
}

/** Publishes a report, as `write` in core/src/observe/reports.rs writes it. One without a slot has been written. */
function tell (report) {
  const { cycle, more, slot, text } = report
  let waiting
  if (slot !== undefined) {
    agent().someWaiter((waiter) => {
      if (waiter.slot === slot) waiting = waiter
      return waiting !== undefined
    })
    // It is over meanwhile. So may be the first of several.
    if (waiting === undefined && more === 0) return
    // The links of a cycle have their places.
    const detail = cycle === undefined && detailOf(report)
    agent().door.note(() => process.emitWarning(text, { code: STALL, ...detail }))
  }
  stalled(report, waiting && waiting.since)
}

/** Makes the property of a warning that says where a call was. */
function detailOf ({ place }) {
  const detail = place === 0 ? undefined : agent().native.binding.stackText(place)
  return typeof detail === 'string' && { detail }
}

/** Makes the text of a thread that blocks for another process. */
function textWhileBlocked (text) {
  const { detail = '' } = detailOf({ place: placeHere() })
  return '(node:' + process.pid + ') [' + STALL + '] Warning: ' + text + '\n' + detail + '\n'
}

// ——— Holds, and the calls that claim them ———

/**
 * How many holds are looked at in WINDOW milliseconds. Each took a free lock; the place of a further one is probably
 * the last that is known of the word.
 */
const MOST = 500
const WINDOW = 100
const PROBABLY = 0x40000000
/** The least milliseconds between two looks at tokens; a look's most. */
const PERIOD = 250
const TURN = 2

/** Notes the call that is about to claim a hold. It is by default this one. Native code notes it with the wait. */
function claims (hold, call) {
  agent().native.words[CALL] = hold.place = call === undefined ? placeHere() : call.place
}

/** When the present WINDOW began; and how many holds were looked at. */
const window = { began: 0, count: 0 }

/** The last places of the names that were taken in this window. */
let names = createMap()

/** Whether this call is looked at: otherwise it has the last place that is known of the word. */
function isLookedAt (word) {
  const time = now()
  if (!(time - window.began < WINDOW)) {
    window.began = time
    window.count = 0
    names = createMap()
  }
  return window.count++ < MOST || word.place === undefined
}

/** Notes each hold, which the robust list reports. */
class TakenHolds extends Holds {
  constructor ({ binding }) {
    super(binding)
    // Of the hold that began last.
    this.place = 0
    // By serial number: the tokens at which the timer has not looked yet, and WeakRefs to the others.
    this.tokens = createMap()
    this.refs = createMap()
    this.isWatched = createWeakRef === undefined
    // The index of the token that is looked at next.
    this.next = 0
    // The list reports the end of a hold if this is not 0.
    this.count = 1
  }

  placeOf (word, request, isInLine) {
    if (request === INNER) return 0
    if (!this.isWatched) this.watch()
    if (!isInLine && after(request, load(word.array, 0), word.limit) === UNAVAILABLE) return UNAVAILABLE
    const lineName = isInLine ? word.lineName : undefined
    // Each request for a name has a word of its own.
    if (lineName !== undefined && !names.has(lineName)) names.set(lineName, { __proto__: null, place: undefined })
    const known = lineName === undefined ? word : names.get(lineName)
    return isLookedAt(known) ? (known.place = placeHere()) : known.place | PROBABLY
  }

  watch () {
    this.isWatched = true
    const { inRootContext, stallAfter } = agent().native
    try {
      // eslint-disable-next-line own/one-door -- before the thread's first hold is taken
      inRootContext(() => { setInterval(() => this.lookAtTokens(), max(PERIOD, stallAfter / 2)).unref() })
    } catch (_) {
      // A program has replaced functions that timers need. Locks work all the same.
    }
  }

  lookAtTokens () {
    const list = theList()
    const { length } = list
    const end = now() + TURN
    for (let n = 0; n < length && now() < end; n++) {
      if (this.next >= length) this.next = 0
      this.look(list, this.next++)
    }
  }

  begin (serial, request, token, place) {
    if (!isVisible(request)) return
    super.begin(serial, request, token, place)
    this.note(serial, token, place)
  }

  note (serial, token, place = 0) {
    this.place = place
    this.binding.holdBegins(serial, place)
    if (createWeakRef !== undefined && token !== undefined) this.tokens.set(serial, token)
  }

  forget (serial) {
    super.forget(serial)
    this.tokens.delete(serial)
    this.refs.delete(serial)
    this.binding.holdEnds(serial)
  }

  rename (from, to, token, place = this.place) {
    super.rename(from, to, token, place)
    this.forget(from)
    this.note(to, token, place)
  }

  end (list, index) {
    super.end(list, index)
    this.forget(list.serials[index])
  }

  /** Looks at an entry's token: it may have been collected. */
  look ({ serials }, index) {
    const serial = serials[index]
    const token = this.tokens.get(serial)
    if (token !== undefined) {
      this.refs.set(serial, createWeakRef(token))
      this.tokens.delete(serial)
      return
    }
    const ref = this.refs.get(serial)
    if (ref === undefined || ref.deref() !== undefined) return
    this.refs.delete(serial)
    this.binding.holdIsOrphaned(serial)
  }
}

const holdsOf = (native) => ({ holds: new TakenHolds(native), channel: { __proto__: null, hasSubscribers: true } })

module.exports = { callOf, claims, detailOf, holdsOf, keepsHold, listen, textWhileBlocked }
