'use strict'

/** Says that the event loop has run dry while promises of locks and their like are pending, which would otherwise end a program without a word. */

/** The addresses of the words of which that has been said. */
const warned = new Set()

/** @param {Claimant[]} claimants what stands in a line, and nothing is left that could settle it */
module.exports = function warnPending (claimants) {
  for (const { word, waitsFor } of claimants) {
    if (warned.has(word.address)) continue
    warned.add(word.address)
    process.emitWarning('A promise that waits for ' + waitsFor + ' is pending, and the event loop of this thread has nothing left to do ' +
      'that could settle it.' + (word.find() < 0 ? '' : ' This thread is a holder itself.'), { code: 'ATOMICS_WAITASYNC_PENDING' })
  }
}
