'use strict'

/**
 * The short way of a free lock: what `take` and `release` of the robust list do where there is nothing else to do.
 *
 * | it is open | otherwise |
 * |---|---|
 * | for a lock that is free; and again while it is this thread's latest hold | `take`, `swap` |
 * | while few are held: the list is in its first memory, whose arrays are constants | the arrays are fields |
 * | while nobody observes holds, and nothing is to be published | holds are noted |
 * | to release: if nobody waits, on processors where that is seen by a plain read | native code; atomic reads |
 *
 * robust-list.js has the invariants, and the order of the writes is that of `take` and `release`. V8 inlines no more
 * than 920 bytes of bytecode. `lock()` and `unlock()` have 800 with all that they call here, so both become part of a
 * loop around them: an additional condition has to be worth that (__test__/locks/short-way.test.js).
 */

const { agent } = require('../agent/find-agent')
const { ADDRESS, FENCED, HELD, RELEASING } = require('../agent/registers')
const { compareExchange, store } = require('../util/intrinsics')
const { own: { Atomics, host } } = require('../util/realm')
const observer = require('../waiting/observer')
const { Entries, first: { entries, held, serials } } = require('./entries')
const { INDEX, LOCK, LOCKED, SERIAL, UNLOCKED } = require('./request')

// Captured, as in each module below `theList` that needs them: V8 makes constants of them, and as properties they would
// make a free lock a sixth dearer.
const { door, native } = agent()
const { counters: { words: counts }, floats, operations, words } = native
const { holds, channel } = observer.holdsOf(native)

/** The present `Atomics.notify`, if that is the host's and passes a fence. Otherwise something else. */
const notify = FENCED && host.notify !== undefined ? host.notify : native

/** Whether a release needs more than the short way does. */
function mayBeShared (word) {
  return !FENCED || word.onWebAssembly || native.besideHost
}

class ShortWay extends Entries {
  constructor () {
    super()
    this.door = door
  }

  /** Takes a lock as `take`. False if it is not free, or the short way is not open. */
  takeFree (word, token) {
    const { array } = word
    // First: a program may have replaced that getter.
    if (channel.hasSubscribers) return false
    const index = words[HELD]
    const serial = this.serial + 1
    if (array[0] !== UNLOCKED || index >= this.shortRoom || serial > this.lastFree) return false
    this.serial = serial
    entries[2 * index] = word.address
    entries[2 * index + 1] = LOCK
    serials[index] = serial
    if (compareExchange(array, 0, UNLOCKED, LOCKED) !== UNLOCKED) {
      serials[index] = 0
      return false
    }
    words[HELD] = index + 1
    held[index] = word
    token[INDEX] = index
    token[SERIAL] = serial
    try {
      if (counts[word.abandoned] !== 0) word.takeNoteOfDeath(LOCK, token)
    } catch (_) {
      // No stack is left: see `take` of word.js.
    }
    return true
  }

  /**
   * Releases a lock, and serves its line. False if the short way is not open.
   *
   * Where the host's `notify` passes a fence before the line is looked at, a plain write frees the lock.
   */
  releaseLast (word) {
    // First: a program may have replaced it by a getter.
    const isShared = Atomics.notify === notify
    if (!isShared && mayBeShared(word)) return false
    const { address, array, counter } = word
    const last = words[HELD] - 1
    if (entries[2 * last] !== address || counts[counter] !== 0 || holds.count !== 0 || door.isDue) return false
    floats[RELEASING] = address
    if (isShared) array[0] = UNLOCKED
    else store(array, 0, UNLOCKED)
    words[HELD] = last
    serials[last] = 0
    held[last] = undefined
    try {
      if (isShared) notify(array, 0, 1)
    } finally {
      if (counts[counter] !== 0) {
        floats[ADDRESS] = address
        operations.released()
      }
      floats[RELEASING] = 0
    }
    return true
  }

  /** Releases the lock of a token as `releaseLast`. */
  releaseToken (token) {
    const serial = token[SERIAL]
    const last = words[HELD] - 1
    // It may be that of a share or of permits.
    return serial > 0 && last >= 0 && serials[last] === serial && entries[2 * last + 1] === LOCK &&
      this.releaseLast(held[last])
  }
}

module.exports = { ShortWay, channel, holds }
