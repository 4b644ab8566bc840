'use strict'

/** What observes the holds of this thread: only the channel `atomics-waitasync:hold`; or, if stalls are reported, taken.js as well. */

const { holdChannel } = require('./diagnostics')
const Holds = require('./holds')
const { TakenHolds, noting, watchTokens } = require('./taken')

/**
 * - `holds`: what the robust list tells of the beginning and the end of holds
 * - `told`: whether it is to be told of a beginning (`hasSubscribers`)
 * - `createList(RobustList)`: the list
 */
module.exports = function observers (native) {
  if (native.stallAfter === 0) return { holds: new Holds(native.binding), told: holdChannel, createList: (RobustList) => new RobustList() }
  const createList = (RobustList) => {
    const list = new (noting(RobustList, native))()
    watchTokens(list)
    return list
  }
  return { holds: new TakenHolds(native), told: { hasSubscribers: true }, createList }
}
