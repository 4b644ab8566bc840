'use strict'

/**
 * Publishes the durations of holds on the channel `atomics-waitasync:hold`. It does so for each hold of this thread
 * that begins while there are subscribers.
 *
 * The robust list calls `begin` and `end` where an entry comes and goes, with its serial number, which stays the
 * same while entries move. An entry goes in the midst of a release, so the message leaves by the door.
 */

const { agent } = require('../agent/find-agent')
const { bare, createMap, now } = require('../util/intrinsics')
const { holdChannel } = require('./channels')
const { requestIn } = require('../holding/entry')
const { LEASE, amountOf, described, isNamed, isVisible, kindOf } = require('../holding/request')

const WORD = 4

class Holds {
  constructor (binding) {
    this.binding = binding
    // By serial number, when it began; and how many there are. Without any, the end of a hold costs one comparison.
    this.began = createMap()
    this.count = 0
  }

  /**
   * Returns the place of a hold that is about to be taken. May run a program's code. UNAVAILABLE: it cannot be, and
   * nothing was noted.
   */
  placeOf (word, request) {
    return 0
  }

  /** Returns the place, as `placeOf`, where there may be waiters. */
  placeInLine (word, request) {
    return 0
  }

  /**
   * Notes the beginning of a hold. Called before it is taken, since there may be no stack for this. No code of the
   * program's runs.
   */
  begin (serial, request, token, place) {
    if (!holdChannel.hasSubscribers || !isVisible(request)) return
    this.began.set(serial, now())
    this.count++
  }

  forget (serial) {
    if (this.began.delete(serial)) this.count--
  }

  rename (from, to, token, place) {
    const began = this.began.get(from)
    if (began === undefined) return
    this.began.delete(from)
    this.began.set(to, began)
  }

  /** Notes the end of a hold. Called before its entry is released, as `begin`. */
  end ({ entries, held, serials }, index) {
    const serial = serials[index]
    const began = this.began.get(serial)
    if (began === undefined) return
    const message = this.message(held[index], requestIn(entries[2 * index + 1]), now() - began)
    this.forget(serial)
    agent().door.note(() => holdChannel.publish(message))
  }

  message (word, request, milliseconds) {
    const { kind, mode } = described(request)
    // A message of a queue that is in use has a word of its own.
    const address = kindOf(request) === LEASE ? word.address - WORD * amountOf(request) : word.address
    const name = isNamed(request) ? word.name : this.binding.labelOf(address)
    return { kind, mode, name: name === null ? undefined : name, id: this.binding.wordId(address), milliseconds }
  }
}
bare(Holds)

module.exports = Holds
