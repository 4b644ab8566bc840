'use strict'

/**
 * The exported functions of an entry that waits in the host's queue: on memory that several processes share they wait
 * in the package's own, which alone reaches the other processes.
 *
 * Whether there is such memory is asked of the native library, so the first call loads it, where a Node can have some.
 */

const { mark, markOf } = require('../util/host')
const { MAPS_MEMORY } = require('../util/quirks')

const { apply } = Reflect

/** The library; null if there is none. */
let binding

/** Whether an argument is on memory of several processes. It may be anything. */
function crosses (typedArray, realm) {
  try {
    if (binding === undefined) {
      binding = null
      binding = require('../agent/load-binding').load()
    }
    return binding !== null && binding.mapsMemory() && require('./views').viewOf(typedArray, realm).crosses
  } catch (_) {
    // There is no library; or the host throws its own error.
    return false
  }
}

/**
 * Makes `wait` and `waitAsync` for both kinds of memory.
 * @param {{ wait: Function, waitAsync: Function }} others for all other memory
 * @param {() => object} ours makes the trio on the package's own queue
 */
module.exports = function createCrossing ({ wait, waitAsync }, realm, ours) {
  if (!MAPS_MEMORY) return { wait, waitAsync }
  let trio
  const own = () => {
    if (trio === undefined) trio = ours()
    return trio
  }
  const both = {
    wait (typedArray, index, value, timeout) {
      return apply(crosses(typedArray, realm) ? own().wait : wait, this, arguments)
    },
    // The parameters without a default value are its `length`.
    waitAsync (typedArray, index, value, timeout, options = undefined) {
      return apply(crosses(typedArray, realm) ? own().waitAsync : waitAsync, this, arguments)
    }
  }
  return {
    wait: mark(both.wait, 'host', realm.host),
    waitAsync: mark(both.waitAsync, 'host', realm.host, markOf(waitAsync))
  }
}
