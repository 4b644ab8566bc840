'use strict'

/**
 * The compiled scripts that this thread shares with its Workers: `{ key, script }`. In the published package the linker
 * (scripts/lib/bundle.js) takes this file's place; the repository's files are compiled in each thread.
 */
module.exports = []
