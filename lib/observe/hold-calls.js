'use strict'

/**
 * Where and when holds begin, and which tokens were collected. It is noted if stalls are reported
 * (`ATOMICS_WAITASYNC_STALL`). core/src/held/notes.rs knows it for the reports of all threads.
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

const { setInterval } = require('../util/timers')
const { agent } = require('../agent/find-agent')
const { CALL } = require('../agent/registers')
const { createMap, createWeakRef, load, max, now } = require('../util/intrinsics')
const { placeHere } = require('./call-stacks')
const Holds = require('./hold-durations')
const { INNER, UNAVAILABLE, after, isVisible } = require('../holding/request')
const theList = require('../holding/the-list')

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

// ——— Calls ———

const mayTake = ({ array, limit }, request) => after(request, load(array, 0), limit) !== UNAVAILABLE

/** Notes the call that is about to claim a hold. It is by default this one. Native code notes it with the wait. */
function claims (hold, call) {
  agent().native.words[CALL] = hold.place = call === undefined ? placeHere() : call.place
}

// ——— Holds ———

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

  placeOf (word, request) {
    if (request === INNER) return 0
    if (!this.isWatched) this.watch()
    if (!mayTake(word, request)) return UNAVAILABLE
    return isLookedAt(word) ? (word.place = placeHere()) : word.place | PROBABLY
  }

  placeInLine (word, request) {
    if (request === INNER) return 0
    if (!this.isWatched) this.watch()
    const { lineName } = word
    // Each request for a name has a word of its own.
    if (lineName !== undefined && !names.has(lineName)) names.set(lineName, { __proto__: null, place: undefined })
    const known = lineName === undefined ? word : names.get(lineName)
    return isLookedAt(known) ? (known.place = placeHere()) : known.place | PROBABLY
  }

  /** Sets the timer that looks at the tokens. */
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

/** Makes the observer of the holds of this thread. */
const holdsOf = (native) => ({ holds: new TakenHolds(native), channel: { __proto__: null, hasSubscribers: true } })

// The observer's functions of these names: see attach.js.
module.exports = { claims, holdsOf }
