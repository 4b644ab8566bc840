'use strict'

/**
 * Publishes the durations of holds on the channel `atomics-waitasync:hold`. It does so for each hold of this thread
 * that begins while there are subscribers.
 *
 * The robust list calls `begin` and `end` where an entry comes and goes, with its serial number, which stays the
 * same while entries move. An entry goes in the midst of a release, where no other code may run. So the message
 * waits until the release calls `tell`; a hold that ends without a release, in a step of another operation, is
 * published in the next tick.
 */

const { bare, createArray, createMap, now } = require('../../util/intrinsics')
const { holdChannel } = require('./diagnostics')
const { requestIn } = require('../hold/entry')
const { DEBT, INNER, LEASE, amountOf, described, isNamed, kindOf } = require('../hold/request')

const { nextTick } = process
const WORD = 4

class Holds {
  constructor (binding) {
    this.binding = binding
    // By serial number, when it began; and how many there are. Without any, the end of a hold costs one comparison.
    this.began = createMap()
    this.count = 0
    // Messages that are still to be published, and whether the next tick will do so.
    this.ended = createArray(0)
    this.isDue = false
    this.onTick = () => {
      this.isDue = false
      this.publish()
    }
  }

  /** Notes the beginning of a hold. Called before it is taken, since there may be no stack for this. */
  begin (serial, request, token) {
    if (!holdChannel.hasSubscribers || kindOf(request) === INNER || kindOf(request) === DEBT) return
    this.began.set(serial, now())
    this.count++
  }

  forget (serial) {
    if (this.began.delete(serial)) this.count--
  }

  rename (from, to) {
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
    this.ended[this.ended.length] = this.message(held[index], requestIn(entries[2 * index + 1]), now() - began)
    this.forget(serial)
    if (this.isDue) return
    this.isDue = true
    nextTick(this.onTick)
  }

  message (word, request, milliseconds) {
    const { kind, mode } = described(request)
    // A message of a queue that is in use has a word of its own.
    const address = kindOf(request) === LEASE ? word.address - WORD * amountOf(request) : word.address
    const name = isNamed(request) ? word.name : this.binding.labelOf(address)
    return { kind, mode, name: name === null ? undefined : name, id: this.binding.wordId(address), milliseconds }
  }

  /** Publishes the holds that have ended. Called when a release is over. Never throws. */
  tell () {
    try {
      if (this.isDue) this.publish()
    } catch (_) {
      // No stack is left: the next tick does it.
    }
  }

  publish () {
    const { ended } = this
    this.ended = createArray(0)
    for (let n = 0; n < ended.length; n++) holdChannel.publish(ended[n])
  }
}
bare(Holds)

module.exports = Holds
