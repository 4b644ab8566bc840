'use strict'

/** The kinds of a folder: its locks are files, or in a table. A lock of each could be held at the same time. */

const { existsSync, readdirSync } = require('fs')
const path = require('path')

/** The table. Its name stays, so that versions with another layout (src/mapped/mod.rs) refuse each other's. */
const TABLE = 'locks-1.mapped'

const tableIn = (folder) => path.join(folder, TABLE)

/** @throws {Error} its locks are in a table */
function assertNoTable (folder) {
  if (existsSync(tableIn(folder))) throw other(folder, 'memory', 'files')
}

/** @throws {Error} its locks are files */
function assertNoFiles (folder) {
  const isLock = (name) => /^[0-9a-f]{64}\.(lock|gate)$/.test(name)
  const hasNoTable = existsSync(folder) && !existsSync(tableIn(folder))
  if (hasNoTable && readdirSync(folder).some(isLock)) throw other(folder, 'files', 'memory')
}

const other = (folder, used, asked) => new Error(`the folder ${folder} has locks of ${used}(), which those of ` +
  `${asked}() would not exclude: take another folder, or one engine in all processes`)

module.exports = { assertNoFiles, assertNoTable, tableIn }
