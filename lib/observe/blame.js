'use strict'

/**
 * Records this thread's holds for which others waited, by their stacks. It does so if
 * `ATOMICS_WAITASYNC_PROFILE_HOLDERS` is set (`native.profilesHolders`). src/observe/profile.rs adds up.
 *
 * At the end of a hold native code computes for how long all claims have waited since another hold ended there. That
 * time is the fault of this hold. It is recorded if it is long. Of the others some are chosen at random, by their
 * times, and stand for the rest.
 *
 * The stack is that of the call that ends the hold. A callback form ends its hold in a job of its own, where V8 knows a
 * frame of the program's only if that awaits the form. So it takes the stack when it is called: if it is called too
 * often for that, of some calls, chosen at random.
 */

const { agent } = require('../agent/agent')
const { ENTRY } = require('../agent/registers')
const { apply, max } = require('../util/intrinsics')
const { PROFILE_HOLDERS } = require('../util/variables')
const Sampler = require('./sampler')
const { NOT_HELD, SERIAL, requestIn } = require('../holding/entry')
const { LEASE, isVisible, kindOf, nounOfHold } = require('../holding/request')

const { random } = Math

const CONSEQUENCE = PROFILE_HOLDERS + ': the stack of a hold is missing'
/** Milliseconds. A factor of n means that the time of a recorded hold is at least n - 1 times this. */
const UNIT = 0.001

/** Chooses calls of callback forms. */
const calls = new Sampler(CONSEQUENCE, PROFILE_HOLDERS, 0.5)
/** Chooses holds, by the time that others waited. */
const ends = new Sampler(CONSEQUENCE, PROFILE_HOLDERS, 0.5)
/** How many holds have ended since one was recorded. */
let passed = 0

/** The serial number of the hold that a callback form releases; its call's stack. */
const ending = { serial: NOT_HELD, stack: 0 }

/** Returns the number of a callback form's stack; 0: it is not taken. Never throws. */
function stackOfCall () {
  if (calls.next() === 0) return 0
  try {
    return calls.takeStack()
  } catch (_) {
    // No stack is left.
    return 0
  }
}

/** Notes that a callback form is about to release a token's hold. */
function callEnds (stack, token) {
  ending.serial = token[SERIAL]
  ending.stack = stack
}

function record (hold, milliseconds, stack) {
  const least = (ends.factor - 1) * UNIT
  passed++
  if (milliseconds < least && milliseconds < least * random()) return
  ends.goOn()
  const count = passed
  passed = 0
  const number = stack === 0 ? ends.takeStack() : stack
  agent().native.binding.holdDelayed(number, count, nounOfHold(hold), max(milliseconds, least))
}

/** Asks for how long others waited for an entry that now ends. */
function ask ({ door, entries, held, serials, native: { binding, counters, words } }, index) {
  const request = requestIn(entries[2 * index + 1])
  if (!isVisible(request) || kindOf(request) === LEASE) return
  const word = held[index]
  // A name has no counter.
  if (word.counter !== undefined && counters.peek(word.counter) === 0) return
  words[ENTRY] = index
  const milliseconds = binding.takeWaited()
  if (milliseconds === 0) return
  const hold = { word, request }
  const stack = serials[index] === ending.serial ? ending.stack : 0
  door.note(() => record(hold, milliseconds, stack))
}

/** Lets an observer of holds find out for how long others waited. */
function blamed ({ holds, channel }) {
  const { end } = holds
  holds.end = (list, index) => {
    ask(list, index)
    apply(end, holds, [list, index])
  }
  // The list reports the end of a hold if this is not 0.
  holds.count++
  return { holds, channel }
}

module.exports = { blamed, callEnds, stackOfCall }
