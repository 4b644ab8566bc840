'use strict'

/**
 * Tasks, if stalls are reported or re-entry is detected: within which callbacks a claim is made.
 *
 * A callback that is given a hold runs in an asynchronous context of its own. The callback probably awaits a claim that
 * is made there before it ends: then its hold stays until the claim has been granted, and core/src/lock/cycles.rs
 * finds the tasks that wait for one another. It is not certain, since work that nobody awaits has the context, too. A
 * hold by a token that no callback was given has no context.
 *
 * A context may be kept for long after its callback has ended. So a scope that is over refers to no other one; and it
 * does not count for the callbacks that are run in it: nobody awaits those.
 *
 * Native code knows of which holds the callbacks run: such a hold waits for nothing that is claimed elsewhere.
 */

const { AsyncLocalStorage } = require('async_hooks')
const { apply, bare, createArray, createMap } = require('../util/intrinsics')
const { RUNS_LATER } = require('../util/quirks')

/** How many holds of callbacks around a claim count, the innermost first. */
const MOST = 64

/** A callback that runs with a hold. */
class Scope {
  constructor (serial, outer) {
    this.serials = serialsOf(serial)
    // The scope in which the callback form was called; undefined if there is none.
    this.outer = outer
    this.isOver = false
  }
}
bare(Scope)

/** Lists the serial numbers of a token's holds: that of several names has a list. */
const serialsOf = (serial) => typeof serial === 'number' ? [serial] : serial

class Tasks {
  /** @param {boolean} notesAll whether it notes all callbacks; otherwise, those with views that detect re-entry */
  constructor ({ binding }, notesAll) {
    this.binding = binding
    this.notesAll = notesAll
    this.storage = new AsyncLocalStorage()
    // By the serial numbers of their holds, those that are not over.
    this.scopes = createMap()
  }

  /** @param {object} [word] of the view; a name has none */
  call (serial, callback, given, word) {
    if (!this.notesAll && (word === undefined || !word.detectsReentry)) return callback(given)
    const outer = apply(getStore, this.storage, [])
    const scope = new Scope(serial, outer === undefined || outer.isOver ? undefined : outer)
    // Callbacks of processes' locks may share the hold of the name in front.
    let isPending = false
    try {
      if (!this.scopes.has(scope.serials[0])) this.note(scope)
      const result = apply(run, this.storage, [scope, () => callback(given)])
      isPending = typeof result === 'object' || typeof result === 'function'
      return isPending ? this.settled(scope, result) : result
    } finally {
      if (!isPending) this.end(scope)
    }
  }

  /** Begins a hold whose callbacks are parts of it. */
  begin (serial) {
    if (this.notesAll) this.note(new Scope(serial))
  }

  note (scope) {
    const { serials } = scope
    for (let n = 0; n < serials.length; n++) {
      this.scopes.set(serials[n], scope)
      this.binding.noteTask(serials[n], true)
    }
  }

  endOf (serial) {
    const scope = this.scopes.get(serial)
    if (scope !== undefined) this.end(scope)
  }

  async settled (scope, result) {
    try {
      return await result
    } finally {
      this.end(scope)
    }
  }

  end (scope) {
    scope.outer = undefined
    scope.isOver = true
    const { serials } = scope
    for (let n = 0; n < serials.length; n++) {
      if (this.scopes.get(serials[n]) !== scope) continue
      this.scopes.delete(serials[n])
      this.binding.noteTask(serials[n], false)
    }
  }

  rename (from, to) {
    const scope = this.scopes.get(from)
    if (scope === undefined) return
    this.scopes.delete(from)
    this.scopes.set(to, scope)
    scope.serials = [to]
    this.binding.noteTask(to, true)
    this.binding.noteTask(from, false)
  }

  /** Lists the serial numbers of the holds around this call. The innermost comes first. */
  within () {
    const serials = createArray(0)
    let scope = apply(getStore, this.storage, [])
    // Its hold may be released a moment later.
    if (scope !== undefined && scope.isOver) return serials
    for (; scope !== undefined && serials.length < MOST; scope = scope.outer) {
      const { length } = scope.serials
      for (let n = 0; n < length && serials.length < MOST; n++) serials[serials.length] = scope.serials[n]
    }
    return serials
  }
}
bare(Tasks)

const hasContexts = AsyncLocalStorage !== undefined && !RUNS_LATER
const { getStore, run } = hasContexts ? AsyncLocalStorage.prototype : {}

/**
 * Makes the tasks of this thread, if somebody asks for them: reports of stalls, or an instance that `detects` re-entry.
 * Undefined also where there are no asynchronous contexts.
 */
function createTasks (native, detects = false) {
  const notesAll = native.stallAfter !== 0
  return hasContexts && (notesAll || detects) ? new Tasks(native, notesAll) : undefined
}

module.exports = { createTasks, serialsOf }
