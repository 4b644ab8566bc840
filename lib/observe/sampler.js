'use strict'

/**
 * Chooses the waits, or holds, of which a profile takes the stack. Taking one takes longer than many a wait. So a
 * thread spends only a small share of its time on that, and each recorded one stands for `factor` others.
 */

const { agent } = require('../agent/agent')
const { bare, now } = require('../util/intrinsics')
const { FRAMES } = require('./call-stacks')
const { placeOfCall } = require('./places')

const { floor, random } = Math

/**
 * How many stacks a thread takes between two adaptations. It then compares the share of time that they took with MOST
 * and LEAST, and records fewer, or more.
 */
const ROUND = 32
const MOST = 0.01
const LEAST = 0.0025

class Sampler {
  /**
   * @param {string} consequence of a missing stack, for the warning that has this code
   * @param {number} share of MOST
   */
  constructor (consequence, code, share = 1) {
    this.consequence = consequence
    this.code = code
    this.share = share
    this.factor = 1
    this.skips = 0
    this.count = 0
    this.began = now()
    // Milliseconds.
    this.spent = 0
  }

  /** Decides for how many this one stands; 0: not recorded. */
  next () {
    if (this.skips > 0) {
      this.skips--
      return 0
    }
    this.goOn()
    const { factor } = this
    // The mean is factor - 1. The number varies: a program may have a fixed rhythm, too.
    this.skips = floor(random() * (2 * factor - 1))
    return factor
  }

  /** Counts one that is recorded. */
  goOn () {
    if (++this.count === ROUND) this.adapt()
  }

  adapt () {
    const end = now()
    const share = this.spent / (end - this.began) / this.share
    if (share > MOST) this.factor *= 2
    else if (share < LEAST && this.factor > 1) this.factor /= 2
    this.count = 0
    this.began = end
    this.spent = 0
  }

  /** Takes the stack of the program's call, and returns its number. Native code knows the stack by that. */
  takeStack () {
    const began = now()
    const number = placeOfCall(FRAMES, this.consequence, this.code)
    this.spent += now() - began
    // Those without a stack are a stack, too.
    return number === 0 ? agent().native.binding.stackNumber('') : number
  }
}
bare(Sampler)

module.exports = Sampler
