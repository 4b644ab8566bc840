'use strict'

/**
 * Leaves what this thread has compiled to the threads that start later. In the published package the linker
 * (scripts/lib/bundle.js) takes this file's place; the repository's files are compiled in each thread.
 */
module.exports = function keepCode () {}
