'use strict'

/** Attaches this thread's observers, as far as somebody asks for them: see waiting/observer.js. */

const { assign } = require('../util/intrinsics')
const observer = require('../waiting/observer')

function observeLocks ({ binding, profilesHolders, stallAfter }) {
  const { contextOfWait, holdChannel, ownerDied, waited, waits } = require('./channels')
  const Holds = require('./hold-durations')
  assign(observer, { contextOfWait, ownerDied, waited, waits })
  if (stallAfter === 0) observer.holdsOf = () => ({ holds: new Holds(binding), channel: holdChannel })
  if (profilesHolders) recordHolders()
}

function reportStalls (native) {
  const { placeHere: callHere } = require('./places')
  const { callOf, listen, waitBegins, waitEnds, whileBlocked } = require('./stalls')
  assign(observer, { callHere, callOf, waitBegins, waitEnds, whileBlocked }, require('./taken'))
  listen(native)
}

const recordWaits = () => assign(observer, require('./profile'))

function recordHolders () {
  const { blamed, callEnds, stackOfCall } = require('./blame')
  const { holdsOf: outer } = observer
  assign(observer, { callEnds, holdsOf: (native) => blamed(outer(native)), stackOfCall })
}

module.exports = ({ native }) => {
  observer.locksBegin = () => observeLocks(native)
  if (native.stallAfter !== 0) reportStalls(native)
  if (native.profiles) recordWaits()
}
