'use strict'

/** What users read of a lock: its kind, mode and name. */

const { quote } = require('../util/values')

/** By its purpose, the kind of a wait for a notification, and its mode if it has one. */
const NOTIFIED = [
  { kind: 'wait' }, { kind: 'Condition' }, { kind: 'Barrier' }, { kind: 'Latch' },
  { kind: 'Queue', mode: 'put' }, { kind: 'Queue', mode: 'take' }, { kind: 'Queue', mode: 'use' }
]
/** How many purposes there is room for. `purpose + PURPOSES * n`: the word that is waited on is the nth behind the first of the thing. */
const PURPOSES = 8

/** A noun phrase for an entry of a snapshot, or for what is awaited of a word with its kind, mode and name. */
function nounOf ({ kind, mode, name }) {
  switch (kind) {
    case 'named': return 'the lock named ' + quote(name)
    case 'AsyncLock': return one('an AsyncLock', kind, name)
    case 'RwLock': return one('an RwLock', kind, name) + ' (' + mode + ')'
    case 'Semaphore': return 'permits of ' + one('a Semaphore', kind, name)
    case 'Queue': return (mode === 'put' ? 'room in ' : 'a message of ') + one('a Queue', kind, name)
    case 'Barrier': return 'the other parties of ' + one('a Barrier', kind, name)
    default: return one('a ' + kind, kind, name)
  }
}

const one = (anyOne, kind, name) => name === undefined ? anyOne : kind + ' ' + quote(name)

module.exports = { NOTIFIED, PURPOSES, nounOf }
