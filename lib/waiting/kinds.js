'use strict'

/** The kind, mode and name of a lock, as users read them. */

const { quote } = require('../util/values')

/** What users read of each wait kind: the kind, and the mode. Native code has the same table. */
const NOTIFIED = [
  { kind: 'wait' },
  { kind: 'Condition' },
  { kind: 'Barrier' },
  { kind: 'Latch' },
  { kind: 'Queue', mode: 'put' },
  { kind: 'Queue', mode: 'take' },
  { kind: 'Queue', mode: 'use' },
  { kind: 'Queue', mode: 'idle' }
]
/** The wait kinds: the indexes of `NOTIFIED`. */
const waitKinds = { WAIT: 0, CONDITION: 1, BARRIER: 2, LATCH: 3, PUT: 4, TAKE: 5, USE: 6, IDLE: 7 }
/**
 * How many wait kinds there is room for. `waitKind + WAIT_KINDS * n` is a wait at the nth word behind the
 * first word of its object.
 */
const WAIT_KINDS = 16

/** What other than a message is awaited of a queue, by mode. */
const OF_QUEUES = { __proto__: null, put: 'room in ', idle: 'the end of all work of ' }

/** Names an awaited or held lock by a noun phrase. Takes an entry of a snapshot, or the kind, mode and name. */
function nounOf ({ kind, mode, name }) {
  switch (kind) {
    case 'named': return 'the lock named ' + quote(name)
    case 'AsyncLock': return one('an AsyncLock', kind, name)
    case 'RwLock': return one('an RwLock', kind, name) + ' (' + mode + ')'
    case 'Semaphore': return 'permits of ' + one('a Semaphore', kind, name)
    case 'Queue': return (OF_QUEUES[mode] || 'a message of ') + one('a Queue', kind, name)
    case 'Barrier': return 'the other parties of ' + one('a Barrier', kind, name)
    default: return one('a ' + kind, kind, name)
  }
}

const one = (anyOne, kind, name) => name === undefined ? anyOne : kind + ' ' + quote(name)

module.exports = { NOTIFIED, WAIT_KINDS, nounOf, waitKinds }
