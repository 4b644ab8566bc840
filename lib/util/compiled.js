'use strict'

/**
 * The scripts `{ key, script }` that this thread has compiled and may share with its Workers. In the published package the linker
 * (scripts/lib/bundle.js) takes this file's place; the repository's files are compiled in each thread.
 */
module.exports = []
