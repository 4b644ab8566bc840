'use strict'

// Loads the entry point under test into this thread, and makes sure that it has done what it stands for: a test that
// passes because the host's functions were still in place says nothing.

/**
 * @param {null | { name: string, file: string }} entry null: the host as it is
 * @returns {null | object} the exports of the entry point
 */
function loadEntry (entry) {
  if (entry === null) return null
  const api = require(entry.file)
  if (entry.name === 'pure') api.install({ force: true })
  if (isForced(entry) && api.engine !== 'addon') throw new Error(`${entry.name} says that its engine is '${api.engine}'`)
  return api
}

function isForced (entry) {
  return entry.name === 'force' || entry.name === 'pure'
}

/** Does a pending waitAsync of this thread keep its event loop alive? The host's own does not. */
function holdsEventLoop (entry, api) {
  return api !== null && (entry.name === 'keep-alive' || api.engine === 'addon')
}

module.exports = { loadEntry, isForced, holdsEventLoop }
