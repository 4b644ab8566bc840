'use strict'

// How a thread of the process under test speaks to the runner: one JSON object per line on standard output, written
// synchronously, so that it gets there from every thread, also while the main thread is blocked or spins.

const fs = require('fs')

const PREFIX = '#test262# '

function write (message) {
  const line = Buffer.from('\n' + PREFIX + JSON.stringify(message) + '\n')
  for (let sent = 0; sent < line.length;) {
    try {
      sent += fs.writeSync(1, line, sent, line.length - sent)
    } catch (error) {
      if (error.code !== 'EAGAIN') throw error
    }
  }
}

/** The test has ended. `status`: 'passed' | 'failed' | 'unparsable' | 'unusable' (the entry point does not load). */
function conclude (status, message) {
  write({ status, message })
}

/** The same, said by an agent: the main thread may be in the middle of the test, so the process is ended. */
function abort (status, message) {
  write({ status, message, abort: true })
  process.kill(process.pid, 'SIGKILL')
}

/** Something that explains a failure, should there be one. */
function note (text) {
  write({ note: text })
}

/** A thrown value in words. */
function describe (thrown) {
  if (typeof thrown === 'object' && thrown !== null) {
    const name = nameOf(thrown)
    return (name ? name + ': ' : '') + String(thrown.message)
  }
  return 'thrown value ' + String(thrown)
}

/** The name of a thrown value's constructor ('' if there is none): Test262Error has no `name` of its own. */
function nameOf (thrown) {
  const constructor = thrown !== null && thrown !== undefined && thrown.constructor
  return typeof constructor === 'function' ? String(constructor.name) : ''
}

module.exports = { PREFIX, conclude, abort, note, describe, nameOf }
