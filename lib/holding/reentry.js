'use strict'

/**
 * Re-entry: a task that waits, by a promise, for a lock that it holds itself. Instances made with `{ detectReentry:
 * true }` refuse that.
 *
 * A task is a callback that was given a hold, and all that its asynchronous context has (tasks.js). Work that
 * nobody awaits has that, too: so it is refused where a program asks for it only, and where it would wait for ever.
 * Other instances pay nothing for it: tasks are noted once a thread has made such an instance, and only theirs. (Before
 * Node 24, contexts make each `await` of the thread dearer.)
 */

const { reentry } = require('../waiting/errors')
const { LIMITED, amountOf, described, kindOf, requestIn } = require('./request')
const { createTasks } = require('./tasks')
const theList = require('./the-list')

/** Lets the view with this word detect re-entry. */
function detectReentry (word) {
  const list = theList()
  if (list.tasks === undefined) list.tasks = createTasks(list.native, true)
  word.detectsReentry = true
}

/**
 * Called for a word that detects re-entry.
 * @param {{ timeout: number, signal: object | undefined }} wait how it would wait
 * @throws {Error} with code ERR_DEADLOCK if the callback around this call holds what is requested. It could end by
 *   itself with a timeout or a signal
 */
function assertNoReentry (word, request, { timeout, signal }, caller) {
  if (timeout === Infinity && signal === undefined && isReentry(word, request)) {
    throw reentry(caller, word, described(request))
  }
}

function isReentry ({ address, limit }, request) {
  const list = theList()
  const { entries, tasks } = list
  // This Node has no asynchronous contexts.
  if (tasks === undefined) return false
  const serials = tasks.within()
  let permits = 0
  for (let n = 0; n < serials.length; n++) {
    const index = list.indexOf(serials[n], 0)
    if (index < 0 || entries[2 * index] !== address) continue
    if (kindOf(request) !== LIMITED) return true
    permits += amountOf(requestIn(entries[2 * index + 1]))
  }
  return permits > 0 && permits + amountOf(request) > limit
}

module.exports = { assertNoReentry, detectReentry }
