'use strict'

/**
 * Where and when this thread takes what it holds, and which tokens have been collected, if stalls are reported (`ATOMICS_WAITASYNC_STALL`).
 * src/observe/taken.rs knows it for the reports of all threads.
 *
 * Stacks become texts in code that a program may have replaced (`Error.prepareStackTrace`), and that code may use locks. So the stack of a call
 * is taken before the call does anything, and its number is in the register CALL until the hold begins. A claim has it, too, since its hold
 * begins when it is granted.
 *
 * A token that was collected cannot unlock any more. A timer looks at the tokens, by a WeakRef each, where there is such a thing (Node 14.6 and
 * later). A FinalizationRegistry would tell of it without looking, but it lets workers of many versions hang. The WeakRef is made by the timer: it
 * keeps its token until the end of the job that makes it, and the job of a worker may be a loop without an end.
 */

const { setInterval } = require('timers')
const { agent } = require('../../agent/agent')
const { CALL } = require('../../agent/registers')
const { createArray, createMap, createWeakRef, load, max, now } = require('../../util/intrinsics')
const { captureCall, stackOrWarning } = require('../../waiting/call-stacks')
const Holds = require('./holds')
const { DEBT, INNER, LOCK, UNAVAILABLE, UNLOCKED, after, kindOf } = require('../hold/request')

const CODE = 'ATOMICS_WAITASYNC_STALL'
const MISSING = 'The stack of a call is missing, so reports do not say where a lock was taken'
/** The package's own frames, and a few of the program's: each costs about a microsecond. */
const FRAMES = 12
/** Milliseconds between two looks at tokens, at least; and how long a look takes at most. */
const PERIOD = 250
const TURN = 2

// ——— Calls ———

let isTaking = false

/**
 * The number by which native code knows the stack of a call, by default of this one; 0 if there is none, of which one warning in the process says
 * why. Never throws.
 */
function numberOf (call) {
  // Code that makes a text of a stack takes a lock.
  if (isTaking) return 0
  isTaking = true
  try {
    const { binding } = agent().native
    const text = stackOrWarning(binding, call === undefined ? captureCall(FRAMES) : call, MISSING, CODE)
    if (text !== '') return binding.stackNumber(text)
  } catch (_) {
    // No stack is left.
  } finally {
    isTaking = false
  }
  return 0
}

/** The number of this call; 0 if no stalls are reported. */
const callHere = () => agent().native.stallAfter === 0 ? 0 : numberOf()

/** A hold is about to be claimed, by default by this call: native code notes that with the wait. Nothing, if no stalls are reported. */
function claims (hold, call) {
  const { stallAfter, words } = agent().native
  if (stallAfter !== 0) words[CALL] = hold.place = numberOf(call)
}

/** A message of a queue is about to be taken to be used, by default by this call: a step of the queue begins the hold. */
function uses (list, call) {
  if (list.native.stallAfter !== 0) list.usedAt = numberOf(call)
}

// ——— Holds ———

/** The robust list tells it of each hold. No code of the program's may run here. */
class TakenHolds extends Holds {
  constructor ({ binding, words }) {
    super(binding)
    this.words = words
    // By serial number: the tokens at which the timer has not looked yet, and WeakRefs to the others.
    this.tokens = createMap()
    this.refs = createMap()
    // The index of the token that is looked at next.
    this.next = 0
    // The list tells of the end of a hold if this is not 0.
    this.count = 1
  }

  begin (serial, request, token) {
    if (kindOf(request) === INNER || kindOf(request) === DEBT) return
    super.begin(serial, request, token)
    this.note(serial, token)
  }

  note (serial, token) {
    this.binding.holdBegins(serial, this.words[CALL] >>> 0)
    if (createWeakRef !== undefined && token !== undefined) this.tokens.set(serial, token)
  }

  forget (serial) {
    super.forget(serial)
    this.tokens.delete(serial)
    this.refs.delete(serial)
    this.binding.holdEnds(serial)
  }

  rename (from, to, token) {
    super.rename(from, to, token)
    this.forget(from)
    this.note(to, token)
  }

  end (list, index) {
    super.end(list, index)
    this.forget(list.serials[index])
  }

  /** Looks at the token of the entry at `index`. Returns whether it has been found to be collected for the first time. */
  look ({ serials }, index) {
    const serial = serials[index]
    const token = this.tokens.get(serial)
    if (token !== undefined) {
      this.refs.set(serial, createWeakRef(token))
      this.tokens.delete(serial)
      return false
    }
    const ref = this.refs.get(serial)
    if (ref === undefined || ref.deref() !== undefined) return false
    this.refs.delete(serial)
    this.binding.holdIsOrphaned(serial)
    return true
  }

  /** Looks at some tokens. Returns the words of those that have been found to be collected. */
  lookAtSome (list) {
    const found = createArray(0)
    const { length } = list
    const end = now() + TURN
    for (let n = 0; n < length && now() < end; n++) {
      if (this.next >= length) this.next = 0
      if (this.look(list, this.next)) found[found.length] = list.held[this.next]
      this.next++
    }
    return found
  }
}

// ——— The robust list ———

/** Whether a word may have what is requested. */
function mayTake ({ array, limit }, request) {
  return request === LOCK ? array[0] === UNLOCKED : after(request, load(array, 0), limit) !== UNAVAILABLE
}

/** The class of the robust list, of a thread that notes where it takes what it holds. */
function noting (RobustList, { words }) {
  return class NotingList extends RobustList {
    constructor () {
      super()
      // See `uses`.
      this.usedAt = 0
    }

    take (word, request, token) {
      if (token !== null && request !== INNER) {
        if (!mayTake(word, request)) return false
        words[CALL] = numberOf()
      }
      return super.take(word, request, token)
    }

    takeInLine (word, request, token, takeName) {
      if (token !== null && request !== INNER) words[CALL] = numberOf()
      return super.takeInLine(word, request, token, takeName)
    }

    adopt (hold, index, ownerDied) {
      words[CALL] = hold.place
      super.adopt(hold, index, ownerDied)
    }

    assign (hold, index, ownerDied) {
      if (hold.place !== undefined) words[CALL] = hold.place
      super.assign(hold, index, ownerDied)
    }

    downgrade (index, ownerDied, shared) {
      words[CALL] = shared.place
      super.downgrade(index, ownerDied, shared)
    }

    enter (thing, request) {
      words[CALL] = this.usedAt
      return super.enter(thing, request)
    }
  }
}

/** Looks at tokens now and then. */
function watchTokens (list) {
  const { holds, native: { inRootContext, stallAfter } } = list
  if (createWeakRef === undefined) return
  const look = () => {
    const words = holds.lookAtSome(list)
    try {
      if (words.length > 0) require('./orphans')(words)
    } catch (_) {
      // There are too many holds and waits for a snapshot.
    }
  }
  try {
    inRootContext(() => { setInterval(look, max(PERIOD, stallAfter / 2)).unref() })
  } catch (_) {
    // A program has replaced what timers need. Locks work all the same.
  }
}

module.exports = { TakenHolds, callHere, claims, noting, numberOf, uses, watchTokens }
