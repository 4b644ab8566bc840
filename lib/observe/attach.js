'use strict'

/** Attaches this thread's observers, as far as somebody asks for them: see waiting/observer.js. */

const observer = require('../waiting/observer')

function observeLocks ({ binding, profilesHolders, stallAfter }) {
  const { contextOfWait, holdChannel, ownerDied, waited, waits } = require('./channels')
  const Holds = require('./holds')
  observer.contextOfWait = contextOfWait
  observer.ownerDied = ownerDied
  observer.waited = waited
  observer.waits = waits
  if (stallAfter === 0) observer.holdsOf = () => ({ holds: new Holds(binding), told: holdChannel })
  if (profilesHolders) recordHolders()
}

function reportStalls (native) {
  const { placeHere } = require('./places')
  const { callOf, listen, waitBegins, waitEnds, whileBlocked } = require('./stalls')
  const { claims, holdsOf } = require('./taken')
  observer.callHere = placeHere
  observer.callOf = callOf
  observer.claims = claims
  observer.holdsOf = holdsOf
  observer.waitBegins = waitBegins
  observer.waitEnds = waitEnds
  observer.whileBlocked = whileBlocked
  listen(native)
}

function recordWaits () {
  const { alongside, blockBegins, blockEnds, promiseBegins, promiseEnds, sampleOf } = require('./profile')
  observer.alongside = alongside
  observer.blockBegins = blockBegins
  observer.blockEnds = blockEnds
  observer.promiseBegins = promiseBegins
  observer.promiseEnds = promiseEnds
  observer.sampleOf = sampleOf
}

function recordHolders () {
  const { blamed, endAs, stackOfCall } = require('./blame')
  const { holdsOf } = observer
  observer.endAs = endAs
  observer.holdsOf = (native) => blamed(holdsOf(native))
  observer.stackOfCall = stackOfCall
}

module.exports = ({ native }) => {
  observer.locksBegin = () => observeLocks(native)
  if (native.stallAfter !== 0) reportStalls(native)
  if (native.profiles) recordWaits()
}
