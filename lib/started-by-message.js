'use strict'

/** What `worker-start.js` knows its own by: a property of `workerData`, a comment in front of source text. */
module.exports = 'atomics-waitasync:started-by-message'
