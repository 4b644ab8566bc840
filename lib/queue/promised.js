'use strict'

/** Carries out a step of a queue for a method that awaits. */

const { agent } = require('../agent/agent')
const { LATE, hideFrames, throwIfAborted } = require('../waiting/errors')
const observer = require('../waiting/observer')
const Steps = require('../waiting/wait-steps')
const { memoryOf } = require('./arguments')
const { isInVain, lateError } = require('./blocking')
const { BUSY, PUT } = require('./memory')
const { owing } = require('./owing')
const { isPutting, later } = require('./waits')

/**
 * Carries out a step at once, or when it is its turn. Returns a promise that `ref` and `unref` know.
 * @param {object} form what the method does. What these throw, the promise rejects with:
 *   - `call(memory, argument, options, steps)` describes the step, by `calling` of blocking.js
 *   - `finish(found, memory, argument, wait)` makes the method's result of the step's answer
 *   - `isAsync`: whether that is mostly a promise, which is awaited sooner than returned
 */
module.exports = function promised (form, queue, argument, options, steps = new Steps()) {
  steps.call = observer.callOf()
  steps.context = observer.contextOfWait()
  return steps.of(carriedOut(form, queue, argument, options, steps))
}

async function carriedOut ({ call, finish, isAsync }, queue, argument, options, steps) {
  const memory = memoryOf(queue)
  const wait = call(memory, argument, options, steps)
  throwIfAborted(wait.signal)
  // Another thread, or an earlier promise of this one, may come first.
  let found = wait.mode === PUT && isPutting(memory) ? BUSY : owing(memory, wait.step, wait.argument)
  const isAtOnce = !isInVain(found)
  if (!isAtOnce) found = await later(memory, wait, steps)
  if (found === LATE) throw hideFrames(lateError(memory, wait), carriedOut)
  // It overtakes no promise of the queue that awaits a turn.
  if (isAtOnce ? !agent().settlesAtOnce() : memory.awaitingTurn !== 0) await agent().turn(memory)
  return isAsync ? await finish(found, memory, argument, wait) : finish(found, memory, argument, wait)
}
