'use strict'

/** What users read of a lock: its kind, mode and name. */

const { quote } = require('../util/values')

/** The kinds of waits for a notification, by their purpose: the numbers of `Purpose` in the native library. */
const NOTIFIED = ['wait', 'Condition', 'Barrier', 'Latch']

/** A noun phrase for an entry of a snapshot, or for what is awaited of a word with its kind, mode and name. */
function nounOf ({ kind, mode, name }) {
  switch (kind) {
    case 'named': return 'the lock named ' + quote(name)
    case 'AsyncLock': return one('an AsyncLock', kind, name)
    case 'RwLock': return one('an RwLock', kind, name) + ' (' + mode + ')'
    case 'Semaphore': return 'permits of ' + one('a Semaphore', kind, name)
    case 'Barrier': return 'the other parties of ' + one('a Barrier', kind, name)
    default: return one('a ' + kind, kind, name)
  }
}

const one = (anyOne, kind, name) => name === undefined ? anyOne : kind + ' ' + quote(name)

module.exports = { NOTIFIED, nounOf }
