'use strict'

/**
 * The observers of this thread's holds: holds.js, and perhaps taken.js. taken.js observes them if stalls are reported.
 */

const { holdChannel } = require('./diagnostics')
const Holds = require('./holds')
const { TakenHolds, noting, watchTokens } = require('./taken')

/**
 * - `holds`: the robust list tells it of the beginning and the end of holds
 * - `told`: says whether it wants to know of a beginning (`hasSubscribers`)
 * - `createList(RobustList)`: the list
 */
module.exports = function observers (native) {
  if (native.stallAfter === 0) {
    return { holds: new Holds(native.binding), told: holdChannel, createList: (RobustList) => new RobustList() }
  }
  const createList = (RobustList) => {
    const list = new (noting(RobustList, native))()
    watchTokens(list)
    return list
  }
  return { holds: new TakenHolds(native), told: { hasSubscribers: true }, createList }
}
