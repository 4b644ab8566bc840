'use strict'

/** Attaches this thread's observers, as far as somebody asks for them: see waiting/observer.js. */

const { assign } = require('../util/intrinsics')
const observer = require('../waiting/observer')

function observeLocks ({ binding, stallAfter }) {
  const { Holds, contextOfWait, holdChannel, ownerDied, waited, waits } = require('./channels')
  assign(observer, { contextOfWait, ownerDied, waited, waits })
  if (stallAfter === 0) observer.holdsOf = () => ({ holds: new Holds(binding), channel: holdChannel })
}

function reportStalls (native) {
  const { callFor, placeHere: callHere } = require('./call-stacks')
  const { callOf, claims, holdsOf, keepsHold, listen } = require('./stalls')
  const goesOn = (began) => native.binding.waitGoesOn(began)
  assign(observer, { callFor, callHere, callOf, claims, goesOn, holdsOf, keepsHold })
  listen(native)
}

module.exports = ({ native }) => {
  observer.locksBegin = () => observeLocks(native)
  if (native.stallAfter !== 0) reportStalls(native)
  const file = native.binding.profileFile()
  if (typeof file === 'string') require('./profile').record(native, file)
}
