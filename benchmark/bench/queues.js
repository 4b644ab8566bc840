'use strict'

// The wait queues that are compared. `host` has the functions of Node's own Atomics when this was loaded, which has to
// be before anything is installed; `ours` and `again` are this package's, twice, for how far the two differ is the
// noise of a figure; `floor` is the least that JavaScript needs, with no queue at all.

const { wait, notify, waitAsync } = Atomics
const host = { wait, notify, waitAsync }

const hostHasWaitAsync = typeof waitAsync === 'function'

function open (variant) {
  if (variant === 'host') return host
  if (variant === 'floor') return createFloor()
  const { wait, notify, waitAsync } = require('../../pure')
  return { wait, notify, waitAsync }
}

/** Promises that are made and resolved, in one thread, at one location. */
function createFloor () {
  let resolvers = []
  let resolve
  const executor = (resolveFunction) => { resolve = resolveFunction }
  return {
    waitAsync () {
      const value = new Promise(executor)
      resolvers.push(resolve)
      return { async: true, value }
    },
    notify () {
      const woken = resolvers
      resolvers = []
      for (let n = 0; n < woken.length; n++) woken[n]('ok')
      return woken.length
    }
  }
}

/** Returns a figure's variants, with the host's where that has a `waitAsync`. */
const variants = (...more) => (hostHasWaitAsync ? ['host'] : []).concat('ours', 'again', more)

module.exports = { host, hostHasWaitAsync, open, variants }
