'use strict'

// Runs the files in the order of their names, or backwards: state that one file leaves in the thread meets the next.

const { default: Sequencer } = require('@jest/test-sequencer')

module.exports = class extends Sequencer {
  sort (tests) {
    const sorted = Array.from(tests).sort((a, b) => a.path < b.path ? -1 : 1)
    return process.env.ORDER === 'reverse' ? sorted.reverse() : sorted
  }
}
