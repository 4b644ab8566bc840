'use strict'

/** What users read of a lock: its kind, mode and name. The native library has the same words (src/node/snapshot.rs). */

const { quote } = require('../util/values')

/** A noun phrase for an entry of a snapshot, or for a lock with its kind, mode and name. */
function nounOf ({ kind, mode, name }) {
  if (name !== undefined) return 'the lock named ' + quote(name)
  switch (kind) {
    case 'AsyncLock': return 'an AsyncLock'
    case 'RwLock': return 'an RwLock (' + mode + ')'
    default: return 'permits of a Semaphore'
  }
}

/** The name of a lock, if it has one. */
const nameOf = (word) => word.name

module.exports = { nameOf, nounOf }
