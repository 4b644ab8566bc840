'use strict'

/** What users read of a lock: its kind, mode and name. The native library has the same words (src/node/snapshot.rs). */

const { quote } = require('../../util/values')
const { EXCLUSIVE, LOCK, NAMED_EXCLUSIVE, NAMED_SHARED, SHARED, kindOf } = require('./request')

/** The kind and the mode of a request. */
function described (request) {
  switch (kindOf(request)) {
    case LOCK: return { kind: 'AsyncLock', mode: 'exclusive' }
    case SHARED: return { kind: 'RwLock', mode: 'shared' }
    case EXCLUSIVE: return { kind: 'RwLock', mode: 'exclusive' }
    case NAMED_SHARED: return { kind: 'named', mode: 'shared' }
    case NAMED_EXCLUSIVE: return { kind: 'named', mode: 'exclusive' }
    default: return { kind: 'Semaphore', mode: 'permits' }
  }
}

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

module.exports = { described, nameOf, nounOf }
