'use strict'

/** This thread's use of queues, which all copies of the package share. It refers to a copy while that uses one. */

const { bare, createMap } = require('../util/intrinsics')

class QueueUse {
  constructor () {
    // The step that this thread is in.
    this.begun = this.newStep()
    // The lines of promises that put, by queue address; and how many.
    this.lines = createMap()
    this.lineCount = 0
  }

  /** Makes the record of a step within `outer`: see queue/owing.js. */
  newStep (outer) {
    const step = { __proto__: null, outer, state: 'idle', memory: undefined, lease: undefined }
    // The serial number of the notification that it owes; that of its entry as a putter, and the index of that.
    step.owed = step.putter = step.entry = 0
    // Where in the stack it has called what a program may have replaced.
    step.depth = 0
    return step
  }
}
bare(QueueUse)

module.exports = QueueUse
