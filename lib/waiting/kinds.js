'use strict'

/** The kind, mode and name of a lock, as users read them. */

const { quote } = require('../util/values')

/**
 * What users read of each wait kind: the kind, the mode, and what of the object is awaited. `npm run lint -- --fix`
 * writes the table into native code.
 */
const NOTIFIED = [
  { kind: 'wait', part: '' },
  { kind: 'Condition', part: '' },
  { kind: 'Barrier', part: 'the other parties of ' },
  { kind: 'Latch', part: '' },
  { kind: 'Queue', mode: 'put', part: 'room in ' },
  { kind: 'Queue', mode: 'take', part: 'a message of ' },
  { kind: 'Queue', mode: 'use', part: 'a message of ' },
  { kind: 'Queue', mode: 'idle', part: 'the end of all work of ' }
]
/** The wait kinds: the indexes of `NOTIFIED`. */
const waitKinds = { WAIT: 0, CONDITION: 1, BARRIER: 2, LATCH: 3, PUT: 4, TAKE: 5, USE: 6, IDLE: 7 }
/**
 * How many wait kinds there is room for. `waitKind + WAIT_KINDS * n` is a wait at the nth word behind the
 * first word of its object.
 */
const WAIT_KINDS = 16

/** Names an awaited or held lock by a noun phrase. Takes an entry of a snapshot, or the kind, mode and name. */
function nounOf ({ kind, mode, name }) {
  switch (kind) {
    case 'named': return 'the lock named ' + quote(name)
    case 'AsyncLock': return one('an AsyncLock', kind, name)
    case 'RwLock': return one('an RwLock', kind, name) + ' (' + mode + ')'
    case 'Semaphore': return 'permits of ' + one('a Semaphore', kind, name)
    default: return partOf(kind, mode) + one('a ' + kind, kind, name)
  }
}

function partOf (kind, mode) {
  for (let n = 0; n < NOTIFIED.length; n++) {
    if (NOTIFIED[n].kind === kind && NOTIFIED[n].mode === mode) return NOTIFIED[n].part
  }
  return ''
}

const one = (anyOne, kind, name) => name === undefined ? anyOne : kind + ' ' + quote(name)

module.exports = { NOTIFIED, WAIT_KINDS, nounOf, waitKinds }
