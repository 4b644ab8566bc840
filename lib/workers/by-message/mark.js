'use strict'

/** Marks what `source.js` adds for `start.js`: a property of `workerData`, or a comment in front of source text. */
module.exports = 'atomics-waitasync:started-by-message'
