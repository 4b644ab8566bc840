'use strict'

/**
 * Repairs: callback forms that run `repair` first after a death. The dead holder may have left the state half changed.
 *
 * - A repair has an exclusive hold. While it runs, the word has the note of the death, as if nobody had
 *   seen it. So however the repair or its thread ends, and in spite of anything that it does with its token,
 *   the next holder sees the death.
 * - Once it has ended without an error, and still has the hold, the note is removed: nobody else sees it.
 * - A reader that sees it releases its share, acquires an exclusive hold, repairs if that saw it as well, releases it,
 *   and acquires a share again. So readers that saw it together pass through the line one after the other, the first
 *   of them repairs, and then they read together.
 */

const { assertStack } = require('../agent/find-agent')
const { bare, max, now } = require('../util/intrinsics')
const { UNLIMITED, callbackOptions, assertNoPromise } = require('../waiting/wait-options')
const { SERIAL } = require('./request')
const theList = require('./the-list')

/** The key of an instance's own repair, if it has one. */
const REPAIR = Symbol('atomics-waitasync.repair')

function optionsOf (instance, options, caller, signals) {
  const repair = instance[REPAIR]
  return options === undefined && repair === undefined ? UNLIMITED : callbackOptions(options, caller, signals, repair)
}

/** A call of a callback form that has a repair. */
class Repairing {
  /**
   * @param {{ timeout: number, repair: Function }} wait
   * @param {(isShared: boolean, timeout: number) => Hold | null | Promise<Hold | null>} acquire acquires again;
   *   null if it must not wait
   */
  constructor ({ timeout, repair }, caller, acquire) {
    this.repair = repair
    this.caller = caller
    this.acquire = acquire
    // When the time of its waits is over. Repairing is not waiting.
    this.end = now() + timeout
  }

  get left () {
    return max(0, this.end - now())
  }

  /**
   * Repairs, and returns the hold with which the callback runs. It replaces the hold that saw the death;
   * null if it must not wait.
   */
  async sound (hold) {
    assertStack()
    if (!hold.isShared) {
      await this.restore(hold)
      return hold
    }
    let share = hold
    do {
      share.end(false)
      const writer = await this.acquire(false, this.left)
      if (writer === null) return null
      let failed = true
      try {
        if (writer.token.ownerDied) await this.restore(writer)
        failed = false
      } finally {
        writer.end(failed)
      }
      share = await this.acquire(true, this.left)
    } while (share !== null && share.token.ownerDied)
    return share
  }

  async restore (hold) {
    const { caller, repair } = this
    const since = now()
    hold.noteDeath()
    await callWithin(hold.token, repair, hold.given, hold.word)
    hold.repaired(caller)
    this.end += now() - since
  }

  soundSync (hold, twin) {
    if (!hold.isShared) {
      this.restoreSync(hold, twin)
      return hold
    }
    let share = hold
    do {
      share.end(false)
      const writer = this.acquire(false, this.left)
      if (writer === null) return null
      let failed = true
      try {
        if (writer.token.ownerDied) this.restoreSync(writer, twin)
        failed = false
      } finally {
        writer.end(failed)
      }
      share = this.acquire(true, this.left)
    } while (share !== null && share.token.ownerDied)
    return share
  }

  restoreSync (hold, twin) {
    const { caller, repair } = this
    const since = now()
    hold.noteDeath()
    assertNoPromise(repair(hold.given), caller + ': repair', twin)
    hold.repaired(caller)
    this.end += now() - since
  }
}
bare(Repairing)

/**
 * Calls a callback of the user's that has a hold: in a task of its own, if stalls are reported or re-entry is detected.
 * @param {Word} [word] of the hold; a name has none
 */
function callWithin (token, callback, given, word) {
  const { tasks } = theList()
  return tasks === undefined ? callback(given) : tasks.call(token[SERIAL], callback, given, word)
}

module.exports = { REPAIR, Repairing, callWithin, optionsOf }
