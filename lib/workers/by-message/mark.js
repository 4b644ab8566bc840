'use strict'

/** The property under which `source.js` sends `start.js` what it needs, in place of the worker's own `workerData`. */
module.exports = 'atomics-waitasync:started-by-message'
